//! A host: does the steps of a case and writes down what it sees.

use std::collections::{BTreeMap, BTreeSet};

use dyn_clone::DynClone;
use flashkeel_engine::{
    Answer, Arena, Command, Completion, Hint, Lba, Leaf, Limits, Notice, Operation, Payload, Place, Refusal,
    Request, RequestId, SECTOR_BYTES, Span, Status, Submit, TenantId, Time,
};

use crate::steps::{Act, Case, NEAR, Slip, Step};

/// What the laws are tried on.
pub trait Tried: Leaf + DynClone {}

impl<L: Leaf + DynClone> Tried for L {}

dyn_clone::clone_trait_object!(Tried);

/// Something that a host has seen.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a few at a time")]
pub enum Seen {
    /// The answer to a request.
    Offered { now: Time, request: Request, answer: Submit },
    /// A completion, reported at `now`; what each block of a read holds.
    Completed { now: Time, completion: Completion, blocks: Vec<u64> },
    /// What is due once all that was due has been done.
    Advanced { now: Time, due: Option<Time> },
    /// The answer to a command; `is_there` says whether anything is at its place.
    Told { place: Place, is_there: bool, command: Command, answer: Result<Answer, Refusal> },
    /// What was raised.
    Raised { notice: Notice },
    /// Power is cut.
    Cut { now: Time },
    /// What is due at one instant never ends.
    Stuck { now: Time },
    /// After a power cut, somebody still has so many buffers.
    Kept { buffers: usize },
}

/// A block that nobody has written, or that reads as zeros again.
pub const ZEROS: u64 = 0;
/// A block of bytes that do not belong together.
pub const GARBAGE: u64 = u64::MAX;

/// What a write puts into the block of that address: a word, again and again.
pub fn stamp(id: RequestId, lba: u64) -> u64 {
    (id.0 + 1) << 40 | lba & ((1 << 40) - 1)
}

/// How long nothing may complete with requests inside. A throttle may make little
/// flash last for years.
const PATIENCE: Span = Span::from_secs(10_000 * 24 * 60 * 60);

/// How long a host lets the clock outside go on before it looks, at first; twice as
/// long each time that nothing has ended.
const LOOK: Span = Span(1_000);
const LONGEST_LOOK: Span = Span::from_ms(100);

/// How often a device may have something to do at one instant.
const AT_ONCE: u32 = 10_000;

/// A block of a tenant's volume.
type Block = (TenantId, u64);

/// One who asks, in a loop that is closed.
#[derive(Clone)]
pub struct Host {
    leaf: Box<dyn Tried>,
    limits: Limits,
    tenants: u16,
    depth: usize,
    /// Where there is somebody to be told something.
    places: Vec<Place>,
    /// What has been changed, to be read back.
    changed: Vec<Request>,
    /// What it knows that blocks hold, zeros where it has changed nothing.
    held: BTreeMap<Block, u64>,
    /// Blocks of which it does not: a change is on its way, or power was cut.
    unsure: BTreeSet<Block>,
    /// Reads that may find what was there before a change, or after it.
    unclear: BTreeSet<RequestId>,
    /// The last change of each block.
    last_changes: BTreeMap<Block, RequestId>,
    /// Whether it goes from event to event by itself, and so is never stuck.
    is_wary: bool,
    /// The device never came to rest: it is left alone.
    pub is_stuck: bool,
    data: Arena,
    now: Time,
    next_id: u64,
    inside: Vec<Request>,
    /// All that was seen so far.
    pub history: Vec<Seen>,
}

impl Host {
    /// Before the first step, with a device for so many tenants.
    pub fn new(mut leaf: Box<dyn Tried>, tenants: u16, depth: usize) -> Host {
        let (limits, places) = (leaf.limits(), places(&mut *leaf));
        Host {
            leaf,
            limits,
            tenants,
            depth,
            places,
            changed: Vec::new(),
            held: BTreeMap::new(),
            unsure: BTreeSet::new(),
            unclear: BTreeSet::new(),
            last_changes: BTreeMap::new(),
            is_wary: true,
            is_stuck: false,
            data: Arena::new(),
            now: Time::ZERO,
            next_id: 0,
            inside: Vec::new(),
            history: Vec::new(),
        }
    }

