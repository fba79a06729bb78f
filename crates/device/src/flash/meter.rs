//! Cumulative blame of a resource that others wait for.

use flashkeel_engine::{Cause, Time, Waits, add_each, subtract_each};

/// Who has owned the time of those who wait for a resource, since ever.
///
/// A waiter's ledger is less the reading when its wait begins, and more the
/// reading when it ends: the growth between the two is its wait, split by
/// owner, whatever happened in between and however many wait.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    owner: Option<Cause>,
    since: Time,
    total: Waits,
}

impl Meter {
    /// From `now` on, time belongs to `owner`, one of the causes of waits, or
    /// to nobody.
    #[inline]
    pub fn set_owner(&mut self, now: Time, owner: Option<Cause>) {
        if owner == self.owner {
            return;
        }
        if let Some(cause) = self.owner {
            let entry = &mut self.total[cause as usize];
            *entry = entry.wrapping_add(now.since(self.since).0);
        }
        self.owner = owner;
        self.since = now;
    }

    /// Who has owned all the time since an instant, if it is one cause.
    #[inline]
    pub fn owner_since(&self, instant: Time) -> Option<Cause> {
        self.owner.filter(|_| self.since <= instant)
    }

    /// Whoever has `waits` begins to wait.
    #[inline(always)]
    pub fn begin_wait(&self, now: Time, waits: &mut Waits) {
        subtract_each(waits, &self.total);
        if let Some(cause) = self.owner {
            let entry = &mut waits[cause as usize];
            *entry = entry.wrapping_sub(now.since(self.since).0);
        }
    }

    /// Whoever has `waits` stops waiting: its wait is charged.
    #[inline(always)]
    pub fn end_wait(&self, now: Time, waits: &mut Waits) {
        add_each(waits, &self.total);
        if let Some(cause) = self.owner {
            let entry = &mut waits[cause as usize];
            *entry = entry.wrapping_add(now.since(self.since).0);
        }
    }
}
