//! A latency distribution from its quantiles.

use flashkeel_engine::{Span, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Latency of a 4 KiB request to an idle device, or of a message, by its quantiles. Between two
/// of them it is uniform; none is above the last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyConfig {
    /// The smallest.
    pub min: Span,
    /// The median.
    pub p50: Span,
    /// 99 % of the requests are not slower.
    pub p99: Span,
    /// 99.999 % of the requests are not slower; nor is any other.
    pub p99_999: Span,
}

/// Where the pieces of the distribution begin, in parts of 2^32.
const STARTS: [u64; 4] = [0, 1 << 31, (99 << 32) / 100, (99_999 << 32) / 100_000];

/// A resolved distribution.
#[derive(Clone, Debug)]
pub struct Latency {
    /// Latency where each piece begins, in ns.
    knots: [u64; 4],
}

impl Latency {
    /// Takes `included`, which the device does in a step of its own, off the
    /// configured latencies.
    ///
    /// # Errors
    /// A sentence naming the key below `key`.
    pub fn resolve(config: &LatencyConfig, included: Span, key: &str) -> Result<Latency, String> {
        let knots = [config.min, config.p50, config.p99, config.p99_999];
        if let Some(pair) = knots.windows(2).find(|pair| pair[0] > pair[1]) {
            return Err(format!("{key}: {} stands before {}; quantiles rise", pair[0], pair[1]));
        }
        if config.p99_999 > Span::from_secs(1) {
            return Err(format!("{key}.p99_999 is {}; at most 1s", config.p99_999));
        }
        if config.min <= included {
            return Err(format!(
                "{key}.min is {}, but the bandwidth alone makes a 4KiB request last {included}",
                config.min
            ));
        }
        Ok(Latency { knots: knots.map(|knot| (knot - included).0) })
    }

    /// Always the same.
    pub fn fixed(latency: Span) -> Latency {
        Latency { knots: [latency.0; 4] }
    }

    /// The latency, if it is always the same.
    pub fn constant(&self) -> Option<Span> {
        let [first, .., last] = self.knots;
        (first == last).then_some(Span(first))
    }

    /// A latency by chance.
    #[inline]
    pub fn draw(&self, random: &mut Stream) -> Span {
        let at = random.word() >> 32;
        // With lengths that are known a division becomes a product.
        Span(match STARTS[1..3].iter().filter(|&&start| at >= start).count() {
            0 => self.within::<0>(at),
            1 => self.within::<1>(at),
            _ => self.within::<2>(at),
        })
    }

    /// The latency at a place of a piece.
    #[inline(always)]
    fn within<const PIECE: usize>(&self, at: u64) -> u64 {
        let (from, to) = (STARTS[PIECE], STARTS[PIECE + 1]);
        let (low, high) = (self.knots[PIECE], self.knots[PIECE + 1]);
        // Beyond the last quantile the latency stays what it is there.
        let part = (at - from).min(to - from);
        low + (high - low) * part / (to - from)
    }
}
