//! The extension module `flashkeel._core`: the experiment crate for Python.
//!
//! Everything structured crosses as JSON text, tables as Arrow capsules; what
//! each function means is said in `python/flashkeel/_core.pyi`.

mod errors;
mod functions;
mod progress;
mod run;
mod serve;
mod ssdcheck;
mod table;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use crate::{
        errors::InputError,
        functions::{
            demand_names, demand_similarity, explain, lifetimes, list_names, merge, reference, resolve,
            schema, show, span_ns, trace_convert, trace_files, trace_format, trace_info, trace_like,
            trace_merge, trace_synth, version, write_profiles,
        },
        run::{RunResult, run},
        serve::{Serving, listen_unix, serve_nbd},
        ssdcheck::{Predictor, predict, predict_log, probe, put_target, resolve_target},
        table::Table,
    };

    #[pymodule_export]
    const LOGICAL_PAGE_BYTES: u64 = flashkeel_experiment::LOGICAL_PAGE_BYTES;

    #[pymodule_export]
    const BUILD: &str = flashkeel_experiment::BUILD;
}
