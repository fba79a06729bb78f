//! Cumulative blame of a resource that others wait for.

use flashkeel_engine::{Cause, Ledger, Time};

/// Who has owned the time of those who wait for a resource, since ever.
///
/// A waiter's ledger is less the reading when its wait begins, and more the
/// reading when it ends: the growth between the two is its wait, split by
/// owner, whatever happened in between and however many wait.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    total: Ledger,
    owner: Option<Cause>,
    since: Time,
}

impl Meter {
    /// From `now` on, time belongs to `owner`, or to nobody.
    #[inline]
    pub fn set_owner(&mut self, now: Time, owner: Option<Cause>) {
        if owner == self.owner {
            return;
        }
        if let Some(cause) = self.owner {
            self.total.charge_between(cause, self.since, now);
        }
        self.owner = owner;
        self.since = now;
    }

    /// Whoever has `ledger` begins to wait.
    #[inline]
    pub fn begin_wait(&self, now: Time, ledger: &mut Ledger) {
        ledger.subtract(&self.total);
        if let Some(cause) = self.owner {
            ledger.discharge(cause, now.since(self.since));
        }
    }

    /// Whoever has `ledger` stops waiting: its wait is charged.
    #[inline]
    pub fn end_wait(&self, now: Time, ledger: &mut Ledger) {
        ledger.add(&self.total);
        if let Some(cause) = self.owner {
            ledger.charge(cause, now.since(self.since));
        }
    }
}
