//! Progress of what lasts, passed on to Python.

use std::{
    ops::ControlFlow,
    time::{Duration, Instant},
};

use flashkeel_experiment::Error;
use pyo3::{exceptions::PyKeyboardInterrupt, prelude::*};

use crate::errors::exception;

/// Shortest time between two calls of the progress function, and between two
/// looks for a signal.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Does something that lasts with the interpreter's lock released. `progress` is
/// called with what is being done and the fraction of it that is done.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&mut Reporter) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let mut reporter = Reporter { progress, last: None, phase: "", error: None };
    let done = py.detach(|| work(&mut reporter));
    match (reporter.error, done) {
        (Some(raised), Ok(_)) => Err(raised),
        (Some(raised), Err(left)) => Err(saying(py, raised, left)),
        (None, done) => done.map_err(|left| match (py.check_signals().err(), left) {
            (None, left) => exception(left),
            (Some(raised), left @ Error::Broken(_)) => saying(py, raised, left),
            // A signal ends a wait for a pipe, and what is read or written seems cut off.
            (Some(raised), _) => raised,
        }),
    }
}

/// What broke something off, with what that leaves behind, if anything has to be said of it.
fn saying(py: Python<'_>, raised: PyErr, left: Error) -> PyErr {
    if left == Error::Interrupted {
        return raised;
    }
    if raised.is_instance_of::<PyKeyboardInterrupt>(py) {
        return PyKeyboardInterrupt::new_err(left.to_string());
    }
    // What another signal raises is the status that the process ends with.
    match raised.value(py).call_method1("add_note", (left.to_string(),)) {
        Ok(_) => raised,
        Err(error) => error,
    }
}

/// Passes progress on to Python, not too often.
pub struct Reporter {
    progress: Option<Py<PyAny>>,
    last: Option<Instant>,
    phase: &'static str,
    error: Option<PyErr>,
}

impl Reporter {
    /// Tells how far it is, and whether to go on.
    pub fn report(&mut self, phase: &'static str, fraction: f64) -> ControlFlow<()> {
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
