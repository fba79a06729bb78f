//! What is on its way and has not come back.

use std::collections::VecDeque;

use flashkeel_engine::RequestId;

/// Things in flight, by their rising numbers.
///
/// A window over the numbers from the oldest in flight to the newest: dense,
/// and as long as the spread between them.
#[derive(Clone, Debug)]
pub(crate) struct Flights<T> {
    first: u64,
    window: VecDeque<Option<T>>,
    count: usize,
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Flights { first: 0, window: VecDeque::new(), count: 0 }
    }
}

impl<T> Flights<T> {
    /// The number of the next one.
    #[inline]
    pub fn next_id(&self) -> RequestId {
        RequestId(self.first + self.window.len() as u64)
    }

    /// How many are in flight.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Notes one under [`next_id`](Self::next_id), which it returns.
    #[inline]
    pub fn take_off(&mut self, flight: T) -> RequestId {
        let id = self.next_id();
        self.window.push_back(Some(flight));
        self.count += 1;
        id
    }

    /// Takes all that are in flight out, in the order of their numbers.
    pub fn take_all(&mut self) -> Vec<(RequestId, T)> {
        let first = self.first;
        (self.first, self.count) = (first + self.window.len() as u64, 0);
        let all = (first..).map(RequestId).zip(self.window.drain(..));
        all.filter_map(|(id, flight)| Some((id, flight?))).collect()
    }

    /// One that is in flight, to change.
    #[inline]
    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut T> {
        let index = id.0.checked_sub(self.first)? as usize;
        self.window.get_mut(index)?.as_mut()
    }

    /// Everything in flight, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.window.iter().flatten()
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
        let index = id.0.checked_sub(self.first).map(|index| index as usize);
        let place = index.and_then(|index| self.window.get_mut(index)).filter(|place| place.is_some());
        let place = place.expect("a request completes exactly once");
        let flight = place.take_if(has_landed)?;
        self.count -= 1;
        while let Some(None) = self.window.front() {
            self.window.pop_front();
            self.first += 1;
        }
        Some(flight)
    }
}
