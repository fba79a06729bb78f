//! A quantile of the latencies of late.

use flashkeel_engine::Span;

/// Buckets to each doubling.
const BITS: u32 = 4;
const BUCKETS: usize = 61 << BITS;
/// Latencies after which the older ones count half.
const MEMORY: u32 = 8192;
/// Latencies between two looks at the quantile.
const REFRESH: u32 = 64;

/// Follows a quantile. What lies back counts less and less.
#[derive(Clone)]
pub(crate) struct Recent {
    quantile: f64,
    counts: Vec<u32>,
    total: u32,
    since_look: u32,
    value: Option<Span>,
}

impl Recent {
    /// Follows the quantile, 0 to 1.
    pub fn new(quantile: f64) -> Recent {
        Recent { quantile, counts: vec![0; BUCKETS], total: 0, since_look: 0, value: None }
    }

    /// Takes one in.
    pub fn note(&mut self, latency: Span) {
        self.counts[bucket(latency.0)] += 1;
        self.total += 1;
        if self.total >= MEMORY {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().sum();
        }
        self.since_look += 1;
        if self.since_look >= REFRESH {
            self.since_look = 0;
            self.value = Some(self.look());
        }
    }

    /// Follows another from now on.
    pub fn follow(&mut self, quantile: f64) {
        self.quantile = quantile;
    }

    /// The quantile; `None` before there is enough to say.
    pub fn quantile(&self) -> Option<Span> {
        self.value
    }

    /// The end of the bucket in which the quantile lies.
    fn look(&self) -> Span {
        let mut left = (f64::from(self.total) * (1.0 - self.quantile)) as u32;
        for (bucket, &count) in self.counts.iter().enumerate().rev() {
            if count > left {
                return Span(start(bucket + 1));
            }
            left -= count;
        }
        Span::ZERO
    }
}

fn bucket(ns: u64) -> usize {
    let shift = (63 - (ns | 1 << BITS).leading_zeros()) - BITS;
    ((u64::from(shift) << BITS) + (ns >> shift)) as usize
}

fn start(bucket: usize) -> u64 {
    let shift = (bucket >> BITS).saturating_sub(1);
    ((bucket - (shift << BITS)) as u64) << shift
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Stream;

    use super::*;

    #[test]
    fn a_quantile_of_an_exponential_distribution_is_within_a_bucket() {
        let mut random = Stream::new(3, "recent");
        let mut recent = Recent::new(0.95);
        assert_eq!(recent.quantile(), None);
        (0..100_000).for_each(|_| recent.note(Span(random.exponential(100_000.0) as u64)));
        let exact = 100_000.0 * 20f64.ln();
        let found = recent.quantile().expect("enough").0 as f64;
        assert!((found / exact - 1.0).abs() < 0.1, "{found} {exact}");
        // What comes now counts, not what was.
        (0..100_000).for_each(|_| recent.note(Span(1000)));
        let found = recent.quantile().expect("enough").0;
        assert!((1000..1100).contains(&found), "{found}");
    }

    #[test]
    fn buckets_begin_where_the_last_ended() {
        for ns in [0, 1, 15, 16, 17, 31, 32, 33, 1000, 1 << 40, u64::MAX] {
            let at = bucket(ns);
            assert!(at < BUCKETS && start(at) <= ns, "{ns}");
            assert!(at + 1 == BUCKETS || ns < start(at + 1), "{ns}");
        }
    }
}
