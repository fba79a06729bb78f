//! For clients of small blocks over a device with larger ones: what does not
//! begin and end with a block is read, changed and written back.

use std::collections::VecDeque;
use std::ops::Range;

use flashkeel_engine::{
    Answer, Arena, Cause, Command, Completion, Lba, Ledger, Limits, Operation, Outbox, Payload, Refusal,
    Request, RequestId, Stage, Status, Submit, Time, Wake,
};

use crate::device::{Composed, Held};
use crate::flight::Flights;
use crate::part::Part;
use crate::parts::Parts;

/// Gives its only child whole blocks.
///
/// A request of whole blocks passes as it is. A read of parts of blocks reads the
/// whole ones; a write reads the blocks that it covers in part, and then writes
/// all of them. While it does, whatever changes the same blocks waits. Of a trim, and
/// of a range that is to read as zeros, only parts of blocks are filled with zeros.
#[derive(Clone)]
pub struct WholeBlocks {
    below: Limits,
    /// Requests with the child.
    pieces: Flights<Piece>,
    /// Requests of parts of blocks.
    jobs: Flights<Job>,
    /// Blocks that a job changes, with its number.
    changing: Vec<(RequestId, Range<u64>)>,
    /// Trims, and ranges to be zeros, that begin or end within a block, in up to three parts.
    ranges: Parts,
    /// What waits for blocks that are being changed, with its submission.
    held: VecDeque<(Time, Request)>,
    /// Whether requests carry bytes, and so what is read here does too.
    has_bytes: bool,
}

#[derive(Clone, Debug)]
enum Piece {
    /// A request of whole blocks: its number, its submission, and what it changes.
    Whole { id: RequestId, submitted: Time, changes: Range<u64> },
    /// A part of a job.
    Part(RequestId),
}

/// A request of parts of blocks.
#[derive(Clone, Debug)]
struct Job {
    request: Request,
    submitted: Time,
    /// Sectors of the blocks that it touches.
    blocks: Range<u64>,
    /// Their bytes.
    bytes: Payload,
    /// Reads, or the write, that have not ended.
    left: u32,
    is_writing: bool,
    status: Status,
    ledger: Ledger,
}

/// In the number of a part of a range.
const OF_RANGE: u64 = 1 << 63;

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

impl WholeBlocks {
    /// Over a child that states `below` of itself.
    pub fn new(below: Limits) -> WholeBlocks {
        WholeBlocks {
            below,
            pieces: Flights::default(),
            jobs: Flights::default(),
            changing: Vec::new(),
            ranges: Parts::default(),
            held: VecDeque::new(),
            has_bytes: false,
        }
    }

    /// The whole blocks that a request touches, in sectors.
    fn blocks(&self, request: &Request) -> Range<u64> {
        let block = u64::from(self.below.block_sectors);
        let end = request.lba.0 + u64::from(request.sectors);
        request.lba.0 / block * block..end.next_multiple_of(block)
    }

    /// What a request changes of the blocks below, in sectors.
    fn changes(&self, request: &Request) -> Range<u64> {
        match request.operation {
            Operation::Read | Operation::Flush | Operation::Demote => 0..0,
            Operation::Write | Operation::WriteZeroes | Operation::Trim => self.blocks(request),
        }
    }

    /// Whether a request changes what is being changed, or one before it will.
    fn must_wait(&self, request: &Request, ahead: usize) -> bool {
        let mine = self.changes(request);
        self.changing.iter().any(|(_, blocks)| overlap(&mine, blocks))
            || self.held.iter().take(ahead).any(|(_, other)| overlap(&mine, &self.changes(other)))
    }

    /// Sends a request that need not wait, or holds it for writes below.
    fn start(&mut self, submitted: Time, request: &Request, data: &mut Arena, outbox: &mut Outbox) -> bool {
        let (asked, blocks) =
            (request.lba.0..request.lba.0 + u64::from(request.sectors), self.blocks(request));
        let changes = self.changes(request);
        if request.operation == Operation::Flush || asked == blocks {
            let piece = Piece::Whole { id: request.id, submitted, changes };
            outbox.requests.push((0, Request { id: self.pieces.take_off(piece), ..*request }));
            return true;
        }
        // What it reads must not change before it writes.
        let is_read = request.operation == Operation::Read;
        let below =
            |piece: &Piece| matches!(piece, Piece::Whole { changes, .. } if overlap(changes, &blocks));
        if !is_read && self.pieces.iter().any(below) {
            return false;
        }
        let sectors = (blocks.end - blocks.start) as u32;
        let bytes = if self.has_bytes { data.take(sectors) } else { Payload::NONE };
        let job = self.jobs.take_off(Job {
            request: *request,
            submitted,
            blocks: blocks.clone(),
            bytes,
            left: 0,
            is_writing: false,
            status: Status::Ok,
            ledger: Ledger::ZERO,
        });
        if is_read {
            self.give(job, Operation::Read, blocks, outbox);
            return true;
        }
        self.changing.push((job, blocks.clone()));
        let block = u64::from(self.below.block_sectors);
        let head = blocks.start..blocks.start + block;
        let tail = blocks.end - block..blocks.end;
        if asked.start != blocks.start {
            self.give(job, Operation::Read, head.clone(), outbox);
        }
        if asked.end != blocks.end && (tail != head || asked.start == blocks.start) {
            self.give(job, Operation::Read, tail, outbox);
        }
        true
    }

