//! Queues that are served one after the other, so many requests each.

use std::collections::VecDeque;

use flashkeel_engine::Request;

/// Queues that take turns. Each gives up to a burst of requests in its turn.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    queues: Vec<VecDeque<Request>>,
    waiting: usize,
    /// Whose turn it is, and what it has given in it.
    turn: usize,
    given: u32,
    burst: u32,
}

impl Ring {
    pub fn new(queues: usize, burst: u32) -> Ring {
        Ring { queues: vec![VecDeque::new(); queues], waiting: 0, turn: 0, given: 0, burst }
    }

    /// How many queues it has.
    pub fn len(&self) -> usize {
        self.queues.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    pub fn add(&mut self, queue: usize, request: &Request) {
        self.queues[queue].push_back(*request);
        self.waiting += 1;
    }

    pub fn clear(&mut self) {
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.waiting = 0;
    }

    /// The next request in turn; `None` if none waits.
    pub fn next(&mut self) -> Option<Request> {
        if self.waiting == 0 {
            return None;
        }
        while self.given == self.burst || self.queues[self.turn].is_empty() {
            self.turn = (self.turn + 1) % self.queues.len();
            self.given = 0;
        }
        self.given += 1;
        self.waiting -= 1;
        self.queues[self.turn].pop_front()
    }
}
