//! What became of requests by each signal, and the odds that follow.

use super::history::{History, Noted};
use super::mixer::stretch;

/// Circumstances that each have a table of their own.
pub(super) const SIGNALS: usize = 5;
/// Entries of each table, and of all.
pub(super) const ENTRIES: usize = 4_096;
const ALL: usize = (SIGNALS * ENTRIES).next_power_of_two();

/// Where a request stands in the tables.
pub(super) type Places = [u32; SIGNALS];

/// What the tables have seen, and what that comes to.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    seen: History<ALL>,
    /// By how much the logarithm of an entry's odds is above that of the share of slow requests;
    /// nothing where nothing has been seen.
    beyond: Box<[f32; ALL]>,
}

impl Tables {
    pub fn new() -> Tables {
        let beyond = vec![0.0; ALL].into_boxed_slice();
        Tables { seen: History::new(), beyond: beyond.try_into().expect("so many were made") }
    }

    #[inline]
    fn index(place: u32) -> usize {
        // A place lies within the tables; the processor need not be asked.
        place as usize % ALL
    }

    /// What is at these places, beyond the share of slow requests.
    #[inline]
    pub fn beyond(&self, places: &Places, beyond: &mut [f32]) {
        for (beyond, &place) in beyond.iter_mut().zip(places) {
            *beyond = self.beyond[Self::index(place)];
        }
    }

    /// Notes an outcome as if it had come so many `times`, where an entry that has seen nothing
    /// is `presumed` to have seen that of slow and of normal requests, whose odds are those of their share.
    #[inline]
    pub fn note(
        &mut self,
        places: &Places,
        is_slow: bool,
        times: u32,
        presumed: (f32, f32),
        share_odds: f32,
    ) {
        let entries = places.map(|place| self.seen.note(Self::index(place), is_slow, times));
        let beyond = entries.map(|entry| {
            let (slow, normal) = entry.counts();
            stretch(slow + presumed.0, normal + presumed.1) - share_odds
        });
        for (&place, beyond) in places.iter().zip(beyond) {
            self.beyond[Self::index(place)] = beyond;
        }
    }

    /// What has been seen.
    pub fn noted(&self) -> Vec<Noted> {
        self.seen.noted()
    }

    /// Whether tables can have seen that.
    pub fn holds(noted: &[Noted]) -> bool {
        History::<ALL>::holds(noted)
    }

    /// Takes over what others have seen; `presumed` is told of a place what [`note`](Self::note) is.
    pub fn recall(&mut self, noted: &[Noted], presumed: impl Fn(u32) -> ((f32, f32), f32)) {
        self.seen.recall(noted);
        for place in noted.iter().map(|noted| noted.index()) {
            let ((slow, normal), share_odds) = presumed(place);
            let (more_slow, more_normal) = self.seen.entry(place as usize).counts();
            self.beyond[place as usize] = stretch(slow + more_slow, normal + more_normal) - share_odds;
        }
    }
}
