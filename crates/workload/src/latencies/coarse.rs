//! Logs whose times are whole ticks that are long beside what requests took.

use flashkeel_engine::Span;

use super::Served;

/// Fewer requests may be at such times by chance.
const LEAST: usize = 100;
/// A clock that counts in no more tells of no device that it took no time.
const FINE_NS: u64 = 1_000;

/// What a result must show of how finely a log's times are told.
pub(super) fn notes(requests: &[Served]) -> Vec<String> {
    let mut latencies: Vec<u64> = requests.iter().map(|served| served.latency.0).collect();
    if latencies.len() < LEAST {
        return Vec::new();
    }
    let latency_step = decimal(latencies.iter().copied().fold(0, gcd));
    let unmeasured = latencies.iter().filter(|ns| **ns == 0).count();
    let is_varied = latencies.iter().any(|ns| *ns != latencies[0]);
    let middle = latencies.len() / 2;
    let (_, &mut median, _) = latencies.select_nth_unstable(middle);
    // As long as half of what most requests took.
    let is_coarse = |step: u64| step.saturating_mul(2) >= median.max(1);
    let first = requests.first().map_or(0, |served| served.submitted.0);
    let step = requests.iter().map(|served| served.submitted.0 - first).fold(0, gcd);
    let mut notes = Vec::new();
    // Of a steady pace no two are at one time.
    let is_shared = requests.windows(2).any(|two| two[0].submitted == two[1].submitted);
    if is_shared && (step == 0 || is_coarse(step)) {
        let what = if step == 0 { "one and the same time".into() } else { format!("whole {}", Span(step)) };
        notes.push(format!(
            "its times of submission are {what}, with a median latency of {}: which requests were outstanding \
             together is not known any better",
            Span(median)
        ));
    }
    if is_varied && latency_step > 1 && is_coarse(latency_step) {
        notes.push(format!(
            "its latencies are whole {}, with a median of {}: what is slow is not known any better",
            Span(latency_step),
            Span(median)
        ));
    }
    if unmeasured > 0 && latency_step <= FINE_NS {
        notes.push(format!(
            "{unmeasured} of its {} latencies are 0, as where none was measured: they are taken for quick ones",
            latencies.len()
        ));
    }
    notes
}

/// The greatest power of ten that divides a number: what a clock counts in, where a few values
/// may have more in common.
fn decimal(number: u64) -> u64 {
    let powers = std::iter::successors(Some(1u64), |power| power.checked_mul(10));
    powers.take_while(|power| number.is_multiple_of(*power)).last().unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
