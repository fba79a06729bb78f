//! What a stack without policies comes to: one volume, as large as its only
//! device, whose requests go there in their order.

use std::collections::VecDeque;

use flashkeel_engine::{
    Answer, Arena, Cause, Coming, Command, Completion, Holds, Lba, Leaf, Ledger, Limits, Notice, Operation,
    Place, Refusal, Request, RequestId, Span, Status, Submit, Time, Wake,
};

use crate::coordinator::Foresight;
use crate::device::{Device, Held};
use crate::part::Part;
use crate::scheduler::Scheduling;
use crate::volume::VolumeManager;

/// Passes requests on to its only device, at most `depth` of them at a time, and
/// keeps flushes in their place: what the volume manager over the scheduler `none`
/// does, without either (`crates/host/src/tests/passing.rs` compares them).
///
/// As long as nothing waits and no flush is at the device, requests and
/// completions pass untouched.
#[derive(Clone)]
pub struct Passing {
    device: Box<dyn Device>,
    limits: Limits,
    depth: usize,
    at_device: usize,
    /// Nothing below is in use.
    is_plain: bool,
    /// A flush is at the device, or on its way there; it goes alone.
    is_flushing: bool,
    /// Oldest first. Those that the gate for flushes has let through come before
    /// the others.
    waiting: VecDeque<Waiting>,
    /// Those of `waiting` that the gate has let through.
    let_through: usize,
    /// Requests at the device that have waited.
    late: Vec<Late>,
    /// To be handed over.
    ended: Vec<Completion>,
    scratch: Vec<Completion>,
}

#[derive(Clone)]
struct Waiting {
    request: Request,
    submitted: Time,
    /// When the gate has let it through.
    through: Time,
}

#[derive(Clone)]
struct Late {
    id: RequestId,
    through: Time,
    /// How long the gate has held it.
    held: Span,
}

impl Late {
    fn of(waiting: &Waiting) -> Late {
        let &Waiting { request: Request { id, .. }, submitted, through } = waiting;
        Late { id, through, held: through.since(submitted) }
    }

    /// Charges what it has waited beyond what `end` is charged with.
    fn charge(&self, end: &mut Completion) {
        let waited = end.time.since(self.through) - end.ledger.total();
        end.ledger.charge(Cause::HostQueue, waited);
        end.ledger.charge(Cause::Barrier, self.held);
    }
}

