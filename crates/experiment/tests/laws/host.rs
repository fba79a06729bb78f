//! A host: does the steps of a case and writes down what it sees.

use dyn_clone::DynClone;
use flashkeel_engine::{
    Answer, Arena, Command, Completion, Hint, Lba, Leaf, Limits, Operation, Payload, Place, Refusal, Request,
    RequestId, SECTOR_BYTES, Span, Submit, TenantId, Time,
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
    /// The answer to a command.
    Told { place: Place, answer: Result<Answer, Refusal> },
}

/// A block that nobody has written, or that reads as zeros again.
pub const ZEROS: u64 = 0;
/// A block of bytes that do not belong together.
pub const GARBAGE: u64 = u64::MAX;

/// What a write puts into the block of that address: a word, again and again.
pub fn stamp(id: RequestId, lba: u64) -> u64 {
    (id.0 + 1) << 40 | lba & ((1 << 40) - 1)
}

/// How long nothing may complete with requests inside.
const PATIENCE: Span = Span::from_secs(24 * 60 * 60);

/// One who asks, in a loop that is closed.
#[derive(Clone)]
pub struct Host {
    leaf: Box<dyn Tried>,
    limits: Limits,
    tenants: u16,
    depth: usize,
    data: Arena,
    now: Time,
    next_id: u64,
    inside: Vec<Request>,
    /// All that was seen so far.
    pub history: Vec<Seen>,
}

impl Host {
    /// Before the first step, with a device for so many tenants.
    pub fn new(leaf: Box<dyn Tried>, tenants: u16, depth: usize) -> Host {
        let limits = leaf.limits();
        Host {
            leaf,
            limits,
            tenants,
            depth,
            data: Arena::new(),
            now: Time::ZERO,
            next_id: 0,
            inside: Vec::new(),
            history: Vec::new(),
        }
    }

    /// Does the steps of a case from number `from` on, waits for what is inside,
    /// and reads back what was touched.
    pub fn finish(&mut self, case: &Case, from: usize) {
        for step in case.steps.iter().skip(from) {
            self.step(step);
        }
        while self.progress() {}
        for step in &case.steps {
            if let Act::Ask(Operation::Write | Operation::Trim | Operation::WriteZeroes) = step.act {
                self.step(&Step { pause_ns: 0, act: Act::Ask(Operation::Read), ..step.clone() });
            }
        }
        while self.progress() {}
    }

    /// Does one step.
    pub fn step(&mut self, step: &Step) {
        self.advance(self.now + Span(step.pause_ns));
        match step.act {
            Act::Ask(operation) => self.ask(self.request(step, operation)),
            Act::Slip(operation, slip) => {
                if let Some(request) = self.slipped(step, operation, slip) {
                    let _ = self.offer(&request);
                }
            }
            Act::Tell => {
                for place in [Place::default(), Place(vec![usize::MAX])] {
                    let answer = self.leaf.command(self.now, &place, &Command::State, &mut self.data);
                    self.history.push(Seen::Told { place, answer });
                }
            }
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
        if matches!(request.operation, Operation::Read | Operation::Write) {
            request.payload = self.data.take(request.sectors);
        }
        if request.operation == Operation::Write {
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
        match answer {
            Submit::Accepted => self.inside.push(*request),
            Submit::Refused(_) => self.data.give_back(request.payload),
            Submit::Busy => {}
        }
        answer
    }

    /// Whether a change of the same blocks is inside: either may then be the
    /// last, and no host would send both.
    fn is_contended(&self, request: &Request) -> bool {
        let changes =
            |operation| matches!(operation, Operation::Write | Operation::Trim | Operation::WriteZeroes);
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
        if self.inside.is_empty() {
            return false;
        }
        let mut done = Vec::new();
        let limit = self.now + PATIENCE;
        let then = self.leaf.advance_to_completion(limit, &mut self.data, &mut done);
        self.now = then.unwrap_or(limit).max(self.now);
        let before = self.inside.len();
        self.see(done);
        self.inside.len() < before
    }

    fn advance(&mut self, to: Time) {
        let mut done = Vec::new();
        self.leaf.advance(to, &mut self.data, &mut done);
        self.now = to;
        self.see(done);
        self.history.push(Seen::Advanced { now: to, due: self.leaf.next_event().time() });
    }

    fn see(&mut self, done: Vec<Completion>) {
        for completion in done {
            let index = self.inside.iter().position(|request| request.id == completion.id);
            let request = index.map(|index| self.inside.swap_remove(index));
            let read = request.filter(|request| request.operation == Operation::Read);
            let blocks = read.map(|request| self.blocks(&request)).unwrap_or_default();
            self.data.give_back(request.map_or(Payload::NONE, |request| request.payload));
            self.history.push(Seen::Completed { now: self.now, completion, blocks });
        }
    }

    /// Puts the bytes of a write into its buffer.
    fn fill(&mut self, request: &Request) {
        let bytes = self.data.write(request.payload, request.sectors).expect("a buffer of its own");
        let block = u64::from(self.limits.block_sectors);
        for (index, block_bytes) in bytes.chunks_mut((block * SECTOR_BYTES) as usize).enumerate() {
            let word = stamp(request.id, request.lba.0 + index as u64 * block).to_le_bytes();
            block_bytes.chunks_mut(word.len()).for_each(|place| place.copy_from_slice(&word));
        }
    }

    /// What each block of a read holds, if it carries bytes.
    fn blocks(&self, request: &Request) -> Vec<u64> {
        let Some(bytes) = self.data.read(request.payload, request.sectors) else { return Vec::new() };
        let of_block = |block: &[u8]| {
            let mut words = block.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
            let first = words.next().expect("a block has bytes");
            if words.all(|word| word == first) { first } else { GARBAGE }
        };
        bytes.chunks((u64::from(self.limits.block_sectors) * SECTOR_BYTES) as usize).map(of_block).collect()
    }
}
