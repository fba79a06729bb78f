//! A stage: a host policy between those who ask and the leaves that serve.

use crate::{
    Answer, Arena, Coming, Command, Completion, Event, Lba, Limits, Notice, Place, Refusal, Request, Submit,
    Time, Wake,
};

/// Where a stage puts what it wants done; the driver empties it.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    /// Requests for children, as (child index, request), in order.
    pub requests: Vec<(usize, Request)>,
    /// The stage's own completions, for whoever submitted to it.
    pub completions: Vec<Completion>,
    /// Commands for children, as (child index, command), in order.
    pub commands: Vec<(usize, Command)>,
    /// The stage's own events, for whoever submits to it.
    pub events: Vec<Event>,
}

/// A sans-I/O host policy. It never owns its children: it names them by index
/// and the router ([`Stack`](crate::Stack)) carries requests and completions.
pub trait Stage {
    /// What the stage states of itself, over children that state `below`.
    fn limits(&self, below: &[Limits]) -> Limits;

    /// Offers a request at `now`.
    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena, outbox: &mut Outbox) -> Submit;

    /// The child that every coming request may go to as it is, if there is one: it is told of
    /// all, and nobody is asked to [`route`](Stage::route) each.
    fn goes_straight(&self) -> Option<usize> {
        None
    }

    /// The child that a coming request will go to, and as what, if that is
    /// known without a search.
    fn route(&self, _coming: Coming) -> Option<(usize, Coming)> {
        None
    }

    /// Which child has what is at `from`, where, and how many of `sectors`, one page at least,
    /// go on like that; `None` where that is not known now.
    fn finds(&self, from: Lba, sectors: u32) -> Option<(usize, Lba, u32)> {
        self.goes_straight().map(|child| (child, from, sectors))
    }

    /// When the stage next wants to act by itself, if it does.
    fn next_event(&self) -> Wake;

    /// Runs every timer due at or before `now`, and takes in what has happened
    /// outside.
    fn advance(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox);

    /// Child number `child` has completed a request that the stage gave it, or
    /// refused it, with the status that says why.
    ///
    /// Returns whether that ends a request of whoever submits to the stage. Then
    /// `completion`, which the stage has made the end of that one, is passed on
    /// as it stands, before whatever this call has put into the outbox.
    fn completed(
        &mut self,
        now: Time,
        child: usize,
        completion: &mut Completion,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) -> bool;

    /// Power is cut, below too, and comes back at once: the stage forgets what is
    /// volatile, requests that it has given its children among it, gives back the
    /// buffers that it has taken, and ends what it has accepted as
    /// [`Status::Aborted`](crate::Status::Aborted) at `now`.
    fn cut_power(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox);

    /// The stage is told or asked something.
    ///
    /// # Errors
    /// If it is not carried out; nothing has changed then.
    fn command(&mut self, _now: Time, _command: &Command, _outbox: &mut Outbox) -> Result<Answer, Refusal> {
        Err(Refusal::Unknown)
    }

    /// Why somebody else's command is not passed on to a child, if it is not: the stage
    /// commands there itself.
    fn refuses(&self, _child: usize, _command: &Command) -> Option<Refusal> {
        None
    }

    /// A child's answer to a command of the stage's.
    fn answered(
        &mut self,
        _now: Time,
        _child: usize,
        _command: &Command,
        _answer: Result<Answer, Refusal>,
        _outbox: &mut Outbox,
    ) {
    }

    /// Something has happened below; the stage decides what is passed on of it.
    fn noticed(&mut self, _now: Time, child: usize, notice: Notice, _outbox: &mut Outbox) -> Option<Notice> {
        Some(Notice { place: Place::below(&notice.place, child), event: notice.event })
    }
}
