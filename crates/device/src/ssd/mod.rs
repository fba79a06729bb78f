//! The SSD as a leaf: partitions over one flash array, driven by events.

mod bytes;
mod commands;
mod control;
mod faults;
mod initial;
mod inspect;
mod power_cut;
mod windows;

use std::collections::VecDeque;

pub use faults::Fault;
use flashkeel_engine::{
    Access, Answer, Arena, Cause, Coming, Command, Completion, Durable, EventQueue, Holds,
    LOGICAL_PAGE_SECTORS, Lba, Leaf, Ledger, Limits, Notice, Operation, Patience, Place, Refusal, Request,
    Status, Stream, Submit, Time, Wake,
};

use crate::address::{ChipId, Lpn, NONE};
use crate::counters::{Counters, Wearing};
use crate::flash::FlashCommand;
use crate::front::power::Power;
use crate::front::throttle::Throttle;
use crate::front::window::WindowPolicy;
use crate::front::{Buffer, Direction, Link, Requests};
use crate::ftl::Ftl;
use crate::idleness::Idleness;
use crate::layout::Layout;
use crate::limits::MAX_INDEX;
use crate::machine::{DeviceEvent, Machine};
use crate::sched::{Activity, FlashOp, FlashOpId, Task};
use bytes::Bytes;
pub(crate) use bytes::FlashRead;
use inspect::endurance;

/// A partition: an SSD within the SSD, with chips, map, buffer and garbage
/// collection of its own.
#[derive(Clone)]
pub(crate) struct Partition {
    pub ftl: Ftl,
    pub buffer: Buffer,
}

/// One simulated SSD. A clone is another in the same state, which may be asked
/// what would happen if.
#[derive(Clone)]
pub struct Ssd {
    pub(crate) layout: Layout,
    pub(crate) machine: Machine,
    pub(crate) partitions: Vec<Partition>,
    pub(crate) requests: Requests,
    link: Option<Link>,
    pub(crate) throttle: Option<Box<dyn Throttle>>,
    /// The windows of each NVM set, or of the whole; none where background work may always
    /// run.
    windows: Vec<Box<dyn WindowPolicy>>,
    /// Sets whose deterministic window has been commanded and has not begun, a bit each.
    preparing: u64,
    power: Option<Box<dyn Power>>,
    /// When the last request ended.
    active_at: Time,
    /// When the device has woken, or will have.
    awake_at: Time,
    /// The host's pauses, where the scheduler goes by them.
    idleness: Option<Idleness>,
    seed: u64,
    completed: Vec<Completion>,
    /// What it does for those who ask.
    access: Access,
    /// What has happened without being asked for, oldest first, with its time.
    notices: VecDeque<(Time, Notice)>,
    /// Whether pages may be rebuilt instead of read.
    pub(crate) may_rebuild: bool,
    /// Whether requests may end otherwise than well: some of the flash has failed, or
    /// there was no room for a page.
    pub(crate) may_fail: bool,
    /// A worn-out block has had to stay in use: nothing is written any more.
    is_worn_out: bool,
    /// The bytes of requests, where they are real.
    bytes: Option<Bytes>,
    /// Flash pages that the page at hand is rebuilt from.
    pub(crate) rebuild_reads: Vec<u32>,
}

impl Ssd {
    /// A fresh device. Every random decision follows from `seed`.
    pub fn new(layout: &Layout, seed: u64) -> Self {
        let partitions = (0..layout.partitions)
            .map(|index| Partition {
                ftl: Ftl::new(&layout.partition, index, seed),
                buffer: Ssd::empty_buffer(layout),
            })
            .collect();
        let mut ssd = Ssd {
            machine: Machine {
                events: EventQueue::new(),
                dispatcher: Ssd::idle_chips(layout, seed),
                counters: Counters::default(),
                written_before: Wearing::default(),
                arrivals: Ssd::no_arrivals(layout),
                controller: layout.controller.clone(),
                random: Stream::new(seed, "controller"),
                generated: 0,
                woken: VecDeque::new(),
                controlling: false,
            },
            partitions,
            requests: Requests::default(),
            link: layout.host_link.map(Link::new),
            throttle: layout.policies.throttle.policy().build(),
            windows: Ssd::windows(layout),
            preparing: 0,
            power: layout.policies.power.policy().build(Stream::new(seed, "power")),
            active_at: Time::ZERO,
            awake_at: Time::ZERO,
            idleness: Ssd::no_pauses(layout),
            seed,
            completed: Vec::new(),
            access: Access::Full,
            notices: VecDeque::new(),
            may_rebuild: layout.policies.read_path.policy().needs_redundancy(),
            may_fail: false,
            is_worn_out: false,
            bytes: None,
            rebuild_reads: Vec::new(),
            layout: layout.clone(),
        };
        ssd.begin_windows(Time::ZERO);
        ssd
    }

