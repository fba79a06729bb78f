//! A file or a block device as a leaf.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashkeel_engine::{
    Arena, Cause, Completion, Durable, LOGICAL_PAGE_SECTORS, Leaf, Ledger, Limits, Operation, Request,
    SECTOR_BYTES, Status, Submit, Time, Wake,
};
use io_uring::{IoUring, opcode, squeue, types};

use crate::buffers::Buffer;
use crate::opening::{self, Access, Found, reason};
use crate::requests::{self, Filler};
use crate::world::{Fault, World};

/// A real drive. A copy is the same drive: there is only one.
#[derive(Clone)]
pub struct Drive {
    limits: Limits,
    inside: Arc<Mutex<Inside>>,
}

struct Inside {
    // Before the slots: it ends before what it may still write to.
    ring: IoUring,
    file: File,
    path: String,
    access: Access,
    world: World,
    /// Its number there.
    number: usize,
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// Read and written.
    bytes: (u64, u64),
    /// What ends without the drive.
    done: Vec<Completion>,
    filler: Filler,
}

/// A request on its way, and room for its bytes.
struct Slot {
    request: Request,
    submitted: Time,
    buffer: Buffer,
}

impl Drive {
    /// Opens the drive at `path`, which takes `queue_depth` requests at a time.
    ///
    /// # Errors
    /// A sentence without the path, if it cannot be used: it is mounted or held by somebody
    /// else, too small, or the kernel has no io_uring or no direct I/O for it.
    pub fn open(world: &World, path: &Path, access: Access, queue_depth: u16) -> Result<Drive, String> {
        let (file, found) = opening::open(path, access)?;
        let ring = IoUring::new(u32::from(queue_depth).next_power_of_two()).map_err(|error| {
            format!("the kernel refuses io_uring, as in many containers: {}", reason(&error))
        })?;
        ring.submitter().register_eventfd(world.bell()).map_err(|error| reason(&error))?;
        let path = path.display().to_string();
        let slot = |_| Slot {
            request: Request::new(Default::default(), Operation::Flush, Default::default(), 0),
            submitted: Time::ZERO,
            buffer: Buffer::default(),
        };
        let inside = Inside {
            ring,
            file,
            access,
            number: world.enter(&path),
            path,
            world: world.clone(),
            slots: (0..queue_depth).map(slot).collect(),
            free: (0..queue_depth).rev().collect(),
            bytes: (0, 0),
            done: Vec::new(),
            filler: Filler::new(),
        };
        Ok(Drive { limits: limits(&found), inside: Arc::new(Mutex::new(inside)) })
    }

    /// What it is called.
    pub fn path(&self) -> String {
        self.inside().path.clone()
    }

    /// Bytes read and written since the start or the last reset.
    pub fn bytes(&self) -> (u64, u64) {
        self.inside().bytes
    }

    /// Counts from 0 again.
    pub fn reset_counters(&mut self) {
        self.inside().bytes = (0, 0);
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn limits(found: &Found) -> Limits {
    Limits {
        sectors: found.bytes / SECTOR_BYTES,
        block_sectors: (found.block_bytes / SECTOR_BYTES) as u32,
        preferred_sectors: LOGICAL_PAGE_SECTORS.max(found.block_bytes / SECTOR_BYTES) as u32,
        // Nobody says that it has no volatile cache.
        durable: Durable::Flushed,
    }
}

impl Leaf for Drive {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena) -> Submit {
        let inside = &mut *self.inside();
        let (access, world) = (inside.access, &inside.world);
        if let Some(status) = requests::refusal(&self.limits, access, world, &inside.path, request) {
            return Submit::Refused(status);
        }
        if request.operation == Operation::Demote {
            inside.done.push(Completion {
                id: request.id,
                time: now,
                status: Status::Ok,
                ledger: Ledger::ZERO,
            });
            return Submit::Accepted;
        }
        let Some(index) = inside.free.pop() else { return Submit::Busy };
        let slot = &mut inside.slots[usize::from(index)];
        (slot.request, slot.submitted) = (*request, now);
        let entry = inside.entry(index, data).user_data(u64::from(index));
        inside.issue(&entry, index)
    }

    fn next_event(&self) -> Wake {
        let inside = self.inside();
        Wake::new(inside.done.first().map(|end| end.time), true)
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        let inside = &mut *self.inside();
        completions.append(&mut inside.done);
        if !inside.ring.submission().is_empty() {
            // The kernel had no room for it.
            let _ = inside.ring.submit();
        }
        // As they come, without a list of them: the queue lies beside the slots.
        loop {
            let end = inside.ring.completion().next();
            let Some(end) = end else { break };
            let index = end.user_data() as u16;
            let status = inside.status(index, end.result());
            let slot = &inside.slots[usize::from(index)];
            let request = &slot.request;
            if request.operation == Operation::Read
                && status == Status::Ok
                && let Some(bytes) = data.write(request.payload, request.sectors)
            {
                bytes.copy_from_slice(slot.buffer.filled(bytes.len()));
            }
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::Outside, slot.submitted, now);
            completions.push(Completion { id: request.id, time: now, status, ledger });
            inside.free.push(index);
        }
    }

