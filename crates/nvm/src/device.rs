//! The NVM device as a leaf.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;

use flashkeel_engine::{
    Access, Answer, Arena, Command, Completion, Durable, EventQueue, FoundPages, Keeper, LOGICAL_PAGE_BYTES,
    LOGICAL_PAGE_SECTORS, Leaf, Ledger, Limits, Operation, Place, Refusal, Request, Span, Status, Stream,
    Submit, Time, Wake,
};
use serde::Serialize;

use crate::config::{Bandwidth, Layout};
use crate::memory::Memory;
use crate::served::Served;

/// One NVM device.
///
/// A request waits for a free unit, is worked on for a latency by chance, and
/// then moves its data, one request after the other. Filling a range with
/// zeros takes the latency of a write and moves nothing. Trims, flushes and demotions
/// take no time: what is acknowledged is as durable as it ever will be, and there is
/// no quicker place for a copy.
#[derive(Clone)]
pub struct Nvm {
    layout: Layout,
    random: Stream,
    /// What every request is worked on for, where that is always the same and there is a
    /// unit for each: then it is known at once when its data will have moved.
    constant: Option<Span>,
    /// What a page that is read, and one that is written, takes to move.
    page: (Span, Span),
    /// Those inside of which that is known, in the order in which they came and will end.
    known: VecDeque<Inside>,
    events: EventQueue,
    inside: Vec<Inside>,
    free: Vec<u32>,
    waiting: VecDeque<u32>,
    busy_units: usize,
    /// Requests taken in so far, modulo 2^32.
    taken: u32,
    /// When the data of all requests so far will have moved.
    moved_until: Time,
    access: Access,
    served: Served,
}

/// A request inside.
#[derive(Clone, Copy)]
pub(crate) struct Inside {
    pub request: Request,
    /// Its number in the order in which requests came, modulo 2^32: of what
    /// happens at one instant the earlier request's comes first.
    turn: u32,
    /// The time up to which it is known who owned it.
    pub mark: Time,
    /// How long it has waited.
    pub waited: Span,
    /// How long it has been worked on.
    pub worked: Span,
    /// When its data will have moved, once they do.
    moved: Time,
    is_moving: bool,
}

impl Inside {
    /// Its data move from `now` on, as soon as those of the requests before have at `free`;
    /// returns until when. `page` is what a page that is read, and one that is written, takes.
    #[inline]
    fn move_data(&mut self, now: Time, free: Time, bandwidth: &Bandwidth, page: (Span, Span)) -> Time {
        let (rate, page) = match self.request.operation {
            Operation::Read => (bandwidth.read, page.0),
            _ => (bandwidth.write, page.1),
        };
        let bytes = moved_bytes(&self.request);
        // Most requests are of one page, and a division takes long.
        let time = if bytes == LOGICAL_PAGE_BYTES { page } else { rate.time_for(bytes) };
        self.mark = free.max(now);
        self.waited += self.mark.since(now);
        self.moved = self.mark + time;
        self.is_moving = true;
        self.moved
    }

