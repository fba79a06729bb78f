//! Diagnosis and prediction.

use std::{path::PathBuf, time::Duration};

use flashkeel_experiment::{self as experiment, RunPlan, Target};
use pyo3::prelude::*;

use crate::{
    errors::{InputError, exception},
    functions::json,
    progress::watched,
};

/// Resolve what a document drives into JSON.
#[pyfunction]
pub fn resolve_target(
    py: Python<'_>,
    document: &str,
    name: &str,
    sets: Vec<(String, String)>,
) -> PyResult<String> {
    watched(py, None, |_| experiment::resolve_target(document, name, &sets)).map(json)
}

/// Put a target in the place of what a plan drives; both are JSON, and so is the plan.
#[pyfunction]
pub fn put_target(plan_json: &str, target_json: &str) -> PyResult<String> {
    let mut plan: RunPlan = serde_json::from_str(plan_json)
        .map_err(|error| InputError::new_err(format!("not a run plan: {error}")))?;
    let target: Target = serde_json::from_str(target_json)
        .map_err(|error| InputError::new_err(format!("not a resolved target: {error}")))?;
    target.put_into(&mut plan);
    Ok(json(plan))
}

/// Probe a target, given as JSON; give model and evidence as JSON.
#[pyfunction]
#[pyo3(signature = (target_json, seed, cache_dir=None, limit=None, progress=None))]
pub fn probe(
    py: Python<'_>,
    target_json: &str,
    seed: u64,
    cache_dir: Option<PathBuf>,
    limit: Option<Duration>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let target = serde_json::from_str(target_json)
        .map_err(|error| InputError::new_err(format!("not a resolved target: {error}")))?;
    watched(py, progress, |reporter| {
        experiment::probe(&target, seed, cache_dir.as_deref(), limit, &mut |phase, fraction| {
            reporter.report(phase, fraction)
        })
    })
    .map(json)
}

/// Run a plan with predictions from a model; say as JSON what became of them.
#[pyfunction]
#[pyo3(signature = (plan_json, model_json, model_name, seed, false_calls=None, cache_dir=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub fn predict(
    py: Python<'_>,
    plan_json: &str,
    model_json: &str,
    model_name: &str,
    seed: u64,
    false_calls: Option<f64>,
    cache_dir: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let plan: RunPlan = serde_json::from_str(plan_json)
        .map_err(|error| InputError::new_err(format!("not a run plan: {error}")))?;
    let false_calls = checked(false_calls)?;
    let model = experiment::parse_model(model_json, model_name).map_err(exception)?;
    watched(py, progress, |reporter| {
        experiment::predict(&plan, &model, false_calls, seed, cache_dir.as_deref(), &mut |phase, fraction| {
            reporter.report(phase, fraction)
        })
    })
    .map(json)
}

/// Score the predictions of a log's requests; say as JSON how good they were.
#[pyfunction]
#[pyo3(signature = (path, iolog=None, device=None, time_unit=None, model_json=None, model_name="", false_calls=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "named in Python")]
pub fn predict_log(
    py: Python<'_>,
    path: PathBuf,
    iolog: Option<PathBuf>,
    device: Option<String>,
    time_unit: Option<&str>,
    model_json: Option<&str>,
    model_name: &str,
    false_calls: Option<f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let model = model_json.map(|text| experiment::parse_model(text, model_name)).transpose();
    let model = model.map_err(exception)?;
    let false_calls = checked(false_calls)?;
    let options = experiment::log_options(iolog, device, time_unit).map_err(exception)?;
    watched(py, progress, |reporter| {
        experiment::predict_log(&path, &options, model, false_calls, &mut |phase, fraction| {
            reporter.report(phase, fraction)
        })
    })
    .map(json)
}

/// A part of requests that may be called slow, within its range.
fn checked(false_calls: Option<f64>) -> PyResult<Option<f64>> {
    match false_calls {
        Some(part) if !(0.0..=1.0).contains(&part) => {
            Err(InputError::new_err(format!("false_calls = {part}: it is a part of requests, 0 to 1")))
        }
        within => Ok(within),
    }
}

/// Predicts the requests of one drive.
#[pyclass(module = "flashkeel._core")]
pub struct Predictor(Box<experiment::DrivePredictor>);

// Python gives objects no more alignment than this, whatever they ask for.
const _: () = assert!(align_of::<Predictor>() <= 16);

#[pymethods]
impl Predictor {
    #[new]
    #[pyo3(signature = (model_json, model_name, false_calls=None))]
    fn new(model_json: &str, model_name: &str, false_calls: Option<f64>) -> PyResult<Predictor> {
        let model = experiment::parse_model(model_json, model_name).map_err(exception)?;
        Ok(Predictor(Box::new(experiment::DrivePredictor::new(&model, checked(false_calls)?))))
    }

    /// Expected latency in nanoseconds, how likely it is to be slow, and whether that is called so.
    fn predict(
        &mut self,
        now_ns: u64,
        operation: &str,
        lba: u64,
        sectors: u32,
    ) -> PyResult<(u64, f32, bool)> {
        self.0.predict(now_ns, operation, lba, sectors).map_err(exception)
    }

    /// Tell of a request that the drive was given.
    fn submitted(&mut self, now_ns: u64, id: u64, operation: &str, lba: u64, sectors: u32) -> PyResult<()> {
        self.0.submitted(now_ns, id, operation, lba, sectors).map_err(exception)
    }

    /// Tell of a request that has completed.
    fn observe(&mut self, now_ns: u64, id: u64) -> PyResult<()> {
        self.0.observe(now_ns, id).map_err(exception)
    }

    /// The model with what was learnt, as JSON.
    fn model(&self) -> String {
        json(self.0.model())
    }

    /// Whether predictions are given out.
    #[getter]
    fn is_on(&self) -> bool {
        self.0.is_on()
    }
}
