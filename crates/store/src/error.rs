//! Why a file is not used.

use std::fmt;
use std::io;

use flashkeel_engine::reason;

/// Why a file is not used; it is left as it was.
#[derive(Debug)]
pub enum Refused {
    /// It cannot be opened, read or written.
    Failed(io::Error),
    /// It does not hold what it should: a sentence.
    Unfit(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Failed(error) => formatter.write_str(&reason(error)),
            Refused::Unfit(reason) => formatter.write_str(reason),
        }
    }
}

impl std::error::Error for Refused {}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused::Failed(error)
    }
}

/// The same error once more.
pub(crate) fn same(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}
