//! Workloads: trace readers and generators that give the driver a time-ordered
//! stream of [`Arrival`]s.
//!
//! A [`WorkloadConfig`] names a source (a trace or a generator), how the
//! driver paces it, and its limits; [`WorkloadConfig::open`] turns it into a
//! [`Source`]. Every request that is left out or changed on the way is counted
//! in [`Counts`]; every input that cannot be understood is a [`WorkloadError`]
//! that names the file, the place and the field.
//!
//! [`read_latencies`] reads what a drive was asked and how long that took.
//!
//! [`demand`] holds what lifetimes need of a workload: bytes written over time.
//!
//! To add a trace format: one file in `readers/` and one line in its list. To
//! add an access pattern or an arrival process: one file in
//! `generators/patterns/` or `generators/arrivals/` and one line. To add a
//! profile: a constant in its paper's file in `profiles/`.

mod calendar;
mod config;
pub mod demand;
mod digits;
mod error;
pub mod generators;
mod info;
mod input;
mod latencies;
mod merge;
mod names;
mod noise;
pub mod pacing;
mod pages;
mod places;
pub mod profiles;
mod readers;
mod source;
mod text;
pub mod trace;
mod writers;

pub use config::{Context, Open, Seeds, SourceConfig, WorkloadConfig};
pub use demand::{Demand, Traffic};
pub use error::{Location, Stopped, Watch, WorkloadError};
pub use info::{DeviceInfo, InterArrival, SizeClass, Terms, TraceInfo, info};
pub use input::Compression;
pub use latencies::{LatencyLog, LatencyLogOptions, Served, read_latencies};
pub use merge::{Beginnings, merge};
pub use pacing::Pacing;
pub use places::Places;
pub use readers::{FormatName, Times, trace_files};
pub use source::{Arrival, Basis, Counts, Source};
pub use trace::Trace;
pub use writers::{WriterName, Written, conversion, convert, refuse_overwriting, save};
