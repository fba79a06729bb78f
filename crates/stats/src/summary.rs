//! The results of a run, as they are printed, saved and pooled.

use std::collections::BTreeMap;

use flashkeel_engine::{Span, Status};
use serde::{Deserialize, Serialize};

use crate::{
    BlameTable, CauseTotals, Class, Digest, Distribution, HISTOGRAM_PRECISION, Latencies,
    class::OPERATION_NAMES, explain::Explanation,
};

/// Counts over all requests of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub requests: u64,
    /// Requests by how they ended, but for those that were done.
    pub ends: [u64; Status::ALL.len()],
    pub gc_blocked: u64,
    pub not_logged: u64,
}

/// Everything measured over one run, or over several pooled runs.
///
/// Reading a saved one takes the counts and `detail` and works the rest out
/// again, so that it is the same to the bit.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "SavedSummary")]
pub struct Summary {
    /// Hash over every completion and the final counters; of pooled runs, over
    /// their digests.
    pub digest: Digest,
    /// Requests measured: all but those submitted during the warm-up.
    pub requests: u64,
    /// Requests among them that the device refused; in no distribution.
    pub invalid_requests: u64,
    /// Reads among them that asked for data which failed flash has lost for
    /// good; in no distribution.
    pub lost_requests: u64,
    /// Requests that failed for another reason, by its name; in no
    /// distribution.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failed_requests: BTreeMap<String, u64>,
    /// Simulated time measured, after the warm-up; of pooled runs, the sum.
    pub simulated_s: f64,
    /// How much of it had passed when the last of the requests arrived; of pooled runs, the sum.
    pub last_arrival_s: f64,
    /// The same when the last of them completed.
    pub last_completion_s: f64,
    /// Requests with any cause of garbage collection in their ledger.
    pub gc_blocked: u64,
    /// `gc_blocked` as a share of the requests; 0 without requests.
    pub gc_blocked_fraction: f64,
    /// Every read.
    pub read: Distribution,
    /// Every write.
    pub write: Distribution,
    /// Reads up to 64 KiB.
    pub small_read: Distribution,
    /// Every TRIM, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trim: Option<Distribution>,
    /// Every flush, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<Distribution>,
    /// By operation and size, without the empty ones.
    pub by_size: Vec<SizedDistribution>,
    /// Nanoseconds each cause owned, over all requests.
    pub blame_ns: CauseTotals,
    /// Largest relative error of a percentile.
    pub histogram_precision: f64,
    /// Measured requests missing from the request log because it was full.
    pub requests_not_logged: u64,
    /// What pooling and explaining work from.
    pub detail: Detail,
}

/// What a summary is read back from; its other keys are ignored.
#[derive(Deserialize)]
struct SavedSummary {
    digest: Digest,
    requests: u64,
    invalid_requests: u64,
    lost_requests: u64,
    #[serde(default)]
    failed_requests: BTreeMap<String, u64>,
    gc_blocked: u64,
    requests_not_logged: u64,
    detail: Detail,
}

impl From<SavedSummary> for Summary {
    fn from(saved: SavedSummary) -> Summary {
        let totals = Totals {
            requests: saved.requests,
            ends: ends(saved.invalid_requests, saved.lost_requests, &saved.failed_requests),
            gc_blocked: saved.gc_blocked,
            not_logged: saved.requests_not_logged,
        };
        Summary::new(saved.digest, totals, saved.detail)
    }
}

/// Requests by how they ended, from what a summary says of it.
fn ends(invalid: u64, lost: u64, failed: &BTreeMap<String, u64>) -> [u64; Status::ALL.len()] {
    Status::ALL.map(|status| match status {
        Status::Invalid => invalid,
        Status::Lost => lost,
        other => failed.get(other.label()).copied().unwrap_or(0),
    })
}

/// What a summary says of the ends that have no number of their own.
fn failed(ends: &[u64; Status::ALL.len()]) -> BTreeMap<String, u64> {
    let others = Status::ALL.into_iter().zip(ends).skip(Status::ReadOnly as usize);
    let seen = others.filter(|&(_, &count)| count > 0);
    seen.map(|(status, &count)| (status.label().to_owned(), count)).collect()
}

