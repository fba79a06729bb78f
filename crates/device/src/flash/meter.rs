//! Cumulative blame of a resource that others wait for.

use flashkeel_engine::{Cause, Ledger, Time};

/// Who has owned the time of those who wait for a resource, since ever.
///
/// A waiter reads the meter when it starts to wait and again when it stops;
/// the growth between the two readings is its wait, split by owner, whatever
/// happened in between and however many wait.
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
        if let Some(cause) = self.owner {
            self.total.charge_between(cause, self.since, now);
        }
        self.owner = owner;
        self.since = now;
    }

    /// The reading at `now`.
    #[inline]
    pub fn read(&self, now: Time) -> Ledger {
        let mut total = self.total;
        if let Some(cause) = self.owner {
            total.charge_between(cause, self.since, now);
        }
        total
    }
}
