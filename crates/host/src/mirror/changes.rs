//! Changes on their way to the copies, and which of them is the oldest.

use std::collections::VecDeque;

use flashkeel_engine::RequestId;

use super::writes::Change;
use crate::flight::Flights;

/// Changes on their way.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    flights: Flights<Change>,
    /// In the order in which they began; some behind the first have ended.
    order: VecDeque<RequestId>,
}

impl Changes {
    pub fn len(&self) -> usize {
        self.flights.len()
    }

    /// The number of the next one.
    pub fn next_id(&self) -> RequestId {
        self.flights.next_id()
    }

    /// The one that began first.
    pub fn oldest(&self) -> Option<RequestId> {
        self.order.front().copied()
    }

    /// Notes one under [`next_id`](Self::next_id), which it returns.
    pub fn take_off(&mut self, change: Change) -> RequestId {
        let id = self.flights.take_off(change);
        self.order.push_back(id);
        id
    }

    pub fn get_mut(&mut self, id: RequestId) -> Option<&mut Change> {
        self.flights.get_mut(id)
    }

    /// Takes one out that has ended on every copy.
    pub fn land(&mut self, id: RequestId) {
        let _ = self.flights.land(id);
        while let Some(&oldest) = self.order.front()
            && self.flights.get_mut(oldest).is_none()
        {
            self.order.pop_front();
        }
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        let _ = self.flights.take_all();
        self.order.clear();
    }
}
