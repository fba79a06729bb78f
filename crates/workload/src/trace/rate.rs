//! Rates that no drive could serve, which come from a wrong unit of time.

use flashkeel_engine::Span;

/// Requests a second beyond what any drive serves: the fastest of 2025 give a
/// few million random reads.
const MOST_PER_S: f64 = 20e6;
/// What a rate in the right unit is at most.
const LIKELY_PER_S: f64 = 2e6;
/// Fewer requests may all come in one burst.
const LEAST_REQUESTS: u64 = 100;
/// The units of clocks, in nanoseconds.
const UNITS: [u64; 4] = [100, 1000, 1_000_000, 1_000_000_000];

/// A note about a mean rate that no drive could serve, with the unit that a tick
/// more likely is; `tick_ns` is what one is taken for, where it can be set.
pub(crate) fn note(requests: u64, span_ns: u64, tick_ns: Option<u64>) -> Option<String> {
    let per_s = requests.saturating_sub(1) as f64 * 1e9 / span_ns.max(1) as f64;
    if requests < LEAST_REQUESTS || per_s <= MOST_PER_S {
        return None;
    }
    let mut note = format!("{requests} requests in {} are more than any drive serves", Span(span_ns));
    let likely = tick_ns.and_then(|tick_ns| {
        let per_s_at = |unit: u64| per_s * tick_ns as f64 / unit as f64;
        let unit = UNITS.into_iter().find(|&unit| unit > tick_ns && per_s_at(unit) <= LIKELY_PER_S)?;
        Some((tick_ns, unit, per_s_at(unit)))
    });
    if let Some((tick_ns, unit, per_s)) = likely {
        note += &format!(
            ": a tick of its clock is taken for {}; time_unit = \"{}\" would make it {per_s:.0} a second",
            Span(tick_ns),
            Span(unit)
        );
    }
    Some(note)
}

#[cfg(test)]
mod tests {
    use super::note;

    #[test]
    fn a_unit_is_suggested_where_it_would_do() {
        let found = note(200_001, 2_000_000, Some(1)).unwrap();
        assert!(found.starts_with("200001 requests in 2ms are more than any drive serves"), "{found}");
        assert!(
            found.ends_with("taken for 1ns; time_unit = \"100ns\" would make it 1000000 a second"),
            "{found}"
        );
        assert!(note(200_001, 2_000_000, None).unwrap().ends_with("than any drive serves"));
        assert_eq!(note(200_001, 2_000_000_000, Some(1)), None);
        assert_eq!(note(99, 0, Some(1)), None);
    }
}
