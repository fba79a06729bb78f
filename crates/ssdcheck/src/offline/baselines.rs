//! What one would go by without a model of the drive: how many requests are outstanding,
//! what the last one took, and what those before it took in an exponential mean; the
//! latter two apart for reads and writes.

use flashkeel_engine::Operation;

use super::Measured;

/// The baselines, in the order of their signals.
pub(super) const NAMES: [&str; 3] = ["queue depth", "last latency", "exponential mean"];

/// Share of the newest latency in the exponential mean, as that of TCP's smoothed
/// round-trip time (RFC 6298, section 2).
const SHARE: f64 = 1.0 / 8.0;

/// What has ended.
#[derive(Default)]
pub(super) struct Baselines {
    /// Of writes and of reads, in nanoseconds.
    last_ns: [f64; 2],
    mean_ns: [Option<f64>; 2],
}

impl Baselines {
    /// A request has ended.
    pub fn ended(&mut self, measured: &Measured) {
        let kind = usize::from(measured.operation == Operation::Read);
        let latency_ns = measured.latency.0 as f64;
        self.last_ns[kind] = latency_ns;
        let mean_ns = self.mean_ns[kind].get_or_insert(latency_ns);
        *mean_ns += (latency_ns - *mean_ns) * SHARE;
    }

    /// What each goes by, of an operation that is submitted while others are outstanding.
    pub fn signals(&self, outstanding: usize, operation: Operation) -> [f64; NAMES.len()] {
        let kind = usize::from(operation == Operation::Read);
        [outstanding as f64, self.last_ns[kind], self.mean_ns[kind].unwrap_or(0.0)]
    }
}

/// The least value that is called slow, so that the harmonic mean of recall and
/// precision (F1) is greatest; none where nothing was slow.
pub(super) fn threshold(mut values: Vec<(f64, bool)>) -> Option<f64> {
    values.sort_by(|one, other| other.0.total_cmp(&one.0));
    let slow = values.iter().filter(|(_, is_slow)| *is_slow).count() as f64;
    let (mut found, mut called, mut best) = (0.0, 0.0, None);
    for equal in values.chunk_by(|one, other| one.0 == other.0) {
        found += equal.iter().filter(|(_, is_slow)| *is_slow).count() as f64;
        called += equal.len() as f64;
        let f1 = 2.0 * found / (slow + called);
        if f1 > best.map_or(0.0, |(most, _)| most) {
            best = Some((f1, equal[0].0));
        }
    }
    best.map(|(_, least)| least)
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::{Lba, Span, Time};

    use super::*;

    #[test]
    fn the_threshold_balances_what_is_found_and_what_is_false() {
        assert_eq!(threshold(vec![(1.0, false), (5.0, true), (9.0, true)]), Some(5.0));
        assert_eq!(threshold(vec![(1.0, true), (5.0, false), (9.0, true), (0.0, false)]), Some(1.0));
        assert_eq!(threshold(vec![(1.0, false)]), None);
    }

    #[test]
    fn reads_tell_of_reads_and_writes_of_writes() {
        let mut baselines = Baselines::default();
        for (operation, us) in [(Operation::Read, 100), (Operation::Write, 20), (Operation::Read, 900)] {
            let latency = Span::from_us(us);
            baselines.ended(&Measured { submitted: Time(0), latency, operation, lba: Lba(0), sectors: 8 });
        }
        assert_eq!(baselines.signals(3, Operation::Read), [3.0, 900e3, 200e3]);
        assert_eq!(baselines.signals(0, Operation::Write), [0.0, 20e3, 20e3]);
    }
}
