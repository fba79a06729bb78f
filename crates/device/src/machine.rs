//! What every partition shares: the event queue, the flash under its
//! scheduler, the controller's delays and the counters.

use std::collections::VecDeque;

use flashkeel_engine::{EventQueue, Span, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::counters::{Counters, Wearing};
use crate::limits::{INDEX_BITS, MAX_INDEX};
use crate::sched::{Activity, Dispatcher, FlashOpId};

/// A delay drawn uniformly between two bounds; equal bounds make it exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    /// Shortest.
    pub min: Span,
    /// Longest.
    pub max: Span,
}

impl Delay {
    /// A delay between `min` and `max` nanoseconds.
    pub const fn between_ns(min: u64, max: u64) -> Delay {
        Delay { min: Span(min), max: Span(max) }
    }

    #[inline]
    pub(crate) fn draw(self, random: &mut Stream) -> Span {
        Span(random.between(self.min.0, self.max.0))
    }
}

/// The controller's processing delays. They are latencies, not a shared
/// resource: requests are processed side by side, operations of one request
/// and of garbage collection one after another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ControllerConfig {
    /// Looking up the map, once per request.
    pub lookup: Delay,
    /// Generating a flash operation of the host or the map task.
    pub host_generation: Delay,
    /// Generating a flash operation of a background task.
    pub background_generation: Delay,
    /// Operations queued per chip in the controller.
    pub slots_per_chip: u32,
    /// Requests the device accepts before it answers busy.
    pub queue_depth: u32,
}

impl Default for ControllerConfig {
    /// AutoSSD, §4.1 and §4.2; the queue depth is ours.
    fn default() -> Self {
        ControllerConfig {
            lookup: Delay::between_ns(500, 1_000),
            host_generation: Delay::between_ns(1_000, 2_000),
            background_generation: Delay::between_ns(1_000, 3_000),
            slots_per_chip: 4,
            queue_depth: 65_536,
        }
    }
}

/// An event of the device. At one instant they happen in this order: chips come
/// free, a window begins, data arrive, requests and operations go on in the
/// order in which they came, then whatever runs by itself; among equals, by
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceEvent {
    /// A chip's phase ends.
    Chip(u32),
    /// A window of a set may end.
    Window(u32),
    /// A request's data has crossed the host link.
    Linked(u32),
    /// A request's look-up or generation delay ends.
    Request(u32),
    /// An operation's generation delay ends.
    Operation(u32),
    /// A background activity of a partition may generate its next operation: the
    /// partition, and the activity's number.
    Background(u32, u32),
    /// A partition's oldest buffered write may be due.
    BufferTimeout(u32),
    /// The scheduler's control period ends.
    Control,
    /// A worn-out block has had to stay in use.
    WornOut,
}

/// Where an event's kind, and the turn of what it is about, stand in an event
/// queue's word.
const KIND_SHIFT: u32 = 60;
const TURN_SHIFT: u32 = 28;
const _: () = assert!(INDEX_BITS <= TURN_SHIFT && TURN_SHIFT + u32::BITS <= KIND_SHIFT);

/// Bits that tell the activities of one partition apart.
const ACTIVITY_BITS: u32 = 4;
const _: () = assert!(Activity::ALL.len() <= 1 << ACTIVITY_BITS);

impl DeviceEvent {
    /// The event as an event queue has it. `turn` is the number of the request
    /// or operation in the order in which they came; 0 for others.
    #[inline]
    pub(crate) fn pack(self, turn: u32) -> u64 {
        let (kind, index) = match self {
            // Chips push their own number: their kind is 0.
            DeviceEvent::Chip(chip) => (0, chip),
            DeviceEvent::Window(set) => (1, set),
            DeviceEvent::Linked(request) => (2, request),
            DeviceEvent::Request(request) => (3, request),
            DeviceEvent::Operation(operation) => (4, operation),
            DeviceEvent::Background(partition, activity) => (5, partition << ACTIVITY_BITS | activity),
            DeviceEvent::BufferTimeout(partition) => (6, partition),
            DeviceEvent::Control => (7, 0),
            DeviceEvent::WornOut => (8, 0),
        };
        debug_assert!(index <= MAX_INDEX);
        kind << KIND_SHIFT | u64::from(turn) << TURN_SHIFT | u64::from(index)
    }

