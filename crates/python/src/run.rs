//! Running a plan with the interpreter's lock released.

use std::path::PathBuf;

use flashkeel_experiment::{Finished, RunPlan};
use pyo3::{prelude::*, types::PyBytes};

use crate::{errors::InputError, progress::watched, table::Table};

/// What a run measured.
#[pyclass(frozen, module = "flashkeel._core")]
pub struct RunResult {
    json: String,
    series: Table,
    requests: Option<Vec<u8>>,
    chips: Option<Table>,
}

#[pymethods]
impl RunResult {
    /// The run object, with blame table and histograms under `detail`.
    fn json(&self) -> &str {
        &self.json
    }

    /// The time series.
    fn series(&self) -> Table {
        self.series.clone()
    }

    /// The request log as a Parquet file, if the experiment asked for one.
    fn requests<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.requests.as_deref().map(|file| PyBytes::new(py, file))
    }

    /// What each chip did, if the experiment asked for it.
    fn chips(&self) -> Option<Table> {
        self.chips.clone()
    }
}

/// Run a plan.
#[pyfunction]
#[pyo3(signature = (plan_json, seed, cache_dir=None, progress=None))]
pub fn run(
    py: Python<'_>,
    plan_json: &str,
    seed: u64,
    cache_dir: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<RunResult> {
    let plan: RunPlan = serde_json::from_str(plan_json)
        .map_err(|error| InputError::new_err(format!("not a run plan: {error}")))?;
    let Finished { outcome, series, requests, chips } = watched(py, progress, |reporter| {
        flashkeel_experiment::run(&plan, seed, cache_dir.as_deref(), &mut |phase, fraction| {
            reporter.report(phase, fraction)
        })
    })?;
    Ok(RunResult {
        json: serde_json::to_string(&outcome).expect("results are plain data"),
        series: Table::new(series),
        requests,
        chips: chips.map(Table::new),
    })
}