    /// Capacity in 512-byte sectors.
    pub fn sectors(&self) -> u64 {
        self.layout.sectors()
    }

    /// The logical page of the device of a page of a partition.
    pub(crate) fn global(&self, part: usize, lpn: Lpn) -> u64 {
        let mut global = u64::from(lpn.0);
        if self.layout.set_pages != 0 {
            return part as u64 * self.layout.set_pages + global;
        }
        for (index, &bit) in self.layout.partition_bits.iter().enumerate() {
            let selected = part as u64 >> index & 1;
            global = global >> bit << (bit + 1) | selected << bit | (global & ((1 << bit) - 1));
        }
        global
    }

    /// The command is inside; after the controller's delay it is worked on.
    #[inline(always)]
    fn start(&mut self, now: Time, index: u32) {
        let Ssd { requests, machine, partitions, layout, throttle, .. } = self;
        let request = &mut requests[index];
        request.pass(now, Cause::Controller);
        let mut begin = now;
        if begin < self.awake_at {
            begin = self.awake_at;
            request.owner = Cause::WakeUp;
            request.pass(begin, Cause::Controller);
        }
        if request.operation == Operation::Write
            && let Some(throttle) = throttle
        {
            if now >= throttle.review_due() {
                throttle.review(now, &endurance(layout, machine, partitions));
            }
            // It is held from its arrival on, also while the device wakes.
            begin = begin.max(now + throttle.delay(now, request.bytes(), request.hint));
            request.owner = Cause::Throttle;
            request.pass(begin, Cause::Controller);
        }
        if request.operation == Operation::Write && !machine.arrivals.is_empty() {
            let set = if layout.set_pages == 0 { 0 } else { layout.locate(request.first).0 };
            machine.arrivals[set].count(begin, request.end - request.first);
        }
        let mut delay = machine.controller.lookup.draw(&mut machine.random);
        if request.operation == Operation::Read && begins_in_flash(layout, partitions, request.first) {
            request.is_generated = true;
            delay += machine.controller.host_generation.draw(&mut machine.random);
        }
        machine.schedule_turn(begin + delay, DeviceEvent::Request(index), request.turn);
    }

    /// Goes on with a request whose delay or map load is over.
    #[inline(always)]
    fn resume(&mut self, now: Time, index: u32) {
        match self.requests[index].operation {
            Operation::Read => self.continue_read(now, index),
            Operation::Write => self.continue_write(now, index, None),
            Operation::Trim | Operation::WriteZeroes => self.continue_trim(now, index),
            Operation::Flush => self.start_flush(now, index, u64::MAX),
            Operation::Demote => unreachable!("a demotion has ended when it came"),
        }
    }

    /// Ends a request whose time is charged up to `now`, but for the link.
    #[inline(always)]
    pub(crate) fn complete(&mut self, now: Time, index: u32) {
        let request = &mut self.requests[index];
        if request.operation == Operation::Read
            && let Some(link) = &mut self.link
        {
            request.pass(now, Cause::HostLink);
            let over = link.transfer(now, Direction::ToHost, request.bytes());
            self.machine.schedule_turn(over, DeviceEvent::Linked(index), self.requests[index].turn);
            return;
        }
        self.report_completion(now, index, |ssd| &ssd.requests[index].ledger);
    }

    /// Ends a read by the flash operation that was its last and has carried the blame since
    /// submission.
    #[inline(always)]
    pub(crate) fn complete_read(&mut self, now: Time, index: u32, last: FlashOpId) {
        if self.link.is_some() {
            self.requests[index].take_blame(now, self.machine.dispatcher.operations.ledger(last));
            return self.complete(now, index);
        }
        self.report_completion(now, index, |ssd| ssd.machine.dispatcher.operations.ledger(last));
    }

    /// Reports what ends now, with the blame that `ledger` finds.
    #[inline(always)]
    fn report_completion(&mut self, now: Time, index: u32, ledger: impl Fn(&Ssd) -> &Ledger) {
        let status = if self.may_fail { self.end_status(index) } else { Status::Ok };
        let request = &self.requests[index];
        debug_assert_eq!(
            ledger(self).total(),
            now.since(request.submitted),
            "the ledger of {:?} does not sum to its latency: {:?}",
            request.id,
            ledger(self)
        );
        let mut completed = std::mem::take(&mut self.completed);
        // With room for it, it is made where it will stand.
        completed.reserve(1);
        completed.push(Completion { id: request.id, time: now, status, ledger: Ledger::ZERO });
        if let Some(completion) = completed.last_mut() {
            completion.ledger = *ledger(self);
        }
        self.completed = completed;
        self.requests.release(index);
        self.active_at = now;
    }

