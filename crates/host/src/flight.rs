//! Requests submitted and not completed.

use std::collections::VecDeque;

use flashkeel_engine::{Request, RequestId, Time};

/// The requests in flight, by their rising numbers.
///
/// A window over the numbers from the oldest in flight to the newest: dense,
/// and as long as the spread between them.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    first: u64,
    window: VecDeque<Flight>,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub request: Request,
    /// Its length in sectors before it was aligned.
    pub asked_sectors: u32,
    /// When the request arrived, which may be before the device took it.
    pub arrived: Time,
    /// When the device took it.
    pub accepted: Time,
    landed: bool,
}

impl Flights {
    /// The number of the next request.
    #[inline]
    pub fn next_id(&self) -> RequestId {
        RequestId(self.first + self.window.len() as u64)
    }

    /// Requests in flight.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Notes a request under [`next_id`](Self::next_id).
    #[inline]
    pub fn take_off(&mut self, request: Request, asked_sectors: u32, arrived: Time, accepted: Time) {
        debug_assert_eq!(request.id, self.next_id());
        self.window.push_back(Flight { request, asked_sectors, arrived, accepted, landed: false });
        self.count += 1;
    }

    /// Takes a completed request out.
    ///
    /// # Panics
    /// If it is not in flight: a request completes exactly once.
    #[inline]
    pub fn land(&mut self, id: RequestId) -> Flight {
        let index = id.0.checked_sub(self.first).map(|index| index as usize);
        let flight = index.and_then(|index| self.window.get_mut(index)).filter(|flight| !flight.landed);
        let flight = flight.expect("a request completes exactly once");
        flight.landed = true;
        let landed = *flight;
        self.count -= 1;
        while self.window.front().is_some_and(|flight| flight.landed) {
            self.window.pop_front();
            self.first += 1;
        }
        landed
    }
}
