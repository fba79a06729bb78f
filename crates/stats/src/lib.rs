//! Turns completions into measurements: latency distributions to six nines,
//! the blame table, time series, the rows of a request log, and the digest.
//!
//! A [`Recorder`] takes every completion of a run and ends as a
//! [`Measurement`]. Its [`Summary`] is what results are written from and read
//! back into: two of them merge into what one recorder would have measured
//! over both runs, and the question who owns the tail
//! ([`Summary::explain`]) is answered from it alone.

mod blame;
mod buckets;
mod cause_totals;
mod class;
mod column;
mod config;
mod digest;
mod distribution;
mod explain;
mod histogram;
mod latency;
mod order;
mod percentile;
mod recorder;
mod request_log;
mod series;
mod summary;

pub use blame::BlameTable;
pub use cause_totals::CauseTotals;
pub use class::{Class, SizeClass};
pub use column::Column;
pub use config::{ChipLogConfig, MeasureConfig};
pub use digest::Digest;
pub use distribution::Distribution;
pub use explain::{CauseShare, Explanation, parse_percentile};
pub use histogram::HISTOGRAM_PRECISION;
pub use latency::Latencies;
pub use percentile::{PerPercentile, Percentile};
pub use recorder::{Asked, Measurement, Recorder};
pub use request_log::LogRows;
pub use series::Series;
pub use summary::{Detail, SizedDistribution, Summary};
