//! When the driver submits what a source gives it.

use flashkeel_config::axis;
use flashkeel_engine::Time;

pub use closed::Closed;
pub use open::Recorded;
pub use think::Think;

/// What every way of pacing has in common.
pub trait Pace {
    /// Whether the arrivals' times matter.
    fn is_timed(&self) -> bool;

    /// Whether a request is submitted at its arrival's own time, whatever
    /// became of those before it.
    fn is_open(&self) -> bool;

    /// The policy at work, before the first request.
    fn pacer(&self) -> Box<dyn Pacer>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Says when requests are submitted.
pub trait Pacer {
    /// When a request that arrives at `arrival` is due: it stays so until something is
    /// submitted or completes.
    fn due(&mut self, arrival: Time, progress: &Progress) -> Due;
}

/// When a request is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// At a time, which may have passed.
    At(Time),
    /// Now, whenever that is.
    AtOnce,
    /// Not before something completes.
    Later,
}

/// How far the requests before have come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Requests submitted and not completed.
    pub in_flight: usize,
    /// The latest completion.
    pub completed: Time,
    /// When the request before arrived.
    pub arrived: Time,
}

axis! {
    /// When a request is submitted: at its recorded time (`open`), when fewer
    /// than a number are outstanding (`closed`), or its recorded gap after its
    /// predecessor's completion (`think`).
    pub enum Pacing as "pacing": Pace {
        /// At its arrival time, whatever is outstanding.
        Open(Recorded) in open = "open",
        /// As soon as fewer than `depth` requests are outstanding, or in batches.
        Closed(Closed) in closed = "closed",
        /// Its recorded gap after its predecessor's completion.
        Think(Think) in think = "think",
    }
}

impl Default for Pacing {
    fn default() -> Self {
        Pacing::Open(Recorded {})
    }
}
