//! A stage: a host policy between those who ask and the leaves that serve.

use crate::{Completion, Request, Submit, Time};

/// Where a stage puts what it wants done; the driver empties it.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Requests for children, as (child index, request), in order.
    pub requests: Vec<(usize, Request)>,
    /// The stage's own completions, for whoever submitted to it.
    pub completions: Vec<Completion>,
}

/// A sans-I/O host policy. It never owns its children: it names them by index
/// and the router ([`Stack`](crate::Stack)) carries requests and completions.
pub trait Stage {
    /// Offers a request at `now`.
    fn submit(&mut self, now: Time, request: &Request, outbox: &mut Outbox) -> Submit;

    /// When the stage next wants to act by itself, if it does.
    fn next_event(&self) -> Option<Time>;

    /// Runs every timer due at or before `now`.
    fn advance(&mut self, now: Time, outbox: &mut Outbox);

    /// Child number `child` has completed a request that the stage gave it.
    fn completed(&mut self, now: Time, child: usize, completion: &Completion, outbox: &mut Outbox);
}
