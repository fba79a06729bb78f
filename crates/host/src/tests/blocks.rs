//! Clients of single sectors over a device of larger blocks, against a plain map.

use std::collections::BTreeMap;

use flashkeel_engine::{
    Arena, Cause, Completion, Durable, Lba, Leaf, Ledger, Limits, Operation, Payload, Request, RequestId,
    SECTOR_BYTES, Span, Stack, Status, Stream, Submit, Time, Wake,
};

use crate::blocks::WholeBlocks;

const SECTORS: u64 = 96;
const BLOCK: u32 = 8;
const LIMITS: Limits =
    Limits { sectors: SECTORS, block_sectors: BLOCK, preferred_sectors: 16, durable: Durable::Acknowledged };

/// Serves whole blocks, each request when it ends, in an order by chance.
struct Disk {
    random: Stream,
    bytes: Vec<u8>,
    at_work: Vec<(Time, Time, Request)>,
    served: Vec<Operation>,
}

impl Disk {
    fn serve(&mut self, request: &Request, data: &mut Arena) {
        let start = (request.lba.0 * SECTOR_BYTES) as usize;
        let range = start..start + request.bytes() as usize;
        let Request { payload, sectors, .. } = *request;
        match request.operation {
            Operation::Read => data.write(payload, sectors).unwrap().copy_from_slice(&self.bytes[range]),
            Operation::Write => self.bytes[range].copy_from_slice(data.read(payload, sectors).unwrap()),
            Operation::WriteZeroes | Operation::Trim => self.bytes[range].fill(0),
            Operation::Flush | Operation::Demote => {}
        }
        self.served.push(request.operation);
    }
}

impl Leaf for Disk {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        if self.at_work.len() == 6 {
            return Submit::Busy;
        }
        assert!(LIMITS.admit(request.lba.0, request.sectors), "whole blocks only: {request:?}");
        self.at_work.push((now + Span(self.random.between(10, 400)), now, *request));
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        self.at_work.iter().map(|&(end, ..)| end).min().into()
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {
        self.at_work.clear();
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        while let Some(time) = self.next_event().time().filter(|&next| next <= now) {
            let index = self.at_work.iter().position(|&(end, ..)| end == time).expect("the next");
            let (_, begun, request) = self.at_work.swap_remove(index);
            self.serve(&request, data);
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::OwnFlash, begun, time);
            completions.push(Completion { id: request.id, time, status: Status::Ok, ledger });
        }
    }
}

fn stack(seed: u64) -> Stack<WholeBlocks, Disk> {
    let bytes = vec![0; (SECTORS * SECTOR_BYTES) as usize];
    let disk = Disk { random: Stream::new(seed, "disk"), bytes, at_work: vec![], served: vec![] };
    Stack::new(WholeBlocks::new(LIMITS), vec![disk])
}

/// A client that has no two requests for one sector in flight, but often for
/// one block.
struct Client {
    stack: Stack<WholeBlocks, Disk>,
    data: Arena,
    /// What each sector holds, by the number of the write.
    sectors: Vec<u8>,
    open: BTreeMap<RequestId, (Time, Request)>,
    reads: u64,
}

impl Client {
    fn new(seed: u64) -> Client {
        let sectors = vec![0; SECTORS as usize];
        Client { stack: stack(seed), data: Arena::new(), sectors, open: BTreeMap::new(), reads: 0 }
    }

    fn range(request: &Request) -> std::ops::Range<usize> {
        request.lba.0 as usize..(request.lba.0 + u64::from(request.sectors)) as usize
    }

    fn advance(&mut self, now: Time) {
        let mut done = Vec::new();
        self.stack.advance(now, &mut self.data, &mut done);
        for completion in done {
            let (submitted, request) = self.open.remove(&completion.id).expect("a request ends once");
            assert_eq!(completion.status, Status::Ok);
            assert_eq!(completion.ledger.total(), completion.time.since(submitted));
            if request.operation == Operation::Read {
                let bytes = self.data.read(request.payload, request.sectors).unwrap();
                for (sector, found) in Self::range(&request).zip(bytes.chunks(SECTOR_BYTES as usize)) {
                    assert!(found.iter().all(|&byte| byte == self.sectors[sector]), "sector {sector}");
                    self.reads += 1;
                }
            }
            self.data.give_back(request.payload);
        }
    }

