//! The I/O scheduler axis: in which order a device gets what waits for it.
//!
//! One file per policy. To add one: write the file, add its line to the list.

mod ring;
mod stage;

use dyn_clone::DynClone;
use flashkeel_engine::{Completion, Predictor, Request, Time, Wake};

pub use stage::Scheduling;

use crate::claim::Claim;

flashkeel_config::axis! {
    /// In which order requests that wait on the host go to the device.
    pub enum IoSchedulerConfig as "I/O scheduler": Build {
        /// Oldest first.
        None(None) in none = "none",
        /// Reads before writes, each in batches by address, none past its
        /// deadline (mq-deadline).
        Deadline(Deadline) in deadline = "deadline",
        /// Shares by the tenants' weights, reads before writes (bfq).
        Fair(Fair) in fair = "fair",
        /// A read that is predicted to be slow before the writes that would
        /// make it slow (SSDcheck §IV).
        Pas(Pas) in pas = "pas",
        /// Each tenant's in turn (NVMe's round robin).
        RoundRobin(RoundRobin) in round_robin = "round-robin",
        /// Urgent tenants first, the others by the weights of their priorities (NVMe's
        /// weighted round robin with urgent priority class).
        WeightedRoundRobin(WeightedRoundRobin) in weighted_round_robin = "weighted-round-robin",
    }
}

impl Default for IoSchedulerConfig {
    fn default() -> Self {
        IoSchedulerConfig::None(none::None::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy, with nothing waiting. `claims` are the tenants'; `predictor`
    /// is there if the policy needs one.
    fn build(&self, claims: &[Claim], predictor: Option<Box<dyn Predictor>>) -> Box<dyn IoScheduler>;

    /// Whether requests go to the device in the order in which they came.
    fn keeps_order(&self) -> bool {
        false
    }

    /// Whether it asks a predictor.
    fn needs_predictor(&self) -> bool {
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

/// An I/O scheduler. Flushes are kept in order by whoever calls it; they come
/// alone among the requests of their tenant.
pub trait IoScheduler: DynClone + Send {
    /// `request` waits from now on. Ids rise in the order of calls.
    fn add(&mut self, now: Time, request: &Request);

    /// The request that goes to the device at `now`; it waits no longer.
    fn next(&mut self, now: Time) -> Option<Request>;

    /// The power is cut: what waits has been ended, and so has what the device got.
    fn cut_power(&mut self, now: Time);

    /// The device has completed a request that it got.
    fn completed(&mut self, _now: Time, _completion: &Completion) {}

    /// When a request may go that was held back by itself, if ever.
    fn next_event(&self) -> Wake {
        Wake::NEVER
    }

    /// Runs every timer due at or before `now`.
    fn advance(&mut self, _now: Time) {}
}

dyn_clone::clone_trait_object!(IoScheduler);
