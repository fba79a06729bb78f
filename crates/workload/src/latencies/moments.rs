//! When requests were submitted of which the log says in which millisecond they ended,
//! and how long they took.

const NS_PER_MS: u64 = 1_000_000;

/// Times of submission that agree with a log, and what was assumed.
pub(super) struct Assumed {
    pub submitted_ns: Vec<u64>,
    is_serial: bool,
}

impl Assumed {
    /// What a result must show.
    pub fn note(&self) -> String {
        let how = if self.is_serial {
            "taken for one request at a time, which they do not contradict"
        } else {
            "spread evenly within each millisecond"
        };
        format!(
            "the log has times in ms: requests are {how}; --iolog FILE (write_iolog) or log_issue_time=1 \
             tell more"
        )
    }
}

/// Assumes when requests were submitted that ended, in this order, in the millisecond
/// that begins at `.0` nanoseconds, and took `.1` nanoseconds.
pub(super) fn assume(ends: &[(u64, u64)]) -> Assumed {
    if let Some(submitted_ns) = one_at_a_time(ends) {
        return Assumed { submitted_ns, is_serial: true };
    }
    let mut submitted_ns = Vec::with_capacity(ends.len());
    for same in ends.chunk_by(|one, other| one.0 == other.0) {
        for (index, (time_ns, latency_ns)) in same.iter().enumerate() {
            let part_ns = (2 * index as u64 + 1) * NS_PER_MS / (2 * same.len() as u64);
            submitted_ns.push((time_ns + part_ns).saturating_sub(*latency_ns));
        }
    }
    Assumed { submitted_ns, is_serial: false }
}

/// The earliest times at which each was submitted after its predecessor had ended; none
/// where one would then have ended too late.
fn one_at_a_time(ends: &[(u64, u64)]) -> Option<Vec<u64>> {
    // Whoever writes the log looks at the clock a little after the end.
    const TOLERANCE_NS: u64 = NS_PER_MS / 5;
    let mut now_ns = 0;
    let mut submitted_ns = Vec::with_capacity(ends.len());
    for &(time_ns, latency_ns) in ends {
        let end_ns = time_ns.max(now_ns + latency_ns);
        if end_ns >= time_ns + NS_PER_MS + TOLERANCE_NS {
            return None;
        }
        submitted_ns.push(end_ns - latency_ns);
        now_ns = end_ns;
    }
    Some(submitted_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_follow_each_other_where_they_can() {
        let found = assume(&[(0, 300_000), (0, 600_000), (1_000_000, 500_000), (5_000_000, 100_000)]);
        assert!(found.is_serial);
        assert_eq!(found.submitted_ns, [0, 300_000, 900_000, 4_900_000]);
    }

    #[test]
    fn several_at_a_time_end_within_their_millisecond() {
        let found = assume(&[(3_000_000, 2_900_000), (3_000_000, 2_900_000), (4_000_000, 10_000_000)]);
        assert!(!found.is_serial);
        assert_eq!(found.submitted_ns, [350_000, 850_000, 0]);
    }
}
