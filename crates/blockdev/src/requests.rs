//! What every real drive does with requests, however it is reached.

use flashkeel_engine::{Arena, Limits, Operation, Request, Status, Stream};

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
