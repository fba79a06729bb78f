//! Where configuration was written.

use std::{
    fmt::{self, Display},
    sync::Arc,
};

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a named document (a file, or `preset autossd`).
    Line {
        /// The document's name.
        document: Arc<str>,
        /// The line, counted from 1.
        line: usize,
    },
    /// An override on the command line.
    Override,
    /// A value nobody wrote: the default.
    Default,
}

impl Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Line { document, line } => write!(f, "{document}:{line}"),
            Origin::Override => f.write_str("--set"),
            Origin::Default => f.write_str("default"),
        }
    }
}
