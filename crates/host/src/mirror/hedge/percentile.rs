//! `percentile`: the second copy is asked when the first has taken longer than nearly all of
//! late, so that the extra load stays the same at every load.
//!
//! Slow reads come in bursts, and a percentile of what has been is no bound for what comes.
//! So each read earns its share of a second one. What has been earned and not been used
//! moves the percentile, and is there for a burst; where nothing is left nobody is asked.

use flashkeel_engine::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Hedge};
use crate::mirror::recent::Recent;

/// Settings of `percentile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Percentile {
    /// Share of reads that may be asked twice, above 0 and below 1: the delay is about the
    /// percentile of the latencies of late that so many exceed.
    pub extra: f64,
}

impl Default for Percentile {
    /// The 95th percentile, as in "The Tail at Scale".
    fn default() -> Self {
        Percentile { extra: 0.05 }
    }
}

impl Build for Percentile {
    fn build(&self) -> Option<Box<dyn Hedge>> {
        let (extra, earned) = (self.extra, self.extra * LENT);
        Some(Box::new(Delay { recent: Recent::new(1.0 - extra), extra, earned }))
    }

    fn validate(&self) -> Result<(), String> {
        if self.extra > 0.0 && self.extra < 1.0 {
            return Ok(());
        }
        Err(format!("extra is {}; a share above 0 and below 1", self.extra))
    }
}

/// Reads whose earnings may be saved, twice those that the percentile keeps in store: with a
/// hundredth, second reads for the 80 ms in which two drives collect garbage at 2,000 reads
/// a second (ours).
const SAVED: f64 = 32_768.0;
/// Reads whose earnings are lent at the start, so that a burst there is not slow throughout.
const LENT: f64 = 4_096.0;
/// Greatest share of reads that the delay may let through.
const MOST: f64 = 0.9;

#[derive(Clone)]
struct Delay {
    recent: Recent,
    extra: f64,
    /// Second reads that may be asked for now.
    earned: f64,
}

impl Hedge for Delay {
    fn delay(&mut self) -> Option<Span> {
        self.earned = (self.earned + self.extra).min((self.extra * SAVED).max(1.0));
        self.recent.follow(1.0 - (2.0 * self.earned / SAVED).min(MOST));
        self.recent.quantile()
    }

    fn may_ask(&mut self) -> bool {
        let may = self.earned >= 1.0;
        self.earned -= f64::from(u8::from(may));
        may
    }

    fn answered(&mut self, latency: Span) {
        self.recent.note(latency);
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Stream;

    use super::*;

    const READS: u64 = 400_000;

    /// Shares of reads that are asked twice, and of the slow ones, where a tenth of all are
    /// slow, in bursts of so many.
    fn asked(extra: f64, burst: u64) -> (f64, f64) {
        let (mut hedge, mut random) =
            (Percentile { extra }.build().expect("a delay"), Stream::new(3, "hedge"));
        let (mut asked, mut of_slow, mut slow) = (0, 0, 0);
        let reads = READS;
        for read in 0..reads {
            let is_slow = (read / burst).is_multiple_of(10);
            let mean = if is_slow { 2_000_000.0 } else { 80_000.0 };
            let latency = Span(random.exponential(mean) as u64);
            let is_late = hedge.delay().is_some_and(|delay| latency > delay);
            let is_asked = is_late && hedge.may_ask();
            hedge.answered(latency);
            asked += u64::from(is_asked);
            slow += u64::from(is_slow);
            of_slow += u64::from(is_asked && is_slow);
        }
        (asked as f64 / reads as f64, of_slow as f64 / slow as f64)
    }

    #[test]
    fn the_smallest_share_asks_too() {
        let mut hedge = Percentile { extra: 0.000_02 }.build().expect("a delay");
        for _ in 0..60_000 {
            hedge.delay();
        }
        assert!(hedge.may_ask());
    }

    #[test]
    fn the_share_that_is_set_is_used_and_never_exceeded_but_for_what_is_lent() {
        for extra in [0.001, 0.01, 0.05, 0.3] {
            for burst in [1, 10, 1_000, 20_000] {
                let (share, of_slow) = asked(extra, burst);
                let lent = extra * LENT / READS as f64;
                assert!(share <= extra + lent, "{extra} in bursts of {burst}: {share}");
                assert!(share > 0.6 * extra, "{extra} in bursts of {burst}: {share}");
                assert!(
                    of_slow > 2.0 * extra || burst > 1_000 || extra > 0.1,
                    "{extra} in bursts of {burst}: {of_slow}"
                );
            }
        }
    }
}