    fn submit(&mut self, now: Time, mut request: Request) {
        let mine = Self::range(&request);
        let is_taken = |(_, other): &(Time, Request)| {
            let theirs = Self::range(other);
            mine.start < theirs.end && theirs.start < mine.end
        };
        if self.open.values().any(is_taken) {
            return;
        }
        match request.operation {
            Operation::Read => request.payload = self.data.take(request.sectors),
            Operation::Write => {
                request.payload = self.data.take(request.sectors);
                let mark = request.id.0 as u8;
                self.data.write(request.payload, request.sectors).unwrap().fill(mark);
                self.sectors[mine].fill(mark);
            }
            Operation::WriteZeroes | Operation::Trim => self.sectors[mine].fill(0),
            Operation::Flush | Operation::Demote => {}
        }
        self.open.insert(request.id, (now, request));
        assert_eq!(self.stack.submit(now, &request, &mut self.data), Submit::Accepted);
    }
}

#[test]
fn every_sector_holds_what_was_last_written_to_it() {
    for seed in 1..=6 {
        let mut client = Client::new(seed);
        let mut random = Stream::new(seed, "client");
        let mut now = Time::ZERO;
        for id in 0..8_000 {
            now += Span(random.between(1, 60));
            client.advance(now);
            let operation = match random.below(10) {
                0..4 => Operation::Read,
                4..8 => Operation::Write,
                8 => Operation::WriteZeroes,
                _ => Operation::Trim,
            };
            let sectors = random.between(1, 20);
            let lba = Lba(random.below(SECTORS - sectors + 1));
            client.submit(now, Request::new(RequestId(id), operation, lba, sectors as u32));
        }
        client.advance(Time::MAX);
        assert!(client.open.is_empty(), "every request ends");
        assert_eq!(client.data.taken(), 0, "every buffer is given back");
        assert!(client.reads > 5_000);
        let disk = client.stack.children().next().expect("a disk");
        let held: Vec<u8> = disk.bytes.chunks(SECTOR_BYTES as usize).map(|sector| sector[0]).collect();
        assert_eq!(held, client.sectors);
    }
}

#[test]
fn whole_blocks_pass_as_they_are_and_parts_cost_a_read() {
    use Operation::{Read, Trim, Write, WriteZeroes};
    let mut stack = stack(1);
    let data = &mut Arena::new();
    for (id, operation, lba, sectors, expected) in [
        (0, Write, 8, 16, &[Write][..]),
        (1, Write, 9, 7, &[Read, Write]),
        (2, Write, 10, 2, &[Read, Write]),
        (3, Write, 15, 2, &[Read, Read, Write]),
        (4, Write, 12, 28, &[Read, Write]),
        (5, WriteZeroes, 8, 80, &[WriteZeroes]),
        (6, WriteZeroes, 7, 81, &[WriteZeroes, Read, Write]),
        (7, WriteZeroes, 17, 2, &[Read, Write]),
        (8, Trim, 8, 81, &[Trim, Read, Write]),
    ] {
        let payload = if operation == Write { data.take(sectors) } else { Payload::NONE };
        let request = Request { payload, ..Request::new(RequestId(id), operation, Lba(lba), sectors) };
        let now = Time(id * 10_000);
        assert_eq!(stack.submit(now, &request, data), Submit::Accepted);
        let mut done = Vec::new();
        stack.advance(Time(id * 10_000 + 9_000), data, &mut done);
        assert_eq!(done.len(), 1);
        let disk = stack.children_mut().next().expect("a disk");
        let mut served = std::mem::take(&mut disk.served);
        // A part that passes as it is may end before another is read, or after.
        served.sort_by_key(|operation| !matches!(operation, Trim | WriteZeroes));
        assert_eq!(served, expected, "sectors {lba} to {}", lba + u64::from(sectors));
        data.give_back(payload);
    }
    let outside = Request::new(RequestId(9), Operation::Read, Lba(SECTORS - 1), 2);
    assert_eq!(stack.submit(Time(90_000), &outside, data), Submit::Refused(Status::Invalid));
    assert_eq!(stack.limits().block_sectors, 1);
}