impl Passing {
    /// In front of a device that gets `depth` requests at most.
    pub fn new(device: Box<dyn Device>, depth: usize) -> Passing {
        Passing {
            limits: device.limits(),
            device,
            depth,
            at_device: 0,
            is_plain: true,
            is_flushing: false,
            waiting: VecDeque::new(),
            let_through: 0,
            late: Vec::new(),
            ended: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// A request that may have to wait.
    #[cold]
    fn enter(&mut self, now: Time, request: &Request, data: &mut Arena) {
        self.is_plain = false;
        self.waiting.push_back(Waiting { request: *request, submitted: now, through: now });
        self.open_gate(now);
        self.settle(now, data);
    }

    /// Lets through what the gate no longer holds; whether anything was held.
    fn open_gate(&mut self, now: Time) -> bool {
        let before = self.let_through;
        while let Some(next) = self.waiting.get_mut(self.let_through)
            && !self.is_flushing
        {
            let is_flush = next.request.operation == Operation::Flush;
            if is_flush && self.at_device + self.let_through > 0 {
                break;
            }
            next.through = now;
            self.is_flushing = is_flush;
            self.let_through += 1;
        }
        self.let_through > before
    }

    /// Gives the device what it may have.
    fn give(&mut self, now: Time, data: &mut Arena) {
        while self.let_through > 0 && self.at_device < self.depth {
            let waiting = self.waiting.pop_front().expect("some have been let through");
            let answer = self.device.submit(now, &waiting.request, data);
            if answer == Submit::Busy {
                return self.waiting.push_front(waiting);
            }
            self.let_through -= 1;
            self.at_device += 1;
            self.late.push(Late::of(&waiting));
            if let Submit::Refused(status) = answer {
                let id = waiting.request.id;
                self.scratch.push(Completion { id, time: now, status, ledger: Ledger::ZERO });
            }
        }
    }

    /// Ends what the device has ended.
    fn end_all(&mut self) {
        for completion in &mut self.scratch {
            if let Some(index) = self.late.iter().position(|late| late.id == completion.id) {
                self.late.swap_remove(index).charge(completion);
            }
        }
        self.ended.append(&mut self.scratch);
    }

    /// Goes on until nothing moves at `now`, at which the device may have ended
    /// some.
    fn settle(&mut self, now: Time, data: &mut Arena) {
        loop {
            self.at_device -= self.scratch.len();
            self.end_all();
            self.give(now, data);
            if self.device.next_event().is_due(now) {
                self.device.advance(now, data, &mut self.scratch);
            }
            if !self.scratch.is_empty() {
                continue;
            }
            // A flush goes alone.
            self.is_flushing &= self.at_device + self.let_through > 0;
            if !self.open_gate(now) {
                break;
            }
        }
    }

    /// Hands over what has ended.
    fn hand_over(&mut self, completions: &mut Vec<Completion>) {
        completions.append(&mut self.ended);
        self.is_plain = self.waiting.is_empty() && self.late.is_empty() && !self.is_flushing;
    }

    /// Goes on to the next instant at or before `limit` at which the device ends
    /// or raises something; returns it.
    fn step(&mut self, limit: Time, data: &mut Arena) -> Option<Time> {
        if let Some(first) = self.ended.first() {
            return Some(first.time);
        }
        let now = self.device.advance_to_completion(limit, data, &mut self.scratch)?;
        self.settle(now, data);
        Some(now)
    }
}

impl Leaf for Passing {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena) -> Submit {
        let is_flush = request.operation == Operation::Flush;
        if !is_flush && !self.limits.admit(request.lba.0, request.sectors) {
            return Submit::Refused(Status::Invalid);
        }
        if !self.is_plain || is_flush || self.at_device == self.depth {
            self.enter(now, request, data);
            return Submit::Accepted;
        }
        match self.device.submit(now, request, data) {
            Submit::Accepted => {
                self.at_device += 1;
                if self.device.next_event().is_due(now) {
                    self.is_plain = false;
                    self.settle(now, data);
                }
            }
            Submit::Busy => self.enter(now, request, data),
            Submit::Refused(status) => {
                self.is_plain = false;
                self.ended.push(Completion { id: request.id, time: now, status, ledger: Ledger::ZERO });
            }
        }
        Submit::Accepted
    }

    fn expect(&self, coming: &[Coming]) {
        self.device.expect(coming);
    }

    fn expect_soon(&self, coming: &[Coming]) {
        self.device.expect_soon(coming);
    }

    fn prepare(&mut self) -> bool {
        self.device.prepare()
    }

    fn holds(&self, from: Lba, sectors: u32) -> (u32, Holds) {
        self.device.holds(from, sectors)
    }

    fn next_event(&self) -> Wake {
        match self.ended.first() {
            None => self.device.next_event(),
            Some(ended) => self.device.next_event().or(Wake::at(ended.time)),
        }
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        if self.is_plain {
            let before = completions.len();
            self.device.advance(now, data, completions);
            self.at_device -= completions.len() - before;
            return;
        }
        while self.step(now, data).is_some() {
            self.hand_over(completions);
        }
        if self.device.next_event().hears_outside() {
            self.device.advance(now, data, &mut self.scratch);
            self.settle(now, data);
            self.hand_over(completions);
        }
    }

    fn advance_to_completion(
        &mut self,
        limit: Time,
        data: &mut Arena,
        completions: &mut Vec<Completion>,
    ) -> Option<Time> {
        if self.is_plain {
            let now = self.device.advance_to_completion(limit, data, completions);
            self.at_device -= completions.len();
            return now;
        }
        let now = self.step(limit, data)?;
        self.hand_over(completions);
        Some(now)
    }

    fn cut_power(&mut self, now: Time, data: &mut Arena) {
        self.device.cut_power(now, data);
        self.device.advance(now, data, &mut self.scratch);
        self.is_plain = false;
        self.end_all();
        for (index, mut waiting) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
            if index >= self.let_through {
                waiting.through = now;
            }
            let (id, status, ledger) = (waiting.request.id, Status::Aborted, Ledger::ZERO);
            let mut end = Completion { id, time: now, status, ledger };
            Late::of(&waiting).charge(&mut end);
            self.ended.push(end);
        }
        (self.at_device, self.let_through, self.is_flushing) = (0, 0, false);
        self.late.clear();
    }

    /// As if the volume manager and the scheduler stood there.
    fn command(
        &mut self,
        now: Time,
        place: &Place,
        command: &Command,
        data: &mut Arena,
    ) -> Result<Answer, Refusal> {
        match &place.0[..] {
            [] if *command == Command::State => Ok(VolumeManager::state(
                self.waiting.len() - self.let_through,
                self.at_device + self.let_through,
            )),
            [0] if *command == Command::State => Ok(Scheduling::state(self.let_through, self.at_device)),
            [] | [0] => Err(Refusal::Unknown),
            [0, 0, below @ ..] => {
                let answer = self.device.command(now, &Place(below.to_vec()), command, data);
                if self.device.next_event().is_due(now) {
                    self.is_plain = false;
                    self.settle(now, data);
                }
                answer
            }
            _ => Err(Refusal::NoSuchPlace),
        }
    }

    fn notice(&mut self) -> Option<Notice> {
        let Notice { place, event } = self.device.notice()?;
        Some(Notice { place: place.below(0).below(0), event })
    }
}

impl Device for Passing {
    fn parts<'a>(&'a self, parts: &mut Vec<&'a dyn Part>) {
        self.device.parts(parts);
    }

    fn keep_data(&mut self) {
        self.device.keep_data();
    }

    fn reset_counters(&mut self, now: Time) {
        self.device.reset_counters(now);
    }

    fn foresee(&mut self, foresight: &Foresight) {
        self.device.foresee(foresight);
    }

    fn watch(&mut self, from: Time, to: Time) {
        self.device.watch(from, to);
    }

    fn held(&self) -> Option<Held> {
        let own = Held { requests: self.waiting.len() as u64, ..Held::default() };
        Some(own.over(std::iter::once(&self.device)))
    }
}
