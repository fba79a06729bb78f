//! The NVM device as a leaf.

use std::collections::VecDeque;

use flashkeel_engine::{
    Arena, Cause, Completion, Durable, EventQueue, Leaf, Ledger, Limits, Operation, Request, RequestId,
    Status, Stream, Submit, Time, Wake,
};
use serde::Serialize;

use crate::config::{Layout, UNIT_SECTORS};

/// One NVM device.
///
/// A request waits for a free unit, is worked on for a latency by chance, and
/// then moves its data, one request after the other. Trims and flushes have
/// nothing to do: what is acknowledged is durable.
#[derive(Clone)]
pub struct Nvm {
    layout: Layout,
    random: Stream,
    events: EventQueue,
    slots: Vec<Slot>,
    free: Vec<u32>,
    waiting: VecDeque<u32>,
    busy_units: usize,
    /// When the data of all requests so far will have moved.
    moved_until: Time,
    bytes_read: u64,
    bytes_written: u64,
    completed: Vec<Completion>,
}

/// A request inside.
#[derive(Clone, Copy)]
struct Slot {
    id: RequestId,
    operation: Operation,
    bytes: u64,
    /// The time up to which the ledger says who owned it.
    mark: Time,
    ledger: Ledger,
    is_moving: bool,
}

/// What an NVM device has done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes that may be written before the device is worn out.
    pub endurance_bytes: f64,
}

impl Nvm {
    /// An idle device. Every random decision follows from `seed`.
    pub fn new(layout: &Layout, seed: u64) -> Self {
        Nvm {
            layout: layout.clone(),
            random: Stream::new(seed, "nvm"),
            events: EventQueue::new(),
            slots: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            busy_units: 0,
            moved_until: Time::ZERO,
            bytes_read: 0,
            bytes_written: 0,
            completed: Vec::new(),
        }
    }

    /// Capacity in 512-byte sectors.
    pub fn sectors(&self) -> u64 {
        self.layout.sectors
    }

    /// Requests inside.
    pub fn requests(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// What the device has done since its start or the last reset.
    pub fn report(&self) -> Report {
        Report {
            bytes_read: self.bytes_read,
            bytes_written: self.bytes_written,
            endurance_bytes: self.layout.endurance_bytes,
        }
    }

    /// Starts counting anew, as at the end of a warm-up.
    pub fn reset_counters(&mut self) {
        self.bytes_read = 0;
        self.bytes_written = 0;
    }

    fn start(&mut self, now: Time, index: u32) {
        self.busy_units += 1;
        let slot = &mut self.slots[index as usize];
        slot.ledger.charge_between(Cause::BehindNvm, slot.mark, now);
        slot.mark = now;
        let latency = match slot.operation {
            Operation::Read => self.layout.read_latency.draw(&mut self.random),
            _ => self.layout.write_latency.draw(&mut self.random),
        };
        self.events.push(now + latency, index);
    }

    /// The unit's part is over; the data move as soon as those before have.
    fn move_data(&mut self, now: Time, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.is_moving = true;
        slot.ledger.charge_between(Cause::Nvm, slot.mark, now);
        let rate = match slot.operation {
            Operation::Read => self.layout.bandwidth.read,
            _ => self.layout.bandwidth.write,
        };
        slot.mark = self.moved_until.max(now);
        slot.ledger.charge_between(Cause::BehindNvm, now, slot.mark);
        self.moved_until = slot.mark + rate.time_for(slot.bytes);
        self.events.push(self.moved_until, index);
        self.busy_units -= 1;
        if let Some(next) = self.waiting.pop_front() {
            self.start(now, next);
        }
    }

    fn complete(&mut self, now: Time, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.ledger.charge_between(Cause::Nvm, slot.mark, now);
        let Slot { id, operation, bytes, ledger, .. } = *slot;
        match operation {
            Operation::Read => self.bytes_read += bytes,
            _ => self.bytes_written += bytes,
        }
        self.free.push(index);
        self.completed.push(Completion { id, time: now, status: Status::Ok, ledger });
    }
}

impl Leaf for Nvm {
    fn limits(&self) -> Limits {
        Limits {
            sectors: self.layout.sectors,
            block_sectors: 1,
            preferred_sectors: UNIT_SECTORS,
            durable: Durable::Acknowledged,
        }
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        if self.requests() == self.layout.queue_depth {
            return Submit::Busy;
        }
        if request.operation != Operation::Flush && !self.limits().admit(request.lba.0, request.sectors) {
            return Submit::Refused(Status::Invalid);
        }
        if matches!(request.operation, Operation::Trim | Operation::Flush) {
            let done = Completion { id: request.id, time: now, status: Status::Ok, ledger: Ledger::ZERO };
            self.completed.push(done);
            return Submit::Accepted;
        }
        let slot = Slot {
            id: request.id,
            operation: request.operation,
            bytes: request.bytes(),
            mark: now,
            ledger: Ledger::ZERO,
            is_moving: false,
        };
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        if self.busy_units < self.layout.units {
            self.start(now, index);
        } else {
            self.waiting.push_back(index);
        }
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        let ready = self.completed.first().map(|completion| completion.time);
        ready.or_else(|| self.events.next_time()).into()
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, completions: &mut Vec<Completion>) {
        while let Some((time, index)) = self.events.pop_due(now) {
            if self.slots[index as usize].is_moving {
                self.complete(time, index);
            } else {
                self.move_data(time, index);
            }
        }
        completions.append(&mut self.completed);
    }
}
