//! A leaf: something that serves requests by itself, such as an SSD.

use crate::{
    Answer, Arena, Command, Completion, Lba, Limits, Notice, Operation, Patience, Place, Refusal, Request,
    Status, TenantId, Time, Wake,
};

/// The answer to a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Submit {
    /// Taken; a completion will follow.
    Accepted,
    /// Not taken: at its queue depth. Ask again after the next completion.
    Busy,
    /// Not taken, and never will be: that is how the request ended. No
    /// completion follows.
    Refused(Status),
}

/// A request that is likely to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coming {
    /// What it will ask.
    pub operation: Operation,
    /// Whose it will be.
    pub tenant: TenantId,
    /// Where it will begin.
    pub lba: Lba,
}

/// What a range of a device holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// What has been written, as far as is known.
    Data,
    /// Room is taken for it, but it has been given nothing but zeros.
    Zeros,
    /// Nothing: it was never written, or it has been trimmed.
    Nothing,
}

/// A sans-I/O device: it is told the time and never asks for it.
///
/// Callers pass non-decreasing times. Events inside run at their own times,
/// and a completion is stamped with the time it happened, at or before `now`.
/// `data` holds the bytes of requests that carry some.
pub trait Leaf {
    /// What the device states of itself.
    fn limits(&self) -> Limits;

    /// Offers a request at `now`. Every event due before `now` must have been
    /// run by [`advance`](Leaf::advance) first.
    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena) -> Submit;

    /// Requests are likely to come, after some dozens of others: a chance to
    /// fetch what they will need first into the processor's caches. Changes
    /// nothing else.
    fn expect(&self, _coming: &[Coming]) {}

    /// The same, some requests before they come: what they will need next, which
    /// may be found by what [`expect`](Leaf::expect) has fetched.
    fn expect_soon(&self, _coming: &[Coming]) {}

    /// Nothing is due for some tens of microseconds of the wall clock: a chance to do what would
    /// take time when it is needed. Changes nothing else; returns whether there was something.
    fn prepare(&mut self) -> bool {
        false
    }

    /// What there is from `from` on, and how many of `sectors`, one page at least, are
    /// alike in that.
    fn holds(&self, _from: Lba, sectors: u32) -> (u32, Holds) {
        (sectors, Holds::Data)
    }

    /// When something will next happen by itself, if anything will, and whether there is an
    /// event to be taken: nobody asks [`notice`](Leaf::notice) where there is none.
    fn next_event(&self) -> Wake;

    /// Runs every event due at or before `now`, takes in what has happened
    /// outside, and appends what completed.
    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>);

    /// Runs events due at or before `limit`, instant by instant, until one of
    /// them has completed something, or raised something for
    /// [`notice`](Leaf::notice), or from now on something outside may have a say;
    /// returns that instant. `None` if nothing does before `limit`. `completions` must
    /// be empty; where something outside may have a say already, it is not before
    /// `limit` there.
    fn advance_to_completion(
        &mut self,
        limit: Time,
        data: &mut Arena,
        completions: &mut Vec<Completion>,
    ) -> Option<Time> {
        let mut patience = Patience::default();
        let mut wake = self.next_event();
        loop {
            let next = wake.time().filter(|&next| next <= limit)?;
            patience.at(next);
            self.advance(next, data, completions);
            wake = self.next_event();
            if !completions.is_empty() || wake.has_notice() || wake.hears_outside() {
                return Some(next);
            }
        }
    }

    /// Power is cut, and comes back at once; every event due before `now` has been
    /// run. Whatever is volatile is lost and what was durable is found again. Requests
    /// inside end as [`Status::Aborted`] at `now`, with the next
    /// [`advance`](Leaf::advance): each write may have been done in part, block by
    /// block.
    fn cut_power(&mut self, now: Time, data: &mut Arena);

    /// Tells or asks something, here or, by its `place`, of something below.
    /// Events that follow from it come with the next [`advance`](Leaf::advance).
    ///
    /// # Errors
    /// If it is not carried out; nothing has changed then.
    fn command(
        &mut self,
        _now: Time,
        place: &Place,
        _command: &Command,
        _data: &mut Arena,
    ) -> Result<Answer, Refusal> {
        Err(if place.0.is_empty() { Refusal::Unknown } else { Refusal::NoSuchPlace })
    }

    /// The oldest of the events that have not been taken yet.
    fn notice(&mut self) -> Option<Notice> {
        None
    }
}

impl<L: Leaf + ?Sized> Leaf for Box<L> {
    fn limits(&self) -> Limits {
        (**self).limits()
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena) -> Submit {
        (**self).submit(now, request, data)
    }

    fn expect(&self, coming: &[Coming]) {
        (**self).expect(coming)
    }

    fn expect_soon(&self, coming: &[Coming]) {
        (**self).expect_soon(coming)
    }

    fn prepare(&mut self) -> bool {
        (**self).prepare()
    }

    fn holds(&self, from: Lba, sectors: u32) -> (u32, Holds) {
        (**self).holds(from, sectors)
    }

    fn next_event(&self) -> Wake {
        (**self).next_event()
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        (**self).advance(now, data, completions)
    }

    fn advance_to_completion(
        &mut self,
        limit: Time,
        data: &mut Arena,
        completions: &mut Vec<Completion>,
    ) -> Option<Time> {
        (**self).advance_to_completion(limit, data, completions)
    }

    fn cut_power(&mut self, now: Time, data: &mut Arena) {
        (**self).cut_power(now, data)
    }

    fn command(
        &mut self,
        now: Time,
        place: &Place,
        command: &Command,
        data: &mut Arena,
    ) -> Result<Answer, Refusal> {
        (**self).command(now, place, command, data)
    }

    fn notice(&mut self) -> Option<Notice> {
        (**self).notice()
    }
}
