//! Who owns the latency of the slowest requests.

use flashkeel_engine::Cause;
use serde::Serialize;

use crate::{BlameTable, CauseTotals, Class, blame::Row};

/// The owners of the latency of a class's slowest requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The class asked about.
    pub class: Class,
    /// The percentile asked about, 0 to 100.
    pub above_percentile: f64,
    /// Requests of the class.
    pub class_count: u64,
    /// Requests explained: those at or above the threshold. The table's rows
    /// are up to 1.6 % wide, so it is the number nearest to the share asked
    /// for, and at least one row.
    pub count: u64,
    /// The smallest latency explained; none if the class has no requests.
    pub threshold_ns: Option<u64>,
    /// Mean latency of the requests explained.
    pub mean_ns: Option<f64>,
    /// The causes that own any of it, largest first.
    pub causes: Vec<CauseShare>,
}

/// One cause's part of an explanation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseShare {
    /// [`Cause::label`].
    pub cause: &'static str,
    /// Share of the latency of the requests explained, 0 to 1.
    pub share: f64,
    /// Nanoseconds per request explained.
    pub mean_ns: f64,
    /// Nanoseconds in all.
    pub total_ns: u64,
    /// Requests in which the cause owns anything.
    pub requests: u64,
}

impl Explanation {
    pub(crate) fn new(table: &BlameTable, class: Class, percentile: f64) -> Result<Self, String> {
        if !(0.0..100.0).contains(&percentile) {
            return Err(format!("percentile {percentile} is not between 0 and 100; write one such as p99.9"));
        }
        let rows = || table.rows_from_the_top(class);
        let class_count = rows().fold(0u64, |sum, (_, row)| sum.saturating_add(row.count));
        let asked = class_count as f64 * (1.0 - percentile / 100.0);

        let mut sum = Row::EMPTY;
        let mut threshold_ns = None;
        for (from_ns, row) in rows() {
            let overshoot = sum.count.saturating_add(row.count) as f64 - asked;
            if sum.count > 0 && overshoot > asked - sum.count as f64 {
                break;
            }
            sum.add(&row);
            threshold_ns = Some(from_ns);
        }

        let total_ns = sum.ns.total();
        let count = sum.count;
        Ok(Explanation {
            class,
            above_percentile: percentile,
            class_count,
            count,
            threshold_ns,
            mean_ns: (count > 0).then(|| total_ns as f64 / count as f64),
            causes: shares(&sum.ns, &sum.requests, total_ns, count),
        })
    }
}

fn shares(ns: &CauseTotals, requests: &CauseTotals, total_ns: u64, count: u64) -> Vec<CauseShare> {
    let mut owners: Vec<(Cause, u64)> = ns.iter().filter(|(_, ns)| *ns > 0).collect();
    // Stable: equal causes stay in ledger order.
    owners.sort_by_key(|&(_, ns)| std::cmp::Reverse(ns));
    let share = |(cause, ns): (Cause, u64)| CauseShare {
        cause: cause.label(),
        share: ns as f64 / total_ns as f64,
        mean_ns: ns as f64 / count as f64,
        total_ns: ns,
        requests: requests[cause],
    };
    owners.into_iter().map(share).collect()
}

/// Reads a percentile as the command line writes it: `p99.9`, or `99.9`.
///
/// # Errors
/// If it is no number from 0 to below 100.
pub fn parse_percentile(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_prefix('p').unwrap_or(text.trim());
    match number.parse::<f64>() {
        Ok(percentile) if (0.0..100.0).contains(&percentile) => Ok(percentile),
        _ => Err(format!("{text:?} is not a percentile between 0 and 100; write one such as p99.9")),
    }
}
