//! A bound on what may happen at one instant.

use crate::Time;

/// Times in a row that one instant may come up: more than the events of any device.
#[cfg(debug_assertions)]
const LIMIT: u32 = 1 << 22;

/// Ends a run, instead of letting it hang, in which something schedules itself for
/// ever at one instant. Only builds with debug assertions count, which all tests
/// are; in others it costs nothing.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    #[cfg(debug_assertions)]
    now: Time,
    #[cfg(debug_assertions)]
    times: u32,
}

impl Patience {
    /// Something happens at `now`.
    ///
    /// # Panics
    /// If nothing else has for millions of times.
    #[inline]
    pub fn at(&mut self, now: Time) {
        #[cfg(debug_assertions)]
        {
            self.times = if self.now == now { self.times + 1 } else { 0 };
            self.now = now;
            assert!(self.times < LIMIT, "something schedules itself for ever at {now:?}");
        }
        let _ = now;
    }
}
