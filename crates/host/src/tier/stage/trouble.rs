//! What follows from failures: what is not tried again, and until when.

use flashkeel_engine::{Arena, Operation, Outbox, Request, Status, Time};

use super::{LOWER, Tier};

/// What has failed, and so what is not tried again by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trouble {
    None,
    /// Something: nothing is tried again until the next request.
    Failed,
    /// The lower takes nothing more, as one that is read-only, full or gone: a page is
    /// tried with each change, and nothing else until it takes one.
    Refused,
}

impl Trouble {
    /// What follows from the end of a request to a child.
    pub fn of(child: usize, status: Status) -> Trouble {
        match status {
            Status::Ok => Trouble::None,
            Status::ReadOnly | Status::NoSpace | Status::Gone if child == LOWER => Trouble::Refused,
            _ => Trouble::Failed,
        }
    }
}

impl Tier {
    /// A request has come, so that what has failed may be tried again.
    pub(super) fn try_again(&mut self, now: Time, request: &Request, data: &mut Arena, outbox: &mut Outbox) {
        if self.trouble != Trouble::Refused {
            self.trouble = Trouble::None;
        } else if request.operation != Operation::Read && self.draining == 0 {
            self.write_back(now, 1, data, outbox);
        }
    }

    /// The lower has served a write, if `is_ok`, and so takes what it is given.
    pub(super) fn taken(&mut self, is_ok: bool) {
        if is_ok && self.trouble == Trouble::Refused {
            self.trouble = Trouble::None;
        }
    }

    /// Whether nothing is moved in the background.
    pub(super) fn is_quiet(&self) -> bool {
        self.draining + self.evicting == 0
    }
}