/// A distribution of requests of one operation and size class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizedDistribution {
    /// The operation's label, such as `read`.
    pub operation: &'static str,
    /// Largest request of the class in bytes; none for the last class.
    pub max_bytes: Option<u64>,
    /// Its distribution.
    #[serde(flatten)]
    pub distribution: Distribution,
}

/// The raw measurements behind a summary.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Detail {
    /// Simulated time measured.
    pub measured_ns: u64,
    /// How much of it had passed when the last request arrived; 0 in older results.
    #[serde(default)]
    pub last_arrival_ns: u64,
    /// The same when the last one completed.
    #[serde(default)]
    pub last_completion_ns: u64,
    /// Latency histograms by operation and size.
    pub histograms: Latencies,
    /// Owners of the latency by latency.
    pub blame: BlameTable,
}

impl Summary {
    pub(crate) fn new(digest: Digest, totals: Totals, detail: Detail) -> Summary {
        let measured = Span(detail.measured_ns);
        let class = |class| Distribution::new(&detail.histograms.of_class(class), measured);
        let present = |name| Some(class(name)).filter(|distribution| distribution.count > 0);
        let by_size = detail.histograms.filled().map(|(operation, size, cell)| SizedDistribution {
            operation: OPERATION_NAMES[operation],
            max_bytes: size.max_bytes(),
            distribution: Distribution::new(cell, measured),
        });
        Summary {
            digest,
            requests: totals.requests,
            invalid_requests: totals.ends[Status::Invalid as usize],
            lost_requests: totals.ends[Status::Lost as usize],
            failed_requests: failed(&totals.ends),
            simulated_s: measured.as_secs_f64(),
            last_arrival_s: Span(detail.last_arrival_ns).as_secs_f64(),
            last_completion_s: Span(detail.last_completion_ns).as_secs_f64(),
            gc_blocked: totals.gc_blocked,
            gc_blocked_fraction: match totals.requests {
                0 => 0.0,
                requests => totals.gc_blocked as f64 / requests as f64,
            },
            read: class(Class::Read),
            write: class(Class::Write),
            small_read: class(Class::SmallRead),
            trim: present(Class::Trim),
            flush: present(Class::Flush),
            by_size: by_size.collect(),
            blame_ns: detail.blame.totals_ns(),
            histogram_precision: HISTOGRAM_PRECISION,
            requests_not_logged: totals.not_logged,
            detail,
        }
    }

    /// Pools another run into this one: percentiles, counts and blame are then
    /// those of one recorder that had seen both, up to the digest.
    pub fn merge(&mut self, other: &Summary) {
        let mut detail = self.detail.clone();
        let sums = [
            (&mut detail.measured_ns, other.detail.measured_ns),
            (&mut detail.last_arrival_ns, other.detail.last_arrival_ns),
            (&mut detail.last_completion_ns, other.detail.last_completion_ns),
        ];
        for (mine, theirs) in sums {
            *mine = mine.saturating_add(theirs);
        }
        detail.histograms.merge(&other.detail.histograms);
        detail.blame.merge(&other.detail.blame);
        let mine = self.ends();
        let theirs = other.ends();
        let totals = Totals {
            requests: self.requests.saturating_add(other.requests),
            ends: std::array::from_fn(|end| mine[end].saturating_add(theirs[end])),
            gc_blocked: self.gc_blocked.saturating_add(other.gc_blocked),
            not_logged: self.requests_not_logged.saturating_add(other.requests_not_logged),
        };
        *self = Summary::new(self.digest.followed_by(other.digest), totals, detail);
    }

    fn ends(&self) -> [u64; Status::ALL.len()] {
        ends(self.invalid_requests, self.lost_requests, &self.failed_requests)
    }

    /// Who owns the latency of the slowest requests of a class: those above
    /// `percentile`, from 0 (all of them) to below 100.
    ///
    /// # Errors
    /// If `percentile` lies outside that range.
    pub fn explain(&self, class: Class, percentile: f64) -> Result<Explanation, String> {
        Explanation::new(&self.detail.blame, class, percentile)
    }
}