    /// Sends a request, or holds it.
    fn take(&mut self, now: Time, request: &Request, data: &mut Arena, outbox: &mut Outbox) {
        let is_clear = self.changing.is_empty() && self.held.is_empty();
        let may_start = is_clear || !self.must_wait(request, self.held.len());
        if !may_start || !self.start(now, request, data, outbox) {
            self.held.push_back((now, *request));
        }
    }

    /// Does with the whole blocks of a range what is asked, however long it is, and fills the rest
    /// with zeros.
    fn clear(&mut self, now: Time, request: &Request, data: &mut Arena, outbox: &mut Outbox) {
        let block = u64::from(self.below.block_sectors);
        let (start, end) = (request.lba.0, request.lba.0 + u64::from(request.sectors));
        let first = start.next_multiple_of(block).min(end);
        let last = (end / block * block).max(first);
        let whole = self.ranges.begin(now, now, request);
        let parts = [(Operation::WriteZeroes, start..first), (request.operation, first..last)];
        for (operation, range) in parts.into_iter().chain([(Operation::WriteZeroes, last..end)]) {
            if range.is_empty() {
                continue;
            }
            let id = RequestId(self.ranges.add(whole).0 | OF_RANGE);
            let (from, sectors) = (range.start - start, range.end - range.start);
            let part = request.part(id, from as u32, Lba(range.start), sectors as u32);
            self.take(now, &Request { operation, ..part }, data, outbox);
        }
    }

    /// Offers the whole blocks of a range; of parts of blocks nobody keeps a copy.
    fn demote(&mut self, now: Time, request: &Request, data: &mut Arena, outbox: &mut Outbox) {
        let block = u64::from(self.below.block_sectors);
        let (start, end) = (request.lba.0, request.lba.0 + u64::from(request.sectors));
        let (first, last) = (start.next_multiple_of(block), end / block * block);
        if first < last {
            let part = request.part(request.id, (first - start) as u32, Lba(first), (last - first) as u32);
            return self.take(now, &part, data, outbox);
        }
        let done = Completion { id: request.id, time: now, status: Status::Ok, ledger: Ledger::ZERO };
        outbox.completions.push(done);
    }

    /// Gives the child a part of a job.
    fn give(&mut self, number: RequestId, operation: Operation, blocks: Range<u64>, outbox: &mut Outbox) {
        let id = self.pieces.take_off(Piece::Part(number));
        let job = self.jobs.get_mut(number).expect("a part belongs to a job");
        job.left += 1;
        let sectors = (blocks.end - blocks.start) as u32;
        let payload = job.bytes.skip((blocks.start - job.blocks.start) as u32);
        let fua = job.request.fua && operation == Operation::Write;
        let lba = Lba(blocks.start);
        outbox.requests.push((0, Request { id, operation, lba, sectors, fua, payload, ..job.request }));
    }

    /// A part of a job has ended.
    fn land(
        &mut self,
        now: Time,
        number: RequestId,
        part: &mut Completion,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) -> bool {
        let job = self.jobs.get_mut(number).expect("a part belongs to a job");
        job.left -= 1;
        job.status = job.status.max(part.status);
        if job.left > 0 {
            return false;
        }
        // What the last part's ledger does not cover was spent waiting.
        job.ledger.add(&part.ledger);
        job.ledger.charge(Cause::HostQueue, now.since(job.submitted) - job.ledger.total());
        let Request { lba, sectors, operation, payload, .. } = job.request;
        let inside = job.bytes.skip((lba.0 - job.blocks.start) as u32);
        let is_ok = job.status == Status::Ok;
        match operation {
            Operation::Read => data.copy(inside, payload, sectors),
            _ if is_ok && !job.is_writing => {
                match operation {
                    Operation::WriteZeroes => data.write(inside, sectors).unwrap_or_default().fill(0),
                    _ => data.copy(payload, inside, sectors),
                }
                job.is_writing = true;
                let blocks = job.blocks.clone();
                self.give(number, Operation::Write, blocks, outbox);
                return false;
            }
            _ => {}
        }
        let Job { request, bytes, status, ledger, .. } = self.jobs.land(number);
        data.give_back(bytes);
        self.changing.retain(|(other, _)| *other != number);
        *part = Completion { id: request.id, time: now, status, ledger };
        true
    }

