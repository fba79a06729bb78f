//! What became of requests by each signal, and the odds that follow.

use super::history::{History, Noted};
use super::mixer::{SETS, stretch};

/// Circumstances that each have a table of their own.
pub(super) const SIGNALS: usize = 5;
/// Entries of the tables of one set of weights, which has its own; and of all.
pub(super) const ENTRIES: usize = 4_096;
const ALL: usize = SETS * ENTRIES;

/// Where a request stands in the tables of its set.
pub(super) type Places = [u32; SIGNALS];

/// What the tables have seen, and what that comes to.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    seen: History<ALL>,
    /// By how much the logarithm of an entry's odds is above that of the share of slow requests;
    /// nothing where nothing has been seen.
    beyond: Box<[[f32; ENTRIES]; SETS]>,
}

impl Tables {
    pub fn new() -> Tables {
        let beyond = vec![[0.0; ENTRIES]; SETS].into_boxed_slice();
        Tables { seen: History::new(), beyond: beyond.try_into().expect("so many were made") }
    }

    /// What is at these places, beyond the share of slow requests.
    #[inline(always)]
    pub fn beyond(&self, set: usize, places: &Places) -> [f32; SIGNALS] {
        let beyond = &self.beyond[set % SETS];
        // A place lies within the tables; the processor need not be asked.
        places.map(|place| beyond[place as usize % ENTRIES])
    }

    /// Notes an outcome as if it had come so many `times`, where an entry that has seen nothing
    /// is `presumed` to have seen that of slow and of normal requests, whose odds are those of their share.
    #[inline]
    pub fn note(
        &mut self,
        set: usize,
        places: &Places,
        is_slow: bool,
        times: u32,
        presumed: (f32, f32),
        share_odds: f32,
    ) {
        let set = set % SETS;
        let places = places.map(|place| place as usize % ENTRIES);
        let entries = places.map(|place| self.seen.note(set * ENTRIES + place, is_slow, times));
        let beyond = entries.map(|entry| {
            let (slow, normal) = entry.counts();
            stretch(slow + presumed.0, normal + presumed.1) - share_odds
        });
        for (place, beyond) in places.into_iter().zip(beyond) {
            self.beyond[set][place] = beyond;
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

    /// Takes over what others have seen; `presumed` is told of a set what [`note`](Self::note) is.
    pub fn recall(&mut self, noted: &[Noted], presumed: impl Fn(usize) -> ((f32, f32), f32)) {
        self.seen.recall(noted);
        for place in noted.iter().map(|noted| noted.index() as usize) {
            let (set, entry) = (place / ENTRIES, place % ENTRIES);
            let ((slow, normal), share_odds) = presumed(set);
            let (more_slow, more_normal) = self.seen.entry(place).counts();
            self.beyond[set][entry] = stretch(slow + more_slow, normal + more_normal) - share_odds;
        }
    }
}