    #[inline]
    pub(crate) fn unpack(word: u64) -> DeviceEvent {
        let index = word as u32 & MAX_INDEX;
        match word >> KIND_SHIFT {
            0 => DeviceEvent::Chip(index),
            1 => DeviceEvent::Window(index),
            2 => DeviceEvent::Linked(index),
            3 => DeviceEvent::Request(index),
            4 => DeviceEvent::Operation(index),
            5 => DeviceEvent::Background(index >> ACTIVITY_BITS, index & ((1 << ACTIVITY_BITS) - 1)),
            6 => DeviceEvent::BufferTimeout(index),
            7 => DeviceEvent::Control,
            8 => DeviceEvent::WornOut,
            kind => unreachable!("no event of kind {kind}"),
        }
    }
}

/// The shared lower half of the device.
#[derive(Clone)]
pub(crate) struct Machine {
    pub events: EventQueue,
    pub dispatcher: Dispatcher,
    pub counters: Counters,
    /// What was written before the counters were last reset.
    pub written_before: Wearing,
    /// What the host is expected to write to each NVM set, or to the whole; empty where
    /// nobody works ahead.
    pub arrivals: Vec<Arrivals>,
    pub controller: ControllerConfig,
    /// Draws the controller's delays.
    pub random: Stream,
    /// Operations generated so far, modulo 2^32: they take turns by it.
    pub generated: u32,
    /// Requests that may go on because what they waited for has come.
    pub woken: VecDeque<u32>,
    /// Whether the scheduler's control is scheduled.
    pub controlling: bool,
}

impl Machine {
    /// Schedules an event that is about no request or operation.
    #[inline(always)]
    pub fn schedule(&mut self, time: Time, event: DeviceEvent) {
        self.events.push(time, event.pack(0));
    }

    /// Schedules an event of a request, the `turn`-th that came.
    #[inline(always)]
    pub fn schedule_turn(&mut self, time: Time, event: DeviceEvent, turn: u32) {
        self.events.push(time, event.pack(turn));
    }

    /// Schedules the end of an operation's generation delay.
    #[inline]
    pub fn generate(&mut self, now: Time, operation: FlashOpId) {
        let delay = self.controller.host_generation.draw(&mut self.random);
        self.generated = self.generated.wrapping_add(1);
        self.schedule_turn(now + delay, DeviceEvent::Operation(operation.0), self.generated);
    }

    /// Schedules the end of the delay after which a background activity of a
    /// partition generates its next operation.
    #[inline]
    pub fn generate_later(&mut self, now: Time, partition: u16, activity: Activity) {
        let delay = self.controller.background_generation.draw(&mut self.random);
        self.schedule(now + delay, DeviceEvent::Background(u32::from(partition), activity as u32));
    }

    /// What the host is expected to write to a partition, where anybody works ahead.
    #[inline]
    pub fn arrivals(&self, partition: u16) -> Option<&Arrivals> {
        self.arrivals.get(usize::from(partition)).or(self.arrivals.first())
    }

    /// Makes sure that the scheduler's control runs while something is active.
    #[inline]
    pub fn wake_control(&mut self, now: Time) {
        if self.controlling {
            return;
        }
        if let Some(period) = self.dispatcher.arbiter().control_period() {
            self.controlling = true;
            self.schedule(now + period, DeviceEvent::Control);
        }
    }

    /// Puts an operation with its target set into its request queue.
    #[inline(always)]
    pub fn enqueue(&mut self, now: Time, operation: FlashOpId) {
        let op = &self.dispatcher.operations[operation];
        self.counters.count(op.purpose);
        self.dispatcher.enqueue(now, operation, &mut self.events);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_packing() {
        for event in [
            DeviceEvent::Chip(3),
            DeviceEvent::Request(MAX_INDEX),
            DeviceEvent::Operation(7),
            DeviceEvent::Background(63, 2),
            DeviceEvent::BufferTimeout(2),
            DeviceEvent::Control,
            DeviceEvent::Linked(9),
            DeviceEvent::Window(63),
            DeviceEvent::WornOut,
        ] {
            assert_eq!(DeviceEvent::unpack(event.pack(u32::MAX)), event);
        }
    }

    #[test]
    fn events_go_by_kind_then_turn_then_number() {
        let order = [
            DeviceEvent::Chip(2).pack(0),
            DeviceEvent::Chip(MAX_INDEX).pack(0),
            DeviceEvent::Window(0).pack(0),
            DeviceEvent::Linked(9).pack(u32::MAX),
            DeviceEvent::Request(MAX_INDEX).pack(1),
            DeviceEvent::Request(0).pack(2),
            DeviceEvent::Operation(4).pack(1),
            DeviceEvent::Operation(5).pack(1),
            DeviceEvent::Background(0, 2).pack(0),
            DeviceEvent::BufferTimeout(0).pack(0),
            DeviceEvent::Control.pack(0),
            DeviceEvent::WornOut.pack(0),
        ];
        assert!(order.is_sorted());
    }
}
