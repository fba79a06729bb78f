//! What lies outside the simulation.

use crate::Time;

/// What whoever drives a leaf listens to while that waits for something whose time
/// nobody here knows ([`Wake::hears_outside`](crate::Wake::hears_outside)).
pub trait Outside {
    /// Waits until something has happened outside, but not beyond `until`;
    /// returns the time it is then.
    fn wait(&mut self, until: Option<Time>) -> Time;
}
