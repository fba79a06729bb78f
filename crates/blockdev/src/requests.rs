//! What every real drive does with requests, however it is reached.

use flashkeel_engine::{
    Arena, Cause, Completion, Ledger, Limits, Operation, Request, SECTOR_BYTES, Status, Stream, Time,
};

use crate::opening::Access;
use crate::world::{Fault, World};

/// Why a drive of that number and name does not take a request, if so.
pub(crate) fn refusal(
    limits: &Limits,
    access: Access,
    world: &World,
    (number, name): (usize, &str),
    request: &Request,
) -> Option<Status> {
    if world.is_gone(number) {
        return Some(Status::Gone);
    }
    if request.operation == Operation::Flush {
        return None;
    }
    if !limits.admit(request.lba.0, request.sectors) {
        return Some(Status::Invalid);
    }
    if request.operation.is_change() && access == Access::ReadOnly {
        world.fail(number, || {
            Fault::Refused(format!("{name}: it is read only; --destroy lets its data be destroyed"))
        });
        return Some(Status::ReadOnly);
    }
    None
}

/// A request on its way, for which a drive is asked piece by piece where it is long.
#[derive(Clone, Copy)]
pub(crate) struct Progress {
    pub request: Request,
    submitted: Time,
    /// Bytes of it that are done.
    pub done: u64,
    /// All of it is done, and is being made durable.
    pub flushes: bool,
}

impl Progress {
    pub fn new(now: Time, request: &Request) -> Progress {
        Progress { request: *request, submitted: now, done: 0, flushes: false }
    }

    /// What the drive is asked for.
    pub fn operation(&self) -> Operation {
        if self.flushes { Operation::Flush } else { self.request.operation }
    }

    /// The first byte of the piece that is to be done, and its bytes, `most` at most.
    pub fn piece(&self, most: u64) -> (u64, u64) {
        let first = self.request.lba.0 * SECTOR_BYTES + self.done;
        (first, (self.request.bytes() - self.done).min(most))
    }

    /// That piece is done. Returns whether there is more to ask for: another, or, behind the last
    /// of a forced change that does not last by itself, a flush.
    pub fn goes_on(&mut self, most: u64, lasts: bool) -> bool {
        self.done += self.piece(most).1;
        if self.done < self.request.bytes() {
            return true;
        }
        let is_forced = self.request.fua && self.request.operation.is_change();
        let flushes_next = is_forced && !lasts && !self.flushes;
        self.flushes |= flushes_next;
        flushes_next
    }

    /// Its end.
    pub fn end(&self, now: Time, status: Status) -> Completion {
        let mut ledger = Ledger::ZERO;
        ledger.charge_between(Cause::Outside, self.submitted, now);
        Completion { id: self.request.id, time: now, status, ledger }
    }
}

/// What is written of requests without bytes: nothing that could be compressed.
pub(crate) struct Filler(Vec<u8>);

impl Filler {
    pub fn new() -> Filler {
        let mut random = Stream::new(1, "blockdev filler");
        Filler((0..8192).flat_map(|_| random.word().to_le_bytes()).collect())
    }

    /// Puts what a request writes from its byte `from` on into `room`.
    pub fn fill(&self, room: &mut [u8], request: &Request, from: u64, data: &Arena) {
        match data.read(request.payload, request.sectors) {
            _ if request.operation == Operation::WriteZeroes => room.fill(0),
            Some(bytes) => room.copy_from_slice(&bytes[from as usize..][..room.len()]),
            None => {
                room.chunks_mut(self.0.len()).for_each(|part| part.copy_from_slice(&self.0[..part.len()]))
            }
        }
    }
}

/// How a request ended that failed with an error number of Linux.
pub(crate) fn failed(operation: Operation, number: i32) -> Status {
    match number {
        // A trim is advice, and not every drive takes it.
        libc::EOPNOTSUPP if operation == Operation::Trim => Status::Ok,
        libc::ENOSPC | libc::EDQUOT => Status::NoSpace,
        libc::ENODEV | libc::ENXIO | libc::EBADF | libc::ESHUTDOWN => Status::Gone,
        libc::EROFS | libc::EPERM => Status::ReadOnly,
        _ => Status::MediaError,
    }
}

/// What failed, at `place`, its first byte and bytes, in words.
pub(crate) fn describe(name: &str, operation: Operation, place: (u64, u64), why: &str) -> String {
    let what = match operation {
        Operation::Read => "a read",
        Operation::Flush => "a flush",
        Operation::Trim => "a trim",
        _ => "a write",
    };
    let (offset, bytes) = place;
    format!("{name}: {what} of {bytes} bytes at byte {offset} failed: {why}")
}
