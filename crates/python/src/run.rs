//! Running a plan with the interpreter's lock released.

use std::{
    ops::ControlFlow,
    path::PathBuf,
    time::{Duration, Instant},
};

use flashkeel_experiment::{Finished, RunPlan};
use pyo3::prelude::*;

use crate::{
    errors::{InputError, exception},
    table::Table,
};

/// Shortest time between two calls of the progress function, and between two
/// looks for a signal.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// What a run measured.
#[pyclass(frozen, module = "flashkeel._core")]
pub struct RunResult {
    json: String,
    series: Table,
    requests: Option<Table>,
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

    /// The request log, if the experiment asked for one.
    fn requests(&self) -> Option<Table> {
        self.requests.clone()
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
    let mut reporter = Reporter { progress, last: None, phase: "", error: None };
    let finished = py.detach(|| {
        flashkeel_experiment::run(&plan, seed, cache_dir.as_deref(), &mut |phase, fraction| {
            reporter.report(phase, fraction)
        })
    });
    if let Some(error) = reporter.error {
        return Err(error);
    }
    let Finished { outcome, series, requests } = finished.map_err(exception)?;
    Ok(RunResult {
        json: serde_json::to_string(&outcome).expect("results are plain data"),
        series: Table::new(series),
        requests: requests.map(Table::new),
    })
}

/// Passes progress on to Python, not too often.
struct Reporter {
    progress: Option<Py<PyAny>>,
    last: Option<Instant>,
    phase: &'static str,
    error: Option<PyErr>,
}

impl Reporter {
    fn report(&mut self, phase: &'static str, fraction: f64) -> ControlFlow<()> {
        let is_recent = self.last.is_some_and(|last| last.elapsed() < REPORT_EVERY);
        if is_recent && phase == self.phase {
            return ControlFlow::Continue(());
        }
        self.last = Some(Instant::now());
        self.phase = phase;
        let told = Python::attach(|py| {
            py.check_signals()?;
            match &self.progress {
                Some(progress) => progress.call1(py, (phase, fraction)).map(drop),
                None => Ok(()),
            }
        });
        match told {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}