    /// Nobody pulls a real plug here: what is on its way ends as it would have.
    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {}
}

impl Inside {
    /// What the kernel is asked for the request in a slot.
    fn entry(&mut self, index: u16, data: &Arena) -> squeue::Entry {
        let slot = &mut self.slots[usize::from(index)];
        let request = slot.request;
        let (offset, length) = (request.lba.0 * SECTOR_BYTES, request.bytes());
        let file = types::Fd(self.file.as_raw_fd());
        match request.operation {
            Operation::Read => {
                let room = slot.buffer.room(length as usize);
                self.bytes.0 += length;
                opcode::Read::new(file, room.as_mut_ptr(), length as u32).offset(offset).build()
            }
            Operation::Write | Operation::WriteZeroes => {
                let room = slot.buffer.room(length as usize);
                self.filler.fill(room, &request, data);
                self.bytes.1 += length;
                self.world.touch(self.number, offset, length);
                let durable = if request.fua { libc::RWF_DSYNC } else { 0 };
                opcode::Write::new(file, room.as_ptr(), length as u32)
                    .offset(offset)
                    .rw_flags(durable)
                    .build()
            }
            Operation::Trim => {
                self.world.touch(self.number, offset, length);
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                opcode::Fallocate::new(file, length).offset(offset).mode(mode).build()
            }
            Operation::Flush | Operation::Demote => {
                opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build()
            }
        }
    }

    /// Hands it to the kernel.
    fn issue(&mut self, entry: &squeue::Entry, index: u16) -> Submit {
        // SAFETY: the entry points to the buffer of a slot, which lies on the heap and is
        // neither moved nor used until the slot is free again, which it becomes when the
        // entry has ended. The ring ends before the slots.
        let pushed = unsafe { self.ring.submission().push(entry) };
        let submitted = pushed.is_ok().then(|| self.ring.submit());
        match submitted {
            Some(Ok(_)) => Submit::Accepted,
            Some(Err(error))
                if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY | libc::EINTR)) =>
            {
                // It is in the queue, and goes with the next.
                Submit::Accepted
            }
            _ => {
                let path = &self.path;
                self.world.fail(|| Fault::Failed(format!("{path}: the kernel takes no more requests")));
                self.free.push(index);
                Submit::Refused(Status::Gone)
            }
        }
    }

    /// How the request in a slot ended, of which the kernel says `result`.
    fn status(&mut self, index: u16, result: i32) -> Status {
        let request = &self.slots[usize::from(index)].request;
        let is_transfer = !matches!(request.operation, Operation::Flush | Operation::Trim);
        let status = match -result {
            _ if result >= 0 && is_transfer && result as u64 != request.bytes() => Status::MediaError,
            _ if result >= 0 => Status::Ok,
            number => requests::failed(request.operation, number),
        };
        if status != Status::Ok {
            self.world.fail(|| {
                let why = if result >= 0 {
                    format!("{result} bytes were done")
                } else {
                    reason(&std::io::Error::from_raw_os_error(-result))
                };
                let offset = request.lba.0 * SECTOR_BYTES;
                Fault::Failed(requests::describe(&self.path, request, offset, &why))
            });
        }
        status
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // What is on its way still writes to the buffers.
        while self.free.len() < self.slots.len() {
            if self.ring.submit_and_wait(1).is_err() {
                // The kernel keeps what it may still write to.
                std::mem::forget(std::mem::take(&mut self.slots));
                return;
            }
            while let Some(end) = self.ring.completion().next() {
                self.free.push(end.user_data() as u16);
            }
        }
    }
}
