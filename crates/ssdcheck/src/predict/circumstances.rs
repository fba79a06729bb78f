//! What became of requests that stood alike before their volume. What follows is kept beside it, so
//! that a request finds it at once.

use super::history::{Entry, History, Noted};
use super::mixer::stretch;
use super::volume::Seen;

/// Where the parts of a place begin, in bits: steps of the time since a flush began come first. Whether
/// what is known of the volume makes a request slow is the last, and tells what is thought where little
/// or nothing has been seen; what is seen counts for both.
pub(super) const SLOW_STEP: u32 = 6;
pub(super) const KIND: u32 = 9;
pub(super) const SEEN: u32 = 11;
pub(super) const LEVEL: u32 = 13;
pub(super) const WAITS: u32 = 15;
/// As many as a place can tell.
const PLACES: usize = 1 << u16::BITS;
const SEEN_PLACES: usize = 1 << WAITS;

/// The histories of all places.
#[derive(Clone, Debug)]
pub(super) struct Circumstances {
    seen: History<SEEN_PLACES>,
    /// The logarithm of the odds at each place.
    odds: Box<[f32; PLACES]>,
}

impl Circumstances {
    pub fn new() -> Circumstances {
        let odds: Box<[f32]> = (0..=u16::MAX).map(|place| odds(prior(place))).collect();
        Circumstances { seen: History::new(), odds: odds.try_into().expect("so many were made") }
    }

    /// The logarithm of the odds of being slow at a place.
    #[inline]
    pub fn odds(&self, place: u16) -> f32 {
        self.odds[usize::from(place)]
    }

    /// Notes an outcome as if it had come so many times, a few.
    #[inline]
    pub fn note(&mut self, place: u16, is_slow: bool, times: u32) {
        let entry = self.seen.note(usize::from(place) % SEEN_PLACES, is_slow, times);
        self.conclude(place, entry);
    }

    #[inline]
    fn conclude(&mut self, place: u16, entry: Entry) {
        for place in [place & !(1 << WAITS), place | 1 << WAITS] {
            self.odds[usize::from(place)] = odds(entry.probability(prior(place)));
        }
    }

    /// What has been seen.
    pub fn noted(&self) -> Vec<Noted> {
        self.seen.noted()
    }

    /// Whether that can have been seen.
    pub fn holds(noted: &[Noted]) -> bool {
        History::<SEEN_PLACES>::holds(noted)
    }

    /// Takes over what others have seen.
    pub fn recall(&mut self, noted: &[Noted]) {
        self.seen.recall(noted);
        for place in noted.iter().map(|noted| noted.index() as u16) {
            self.conclude(place, self.seen.entry(usize::from(place)));
        }
    }
}

/// The logarithm of the odds.
#[inline]
fn odds(chance: f32) -> f32 {
    stretch(chance, 1.0 - chance)
}

/// The probability of being slow at a place of which nothing has been seen.
#[inline]
fn prior(place: u16) -> f32 {
    let place = u32::from(place);
    if place >> WAITS != 0 {
        return 0.8;
    }
    // Slow requests come together.
    let is_seen_slow = place & 3 << SEEN == Seen::Slow as u32;
    if is_seen_slow && place >> SLOW_STEP & 7 <= 2 { 0.35 } else { 0.02 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chance(circumstances: &Circumstances, place: u16) -> f32 {
        super::super::mixer::squash(circumstances.odds(place))
    }

    #[test]
    fn a_place_is_as_what_came_there() {
        let mut seen = Circumstances::new();
        let waits = 5 | 1 << WAITS;
        assert!((0.7..0.9).contains(&chance(&seen, waits)) && chance(&seen, 5) < 0.05);
        (0..40).for_each(|_| seen.note(5, true, 1));
        assert!(chance(&seen, 5) > 0.9);
        assert!(chance(&seen, 6) < 0.05, "other circumstances");
        (0..200).for_each(|_| seen.note(5, false, 8));
        assert!(chance(&seen, 5) < 0.05 && chance(&seen, waits) < 0.05);
    }

    #[test]
    fn what_was_seen_is_taken_over() {
        let mut seen = Circumstances::new();
        (0..30).for_each(|number| seen.note(7, number % 3 == 0, 1));
        let noted = seen.noted();
        assert!(Circumstances::holds(&noted));
        let mut other = Circumstances::new();
        other.recall(&noted);
        assert_eq!([7, 8].map(|place| other.odds(place)), [7, 8].map(|place| seen.odds(place)));
    }
}
