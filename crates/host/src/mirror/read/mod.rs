//! The read choice axis: which copy of a mirror a read goes to.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;
use flashkeel_engine::{Completion, Predictor, Request, Span, Time};

use crate::mirror::{MOST, each};

flashkeel_config::axis! {
    /// Which copy of a mirror a read goes to, of those that have the newest data.
    pub enum ReadConfig as "read choice": Build {
        /// The first.
        First(First) in first = "first",
        /// Each in turn.
        RoundRobin(RoundRobin) in round_robin = "round-robin",
        /// The one with the fewest requests.
        ShortestQueue(ShortestQueue) in shortest_queue = "shortest-queue",
        /// The one whose requests have not been slow of late: one that was is taken
        /// to be at background work for a while.
        Monitor(Monitor) in monitor = "monitor",
        /// One that is not predicted to be slow.
        Predicted(Predicted) in predicted = "predicted",
        /// One that is neither predicted to be slow nor late with a read, where some have
        /// got pages again so that no two write their buffers out at the same time.
        Staggered(Staggered) in staggered = "staggered",
        /// One in a deterministic window.
        Window(Window) in window = "window",
    }
}

impl Default for ReadConfig {
    fn default() -> Self {
        ReadConfig::ShortestQueue(shortest_queue::ShortestQueue::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy, over copies and spares. `predictors` has one for each of them
    /// if the policy needs some.
    fn build(&self, predictors: Vec<Box<dyn Predictor>>) -> Box<dyn Reader>;

    /// Whether it asks predictors.
    fn needs_predictor(&self) -> bool {
        false
    }

    /// Whether copies get pages again.
    fn writes_again(&self) -> bool {
        false
    }

    /// Whether it goes by windows.
    fn needs_windows(&self) -> bool {
        false
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Chooses copies.
pub trait Reader: DynClone + Send {
    /// The copy that a read goes to, one of the candidates.
    fn choose(&mut self, now: Time, read: &Request, copies: &Copies<'_>) -> usize;

    /// A copy gets a request, whoever asks for it.
    fn submitted(&mut self, _now: Time, _copy: usize, _request: &Request) {}

    /// A copy has completed one.
    fn completed(&mut self, _now: Time, _ended: &Ended, _completion: &Completion) {}

    /// All of the copies `present` have got `write`: which of them is to get how many of its
    /// pages again, if any.
    fn again(&mut self, _write: &Request, _present: u8) -> Option<(usize, u32)> {
        None
    }

    /// Power is cut, and comes back at once: of what the copies have got no more is
    /// told.
    fn cut_power(&mut self, _now: Time) {}
}

dyn_clone::clone_trait_object!(Reader);

/// How the copies stand.
#[derive(Clone, Copy, Debug)]
pub struct Copies<'a> {
    /// Those that a read may go to, a bit each; at least one.
    pub candidates: u8,
    /// Requests with each.
    pub queued: &'a [u32],
    /// Those in deterministic windows, a bit each.
    pub deterministic: u8,
}

impl Copies<'_> {
    /// The candidates, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        each(self.candidates)
    }
}

/// A request that a copy has completed.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Which copy.
    pub copy: usize,
    /// Whether it was a read.
    pub is_read: bool,
    /// When the copy got it.
    pub begun: Time,
    /// How long the copy took.
    pub latency: Span,
}

/// The copy of least weight; of several, the first after `last`.
fn least<K: Ord>(copies: &Copies<'_>, last: usize, mut weight: impl FnMut(usize) -> K) -> usize {
    let from_last = |&copy: &usize| (copy + MOST - 1 - last % MOST) % MOST;
    let mut order: [Option<usize>; MOST] = [None; MOST];
    copies.iter().for_each(|copy| order[from_last(&copy)] = Some(copy));
    order.into_iter().flatten().min_by_key(|&copy| weight(copy)).expect("there is a candidate")
}
