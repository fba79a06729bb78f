//! Where each of many outstanding requests is, and which was submitted first. Few are looked through.

use std::collections::{BTreeMap, BTreeSet};

use flashkeel_engine::{RequestId, Time};

use super::flight::Flight;

/// From more requests on places are kept, and down to so few.
const MANY: usize = 64;
pub(super) const FEW: usize = 32;

/// The places of flights, as long as there are many.
#[derive(Clone, Debug, Default)]
pub(super) struct Crowd {
    places: BTreeMap<RequestId, usize>,
    by_age: BTreeSet<(Time, RequestId)>,
}

impl Crowd {
    /// The last of these has come, of which there are [`FEW`] at least.
    #[cold]
    #[inline(never)]
    pub fn came(&mut self, flights: &[Flight]) {
        if flights.len() <= MANY && self.places.is_empty() {
            return;
        }
        let from = if self.places.is_empty() { 0 } else { flights.len() - 1 };
        for (place, flight) in flights.iter().enumerate().skip(from) {
            self.places.insert(flight.id, place);
            self.by_age.insert((flight.submitted, flight.id));
        }
    }

    /// The place of a request among `flights`.
    pub fn place(&self, id: RequestId, flights: &[Flight]) -> Option<usize> {
        match self.places.is_empty() {
            true => flights.iter().position(|flight| flight.id == id),
            false => self.places.get(&id).copied(),
        }
    }

    /// The last of `flights` takes the place of `gone`, which was at `place` before.
    pub fn left(&mut self, gone: &Flight, place: usize, flights: &[Flight]) {
        if self.places.is_empty() {
            return;
        }
        self.places.remove(&gone.id);
        self.by_age.remove(&(gone.submitted, gone.id));
        if let Some(moved) = flights.get(place) {
            self.places.insert(moved.id, place);
        }
        if flights.len() < FEW {
            self.clear();
        }
    }

    /// When the first of `flights` was submitted.
    pub fn oldest(&self, flights: &[Flight]) -> Option<Time> {
        match self.by_age.first() {
            Some(&(submitted, _)) => Some(submitted),
            None => flights.iter().map(|flight| flight.submitted).min(),
        }
    }

    /// Nothing is outstanding.
    pub fn clear(&mut self) {
        self.places.clear();
        self.by_age.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Once of hundreds of thousands the one that had ended was looked for among all, and the oldest, too.
    #[test]
    fn what_is_kept_is_what_is_there() {
        let (mut crowd, mut flights) = (Crowd::default(), Vec::new());
        for number in 0..4_000_u64 {
            let comes = if number / 400 % 2 == 0 { number % 4 != 0 } else { number % 4 == 0 };
            if comes {
                let submitted = Time(number / 3);
                flights.push(Flight { id: RequestId(number), submitted, ..Flight::default() });
                if flights.len() >= FEW {
                    crowd.came(&flights);
                }
            } else if !flights.is_empty() {
                let place = number as usize * 7_919 % flights.len();
                let gone = flights.swap_remove(place);
                crowd.left(&gone, place, &flights);
                assert_eq!(crowd.place(gone.id, &flights), None);
            }
            for (place, flight) in flights.iter().enumerate().step_by(17) {
                assert_eq!(crowd.place(flight.id, &flights), Some(place), "{number}");
            }
            assert_eq!(crowd.oldest(&flights), flights.iter().map(|flight| flight.submitted).min());
            assert!(flights.len() <= MANY || crowd.places.len() == flights.len());
            assert!(flights.len() >= FEW || crowd.places.is_empty());
        }
    }
}