    /// Another host over a copy of the device, who lets the device run by itself
    /// until something completes. It sees the same.
    pub fn trusting(&self) -> Host {
        Host { is_wary: false, ..self.clone() }
    }

    /// Does the steps of a case from number `from` on, waits for what is inside,
    /// and reads back what was changed.
    pub fn finish(&mut self, case: &Case, from: usize) {
        for step in case.steps.iter().skip(from) {
            self.step(step);
        }
        while self.progress() {}
        self.read_back();
    }

    /// Reads what has been changed.
    fn read_back(&mut self) {
        if self.is_stuck {
            return;
        }
        let place = |request: &Request| (request.tenant, request.lba, request.sectors);
        self.changed.sort_by_key(place);
        self.changed.dedup_by_key(|request| place(request));
        for changed in self.changed.clone() {
            let Request { tenant, lba, sectors, .. } = changed;
            let read = Request::new(RequestId(self.next_id), Operation::Read, lba, sectors);
            self.ask(Request { tenant, ..read });
        }
        while self.progress() {}
    }

    /// Lets so many events happen and then cuts the power; what is left is read.
    fn cut_power(&mut self, events: u32) {
        for _ in 0..events {
            let Some(next) = self.next_time(LOOK) else { break };
            self.advance(next);
        }
        self.leaf.cut_power(self.now, &mut self.data);
        self.history.push(Seen::Cut { now: self.now });
        self.unsure.extend(self.held.keys());
        self.advance(self.now);
        if self.inside.is_empty() {
            self.history.push(Seen::Kept { buffers: self.data.taken() });
        }
        self.read_back();
    }

    /// Says something to whatever is at a place.
    fn tell(&mut self, place: Place, is_there: bool, command: Command) {
        let answer = self.leaf.command(self.now, &place, &command, &mut self.data);
        self.history.push(Seen::Told { place, is_there, command, answer });
        self.listen();
    }

    /// Takes what was raised.
    fn listen(&mut self) {
        while let Some(notice) = self.leaf.notice() {
            self.history.push(Seen::Raised { notice });
        }
    }

    /// Does one step.
    pub fn step(&mut self, step: &Step) {
        if self.is_stuck {
            return;
        }
        self.advance(self.now + Span(step.pause_ns));
        match step.act {
            Act::Ask(operation) => self.ask(self.request(step, operation)),
            Act::Slip(operation, slip) => {
                if let Some(request) = self.slipped(step, operation, slip) {
                    let _ = self.offer(&request);
                }
            }
            Act::Tell(word) => {
                let place = self.places[usize::from(step.place) % self.places.len()].clone();
                self.tell(place.clone(), true, word.command());
                self.tell(place, true, Command::State);
                self.tell(Place(vec![usize::MAX]), false, word.command());
            }
            Act::Cut(events) => self.cut_power(events),
        }
    }

    fn request(&self, step: &Step, operation: Operation) -> Request {
        let block = u64::from(self.limits.block_sectors);
        let all = self.limits.sectors / block;
        let first = match u64::from(step.place) {
            near if step.place < NEAR => near % all,
            far => far * (all >> 16) + far % all,
        };
        let first = first.min(all - 1);
        let blocks = u64::from(step.blocks).min(all - first);
        let (lba, sectors) = match operation {
            Operation::Flush => (0, 0),
            _ => (first * block, (blocks * block) as u32),
        };
        Request {
            tenant: TenantId(step.tenant % self.tenants),
            fua: step.fua && operation == Operation::Write,
            hint: Hint(step.hint),
            ..Request::new(RequestId(self.next_id), operation, Lba(lba), sectors)
        }
    }

    /// The request with a slip, where the device can have it.
    fn slipped(&self, step: &Step, operation: Operation, slip: Slip) -> Option<Request> {
        let request = self.request(step, operation);
        let block = self.limits.block_sectors;
        Some(match slip {
            Slip::Outside => {
                Request { lba: Lba(self.limits.sectors - u64::from(block)), sectors: 2 * block, ..request }
            }
            Slip::Overflow => Request { lba: Lba(u64::MAX - u64::from(block) + 1), ..request },
            Slip::Empty => Request { sectors: 0, ..request },
            Slip::Unaligned if block == 1 => return None,
            Slip::Unaligned => Request { sectors: request.sectors - 1, ..request },
        })
    }