    /// An event of the request in state number `index`, as the event queue has it.
    fn event(&self, index: u32) -> u64 {
        u64::from(self.turn) << 32 | u64::from(index)
    }
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
            constant: constant(layout),
            page: (
                layout.bandwidth.read.time_for(LOGICAL_PAGE_BYTES),
                layout.bandwidth.write.time_for(LOGICAL_PAGE_BYTES),
            ),
            known: VecDeque::new(),
            events: EventQueue::new(),
            inside: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            busy_units: 0,
            taken: 0,
            moved_until: Time::ZERO,
            access: Access::Full,
            served: Served::new(layout.medium),
        }
    }

    /// From now on the device holds bytes: zeros, until others are written. For
    /// tests and servers; it costs memory and time.
    pub fn keep_data(&mut self) {
        self.served.memory = Some(Memory::default());
    }

    /// The same, for a device that holds what was found; `keeper` has that, and is told of
    /// all that is written.
    pub fn keep_data_in(&mut self, keeper: Box<dyn Keeper>, found: FoundPages) {
        self.served.memory = Some(Memory::kept(keeper, found));
    }

    /// Capacity in 512-byte sectors.
    pub fn sectors(&self) -> u64 {
        self.layout.sectors
    }

    /// Whether a power cut takes everything.
    pub fn is_volatile(&self) -> bool {
        self.layout.medium.durable == Durable::Never
    }

    /// Requests inside.
    pub fn requests(&self) -> usize {
        self.known.len() + self.inside.len() - self.free.len()
    }

    /// What the device has done since its start or the last reset.
    pub fn report(&self) -> Report {
        Report {
            bytes_read: self.served.bytes_read,
            bytes_written: self.served.bytes_written,
            endurance_bytes: self.layout.endurance_bytes,
        }
    }

    /// Starts counting anew, as at the end of a warm-up.
    pub fn reset_counters(&mut self) {
        (self.served.bytes_read, self.served.bytes_written) = (0, 0);
    }

    /// Lets sectors fail: whoever reads one gets [`Status::MediaError`], until it
    /// is written or trimmed, and so gets a spare one.
    ///
    /// # Errors
    /// If there are no such sectors.
    pub fn fail(&mut self, sectors: Range<u64>) -> Result<(), String> {
        if sectors.end > self.layout.sectors {
            return Err(format!("there are {} sectors, not {}", self.layout.sectors, sectors.end));
        }
        self.served.failed.extend(sectors);
        Ok(())
    }

    #[inline(always)]
    fn start(&mut self, now: Time, index: u32) {
        self.busy_units += 1;
        let state = &mut self.inside[index as usize];
        state.waited += now.since(state.mark);
        state.mark = now;
        let latency = match state.request.operation {
            Operation::Read => self.layout.read_latency.draw(&mut self.random),
            _ => self.layout.write_latency.draw(&mut self.random),
        };
        self.events.push(now + latency, state.event(index));
    }

    /// The unit's part is over; the data move as soon as those before have.
    fn move_data(&mut self, now: Time, index: u32) {
        let state = &mut self.inside[index as usize];
        state.worked += now.since(state.mark);
        self.moved_until = state.move_data(now, self.moved_until, &self.layout.bandwidth, self.page);
        self.events.push(self.moved_until, state.event(index));
        self.busy_units -= 1;
        if let Some(next) = self.waiting.pop_front() {
            self.start(now, next);
        }
    }

    /// When something happens inside.
    #[inline]
    fn next_inside(&self) -> Option<Time> {
        if self.constant.is_some() {
            return self.known.front().map(|known| known.moved);
        }
        self.events.next_time()
    }

    /// Runs every event due at or before `now`.
    #[inline(always)]
    fn run(&mut self, now: Time, data: &mut Arena) {
        while let Some((time, event)) = self.events.pop_due(now) {
            let index = event as u32;
            let inside = &self.inside[index as usize];
            if inside.is_moving {
                self.served.complete(time, inside, data);
                self.free.push(index);
            } else {
                self.move_data(time, index);
            }
        }
        while let Some(known) = self.known.front()
            && known.moved <= now
        {
            self.served.complete(known.moved, known, data);
            self.known.pop_front();
        }
    }

    /// The requests inside that events move on, in the order of their places.
    fn by_place(&self) -> Vec<Inside> {
        let mut is_free = vec![false; self.inside.len()];
        self.free.iter().for_each(|&index| is_free[index as usize] = true);
        self.inside.iter().zip(is_free).filter(|(_, is_free)| !is_free).map(|(inside, _)| *inside).collect()
    }

    /// Ends every request inside, and all that is on its way.
    fn end_all(&mut self, now: Time, status: Status) {
        let mut ended = self.by_place();
        ended.extend(self.known.drain(..));
        // The newest has the number `taken`, the oldest the one farthest before it.
        ended.sort_by_key(|inside| Reverse(self.taken.wrapping_sub(inside.turn)));
        for Inside { request, mark, waited, worked, .. } in ended {
            let mut ledger = Ledger::ZERO;
            // It may be known already until when it will wait.
            let submitted = Time(mark.0 - (waited + worked).0);
            ledger.charge_between(self.layout.medium.work, submitted, now);
            self.served.completed.push(Completion { id: request.id, time: now, status, ledger });
        }
        self.inside.clear();
        self.free.clear();
        self.waiting.clear();
        self.events = EventQueue::new();
        self.busy_units = 0;
        self.moved_until = now;
    }

    /// Writes a part of what is being written: in order, and the cut comes between
    /// any two atomic units. What is volatile keeps nothing of it.
    fn break_off(&mut self, data: &mut Arena) {
        if self.is_volatile() {
            return;
        }
        let inside = self.by_place();
        let Some(memory) = &mut self.served.memory else { return };
        for Inside { request, is_moving, .. } in inside {
            if is_moving && request.operation != Operation::Read {
                let drawn = request.lba.0 + self.random.between(0, u64::from(request.sectors));
                let end = request.lba.0 + u64::from(request.sectors);
                let unit = self.layout.atomic_sectors;
                let cut = if drawn == end { end } else { (drawn / unit * unit).max(request.lba.0) };
                let sectors = (cut - request.lba.0) as u32;
                memory.serve(&Request { sectors, ..request }, data);
            }
        }
    }
}

