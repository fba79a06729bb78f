//! What became of requests by each signal, and the odds that follow.

use super::history::{History, Noted};
use super::mixer::{SETS, stretch};

/// Circumstances that each have a table of their own.
pub(super) const SIGNALS: usize = 5;
/// Those in which a request has a place of its own, and those in which it has one in common with
/// others.
pub(super) const OWN_PLACES: usize = 3;
pub(super) const COMMON: usize = SIGNALS - OWN_PLACES;
/// Entries of the tables of one set of weights, which has its own; and of all.
pub(super) const ENTRIES: usize = 4_096;
const ALL: usize = SETS * ENTRIES;
/// Room for whatever 16 bits tell.
const ROOM: usize = 1 << u16::BITS;

/// Where a request stands in the tables: by the last latency, by its region and by the phase of its
/// buffer, which is its own; and by the mean and by what is outstanding.
pub(super) type Places = [u32; SIGNALS];

/// What the tables have seen, and what that comes to.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    seen: History<ALL>,
    /// By how much the logarithm of an entry's odds is above that of the share of slow requests;
    /// nothing where nothing has been seen.
    beyond: Box<[f32; ROOM]>,
}

impl Tables {
    pub fn new() -> Tables {
        let beyond = vec![0.0; ROOM].into_boxed_slice();
        Tables { seen: History::new(), beyond: beyond.try_into().expect("so many were made") }
    }

    /// What is at these places, beyond the share of slow requests.
    #[inline(always)]
    pub fn beyond<const PLACES: usize>(&self, places: [u32; PLACES]) -> [f32; PLACES] {
        // A place lies within the tables; the processor need not be asked.
        places.map(|place| self.beyond[usize::from(place as u16)])
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
        let places = places.map(|place| place as usize % ALL);
        let entries = places.map(|place| self.seen.note(place, is_slow, times));
        let beyond = entries.map(|entry| {
            let (slow, normal) = entry.counts();
            stretch(slow + presumed.0, normal + presumed.1) - share_odds
        });
        for (place, beyond) in places.into_iter().zip(beyond) {
            self.beyond[place] = beyond;
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
            let ((slow, normal), share_odds) = presumed(place / ENTRIES);
            let (more_slow, more_normal) = self.seen.entry(place).counts();
            self.beyond[place] = stretch(slow + more_slow, normal + more_normal) - share_odds;
        }
    }
}