    /// Sees to it that a request is taken in, as soon as the loop lets it.
    fn ask(&mut self, mut request: Request) {
        while self.inside.len() >= self.depth || self.is_contended(&request) {
            if !self.progress() {
                return;
            }
        }
        if request.operation == Operation::Demote
            && self.of(&request).any(|block| self.unsure.contains(&block))
        {
            // It has no copy that it could give up.
            return;
        }
        if matches!(request.operation, Operation::Read | Operation::Write | Operation::Demote) {
            request.payload = self.data.take(request.sectors);
        }
        if matches!(request.operation, Operation::Write | Operation::Demote) {
            self.fill(&request);
        }
        while self.offer(&request) == Submit::Busy {
            if !self.progress() {
                return;
            }
        }
    }

    /// Offers a request that is not inside.
    fn offer(&mut self, request: &Request) -> Submit {
        self.next_id = request.id.0 + 1;
        let answer = self.leaf.submit(self.now, request, &mut self.data);
        self.history.push(Seen::Offered { now: self.now, request: *request, answer });
        self.listen();
        match answer {
            Submit::Accepted => {
                self.inside.push(*request);
                if changes(request.operation) {
                    let blocks: Vec<Block> = self.of(request).collect();
                    self.last_changes.extend(blocks.iter().map(|&block| (block, request.id)));
                    self.unsure.extend(blocks);
                    self.changed.push(Request { payload: Payload::NONE, ..*request });
                }
                if request.operation == Operation::Read
                    && self.of(request).any(|block| self.is_changing(block))
                {
                    self.unclear.insert(request.id);
                }
            }
            Submit::Refused(_) => self.data.give_back(request.payload),
            Submit::Busy => {}
        }
        answer
    }

    /// Whether a change of the same blocks is inside: either may then be the
    /// last, and no host would send both.
    fn is_contended(&self, request: &Request) -> bool {
        let end = |request: &Request| request.lba.0 + u64::from(request.sectors);
        changes(request.operation)
            && self.inside.iter().any(|other| {
                changes(other.operation)
                    && other.tenant == request.tenant
                    && other.lba.0 < end(request)
                    && request.lba.0 < end(other)
            })
    }

    /// Lets time pass until something completes; false if nothing does.
    fn progress(&mut self) -> bool {
        if self.inside.is_empty() || self.is_stuck {
            return false;
        }
        let (limit, before) = (self.now + PATIENCE, self.inside.len());
        let (mut done, mut at_once, mut look) = (Vec::new(), 0, LOOK);
        while done.is_empty() {
            let hears_outside = self.leaf.next_event().hears_outside();
            let then = if self.is_wary || hears_outside {
                let next = self.next_time(look).filter(|&next| next <= limit);
                if hears_outside {
                    look = LONGEST_LOOK.min(Span(2 * look.0));
                }
                next.inspect(|&next| self.leaf.advance(next, &mut self.data, &mut done))
            } else {
                self.leaf.advance_to_completion(limit, &mut self.data, &mut done)
            };
            at_once = if then == Some(self.now) { at_once + 1 } else { 0 };
            if at_once > AT_ONCE {
                self.history.push(Seen::Stuck { now: self.now });
                self.is_stuck = true;
                return false;
            }
            self.now = then.unwrap_or(limit).max(self.now);
            self.listen();
            if then.is_none() {
                break;
            }
        }
        self.see(done);
        self.inside.len() < before
    }

    /// When something will happen next; where something outside has a say, `look` later
    /// at the latest.
    fn next_time(&self, look: Span) -> Option<Time> {
        let wake = self.leaf.next_event();
        let looked = wake.hears_outside().then(|| self.now + look);
        wake.time().into_iter().chain(looked).min().map(|next| next.max(self.now))
    }

    fn advance(&mut self, to: Time) {
        let mut done = Vec::new();
        self.leaf.advance(to, &mut self.data, &mut done);
        self.now = to;
        self.listen();
        self.see(done);
        self.history.push(Seen::Advanced { now: to, due: self.leaf.next_event().time() });
    }

