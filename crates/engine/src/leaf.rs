//! A leaf: something that serves requests by itself, such as an SSD.

use crate::{Completion, Lba, Operation, Request, Time};

/// The answer to a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Submit {
    /// Taken; a completion will follow.
    Accepted,
    /// Not taken: at its queue depth. Ask again after the next completion.
    Busy,
}

/// A sans-I/O device: it is told the time and never asks for it.
///
/// Callers pass non-decreasing times. Events inside run at their own times,
/// and a completion is stamped with the time it happened, at or before `now`.
pub trait Leaf {
    /// Offers a request at `now`. Every event due before `now` must have been
    /// run by [`advance`](Leaf::advance) first.
    fn submit(&mut self, now: Time, request: &Request) -> Submit;

    /// A request for `lba` is likely to come, after some dozens of others: a
    /// chance to fetch what it will need first into the processor's caches.
    /// Changes nothing else.
    fn expect(&self, _lba: Lba) {}

    /// The same, some requests before it comes: what it will need next, which
    /// may be found by what [`expect`](Leaf::expect) has fetched.
    fn expect_soon(&self, _operation: Operation, _lba: Lba) {}

    /// When something will next happen by itself, if anything will.
    fn next_event(&self) -> Option<Time>;

    /// Runs every event due at or before `now` and appends what completed.
    fn advance(&mut self, now: Time, completions: &mut Vec<Completion>);

    /// Runs events due at or before `limit`, instant by instant, until one of
    /// them has completed something; returns that instant. `None` if nothing
    /// completes before `limit`. `completions` must be empty.
    fn advance_to_completion(&mut self, limit: Time, completions: &mut Vec<Completion>) -> Option<Time> {
        loop {
            let next = self.next_event().filter(|&next| next <= limit)?;
            self.advance(next, completions);
            if !completions.is_empty() {
                return Some(next);
            }
        }
    }
}

impl<L: Leaf + ?Sized> Leaf for Box<L> {
    fn submit(&mut self, now: Time, request: &Request) -> Submit {
        (**self).submit(now, request)
    }

    fn expect(&self, lba: Lba) {
        (**self).expect(lba)
    }

    fn expect_soon(&self, operation: Operation, lba: Lba) {
        (**self).expect_soon(operation, lba)
    }

    fn next_event(&self) -> Option<Time> {
        (**self).next_event()
    }

    fn advance(&mut self, now: Time, completions: &mut Vec<Completion>) {
        (**self).advance(now, completions)
    }

    fn advance_to_completion(&mut self, limit: Time, completions: &mut Vec<Completion>) -> Option<Time> {
        (**self).advance_to_completion(limit, completions)
    }
}
