//! The event queue, keyed (time, event).

use crate::Time;

/// Events kept sorted.
const NEAR: usize = 128;
const ARITY: usize = 4;

/// A queue of events ordered by time; events at the same time leave it by what
/// they are, the smaller first.
///
/// What an event is, 64 bits, is its owner's to say: what happens first at one
/// instant is part of the owner's model, and does not depend on when the event
/// was foreseen. Equal events at the same time cannot be told apart.
///
/// The earliest events stand in a short sorted ring, the others in a four-ary
/// heap behind it. A device of some tens of chips has few events at a time and
/// rarely uses the heap; with hundreds the heap bounds the cost.
#[derive(Debug, Clone)]
pub struct EventQueue {
    /// Of the earliest events in order, from `first` on: when, and what they are.
    times: [u64; NEAR],
    events: [u64; NEAR],
    first: usize,
    near_len: usize,
    /// Events not before any of these.
    far: Heap,
}

impl Default for EventQueue {
    fn default() -> Self {
        EventQueue { times: [0; NEAR], events: [0; NEAR], first: 0, near_len: 0, far: Heap::default() }
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

    /// Adds an event at `time`.
    #[inline(always)]
    pub fn push(&mut self, time: Time, event: u64) {
        if self.near_len == NEAR || !self.far.0.is_empty() {
            return self.push_far(time, event);
        }
        self.insert(time, event);
    }

    /// The time of the earliest event.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        (self.near_len > 0).then(|| Time(self.times[self.first % NEAR]))
    }

    /// Removes and returns the earliest event if it is due at or before `now`.
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, u64)> {
        let last = self.near_len.checked_sub(1)?;
        let (time, event) = self.nth(self.first);
        if time > now {
            return None;
        }
        self.near_len = last;
        self.first = (self.first + 1) % NEAR;
        if last == 0 && !self.far.0.is_empty() {
            self.refill();
        }
        Some((time, event))
    }

    /// What stands at a place of the ring.
    #[inline(always)]
    fn nth(&self, place: usize) -> (Time, u64) {
        (Time(self.times[place % NEAR]), self.events[place % NEAR])
    }

    #[inline(always)]
    fn set(&mut self, place: usize, (time, event): (Time, u64)) {
        (self.times[place % NEAR], self.events[place % NEAR]) = (time.0, event);
    }

    /// Whether what stands at a place of the ring comes after an event.
    #[inline(always)]
    fn is_behind(&self, place: usize, time: Time, event: u64) -> bool {
        let other = self.times[place % NEAR];
        if other == time.0 { is_after(self.events[place % NEAR], event) } else { other > time.0 }
    }

    /// Puts an event into its place in the ring, which has room: from whichever
    /// end is nearer.
    #[inline(always)]
    fn insert(&mut self, time: Time, event: u64) {
        let (first, len) = (self.first, self.near_len);
        self.near_len = len + 1;
        if len == 0 {
            return self.set(first, (time, event));
        }
        // The event in the middle ends the search from either side.
        if self.is_behind(first + len / 2, time, event) {
            let mut at = first.wrapping_sub(1) % NEAR;
            self.first = at;
            loop {
                let next = (at + 1) % NEAR;
                if self.is_behind(next, time, event) {
                    return self.set(at, (time, event));
                }
                self.set(at, self.nth(next));
                at = next;
            }
        }
        let mut at = (first + len) % NEAR;
        loop {
            let next = at.wrapping_sub(1) % NEAR;
            if !self.is_behind(next, time, event) {
                return self.set(at, (time, event));
            }
            self.set(at, self.nth(next));
            at = next;
        }
    }

    #[cold]
    fn push_far(&mut self, time: Time, event: u64) {
        let word = word_of(time, event);
        if self.far.0.first().is_some_and(|&first| word > first) {
            return self.far.push(word);
        }
        if self.near_len == NEAR {
            let (time, event) = self.nth(self.first + NEAR - 1);
            let latest = word_of(time, event);
            if word > latest {
                return self.far.push(word);
            }
            // Make room for an earlier event by moving the latest one back.
            self.far.push(latest);
            self.near_len -= 1;
        }
        self.insert(time, event);
    }

    /// Moves the earliest events of the heap forward.
    #[cold]
    fn refill(&mut self) {
        let count = self.far.0.len().min(NEAR / 2);
        for at in 0..count {
            let word = self.far.pop();
            self.set(self.first + at, (Time((word >> 64) as u64), word as u64));
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

/// Of two events at the same time, which is rare, whether `one` comes after
/// `other`.
#[cold]
fn is_after(one: u64, other: u64) -> bool {
    one > other
}

#[inline]
fn word_of(time: Time, event: u64) -> u128 {
    u128::from(time.0) << 64 | u128::from(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_leave_by_time_then_by_what_they_are() {
        let mut queue = EventQueue::new();
        let events = [(5, 7), (3, 1), (9, 2), (3, 0), (5, u64::MAX), (0, 4), (9, 1), (3, 1), (7, 6), (5, 3)];
        for (time, event) in events {
            queue.push(Time(time), event);
        }
        let mut expected = events;
        expected.sort();
        let got: Vec<_> = std::iter::from_fn(|| queue.pop_due(Time::MAX)).collect();
        assert_eq!(got, expected.map(|(time, event)| (Time(time), event)));
    }

    #[test]
    fn many_events_leave_in_order_while_others_enter() {
        let mut random = crate::Stream::new(1, "events");
        let (mut queue, mut reference) = (EventQueue::new(), std::collections::BTreeSet::new());
        let mut now = 0;
        for round in 0..20_000u64 {
            // Grows to hundreds, shrinks to nothing, and so on.
            let growing = round / 500 % 2 == 0;
            for half in 0..if growing { 2 } else { 1 } {
                let time = now + random.below(50);
                let event = random.below(1 << 10) << 20 | round << 1 | half;
                queue.push(Time(time), event);
                reference.insert((time, event));
            }
            for _ in 0..if growing { 1 } else { 2 } {
                let expected = reference.pop_first();
                now = expected.map_or(now, |(time, _)| time);
                assert_eq!(queue.pop_due(Time::MAX), expected.map(|(time, event)| (Time(time), event)));
            }
            assert_eq!(queue.len(), reference.len());
        }
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