    fn see(&mut self, done: Vec<Completion>) {
        for completion in done {
            let index = self.inside.iter().position(|request| request.id == completion.id);
            let request = index.map(|index| self.inside.swap_remove(index));
            let read = request.filter(|request| request.operation == Operation::Read);
            let blocks = read.map(|request| self.blocks(&request)).unwrap_or_default();
            if let Some(request) = request.filter(|_| completion.status == Status::Ok) {
                self.learn(&request, &blocks);
            }
            self.data.give_back(request.map_or(Payload::NONE, |request| request.payload));
            self.history.push(Seen::Completed { now: self.now, completion, blocks });
        }
    }

    /// The blocks of a request.
    fn of(&self, request: &Request) -> impl Iterator<Item = Block> + use<> {
        let Request { tenant, lba, .. } = *request;
        // One that is broken may take what it does not admit.
        let sectors = if self.limits.admit(lba.0, request.sectors) { request.sectors } else { 0 };
        let block = u64::from(self.limits.block_sectors);
        (0..u64::from(sectors) / block).map(move |index| (tenant, lba.0 + index * block))
    }

    /// Whether a change of the block is inside.
    fn is_changing(&self, block: Block) -> bool {
        let changing = self.inside.iter().filter(|other| changes(other.operation));
        changing.flat_map(|other| self.of(other)).any(|changed| changed == block)
    }

    /// What follows from the end of a request for what blocks hold; `found` is what a read
    /// has found.
    fn learn(&mut self, request: &Request, found: &[u64]) {
        for (index, block) in self.of(request).enumerate() {
            let is_last = self.last_changes.get(&block).is_none_or(|&last| last <= request.id);
            let content = match request.operation {
                Operation::Read if self.unclear.contains(&request.id) => None,
                Operation::Read => found.get(index).copied().filter(|&word| word != GARBAGE),
                Operation::Write => Some(stamp(request.id, block.1)),
                Operation::Trim | Operation::WriteZeroes => Some(ZEROS),
                Operation::Flush | Operation::Demote => None,
            };
            if let Some(content) = content.filter(|_| is_last && !self.is_changing(block)) {
                self.held.insert(block, content);
                self.unsure.remove(&block);
            }
        }
    }

    /// Puts the bytes of a write, or of a copy that is given up, into its buffer.
    fn fill(&mut self, request: &Request) {
        let block = u64::from(self.limits.block_sectors);
        let words: Vec<u64> = self
            .of(request)
            .map(|block| match request.operation {
                Operation::Demote => self.held.get(&block).copied().unwrap_or(ZEROS),
                _ => stamp(request.id, block.1),
            })
            .collect();
        let bytes = self.data.write(request.payload, request.sectors).expect("a buffer of its own");
        for (word, block_bytes) in words.iter().zip(bytes.chunks_mut((block * SECTOR_BYTES) as usize)) {
            block_bytes.as_chunks_mut().0.fill(word.to_le_bytes());
        }
    }

    /// What each block of a read holds, if it carries bytes.
    fn blocks(&self, request: &Request) -> Vec<u64> {
        let Some(bytes) = self.data.read(request.payload, request.sectors) else { return Vec::new() };
        let of_block = |block: &[u8]| {
            let words = block.as_chunks().0;
            if words.iter().all(|word| *word == words[0]) { u64::from_le_bytes(words[0]) } else { GARBAGE }
        };
        bytes.chunks((u64::from(self.limits.block_sectors) * SECTOR_BYTES) as usize).map(of_block).collect()
    }
}

/// Whether an operation changes what reads return.
pub fn changes(operation: Operation) -> bool {
    matches!(operation, Operation::Write | Operation::Trim | Operation::WriteZeroes)
}

/// Where in a device there is somebody to be told something.
fn places(leaf: &mut dyn Tried) -> Vec<Place> {
    let mut is_there = |place: &Place| {
        let answer = leaf.command(Time::ZERO, place, &Command::State, &mut Arena::new());
        answer != Err(Refusal::NoSuchPlace)
    };
    let mut found = vec![Place::default()];
    let mut next = 0;
    while let Some(Place(above)) = found.get(next).cloned() {
        let below = (0..).map(|child| Place(above.iter().copied().chain([child]).collect()));
        found.extend(below.take_while(&mut is_there));
        next += 1;
    }
    found
}
