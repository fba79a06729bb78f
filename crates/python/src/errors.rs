//! Errors of the simulator as Python exceptions.

use flashkeel_experiment::Error;
use pyo3::{
    PyErr, create_exception,
    exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError},
};

create_exception!(
    flashkeel,
    InputError,
    PyValueError,
    "Wrong input: a document, an override, a trace or a name. The command line exits with status 2."
);

/// The exception for an error.
pub fn exception(error: Error) -> PyErr {
    match error {
        Error::Input(message) => InputError::new_err(message),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::Broken(message) => PyKeyboardInterrupt::new_err(message),
        Error::Failure(message) => PyRuntimeError::new_err(message),
    }
}