    fn linked(&mut self, now: Time, index: u32) {
        if self.requests[index].operation == Operation::Read {
            self.requests[index].pass(now, Cause::HostLink);
            self.report_completion(now, index, |ssd| &ssd.requests[index].ledger);
        } else {
            self.start(now, index);
        }
    }

    #[inline(always)]
    fn chip_event(&mut self, now: Time, chip: u32) {
        let machine = &mut self.machine;
        let Some(id) = machine.dispatcher.step(now, ChipId(chip), &mut machine.events) else { return };
        let FlashOp { purpose, task, chip, .. } = machine.dispatcher.operations[id];
        if purpose == Activity::Host.read() || purpose == Activity::Rebuild.read() {
            self.host_read_done(now, id);
        } else {
            self.operation_done(now, id);
        }
        if task == Task::Host && self.machine.dispatcher.host_load(chip) == 0 {
            // Partitions may share a channel.
            for partition in &mut self.partitions {
                partition.ftl.go_on(now, &mut self.machine);
            }
        }
        self.machine.dispatcher.operations.release(id);
        if self.preparing != 0 {
            self.begin_prepared(now);
        }
    }

    /// A flash operation other than a read of the host is done.
    #[inline(always)]
    fn operation_done(&mut self, now: Time, id: FlashOpId) {
        let operation = self.machine.dispatcher.operations[id];
        let quiet_since = self.quiet_since(now);
        let ftl = &mut self.partitions[operation.partition as usize].ftl;
        let is_read = operation.purpose.command() == FlashCommand::Read;
        match operation.purpose.activity() {
            Activity::Host => {
                self.host_write_done(now, id, &operation);
                if operation.update != NONE {
                    self.stripe_programmed(now, &operation);
                }
            }
            Activity::Map if is_read => ftl.map_read_done(now, &operation, &mut self.machine),
            Activity::Map => ftl.program_done(now, &operation, &mut self.machine),
            Activity::Parity if is_read => ftl.parity_read_done(now, &operation, &mut self.machine),
            Activity::Parity if operation.update == NONE => {
                ftl.parity_done(now, &operation, &mut self.machine)
            }
            Activity::Parity => {
                ftl.static_parity_done(now, &operation, &mut self.machine);
                self.stripe_programmed(now, &operation);
            }
            _ => ftl.done(now, &operation, quiet_since, &mut self.machine),
        }
    }

    /// Puts a formed program, or a read with its target, into its queue.
    fn operation_generated(&mut self, now: Time, id: FlashOpId) {
        let operation = &self.machine.dispatcher.operations[id];
        if operation.purpose.is_program() {
            let part = operation.partition as usize;
            self.partitions[part].ftl.place(now, id, &mut self.machine);
        } else {
            self.machine.enqueue(now, id);
        }
    }

    /// Runs every event due at or before `limit`, or up to and including the
    /// first instant at which a request completes or something is raised.
    fn run(&mut self, mut limit: Time, to_completion: bool) {
        let mut patience = Patience::default();
        while let Some((time, event)) = self.machine.events.pop_due(limit) {
            patience.at(time);
            match DeviceEvent::unpack(event) {
                DeviceEvent::Chip(chip) => self.chip_event(time, chip),
                DeviceEvent::Request(request) => {
                    if self.layout.buffer.triggers.read && self.flush_for_read(time, request) {
                        continue;
                    }
                    self.resume(time, request);
                }
                DeviceEvent::Operation(operation) => self.operation_generated(time, FlashOpId(operation)),
                DeviceEvent::Background(partition, activity) => {
                    if !self.partitions[partition as usize].ftl.background_allowed {
                        self.leave_if_urgent(time, partition as usize);
                    }
                    let quiet_since = self.quiet_since(time);
                    let ftl = &mut self.partitions[partition as usize].ftl;
                    ftl.generate(time, Activity::ALL[activity as usize], quiet_since, &mut self.machine);
                }
                DeviceEvent::BufferTimeout(partition) => self.buffer_timeout(time, partition as usize),
                DeviceEvent::Control => self.control(time),
                DeviceEvent::Linked(request) => self.linked(time, request),
                DeviceEvent::Window(set) => self.window_due(time, set as usize),
                DeviceEvent::WornOut => self.wear_out(time),
            }
            while let Some(request) = self.machine.woken.pop_front() {
                self.resume(time, request);
            }
            if to_completion && (!self.completed.is_empty() || !self.notices.is_empty()) {
                limit = time;
            }
        }
    }

