//! What is on its way and has not come back.

use flashkeel_engine::RequestId;

/// Things in flight.
///
/// They go by rising numbers, whose last bits say in which slot each lies: there are as many
/// slots as things were ever in flight together, and the last one freed is taken first, so
/// that they are few and stay in the cache.
#[derive(Clone, Debug)]
pub(crate) struct Flights<T> {
    /// How many have taken off.
    count: u64,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    /// Of what lies or lay there.
    id: RequestId,
    flight: Option<T>,
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Flights { count: 0, slots: Vec::new(), free: Vec::new() }
    }
}

/// Bits of a number that say the slot: some 67 million are in flight together at most, far
/// more than fit into memory, and 2^36 take off one after the other, as two bits are left to
/// whoever hands numbers on.
const SLOT_BITS: u32 = 26;

/// Where a number says that it lies.
#[inline(always)]
fn slot_of(id: RequestId) -> usize {
    id.0 as usize & ((1 << SLOT_BITS) - 1)
}

/// How many took off before it.
#[inline(always)]
pub(crate) fn nth(id: RequestId) -> RequestId {
    RequestId(id.0 >> SLOT_BITS)
}

impl<T> Flights<T> {
    /// The number of the next one.
    #[inline(always)]
    pub fn next_id(&self) -> RequestId {
        let slot = self.free.last().map_or(self.slots.len() as u64, |&slot| u64::from(slot));
        RequestId(self.count << SLOT_BITS | slot)
    }

    /// How many are in flight.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Notes one under [`next_id`](Self::next_id), which it returns.
    #[inline(always)]
    pub fn take_off(&mut self, flight: T) -> RequestId {
        let id = self.next_id();
        self.count += 1;
        if self.free.pop().is_none() {
            self.add_slot(id);
        }
        self.slots[slot_of(id)] = Slot { id, flight: Some(flight) };
        id
    }

    #[cold]
    fn add_slot(&mut self, id: RequestId) {
        assert!(self.slots.len() < 1 << SLOT_BITS, "more are in flight than can be numbered");
        self.slots.push(Slot { id, flight: None });
    }

    /// Takes all that are in flight out, in the order of their numbers.
    pub fn take_all(&mut self) -> Vec<(RequestId, T)> {
        let taken = self.slots.iter_mut().filter_map(|slot| Some((slot.id, slot.flight.take()?)));
        let mut taken: Vec<(RequestId, T)> = taken.collect();
        taken.sort_unstable_by_key(|(id, _)| *id);
        self.free.extend(taken.iter().rev().map(|(id, _)| slot_of(*id) as u32));
        taken
    }

    /// One that is in flight, to change.
    #[inline(always)]
    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut T> {
        let slot = self.slots.get_mut(slot_of(id)).filter(|slot| slot.id == id)?;
        slot.flight.as_mut()
    }

    /// Everything in flight, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.flight.as_ref())
    }

    /// Takes a completed one out.
    ///
    /// # Panics
    /// If it is not in flight: a request completes exactly once.
    #[inline(always)]
    pub fn land(&mut self, id: RequestId) -> T {
        self.land_if(id, |_| true).expect("it has landed")
    }

    /// Takes one out if `has_landed` says so, which may change it.
    ///
    /// # Panics
    /// As for [`land`](Self::land).
    #[inline(always)]
    pub fn land_if(&mut self, id: RequestId, has_landed: impl FnOnce(&mut T) -> bool) -> Option<T> {
        let slot = &mut self.slots[slot_of(id)];
        let flight = slot.flight.as_mut().filter(|_| slot.id == id);
        if !has_landed(flight.expect("a request completes exactly once")) {
            return None;
        }
        self.free.push(slot_of(id) as u32);
        slot.flight.take()
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
        let mut taken_off = 0;
        for round in 0..20_000u64 {
            // Grows to hundreds, shrinks to nothing, and so on.
            let chance = if round / 1_000 % 2 == 0 { 0.6 } else { 0.4 };
            if random.chance(chance) || reference.is_empty() {
                let next = flights.next_id();
                let id = flights.take_off(round);
                assert_eq!((id, nth(id)), (next, RequestId(taken_off)));
                taken_off += 1;
                reference.insert(id.0, round);
            } else {
                let chosen = random.below(reference.len() as u64) as usize;
                let (&id, &round) = reference.iter().nth(chosen).unwrap();
                assert_eq!(flights.land_if(RequestId(id), |_| false), None);
                assert_eq!(flights.land(RequestId(id)), round);
                assert_eq!(flights.get_mut(RequestId(id)), None);
                reference.remove(&id);
            }
            assert_eq!(flights.len(), reference.len());
            let mut all: Vec<u64> = flights.iter().copied().collect();
            all.sort_unstable();
            assert!(all.iter().eq(reference.values()));
        }
        let all: Vec<(u64, u64)> = flights.take_all().into_iter().map(|(id, round)| (id.0, round)).collect();
        assert!(all.into_iter().eq(reference));
        assert_eq!(flights.len(), 0);
    }
}
