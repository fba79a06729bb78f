//! Bounds of what host policies may be given.

use flashkeel_engine::Span;

/// Longest wait that makes sense anywhere on a host.
const LONGEST: Span = Span::from_secs(3600);

/// Refuses a wait that is longer than any that makes sense.
///
/// # Errors
/// Says which key it is, and how long at most.
pub(crate) fn wait(key: &str, span: Span) -> Result<(), String> {
    if span > LONGEST { Err(format!("{key} is {span}; at most {LONGEST}")) } else { Ok(()) }
}