/// What a request is worked on for, if that does not depend on it or on others. What is
/// not volatile has to know how far each is, for a power cut.
fn constant(layout: &Layout) -> Option<Span> {
    let (read, write) = (layout.read_latency.constant()?, layout.write_latency.constant()?);
    let is_free = layout.units >= layout.queue_depth && layout.medium.durable == Durable::Never;
    (read == write && is_free).then_some(read)
}

/// Bytes that cross the interface for a request.
fn moved_bytes(request: &Request) -> u64 {
    if request.operation == Operation::WriteZeroes { 0 } else { request.bytes() }
}

impl Leaf for Nvm {
    fn limits(&self) -> Limits {
        Limits {
            sectors: self.layout.sectors,
            block_sectors: 1,
            preferred_sectors: LOGICAL_PAGE_SECTORS as u32,
            durable: self.layout.medium.durable,
        }
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena) -> Submit {
        if self.requests() == self.layout.queue_depth {
            return Submit::Busy;
        }
        if request.operation != Operation::Flush && !self.limits().admit(request.lba.0, request.sectors) {
            return Submit::Refused(Status::Invalid);
        }
        if let Some(status) = self.access.refuses(request.operation) {
            return Submit::Refused(status);
        }
        if matches!(request.operation, Operation::Trim | Operation::Flush | Operation::Demote) {
            self.served.at_once(now, request, data);
            return Submit::Accepted;
        }
        self.taken = self.taken.wrapping_add(1);
        let (turn, nothing) = (self.taken, Span::default());
        let mut state = Inside {
            request: *request,
            turn,
            mark: now,
            waited: nothing,
            worked: nothing,
            moved: Time::MAX,
            is_moving: false,
        };
        if let Some(latency) = self.constant {
            state.worked = latency;
            let free = self.moved_until;
            self.moved_until = state.move_data(now + latency, free, &self.layout.bandwidth, self.page);
            self.known.push_back(state);
            return Submit::Accepted;
        }
        let index = match self.free.pop() {
            Some(index) => {
                self.inside[index as usize] = state;
                index
            }
            None => {
                self.inside.push(state);
                self.inside.len() as u32 - 1
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
        let ready = self.served.completed.first().map(|completion| completion.time);
        ready.or_else(|| self.next_inside()).into()
    }

    fn cut_power(&mut self, now: Time, data: &mut Arena) {
        self.break_off(data);
        self.end_all(now, Status::Aborted);
        if self.is_volatile() {
            self.served.memory.iter_mut().for_each(Memory::clear);
        }
    }

    fn command(
        &mut self,
        now: Time,
        place: &Place,
        command: &Command,
        _data: &mut Arena,
    ) -> Result<Answer, Refusal> {
        if !place.0.is_empty() {
            return Err(Refusal::NoSuchPlace);
        }
        if self.access == Access::Removed {
            return Err(Refusal::NotNow("the device has been taken out".into()));
        }
        match *command {
            Command::Window(..) => return Err(Refusal::Unknown),
            Command::ReadOnly(is_read_only) => {
                self.access = if is_read_only { Access::ReadOnly } else { Access::Full };
            }
            Command::Remove => {
                self.access = Access::Removed;
                self.end_all(now, Status::Gone);
            }
            Command::State => {
                let is_read_only = u64::from(self.access == Access::ReadOnly);
                let requests = ("requests".to_owned(), self.requests() as u64);
                return Ok(Answer::State(vec![("read_only".to_owned(), is_read_only), requests]));
            }
        }
        Ok(Answer::Done)
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        self.run(now, data);
        if completions.is_empty() {
            std::mem::swap(completions, &mut self.served.completed);
        } else {
            completions.append(&mut self.served.completed);
        }
    }

    fn advance_to_completion(
        &mut self,
        limit: Time,
        data: &mut Arena,
        completions: &mut Vec<Completion>,
    ) -> Option<Time> {
        let mut next = self.next_event().time();
        loop {
            let now = next.filter(|&next| next <= limit)?;
            self.run(now, data);
            if !self.served.completed.is_empty() {
                std::mem::swap(completions, &mut self.served.completed);
                return Some(now);
            }
            next = self.next_inside();
        }
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::{Lba, RequestId};

    use super::*;
    use crate::DramConfig;

    #[test]
    fn what_is_known_at_once_is_what_happens_step_by_step() {
        let layout = DramConfig::default().validate().expect("valid settings");
        for seed in 0..20 {
            let mut at_once = Nvm::new(&layout, seed);
            let mut by_steps = at_once.clone();
            assert!(at_once.constant.is_some());
            by_steps.constant = None;
            let ends = [&mut at_once, &mut by_steps].map(|nvm| {
                let mut random = Stream::new(seed, "requests");
                let (mut bytes, mut ends, mut now) = (Arena::new(), Vec::new(), Time::ZERO);
                for id in 0..2_000 {
                    now = Time(now.0 + random.below(3) * random.below(2_000));
                    nvm.advance(now, &mut bytes, &mut ends);
                    let operation =
                        [Operation::Read, Operation::Write, Operation::WriteZeroes, Operation::Trim]
                            [random.below(4) as usize];
                    let sectors = random.between(1, 40) as u32;
                    let request = Request::new(RequestId(id), operation, Lba(random.below(10_000)), sectors);
                    assert_eq!(nvm.submit(now, &request, &mut bytes), Submit::Accepted);
                    if random.chance(0.002) {
                        nvm.cut_power(now, &mut bytes);
                    }
                }
                nvm.advance(Time(now.0 + 1_000_000_000), &mut bytes, &mut ends);
                (ends, nvm.report())
            });
            assert_eq!(ends[0].0.len(), 2_000);
            assert!(ends[0] == ends[1], "seed {seed}");
        }
    }

    /// Once counting from the newest overflowed.
    #[test]
    fn a_cut_ends_requests_in_their_order_where_their_numbers_begin_anew() {
        let layout = DramConfig::default().validate().expect("valid settings");
        let (mut nvm, mut bytes, mut ends) = (Nvm::new(&layout, 1), Arena::new(), Vec::new());
        nvm.taken = u32::MAX - 2;
        for id in 0..4 {
            let request = Request::new(RequestId(id), Operation::Write, Lba(0), 8);
            assert_eq!(nvm.submit(Time::ZERO, &request, &mut bytes), Submit::Accepted);
            if nvm.taken == u32::MAX {
                let mut same = nvm.clone();
                same.cut_power(Time::ZERO, &mut bytes);
            }
        }
        nvm.cut_power(Time::ZERO, &mut bytes);
        nvm.advance(Time::ZERO, &mut bytes, &mut ends);
        assert!(ends.iter().map(|end| end.id.0).eq(0..4));
    }
}
