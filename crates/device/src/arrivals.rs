//! What the host is expected to write, from what it has written: a predictor for whoever
//! works ahead of bursts.
//!
//! A burst is what comes above the mean rate, whatever its length and however often it
//! comes: writes fill a bucket that drains at a quarter more than the mean rate, and the
//! highest level of late is what the next burst is expected to bring. A device that keeps
//! up with the mean needs no more in stock. A write costs two multiplications or fewer and
//! no memory but this.

use flashkeel_engine::Time;

/// Binary digits behind the point in levels and rates.
const POINT: u32 = 8;
/// Length of a window, as a power of two in nanoseconds: 134 ms. Ours.
const WINDOW: u32 = 27;
/// The mean is over so many windows at first, and then over 4.3 s, longer than the bursts
/// that blocks can be kept for.
const MEAN_WINDOWS: u64 = 32;
/// The highest level falls by this part a window, by half in 24 s: bursts further apart
/// are not worth the blocks that are kept for them. Ours.
const FORGOTTEN: u64 = 256;
/// After a second without writes whatever was to be done is.
const PAUSE: u64 = 8 << WINDOW;

/// The writes of the host to one or several partitions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    /// Partitions among which they are spread evenly.
    partitions: u64,
    /// The window of the last write, and pages written in it.
    window: u64,
    written: u64,
    /// Windows that the mean is made of.
    windows: u64,
    /// Pages a window.
    mean: u64,
    last: Time,
    level: u64,
    highest: u64,
}

impl Arrivals {
    /// None so far, in so many partitions.
    pub fn new(partitions: u16) -> Self {
        Arrivals { partitions: u64::from(partitions), ..Arrivals::default() }
    }

    /// The host writes `pages` at `now`, or, where a throttle holds it, will then.
    #[inline]
    pub fn count(&mut self, now: Time, pages: u64) {
        if now.0 >> WINDOW != self.window {
            self.close_window(now);
        }
        self.written += pages;
        self.drain(now);
        if self.windows > 0 {
            self.level += pages << POINT;
            self.highest = self.highest.max(self.level);
        }
    }

    /// Pages of 4 KiB that the next burst is expected to bring to each partition; none
    /// until there is a mean to go by.
    pub fn burst_pages(&self) -> u64 {
        (self.highest >> POINT).div_ceil(self.partitions)
    }

    fn drain(&mut self, now: Time) {
        let elapsed = now.0.saturating_sub(self.last.0);
        self.last = self.last.max(now);
        // Fits up to 400 million pages a second.
        let drained = ((self.mean + self.mean / 4) * elapsed.min(PAUSE)) >> WINDOW;
        self.level = if elapsed >= PAUSE { 0 } else { self.level.saturating_sub(drained) };
    }

    #[cold]
    fn close_window(&mut self, now: Time) {
        let window = now.0 >> WINDOW;
        let passed = window.saturating_sub(self.window).min(8 * FORGOTTEN);
        for _ in 0..passed {
            self.windows = (self.windows + 1).min(MEAN_WINDOWS);
            let written = std::mem::take(&mut self.written) << POINT;
            self.mean = (self.mean * (self.windows - 1) + written) / self.windows;
            self.highest -= self.highest / FORGOTTEN;
        }
        self.window = window;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a page every `gap_ns` in the first `on_ns` of every `period_ns`.
    fn written(gap_ns: u64, on_ns: u64, period_ns: u64, until_ns: u64) -> Arrivals {
        let mut arrivals = Arrivals::new(1);
        for now in (0..until_ns).step_by(gap_ns as usize).filter(|now| now % period_ns < on_ns) {
            arrivals.count(Time(now), 1);
        }
        arrivals
    }

    #[test]
    fn an_even_load_is_no_burst() {
        for gap_ns in [1_000, 30_000, 1_000_000] {
            let arrivals = written(gap_ns, 1, 1, 20_000_000_000);
            assert!(arrivals.burst_pages() <= 2, "{gap_ns}: {arrivals:?}");
        }
    }

    #[test]
    fn bursts_are_expected_by_their_size() {
        // 100 ms in 600, 10,000 pages each: at the mean rate a fifth of them is no burst.
        let arrivals = written(10_000, 100_000_000, 600_000_000, 20_000_000_000);
        assert!((7_500..=8_500).contains(&arrivals.burst_pages()), "{arrivals:?}");
        // The first shows the mean, the second that it is a burst.
        let first = written(10_000, 100_000_000, 600_000_000, 130_000_000);
        assert_eq!(first.burst_pages(), 0);
        let second = written(10_000, 100_000_000, 600_000_000, 1_000_000_000);
        assert!((6_000..=8_500).contains(&second.burst_pages()), "{second:?}");
    }

    #[test]
    fn what_is_long_past_is_forgotten() {
        let mut arrivals = written(10_000, 100_000_000, 600_000_000, 20_000_000_000);
        arrivals.count(Time(300_000_000_000), 1);
        assert!(arrivals.burst_pages() < 20, "{arrivals:?}");
    }
}
