//! The event queue, keyed (time, sequence).

use crate::Time;

const SEQUENCE_BITS: u32 = 36;
/// Bits of payload an event carries.
pub const PAYLOAD_BITS: u32 = 28;
/// Events kept sorted.
const NEAR: usize = 64;
const ARITY: usize = 4;

/// A queue of events ordered by time; events at the same time leave it in the
/// order they entered.
///
/// An event is one 128-bit word: 64 bits of nanoseconds, 36 bits of sequence,
/// 28 bits of payload whose meaning is the owner's. Comparing words compares
/// (time, sequence), so ties need no extra branch. When the sequence has run
/// out, the events that wait are numbered anew.
///
/// The earliest events stand in a short sorted ring, the others in a four-ary
/// heap behind it. A device of some tens of chips has few events at a time and
/// rarely uses the heap; with hundreds the heap bounds the cost.
#[derive(Debug, Clone)]
pub struct EventQueue {
    /// The earliest events in order, from `first` on.
    near: [u128; NEAR],
    first: usize,
    near_len: usize,
    /// Events not before any of `near`.
    far: Heap,
    sequence: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        EventQueue { near: [0; NEAR], first: 0, near_len: 0, far: Heap::default(), sequence: 0 }
    }
}

impl EventQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of events waiting.
    pub fn len(&self) -> usize {
        self.near_len + self.far.0.len()
    }

    /// Whether no event is waiting.
    pub fn is_empty(&self) -> bool {
        self.near_len == 0
    }

    /// Adds an event at `time` with a payload below 2^28.
    #[inline]
    pub fn push(&mut self, time: Time, payload: u32) {
        debug_assert!(payload >> PAYLOAD_BITS == 0);
        if self.sequence >> SEQUENCE_BITS != 0 {
            self.renumber();
        }
        let lower = self.sequence << PAYLOAD_BITS | u64::from(payload);
        let word = u128::from(time.0) << 64 | u128::from(lower);
        self.sequence += 1;
        let behind_near = self.far.0.first().is_some_and(|&first| word > first);
        if self.near_len == NEAR || behind_near {
            return self.push_far(word, behind_near);
        }
        self.insert(word);
    }

    /// The time of the earliest event.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        (self.near_len > 0).then(|| time_of(*self.nth(0)))
    }

    /// Removes and returns the earliest event if it is due at or before `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, u32)> {
        let last = self.near_len.checked_sub(1)?;
        let word = *self.nth(0);
        let time = time_of(word);
        if time > now {
            return None;
        }
        self.near_len = last;
        self.first = self.first.wrapping_add(1);
        if last == 0 {
            self.refill();
        }
        Some((time, (word as u32) & ((1 << PAYLOAD_BITS) - 1)))
    }

    /// The `index`-th of the events in `near`.
    #[inline]
    fn nth(&self, index: usize) -> &u128 {
        &self.near[self.first.wrapping_add(index) % NEAR]
    }

    #[inline]
    fn set(&mut self, index: usize, word: u128) {
        self.near[self.first.wrapping_add(index) % NEAR] = word;
    }

    /// Puts a word into its place in `near`, which has room: from whichever
    /// end is nearer.
    #[inline]
    fn insert(&mut self, word: u128) {
        // Of two words with the same upper half, the one that entered last is
        // the larger, and that is this one: half the word decides.
        let upper = upper_half(word);
        let len = self.near_len;
        self.near_len += 1;
        if upper_half(*self.nth(len / 2)) <= upper {
            let mut at = len;
            while at > 0 && upper_half(*self.nth(at - 1)) > upper {
                self.set(at, *self.nth(at - 1));
                at -= 1;
            }
            return self.set(at, word);
        }
        self.first = self.first.wrapping_sub(1);
        let mut at = 0;
        while at < len && upper_half(*self.nth(at + 1)) <= upper {
            self.set(at, *self.nth(at + 1));
            at += 1;
        }
        self.set(at, word);
    }

    /// Gives the events that wait the first numbers, in their order.
    #[cold]
    fn renumber(&mut self) {
        let payload = u128::from((1u64 << PAYLOAD_BITS) - 1);
        self.near.rotate_left(self.first % NEAR);
        self.first = 0;
        self.far.0.sort_unstable();
        self.sequence = 0;
        for word in self.near[..self.near_len].iter_mut().chain(&mut self.far.0) {
            let time = u128::from(upper_half(*word)) << 64;
            *word = time | u128::from(self.sequence) << PAYLOAD_BITS | *word & payload;
            self.sequence += 1;
        }
    }

    #[cold]
    fn push_far(&mut self, word: u128, behind_near: bool) {
        let latest = *self.nth(self.near_len - 1);
        if behind_near || word > latest {
            return self.far.push(word);
        }
        // Make room for an earlier event by moving the latest one back.
        self.far.push(latest);
        self.near_len -= 1;
        self.insert(word);
    }

    /// Moves the earliest events of the heap forward.
    fn refill(&mut self) {
        let count = self.far.0.len().min(NEAR / 2);
        for at in 0..count {
            let word = self.far.pop();
            self.set(at, word);
        }
        self.near_len = count;
    }
}

