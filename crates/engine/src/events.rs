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
#[derive(Debug, Clone)]
pub struct EventQueue {
    /// The heap, then words of [`VACANT`]: at least as many as one node has
    /// children, so that a node's children can always be read as a whole.
    heap: Vec<u128>,
    len: usize,
    sequence: u64,
}

/// Later than every event.
const VACANT: u128 = u128::MAX;

impl Default for EventQueue {
    fn default() -> Self {
        EventQueue { heap: vec![VACANT; 1 + ARITY], len: 0, sequence: 0 }
    }
}

impl EventQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of events waiting.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no event is waiting.
    pub fn is_empty(&self) -> bool {
        self.len == 0
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
        if self.len + ARITY >= self.heap.len() {
            self.heap.resize(self.heap.len() * 2 + ARITY, VACANT);
        }
        let mut at = self.len;
        self.len += 1;
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

    /// The time of the earliest event.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        (self.len > 0).then(|| time_of(self.heap[0]))
    }

    /// Removes and returns the earliest event if it is due at or before `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, u32)> {
        let first = self.heap[0];
        let time = time_of(first);
        if self.len == 0 || time > now {
            return None;
        }
        self.len -= 1;
        let last = std::mem::replace(&mut self.heap[self.len], VACANT);
        if self.len > 0 {
            self.sift_down(last);
        }
        Some((time, (first as u32) & ((1 << PAYLOAD_BITS) - 1)))
    }

    /// Puts `word` in place of the first event.
    #[inline]
    fn sift_down(&mut self, word: u128) {
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            if first >= self.len {
                break;
            }
            let children: &[u128; ARITY] =
                self.heap[first..first + ARITY].try_into().expect("vacant words follow the heap");
            // A tournament: two rounds, the first of which can overlap.
            let left = usize::from(children[1] < children[0]);
            let right = 2 + usize::from(children[3] < children[2]);
            let least = if children[right] < children[left] { right } else { left };
            let child = children[least];
            if child >= word {
                break;
            }
            self.heap[at] = child;
            at = first + least;
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
