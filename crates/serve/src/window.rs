//! A window on a served drive, for other threads: they ask, and the loop that serves it
//! answers between two requests, all that wait at once.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use flashkeel_engine::Time;

use crate::lateness::Late;
use crate::seen::{Counted, Recent, Tally};

/// What is seen of a drive.
pub struct Snapshot {
    /// The device's time.
    pub now: Time,
    /// How many times as long as the device's all times are for clients.
    pub time_scale: f64,
    /// Counts since the start.
    pub tallies: Box<[Tally; Counted::ALL.len()]>,
    /// By how much answers were later than the model says.
    pub late: Late,
    /// How much longer requests took until what they were about was durable.
    pub synced: Late,
    /// Clients that are connected.
    pub clients: usize,
    /// What the device says of itself, as whoever serves it reads it off.
    pub device: String,
    /// The last minute, if it was asked for.
    pub recent: Option<Recent>,
}

/// Somebody asks.
pub(crate) struct Look {
    pub with_recent: bool,
    pub answer: Sender<Arc<Snapshot>>,
}

/// A window on a served drive.
#[derive(Clone)]
pub struct Window {
    looks: Sender<Look>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Window {
    pub(crate) fn new(wake: Arc<dyn Fn() + Send + Sync>) -> (Window, Receiver<Look>) {
        let (looks, receiver) = channel();
        (Window { looks, wake }, receiver)
    }

    /// What is seen now, with the last minute or without; `None` once nothing is served any
    /// more. Waits for the loop; who asks at the same time gets the same.
    pub fn look(&self, with_recent: bool) -> Option<Arc<Snapshot>> {
        let (answer, answered) = channel();
        self.looks.send(Look { with_recent, answer }).ok()?;
        (self.wake)();
        answered.recv().ok()
    }
}
