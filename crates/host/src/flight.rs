//! What is on its way and has not come back.

use flashkeel_engine::RequestId;

/// Things in flight, by their rising numbers.
///
/// A window over the numbers from the oldest in flight to the newest: dense,
/// and as long as the spread between them.
#[derive(Clone, Debug)]
pub(crate) struct Flights<T> {
    /// The window: every number in flight lies in it.
    first: u64,
    end: u64,
    /// By number, modulo its length, which is a power of two.
    ring: Vec<Option<T>>,
    count: usize,
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Flights { first: 0, end: 0, ring: (0..SHORTEST).map(|_| None).collect(), count: 0 }
    }
}

/// Places of a new ring.
const SHORTEST: usize = 16;

impl<T> Flights<T> {
    /// The number of the next one.
    #[inline]
    pub fn next_id(&self) -> RequestId {
        RequestId(self.end)
    }

    /// The number of the oldest in flight; of the next one, where none is.
    #[inline]
    pub fn first_id(&self) -> RequestId {
        RequestId(self.first)
    }

    /// How many are in flight.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// The place of a number in the window.
    #[inline]
    fn place(&self, number: u64) -> usize {
        number as usize & (self.ring.len() - 1)
    }

    /// Notes one under [`next_id`](Self::next_id), which it returns.
    #[inline]
    pub fn take_off(&mut self, flight: T) -> RequestId {
        let id = self.next_id();
        if self.end - self.first == self.ring.len() as u64 {
            self.grow();
        }
        let place = self.place(id.0);
        self.ring[place] = Some(flight);
        self.end += 1;
        self.count += 1;
        id
    }

    #[cold]
    fn grow(&mut self) {
        let empty = (0..2 * self.ring.len()).map(|_| None).collect();
        let mut former = std::mem::replace(&mut self.ring, empty);
        for number in self.first..self.end {
            let (place, before) = (self.place(number), number as usize & (former.len() - 1));
            self.ring[place] = former[before].take();
        }
    }

    /// Takes all that are in flight out, in the order of their numbers.
    pub fn take_all(&mut self) -> Vec<(RequestId, T)> {
        let window = std::mem::replace(&mut self.first, self.end)..self.end;
        self.count = 0;
        let take = |number| {
            let place = self.place(number);
            Some((RequestId(number), self.ring[place].take()?))
        };
        window.filter_map(take).collect()
    }

    /// One that is in flight, to change.
    #[inline]
    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut T> {
        let place = self.place(id.0);
        let is_inside = id.0.wrapping_sub(self.first) < self.end - self.first;
        self.ring[place].as_mut().filter(|_| is_inside)
    }

    /// Everything in flight, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        (self.first..self.end).filter_map(|number| self.ring[self.place(number)].as_ref())
    }

    /// Takes a completed one out.
    ///
    /// # Panics
    /// If it is not in flight: a request completes exactly once.
    #[inline]
    pub fn land(&mut self, id: RequestId) -> T {
        self.land_if(id, |_| true).expect("it has landed")
    }

    /// Takes one out if `has_landed` says so, which may change it.
    ///
    /// # Panics
    /// As for [`land`](Self::land).
    #[inline]
    pub fn land_if(&mut self, id: RequestId, has_landed: impl FnOnce(&mut T) -> bool) -> Option<T> {
        let flight = self.get_mut(id).expect("a request completes exactly once");
        if !has_landed(flight) {
            return None;
        }
        let place = self.place(id.0);
        let flight = self.ring[place].take();
        self.count -= 1;
        if id.0 == self.first {
            self.pass_landed();
        }
        flight
    }

    /// The oldest has landed: goes on to the next that has not.
    #[inline]
    fn pass_landed(&mut self) {
        self.first += 1;
        while self.first < self.end && self.ring[self.place(self.first)].is_none() {
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Stream;

    use super::*;

    #[test]
    fn what_lands_is_what_took_off_in_any_order() {
        let mut random = Stream::new(1, "flights");
        let (mut flights, mut reference) = (Flights::default(), std::collections::BTreeMap::new());
        for round in 0..20_000u64 {
            // Grows to hundreds, shrinks to nothing, and so on.
            let chance = if round / 1_000 % 2 == 0 { 0.6 } else { 0.4 };
            if random.chance(chance) || reference.is_empty() {
                let id = flights.take_off(round);
                reference.insert(id.0, round);
            } else {
                let nth = random.below(reference.len() as u64) as usize;
                let (&id, &round) = reference.iter().nth(nth).unwrap();
                assert_eq!(flights.land_if(RequestId(id), |_| false), None);
                assert_eq!(flights.land(RequestId(id)), round);
                assert_eq!(flights.get_mut(RequestId(id)), None);
                reference.remove(&id);
            }
            assert_eq!(flights.len(), reference.len());
            assert!(flights.iter().eq(reference.values()));
        }
        let all: Vec<(u64, u64)> = flights.take_all().into_iter().map(|(id, round)| (id.0, round)).collect();
        assert!(all.into_iter().eq(reference));
        assert_eq!(flights.len(), 0);
    }
}
