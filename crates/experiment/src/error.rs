//! Why an experiment did not give a result.

use std::fmt;

use flashkeel_config::ConfigError;
use flashkeel_workload::{Stopped, WorkloadError};

/// Why an experiment did not give a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// Wrong input: a document, an override, a trace, a name. Exit status 2.
    Input(String),
    /// The caller asked to stop.
    Interrupted,
    /// The same, where something has been done by then that has to be said.
    Broken(String),
    /// Anything else. Exit status 1.
    Failure(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Input(message) | Error::Broken(message) | Error::Failure(message) => f.write_str(message),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Error::Input(error.to_string())
    }
}

impl From<Stopped> for Error {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Wrong(error) => error.into(),
            Stopped::Unwritten(error) => Error::Failure(error.to_string()),
            Stopped::Interrupted => Error::Interrupted,
        }
    }
}

impl From<WorkloadError> for Error {
    fn from(error: WorkloadError) -> Self {
        Error::Input(error.to_string())
    }
}
