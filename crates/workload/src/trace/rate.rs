//! Rates that no drive could serve, which come from a wrong unit of time.

use flashkeel_engine::{LOGICAL_PAGE_BYTES, Span, units::Bytes};

/// Bytes a second beyond what any drive moves: four lanes of PCIe 6.0, of 64 GT/s each.
const MOST_BYTES_PER_S: f64 = 32e9;
/// Requests a second beyond what any drive serves: as many of 4 KiB.
const MOST_PER_S: f64 = MOST_BYTES_PER_S / LOGICAL_PAGE_BYTES as f64;
/// What a rate in the right unit is at most, of what no drive could serve.
const LIKELY_SHARE: f64 = 0.2;
/// Fewer requests may all come in one burst.
const LEAST_REQUESTS: u64 = 100;
/// Mean bytes of a request beyond which its columns are more likely wrong than its clock.
const LIKELY_BYTES: u64 = 16 << 20;
/// The units of clocks, in nanoseconds.
const UNITS: [u64; 4] = [100, 1000, 1_000_000, 1_000_000_000];

/// What was asked in which time.
pub(crate) struct Pace {
    pub requests: u64,
    pub bytes: u64,
    pub span_ns: u64,
    /// The last time, by the trace's own clock.
    pub latest_ns: u64,
}

impl Pace {
    /// A note about a mean rate that no drive could serve, with the unit that a tick
    /// more likely is; `tick_ns` is what one is taken for, where it can be set, and
    /// `set` says how.
    pub(crate) fn note(&self, tick_ns: Option<u64>, set: impl Fn(Span) -> String) -> Option<String> {
        let seconds = self.span_ns.max(1) as f64 / 1e9;
        let per_s = self.requests.saturating_sub(1) as f64 / seconds;
        // How many times as much as any drive does.
        let excess = (per_s / MOST_PER_S).max(self.bytes as f64 / seconds / MOST_BYTES_PER_S);
        if self.requests < LEAST_REQUESTS || excess <= 1.0 {
            return None;
        }
        let Pace { requests, bytes, .. } = self;
        if self.span_ns == 0 {
            return Some(format!("its {requests} requests are all at one time: it has no times to replay"));
        }
        let mut note = format!(
            "{requests} requests of {bytes} bytes together in {} are more than any drive serves",
            Span(self.span_ns)
        );
        if bytes / requests > LIKELY_BYTES {
            let mean = Bytes(bytes / requests);
            note += &format!(
                ": they have {mean} each, so is the column of lengths another, or its unit (length_unit)?"
            );
            return Some(note);
        }
        let likely = tick_ns.and_then(|tick_ns| {
            let slower = |unit: u64| unit as f64 / tick_ns as f64;
            let fits = |unit: u64| (self.latest_ns / tick_ns).checked_mul(unit).is_some();
            let unit = UNITS
                .into_iter()
                .find(|&unit| unit > tick_ns && excess / slower(unit) <= LIKELY_SHARE && fits(unit))?;
            Some((tick_ns, unit, per_s / slower(unit)))
        });
        if let Some((tick_ns, unit, per_s)) = likely {
            note += &format!(
                ": a tick of its clock is taken for {}; {} would make it {per_s:.0} a second",
                Span(tick_ns),
                set(Span(unit))
            );
        }
        Some(note)
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    fn note(requests: u64, bytes: u64, span_ns: u64, tick_ns: Option<u64>, latest_ns: u64) -> Option<String> {
        let pace = Pace { requests, bytes, span_ns, latest_ns };
        pace.note(tick_ns, |unit| format!("time_unit = \"{unit}\""))
    }

    #[test]
    fn a_unit_is_suggested_where_it_would_do() {
        let found = note(200_001, 200_001 * 4096, 2_000_000, Some(1), 2_000_000).unwrap();
        assert!(
            found.starts_with(
                "200001 requests of 819204096 bytes together in 2ms are more than any drive serves"
            ),
            "{found}"
        );
        assert!(
            found.ends_with("taken for 1ns; time_unit = \"100ns\" would make it 1000000 a second"),
            "{found}"
        );
        assert!(note(200_001, 0, 2_000_000, None, 0).unwrap().ends_with("than any drive serves"));
        assert_eq!(note(200_001, 0, 2_000_000_000, Some(1), 0), None);
        assert_eq!(note(99, 0, 0, Some(1), 0), None);
    }

    #[test]
    fn requests_of_gigabytes_are_no_matter_of_the_clock() {
        let found = note(2000, 2000 * (2 << 30), 1_000_000_000, Some(1_000), 0).unwrap();
        assert!(
            found.ends_with(
                "they have 2GiB each, so is the column of lengths another, or its unit (length_unit)?"
            ),
            "{found}"
        );
    }

    #[test]
    fn bytes_count_as_well() {
        let found = note(100_000, 100_000 * (10 << 20), 1_000_000_000, Some(1_000), 0).unwrap();
        assert!(found.ends_with("time_unit = \"1ms\" would make it 100 a second"), "{found}");
    }

    #[test]
    fn no_unit_is_suggested_that_would_not_do() {
        // Microseconds since 1970 are too many for any longer tick.
        let found = note(500, 500 * 4096, 49_900, Some(1_000), 1_577_808_000_000_000_000).unwrap();
        assert!(!found.contains("time_unit"), "{found}");
        let found = note(500, 500 * 4096, 0, Some(1_000), 0).unwrap();
        assert_eq!(found, "its 500 requests are all at one time: it has no times to replay");
    }
}