    /// Starts what was held and need not wait any longer.
    fn release(&mut self, data: &mut Arena, outbox: &mut Outbox) {
        let mut index = 0;
        while index < self.held.len() {
            let (submitted, request) = self.held[index];
            if !self.must_wait(&request, index) && self.start(submitted, &request, data, outbox) {
                self.held.remove(index);
            } else {
                index += 1;
            }
        }
    }
}

impl Stage for WholeBlocks {
    /// Those of the child, in single sectors.
    fn limits(&self, below: &[Limits]) -> Limits {
        let Limits { block_sectors, preferred_sectors, .. } = below[0];
        Limits { block_sectors: 1, preferred_sectors: preferred_sectors.max(block_sectors), ..below[0] }
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena, outbox: &mut Outbox) -> Submit {
        let limits = Limits { block_sectors: 1, ..self.below };
        if request.operation != Operation::Flush && !limits.admit(request.lba.0, request.sectors) {
            return Submit::Refused(Status::Invalid);
        }
        self.has_bytes |= request.payload.is_some();
        let block = self.below.block_sectors;
        let is_whole =
            request.lba.0.is_multiple_of(u64::from(block)) && request.sectors.is_multiple_of(block);
        match request.operation {
            Operation::Trim | Operation::WriteZeroes if !is_whole => self.clear(now, request, data, outbox),
            Operation::Demote if !is_whole => self.demote(now, request, data, outbox),
            _ => self.take(now, request, data, outbox),
        }
        Submit::Accepted
    }

    fn goes_straight(&self) -> Option<usize> {
        Some(0)
    }

    fn next_event(&self) -> Wake {
        Wake::NEVER
    }

    fn command(&mut self, _now: Time, command: &Command, _outbox: &mut Outbox) -> Result<Answer, Refusal> {
        let (waiting, changing) = (self.held.len() as u64, self.changing.len() as u64);
        match command {
            Command::State => Ok(Answer::state([("waiting", waiting), ("changing", changing)])),
            _ => Err(Refusal::Unknown),
        }
    }

    fn advance(&mut self, _now: Time, _data: &mut Arena, _outbox: &mut Outbox) {}

    fn cut_power(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        let mut ended = Vec::new();
        for (_, piece) in self.pieces.take_all() {
            if let Piece::Whole { id, submitted, .. } = piece {
                ended.push((submitted, id));
            }
        }
        for (_, Job { request, submitted, bytes, .. }) in self.jobs.take_all() {
            data.give_back(bytes);
            ended.push((submitted, request.id));
        }
        ended.extend(self.held.drain(..).map(|(submitted, request)| (submitted, request.id)));
        self.changing.clear();
        ended.retain(|(_, id)| id.0 & OF_RANGE == 0);
        ended.sort_by_key(|&(submitted, _)| submitted);
        outbox.completions.append(&mut self.ranges.cut_power(now));
        for (submitted, id) in ended {
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::HostQueue, submitted, now);
            outbox.completions.push(Completion { id, time: now, status: Status::Aborted, ledger });
        }
    }

    fn completed(
        &mut self,
        now: Time,
        _child: usize,
        completion: &mut Completion,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) -> bool {
        let is_over = match self.pieces.land(completion.id) {
            Piece::Part(job) => self.land(now, job, completion, data, outbox),
            Piece::Whole { id, submitted, .. } => {
                let ledger = &mut completion.ledger;
                ledger.charge(Cause::HostQueue, now.since(submitted) - ledger.total());
                completion.id = id;
                true
            }
        };
        if !self.held.is_empty() {
            self.release(data, outbox);
        }
        if is_over && completion.id.0 & OF_RANGE != 0 {
            completion.id.0 ^= OF_RANGE;
            let covered = completion.ledger.total();
            return self.ranges.land(completion, covered, false).is_some();
        }
        is_over
    }
}

impl Composed for WholeBlocks {
    fn part(&self) -> Option<&dyn Part> {
        None
    }

    fn reset_counters(&mut self, _now: Time) {}

    fn held(&self) -> Held {
        Held { requests: self.held.len() as u64, ..Held::default() }
    }
}