    /// Appends what has completed to `completions`.
    #[inline]
    fn hand_over(&mut self, completions: &mut Vec<Completion>) {
        if completions.is_empty() {
            // Spares the copies: the lists change places.
            std::mem::swap(completions, &mut self.completed);
        } else {
            completions.append(&mut self.completed);
        }
    }
}

impl Leaf for Ssd {
    #[inline]
    fn limits(&self) -> Limits {
        let block_sectors = LOGICAL_PAGE_SECTORS as u32;
        let buffer = &self.layout.buffer;
        let is_lost = buffer.is_volatile && !buffer.kind.policy().acknowledges_in_flash();
        Limits {
            sectors: self.sectors(),
            block_sectors,
            preferred_sectors: block_sectors * self.layout.geometry.units_per_page,
            durable: if is_lost { Durable::Flushed } else { Durable::Acknowledged },
        }
    }

    fn holds(&self, from: Lba, sectors: u32) -> (u32, Holds) {
        self.held_from(from, sectors)
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        if self.requests.len() >= self.layout.controller.queue_depth as usize {
            return Submit::Busy;
        }
        if request.operation != Operation::Flush && !self.limits().admit(request.lba.0, request.sectors) {
            return Submit::Refused(Status::Invalid);
        }
        if let Some(status) = self.access.refuses(request.operation) {
            return Submit::Refused(status);
        }
        if request.operation == Operation::Demote {
            // Everything is here already.
            let done = Completion { id: request.id, time: now, status: Status::Ok, ledger: Ledger::ZERO };
            self.completed.push(done);
            return Submit::Accepted;
        }
        self.count(request);
        if self.layout.is_commanded {
            self.count_in_windows(now, request);
        }
        self.rouse(now);
        let index = self.requests.admit(now, request);
        assert!(index <= MAX_INDEX, "more requests than events can name");
        match &mut self.link {
            Some(link) if request.operation == Operation::Write => {
                let over = link.transfer(now, Direction::ToDevice, request.bytes());
                self.requests[index].pass(now, Cause::HostLink);
                self.machine.schedule_turn(over, DeviceEvent::Linked(index), self.requests[index].turn);
            }
            _ => self.start(now, index),
        }
        Submit::Accepted
    }

    fn expect(&self, coming: &[Coming]) {
        for coming in coming {
            let (part, local) = self.layout.locate(coming.lba.0 / LOGICAL_PAGE_SECTORS);
            self.partitions[part].ftl.tables.map.prefetch(local);
        }
    }

    fn expect_soon(&self, coming: &[Coming]) {
        for coming in coming {
            let (part, local) = self.layout.locate(coming.lba.0 / LOGICAL_PAGE_SECTORS);
            self.partitions[part].ftl.tables.prefetch_home(coming.operation == Operation::Read, local);
        }
    }

    fn prepare(&mut self) -> bool {
        self.bytes.is_some() && self.partitions.iter_mut().any(|part| part.ftl.tables.prepare_memory())
    }

    #[inline]
    fn next_event(&self) -> Wake {
        // What a power cut has ended waits to be handed over.
        let ended = self.completed.first().map(|completion| completion.time);
        let wake = Wake::from(ended.or_else(|| self.machine.events.next_time()));
        wake.noting(!self.notices.is_empty())
    }

    fn cut_power(&mut self, now: Time, _data: &mut Arena) {
        if self.access != Access::Removed {
            self.lose_power(now);
        }
    }

    fn command(
        &mut self,
        now: Time,
        place: &Place,
        command: &Command,
        _data: &mut Arena,
    ) -> Result<Answer, Refusal> {
        self.obey(now, place, command)
    }

    fn notice(&mut self) -> Option<Notice> {
        self.notices.pop_front().map(|(_, notice)| notice)
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        self.lend(data);
        self.run(now, false);
        self.lend(data);
        self.hand_over(completions);
    }

    fn advance_to_completion(
        &mut self,
        limit: Time,
        data: &mut Arena,
        completions: &mut Vec<Completion>,
    ) -> Option<Time> {
        let limit = self.completed.first().map_or(limit, |ended| ended.time);
        self.lend(data);
        self.run(limit, true);
        self.lend(data);
        let Some(ended) = self.completed.first() else {
            return self.notices.front().map(|&(raised, _)| raised);
        };
        let instant = ended.time;
        self.hand_over(completions);
        Some(instant)
    }
}

/// Whether a read will need flash for its first page: a page in memory, or never
/// written, needs no operation.
#[inline]
fn begins_in_flash(layout: &Layout, partitions: &[Partition], first: u64) -> bool {
    let (part, local) = layout.locate(first);
    let Partition { ftl, buffer } = &partitions[part];
    buffer.triggers.read || ftl.tables.map.flash_home(local).is_some()
}
