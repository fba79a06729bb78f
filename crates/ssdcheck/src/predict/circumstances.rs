//! What became of requests that stood alike before their volume: for all sizes together, and from
//! there for each. What follows for a size is kept beside it, so that a request finds it at once.

use super::history::{History, Noted};
use super::mixer::stretch;
use super::volume::Seen;

/// Where the parts of a place begin, in bits: steps of the time since a flush began come first.
pub(super) const SLOW_STEP: u32 = 6;
pub(super) const KIND: u32 = 9;
pub(super) const SEEN: u32 = 11;
pub(super) const LEVEL: u32 = 13;
pub(super) const SIZE: u32 = 15;
/// Sizes of requests told apart: octaves of pages, 128 and more together.
pub(super) const SIZES: usize = 8;
/// Places of one size, and of all.
const ANY_SIZE: usize = 1 << SIZE;
const ALL: usize = SIZES * ANY_SIZE;
/// Outcomes of requests of one size after which those of others count for nothing.
const ENOUGH: u16 = 64;

/// The histories of all places.
#[derive(Clone, Debug)]
pub(super) struct Circumstances {
    busy: History<ANY_SIZE>,
    by_size: History<ALL>,
    /// The logarithm of the odds at each place; 0 where nothing has been seen.
    odds: Box<[f32; ALL]>,
}

impl Circumstances {
    pub fn new() -> Circumstances {
        let odds = vec![0.0; ALL].into_boxed_slice();
        Circumstances {
            busy: History::new(),
            by_size: History::new(),
            odds: odds.try_into().expect("so many were made"),
        }
    }

    /// The logarithm of the odds of being slow at a place; `waits` is whether what is known of the
    /// volume makes a request slow.
    #[inline]
    pub fn odds(&self, place: u32, waits: bool) -> f32 {
        let odds = self.odds[place as usize % ALL];
        if odds != 0.0 { odds } else { self.of_others(place, waits) }
    }

    #[cold]
    #[inline(never)]
    fn of_others(&self, place: u32, waits: bool) -> f32 {
        let chance = self.busy.probability(place as usize % ANY_SIZE, prior(place, waits));
        stretch(chance, 1.0 - chance)
    }

    /// Notes an outcome as if it had come so many times, a few.
    #[inline]
    pub fn note(&mut self, place: u32, waits: bool, is_slow: bool, times: u32) {
        self.busy.note(place as usize % ANY_SIZE, is_slow, times);
        self.by_size.note(place as usize % ALL, is_slow, times);
        self.conclude(place, waits);
    }

    #[inline]
    fn conclude(&mut self, place: u32, waits: bool) {
        let prior = prior(place, waits);
        let entry = self.by_size.entry(place as usize % ALL);
        let chance = entry.probability(match entry.all() {
            // What little could be added is not looked for.
            ENOUGH.. => prior,
            _ => self.busy.probability(place as usize % ANY_SIZE, prior),
        });
        self.odds[place as usize % ALL] = stretch(chance, 1.0 - chance);
    }

    /// What has been seen, of all sizes together and of each.
    pub fn noted(&self) -> [Vec<Noted>; 2] {
        [self.busy.noted(), self.by_size.noted()]
    }

    /// Whether all sizes together, and each, can have seen that.
    pub fn hold(busy: &[Noted], by_size: &[Noted]) -> [bool; 2] {
        [History::<ANY_SIZE>::holds(busy), History::<ALL>::holds(by_size)]
    }

    /// Takes over what others have seen.
    pub fn recall(&mut self, busy: &[Noted], by_size: &[Noted]) {
        self.busy.recall(busy);
        self.by_size.recall(by_size);
        by_size.iter().for_each(|noted| self.conclude(noted.index(), false));
    }
}

/// The probability of being slow at a place of which nothing has been seen.
#[inline]
fn prior(place: u32, waits: bool) -> f32 {
    let is_seen_slow = place & 3 << SEEN == Seen::Slow as u32;
    match waits {
        true => 0.8,
        // Slow requests come together.
        false if is_seen_slow && place >> SLOW_STEP & 7 <= 2 => 0.35,
        false => 0.02,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chance(circumstances: &Circumstances, place: u32, waits: bool) -> f32 {
        super::super::mixer::squash(circumstances.odds(place, waits))
    }

    #[test]
    fn a_size_of_which_nothing_was_seen_is_as_the_others() {
        let mut seen = Circumstances::new();
        let (place, other) = (1 << SIZE | 5, 2 << SIZE | 5);
        assert!((0.7..0.9).contains(&chance(&seen, place, true)) && chance(&seen, place, false) < 0.05);
        (0..40).for_each(|_| seen.note(place, false, true, 1));
        assert!(chance(&seen, place, false) > 0.9);
        assert!(chance(&seen, other, false) > 0.8);
        assert!(chance(&seen, other + 1, false) < 0.05, "other circumstances");
        (0..20).for_each(|_| seen.note(other, false, false, 8));
        assert!(chance(&seen, other, false) < 0.05 && chance(&seen, place, false) > 0.9);
    }

    #[test]
    fn what_was_seen_is_taken_over() {
        let mut seen = Circumstances::new();
        (0..30).for_each(|number| seen.note(3 << SIZE | 7, false, number % 3 == 0, 1));
        let [busy, by_size] = seen.noted();
        assert_eq!(Circumstances::hold(&busy, &by_size), [true; 2]);
        let mut other = Circumstances::new();
        other.recall(&busy, &by_size);
        assert_eq!(other.odds(3 << SIZE | 7, false), seen.odds(3 << SIZE | 7, false));
        assert_eq!(other.odds(4 << SIZE | 7, false), seen.odds(4 << SIZE | 7, false));
    }
}
