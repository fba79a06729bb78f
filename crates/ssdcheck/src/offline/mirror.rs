//! What a mirror saves that sends reads predicted slow to its other copy.
//!
//! The other copy is a drive like this one, whose troubles come at times of their own: a
//! read sent there takes what a read of its size takes in the mean, of all reads of the
//! log. So a prediction that comes true saves what the read took beyond that mean, and one
//! that does not saves little or costs something:
//!
//! saved = Σ over reads sent (latency − mean of reads of that size) / Σ over all reads latency
//!
//! Writes go to both copies, and nothing is saved. What reads sent there do to the others
//! is left out.

use flashkeel_engine::Operation;

use super::Measured;

/// Sizes told apart: octaves of pages of 4 KiB, 64 and more together.
const SIZES: usize = 7;

/// What reads take in the mean.
pub(super) struct Mirror {
    mean_ns: [f64; SIZES],
    all_ns: f64,
}

impl Mirror {
    /// Of these requests.
    pub fn new(requests: &[Measured]) -> Mirror {
        let (mut sum_ns, mut count) = ([0.0; SIZES], [0.0_f64; SIZES]);
        for read in requests.iter().filter(|request| request.operation == Operation::Read) {
            sum_ns[size(read)] += read.latency.0 as f64;
            count[size(read)] += 1.0;
        }
        let all_ns = sum_ns.iter().sum();
        Mirror { mean_ns: std::array::from_fn(|size| sum_ns[size] / count[size].max(1.0)), all_ns }
    }

    /// Part of the time of all reads that is saved if these are sent to the other copy.
    pub fn saved_fraction(&self, sent: &[&Measured]) -> f64 {
        let saved = sent.iter().map(|read| read.latency.0 as f64 - self.mean_ns[size(read)]);
        saved.fold(0.0, |sum, ns| sum + ns) / self.all_ns.max(1.0)
    }
}

fn size(read: &Measured) -> usize {
    (read.sectors.div_ceil(8).max(1).ilog2() as usize).min(SIZES - 1)
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::{Lba, Span, Time};

    use super::*;

    #[test]
    fn what_is_saved_is_what_the_mean_is_less() {
        let read = |us| Measured {
            submitted: Time(0),
            latency: Span::from_us(us),
            operation: Operation::Read,
            lba: Lba(0),
            sectors: 8,
        };
        let reads = [read(100), read(100), read(100), read(900)];
        let mirror = Mirror::new(&reads);
        assert_eq!(mirror.saved_fraction(&[]), 0.0);
        assert_eq!(mirror.saved_fraction(&[&reads[3]]), 600.0 / 1200.0);
        assert_eq!(mirror.saved_fraction(&[&reads[0]]), -200.0 / 1200.0);
        // Sending all of them saves nothing.
        assert_eq!(mirror.saved_fraction(&reads.each_ref()), 0.0);
    }
}