/// A four-ary heap of words.
#[derive(Clone, Debug, Default)]
struct Heap(Vec<u128>);

impl Heap {
    fn push(&mut self, word: u128) {
        let mut at = self.0.len();
        self.0.push(word);
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.0[parent] <= word {
                break;
            }
            self.0[at] = self.0[parent];
            at = parent;
        }
        self.0[at] = word;
    }

    fn pop(&mut self) -> u128 {
        let first = self.0[0];
        let word = self.0.pop().expect("the heap has a first word");
        let len = self.0.len();
        let mut at = 0;
        while at * ARITY + 1 < len {
            let children = at * ARITY + 1..(at * ARITY + 1 + ARITY).min(len);
            let least = children.min_by_key(|&child| self.0[child]).expect("there is a child");
            if self.0[least] >= word {
                break;
            }
            self.0[at] = self.0[least];
            at = least;
        }
        if len > 0 {
            self.0[at] = word;
        }
        first
    }
}

#[inline]
fn upper_half(word: u128) -> u64 {
    (word >> 64) as u64
}

#[inline]
fn time_of(word: u128) -> Time {
    Time(upper_half(word))
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
    fn many_events_leave_in_order_while_others_enter() {
        let mut random = crate::Stream::new(1, "events");
        let (mut queue, mut reference) = (EventQueue::new(), std::collections::BTreeSet::new());
        let mut now = 0;
        for payload in 0..20_000u32 {
            // Grows to hundreds, shrinks to nothing, and so on.
            let growing = payload / 500 % 2 == 0;
            for _ in 0..if growing { 2 } else { 1 } {
                let time = now + random.below(50);
                queue.push(Time(time), payload);
                reference.insert((time, queue.sequence, payload));
            }
            for _ in 0..if growing { 1 } else { 2 } {
                let expected = reference.pop_first();
                now = expected.map_or(now, |(time, ..)| time);
                assert_eq!(
                    queue.pop_due(Time::MAX),
                    expected.map(|(time, _, payload)| (Time(time), payload))
                );
            }
            assert_eq!(queue.len(), reference.len());
        }
    }

    #[test]
    fn order_survives_the_end_of_the_sequence() {
        let mut queue = EventQueue::new();
        queue.sequence = (1 << SEQUENCE_BITS) - 60;
        let times = || (0..120u64).map(|event| event * 7 % 5);
        for (payload, time) in (0..).zip(times()) {
            queue.push(Time(time), payload);
        }
        let mut expected: Vec<_> = times().zip(0u32..).collect();
        expected.sort();
        let popped = std::iter::from_fn(|| queue.pop_due(Time::MAX));
        assert_eq!(popped.map(|(time, payload)| (time.0, payload)).collect::<Vec<_>>(), expected);
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
