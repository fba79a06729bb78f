//! Changes on their way to the copies, and which of them have been acknowledged.

use std::collections::BTreeSet;

use flashkeel_engine::RequestId;

use super::writes::Change;
use crate::flight::Flights;

/// Changes on their way.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    flights: Flights<Change>,
    /// Those that the host has been told of, while copies still lack them.
    lagging: BTreeSet<RequestId>,
}

impl Changes {
    /// The number of the next one.
    pub fn next_id(&self) -> RequestId {
        self.flights.next_id()
    }

    /// Of those that have been acknowledged the one that began first.
    pub fn oldest_lagging(&self) -> Option<RequestId> {
        self.lagging.first().copied()
    }

    /// Notes one under [`next_id`](Self::next_id), which it returns.
    pub fn take_off(&mut self, change: Change) -> RequestId {
        self.flights.take_off(change)
    }

    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut Change> {
        self.flights.get_mut(id)
    }

    /// One has been acknowledged before it has ended on every copy.
    pub fn lags(&mut self, id: RequestId) {
        self.lagging.insert(id);
    }

    /// Takes one out that has ended on every copy.
    pub fn land(&mut self, id: RequestId) {
        let _ = self.flights.land(id);
        self.lagging.remove(&id);
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        let _ = self.flights.take_all();
        self.lagging.clear();
    }
}
