//! Silences, and what was written between them: a drive that works when nothing
//! is asked of it has the more to do the more was written since it last could.

use flashkeel_engine::Time;

/// Octaves told apart, from 64 us on.
const OCTAVES: usize = 16;
/// Steps of the data written.
pub(super) const DEBTS: usize = 4;

/// Shorter ones are none.
pub(super) const SHORTEST_NS: u64 = 1 << 16;
/// A silence at least as long is remembered for the requests after the first.
const LONG_NS: u64 = 1_000_000;
/// How long the work of a silence may go on after its end, in two steps.
const AFTER_NS: [u64; 2] = [600_000, 1_800_000];
/// Steps of the time since a silence: at its end, and the two.
pub(super) const PLACES: usize = 3;

/// Pages written since the last silence of each length, and the last long one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silences {
    /// When the last long one ended, and up to when requests stand in its wake.
    last_end_ns: u64,
    wake_ns: u64,
    last_ns: u64,
    last_debt: usize,
    written: u64,
    /// `written` at the end of the last silence of at least so many octaves.
    at: [u64; OCTAVES],
}

impl Silences {
    /// Pages were written.
    #[inline]
    pub fn write(&mut self, pages: u32) {
        self.written += u64::from(pages);
    }

    /// A silence of this many nanoseconds ends `now`; a buffer has `pages` pages.
    #[inline(never)]
    pub fn end(&mut self, now: Time, ns: u64, pages: u32) {
        if ns >= LONG_NS {
            (self.last_end_ns, self.last_ns, self.last_debt) = (now.0, ns, self.debt(ns, pages));
            self.wake_ns = now.0 + AFTER_NS[1];
        }
        if let Some(octave) = octave(ns) {
            self.at[..=octave].fill(self.written);
        }
    }

    /// Whether a request at `now` stands in no wake of a silence.
    #[inline]
    pub fn is_over(&self, now: Time) -> bool {
        now.0 >= self.wake_ns
    }

    /// The silence in whose wake a request at `now` stands, after `ns` of quiet:
    /// its length in nanoseconds, the debt before it, and the place after it.
    #[inline]
    pub fn wake(&self, now: Time, ns: u64, pages: u32) -> (u64, usize, usize) {
        if ns >= LONG_NS || now.0 >= self.wake_ns {
            return (ns, self.debt(ns, pages), 0);
        }
        let since_ns = now.0.saturating_sub(self.last_end_ns);
        (self.last_ns, self.last_debt, 1 + usize::from(since_ns >= AFTER_NS[0]))
    }

    /// How much was written before a silence of this many nanoseconds, since the
    /// last one of the kind: nothing, less than a buffer of `pages` pages, less
    /// than four, or more.
    #[inline]
    fn debt(&self, ns: u64, pages: u32) -> usize {
        let Some(octave) = octave(ns) else { return 0 };
        let (since, pages) = (self.written - self.at[octave], u64::from(pages.max(1)));
        usize::from(since > 0) + usize::from(since >= pages) + usize::from(since >= 4 * pages)
    }
}

#[inline]
fn octave(ns: u64) -> Option<usize> {
    let octave = |ns: u64| ns.ilog2() as usize - SHORTEST_NS.ilog2() as usize;
    (ns >= SHORTEST_NS).then(|| octave(ns).min(OCTAVES - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_silence_of_like_length_settles_the_debt() {
        let mut silences = Silences::default();
        silences.write(10);
        assert_eq!(silences.debt(10_000_000, 8), 2);
        assert_eq!(silences.debt(1_000, 8), 0, "no silence at all");
        silences.end(Time(2_000_000), 1_000_000, 8);
        assert_eq!(silences.debt(1_000_000, 8), 0);
        assert_eq!(silences.debt(10_000_000, 8), 2);
        silences.write(1);
        assert_eq!((silences.debt(1_000_000, 8), silences.debt(10_000_000, 2)), (1, 3));
        silences.end(Time(90_000_000), 60_000_000, 8);
        assert_eq!(silences.debt(10_000_000, 8), 0);
    }

    #[test]
    fn what_follows_a_long_silence_stands_in_its_wake() {
        let mut silences = Silences::default();
        silences.write(10);
        silences.end(Time(50_000_000), 20_000_000, 8);
        assert_eq!(silences.wake(Time(50_100_000), 5_000, 8), (20_000_000, 2, 1));
        assert_eq!(silences.wake(Time(51_000_000), 5_000, 8), (20_000_000, 2, 2));
        assert_eq!(silences.wake(Time(53_000_000), 5_000, 8), (5_000, 0, 0));
        assert_eq!(silences.wake(Time(51_500_000), 1_400_000, 8), (1_400_000, 0, 0));
    }
}
