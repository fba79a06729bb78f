//! Experiments: a device, a workload and the variants to run.
//!
//! A document becomes an [`Experiment`] (typed and validated), that becomes
//! one [`RunPlan`] per variant, and a plan becomes a [`RunOutcome`]. This is
//! the only crate of the simulator that touches the file system for anything
//! but traces, looks at a clock or asks how much memory there is; no result
//! depends on any of these.

mod arrivals;
mod cache;
mod catalog;
mod document;
mod error;
mod footprint;
mod lifetime;
mod log_file;
mod logged;
mod memory;
mod outcome;
mod paths;
mod pooling;
mod predict;
mod predictor;
mod probe;
mod read_off;
mod real;
mod run;
mod schema;
mod stack;
mod stored;
mod target;
mod trace;

pub use catalog::{EXPERIMENTS, list, show};
pub use document::{Experiment, RunPlan, Variant, resolve, resolve_target, resolve_watched};
pub use error::Error;
pub use lifetime::{
    Blocks, Drive, Endured, Lifetime, LifetimePlan, Method, Moment, Response, demand_names,
    demand_similarity, lifetimes, write_profiles,
};
pub use logged::{Logged, log_options, predict_log};
pub use outcome::{RunOutcome, TenantOutcome, explain, merge, span_ns};
pub use predict::{Predicted, predict};
pub use predictor::{DrivePredictor, parse_model};
pub use probe::probe;
pub use read_off::{read_off, watch};
pub use real::RealDrives;
pub use run::{Finished, Progress, run};
pub use schema::{reference, schema};
pub use stored::Stored;
pub use target::{Opened, Target};
pub use trace::{trace_convert, trace_format, trace_info, trace_like, trace_merge, trace_synth};

pub use flashkeel_engine::{BUILD, Cause, LOGICAL_PAGE_BYTES};
pub use flashkeel_host::device::Device;
pub use flashkeel_workload::{LatencyLogOptions, Watch, trace_files};

/// The version every result carries.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
