//! The seam between a host policy and whatever predicts a device.

use dyn_clone::DynClone;

use crate::{Completion, Request, Span, Time};

/// What is expected of a request before it is submitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Expected latency, from the request's own submission to its completion: the mean of
    /// what it takes if it is slow and if it is not, as likely as these are.
    pub latency: Span,
    /// How likely the request is to be slow: above the predictor's threshold for such
    /// a request; 0 to 1.
    pub chance: f32,
    /// Whether that is likely enough to be called slow, for the false calls that are afforded.
    pub is_slow: bool,
}

/// How full a buffer is expected to be that writes go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filling {
    /// Pages of 4 KiB in it.
    pub pages: u32,
    /// So many, and it is written out; at least 1.
    pub of: u32,
}

/// Predicts the latency of requests to one device.
///
/// Whoever submits to the device tells of every submission and of every
/// completion, in order; all a predictor knows of the device comes that way.
/// Times never decrease. Addresses are the device's own.
pub trait Predictor: DynClone + Send {
    /// What `request` would take from its own submission if it were submitted
    /// next: at `now`, or, where others are `ahead` (oldest first, none of them
    /// submitted yet), behind those, as the device takes them.
    ///
    /// A question, not a promise: it may be asked again for the same request,
    /// and asking changes no later answer.
    fn predict(&mut self, now: Time, ahead: &[Request], request: &Request) -> Prediction;

    /// How full the buffer is that `write` would go to, if that is known well enough.
    fn filling(&self, _write: &Request) -> Option<Filling> {
        None
    }

    /// The device has been given `request` at `now`.
    fn submitted(&mut self, now: Time, request: &Request);

    /// A request told of by [`submitted`](Predictor::submitted) has completed.
    fn observe(&mut self, now: Time, completion: &Completion);

    /// The device's power is cut, and comes back at once: of what it has been given
    /// no more is told.
    fn cut_power(&mut self, now: Time);
}

dyn_clone::clone_trait_object!(Predictor);
