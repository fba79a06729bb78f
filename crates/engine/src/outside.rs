//! What lies outside the simulation.

use std::io;

use crate::Time;

/// Why the outside would not, without the operating system's error number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// What whoever drives a leaf listens to while that waits for something whose time
/// nobody here knows ([`Wake::hears_outside`](crate::Wake::hears_outside)).
pub trait Outside {
    /// Waits until something has happened outside, but not beyond `until`;
    /// returns the time it is then.
    fn wait(&mut self, until: Option<Time>) -> Time;
}
