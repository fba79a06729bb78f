//! Whether the host is expected to stay silent, from how long its pauses have been: a
//! predictor for whoever works in them.
//!
//! A pause is the time in which the device has no request. Past pauses are counted by their
//! length, and what a pause that has lasted for a while will still last is what those have
//! lasted that were as long. So short gaps within a burst say nothing of the pause behind it.

use flashkeel_engine::{Span, Time};

/// Counts are halved when there are so many, so that the last few hundred decide. Ours.
const MOST: u32 = 512;
/// Parts of one pause in its count, so that halving leaves something of it.
const ONE: u32 = 64;

/// The pauses of a host.
#[derive(Clone, Debug)]
pub(crate) struct Idleness {
    /// Pauses by the binary digits of their length in nanoseconds.
    counts: [u32; 65],
    total: u32,
}

impl Idleness {
    /// None so far.
    pub fn new() -> Self {
        Idleness { counts: [0; 65], total: 0 }
    }

    /// A request has come after a pause.
    #[inline]
    pub fn ended(&mut self, pause: Span) {
        self.counts[digits(pause.0)] += ONE;
        self.total += ONE;
        if self.total >= MOST * ONE {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().sum();
        }
    }

    /// Whether a pause that has begun at `since` is expected to last until `for_span` after
    /// `now`: at least as likely as not. One longer than any before is; before there has
    /// been any, none is.
    pub fn expects(&self, since: Time, now: Time, for_span: Span) -> bool {
        let lasted = now.since(since);
        self.total > 0 && 2 * self.longer(lasted.0 + for_span.0) >= self.longer(lasted.0)
    }

    /// How many pauses have been longer than `ns`; those with as many digits are taken to
    /// be spread evenly.
    fn longer(&self, ns: u64) -> u64 {
        let own = digits(ns);
        let above: u32 = self.counts[own + 1..].iter().sum();
        let from = 1_u64 << own.saturating_sub(1);
        let left = 2 * u128::from(from) - u128::from(ns.max(from));
        u64::from(above) + (u128::from(self.counts[own]) * left / u128::from(from)) as u64
    }
}

fn digits(ns: u64) -> usize {
    (u64::BITS - ns.leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn after(pauses: impl IntoIterator<Item = u64>) -> Idleness {
        let mut idleness = Idleness::new();
        pauses.into_iter().for_each(|ns| idleness.ended(Span(ns)));
        idleness
    }

    fn expects(idleness: &Idleness, lasted_ns: u64) -> bool {
        idleness.expects(Time(7), Time(7 + lasted_ns), Span::from_ms(5))
    }

    #[test]
    fn a_pause_between_bursts_is_known_once_it_outlasts_their_gaps() {
        // Gaps of 20 µs, and one pause of a second in a hundred.
        let idleness = after((1..=1000).map(|n| if n % 100 == 0 { 1000 * MS } else { 20_000 }));
        assert!(!expects(&idleness, 0) && !expects(&idleness, 15_000));
        assert!(expects(&idleness, MS) && expects(&idleness, 500 * MS));
    }

    #[test]
    fn the_end_of_a_pause_is_expected_too() {
        // All last 500 ms; the last binary digit ends at 537.
        let idleness = after([500 * MS; 50]);
        assert!(expects(&idleness, 300 * MS));
        assert!(!expects(&idleness, 530 * MS));
        assert!(expects(&idleness, 2000 * MS), "longer than any before");
    }

    #[test]
    fn nothing_is_expected_of_a_host_that_never_paused() {
        assert!(!expects(&Idleness::new(), 100 * MS));
    }

    #[test]
    fn what_is_long_past_is_forgotten() {
        let mut idleness = after([1000 * MS; 600]);
        assert!(expects(&idleness, 0));
        (0..6000).for_each(|_| idleness.ended(Span(20_000)));
        assert!(!expects(&idleness, 0));
    }

    #[test]
    fn pauses_of_any_length_are_counted() {
        let idleness = after([0, 1, u64::MAX / 4]);
        assert_eq!((idleness.longer(0), idleness.longer(u64::MAX / 2)), (u64::from(3 * ONE), 0));
    }
}
