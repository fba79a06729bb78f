//! The event queue: a four-ary heap of (time, sequence, payload).

use crate::Time;

const TIME_BITS: u32 = 60;
const SEQUENCE_BITS: u32 = 40;
/// Bits of payload an event carries.
pub const PAYLOAD_BITS: u32 = 28;
const ARITY: usize = 4;

/// A queue of events ordered by time; events at the same time leave it in the
/// order they entered.
///
/// An event is one 128-bit word: 60 bits of nanoseconds (36 years), 40 bits of
/// sequence, 28 bits of payload whose meaning is the owner's. Comparing words
/// compares (time, sequence), so ties need no extra branch.
#[derive(Debug, Default, Clone)]
pub struct EventQueue {
    heap: Vec<u128>,
    sequence: u64,
}

impl EventQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of events waiting.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no event is waiting.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Adds an event at `time` with a payload below 2^28.
    #[inline]
    pub fn push(&mut self, time: Time, payload: u32) {
        assert!(time.0 >> TIME_BITS == 0, "event beyond the end of simulated time");
        debug_assert!(payload >> PAYLOAD_BITS == 0);
        debug_assert!(self.sequence >> SEQUENCE_BITS == 0);
        let word = (u128::from(time.0) << (SEQUENCE_BITS + PAYLOAD_BITS))
            | (u128::from(self.sequence) << PAYLOAD_BITS)
            | u128::from(payload);
        self.sequence += 1;
        self.heap.push(word);
        self.sift_up(self.heap.len() - 1, word);
    }

    /// The time of the earliest event.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        self.heap.first().map(|&word| time_of(word))
    }

    /// Removes and returns the earliest event if it is due at or before `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, u32)> {
        let &first = self.heap.first()?;
        let time = time_of(first);
        if time > now {
            return None;
        }
        let last = self.heap.pop().expect("the heap has a first element");
        if !self.heap.is_empty() {
            self.sift_down(last);
        }
        Some((time, (first as u32) & ((1 << PAYLOAD_BITS) - 1)))
    }

    #[inline]
    fn sift_up(&mut self, mut at: usize, word: u128) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent] <= word {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = word;
    }

    #[inline]
    fn sift_down(&mut self, word: u128) {
        let len = self.heap.len();
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            if first >= len {
                break;
            }
            let mut least = first;
            for child in first + 1..(first + ARITY).min(len) {
                if self.heap[child] < self.heap[least] {
                    least = child;
                }
            }
            if self.heap[least] >= word {
                break;
            }
            self.heap[at] = self.heap[least];
            at = least;
        }
        self.heap[at] = word;
    }
}

#[inline]
fn time_of(word: u128) -> Time {
    Time((word >> (SEQUENCE_BITS + PAYLOAD_BITS)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_leave_by_time_then_by_order_of_entry() {
        let mut queue = EventQueue::new();
        let times = [5u64, 3, 9, 3, 5, 0, 9, 3, 7, 1, 5];
        for (payload, time) in times.iter().enumerate() {
            queue.push(Time(*time), payload as u32);
        }
        let mut expected: Vec<_> = times.iter().copied().zip(0u32..).collect();
        expected.sort();
        let mut got = Vec::new();
        while let Some((time, payload)) = queue.pop_due(Time::MAX) {
            got.push((time.0, payload));
        }
        assert_eq!(got, expected);
    }

    #[test]
    fn an_event_is_not_handed_out_before_its_time() {
        let mut queue = EventQueue::new();
        queue.push(Time(10), 1);
        assert_eq!(queue.pop_due(Time(9)), None);
        assert_eq!(queue.next_time(), Some(Time(10)));
        assert_eq!(queue.pop_due(Time(10)), Some((Time(10), 1)));
        assert!(queue.is_empty());
    }
}
