//! A file or a block device as a leaf.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flashkeel_engine::{
    Arena, Completion, Durable, LOGICAL_PAGE_SECTORS, Leaf, Ledger, Limits, Operation, Request, SECTOR_BYTES,
    Status, Submit, Time, Wake, reason,
};
use io_uring::{IoUring, opcode, squeue, types};

use crate::buffers::Buffer;
use crate::opening::{self, Access, Found};
use crate::requests::{self, Filler, Progress};
use crate::world::{Fault, World};

/// Most bytes that the kernel is asked for at a time: what is longer goes piece by piece,
/// so that no request takes more memory than that.
const PIECE_BYTES: u64 = 4 << 20;

/// How long what is on its way is waited for when a drive is closed.
const PATIENCE: Duration = Duration::from_secs(10);

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

/// A request on its way, and room for the bytes of its piece.
struct Slot {
    progress: Progress,
    buffer: Buffer,
}

impl Slot {
    fn is_transfer(&self) -> bool {
        let operation = self.progress.request.operation;
        matches!(operation, Operation::Read | Operation::Write | Operation::WriteZeroes)
    }

    /// The longest piece.
    fn most(&self) -> u64 {
        if self.is_transfer() { PIECE_BYTES } else { u64::MAX }
    }

    /// The first byte of what is to be done next, and its bytes.
    fn piece(&self) -> (u64, u64) {
        self.progress.piece(self.most())
    }
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
        let eye = file.try_clone().map_err(|error| reason(&error))?;
        let number = world.enter(&path);
        world.look_after(number, &path, eye, found.bytes + found.tail_bytes);
        let nothing = Request::new(Default::default(), Operation::Flush, Default::default(), 0);
        let slot = |_| Slot { progress: Progress::new(Time::ZERO, &nothing), buffer: Buffer::default() };
        let inside = Inside {
            ring,
            file,
            access,
            number,
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
        let (access, world, name) = (inside.access, &inside.world, (inside.number, &*inside.path));
        if let Some(status) = requests::refusal(&self.limits, access, world, name, request) {
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
        inside.slots[usize::from(index)].progress = Progress::new(now, request);
        let entry = inside.entry(index, data).user_data(u64::from(index));
        let answer = inside.issue(&entry);
        if answer != Submit::Accepted {
            inside.free.push(index);
        }
        answer
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
            let mut status = inside.status(index, end.result());
            if status == Status::Ok && inside.is_more_left(index, data) {
                let entry = inside.entry(index, data).user_data(u64::from(index));
                match inside.issue(&entry) {
                    Submit::Refused(refused) => status = refused,
                    _ => continue,
                }
            }
            completions.push(inside.slots[usize::from(index)].progress.end(now, status));
            inside.free.push(index);
        }
    }

    /// Nobody pulls a real plug here: what is on its way ends as it would have.
    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {}
}

impl Inside {
    /// A piece of the request in a slot is done: takes what was read; whether there is more.
    fn is_more_left(&mut self, index: u16, data: &mut Arena) -> bool {
        let slot = &mut self.slots[usize::from(index)];
        let Progress { request, done, .. } = slot.progress;
        if request.operation == Operation::Read
            && let Some(bytes) = data.write(request.payload, request.sectors)
        {
            let length = slot.piece().1 as usize;
            bytes[done as usize..][..length].copy_from_slice(slot.buffer.filled(length));
        }
        // The kernel knows no trim that is durable at once.
        let (most, lasts) = (slot.most(), request.operation != Operation::Trim);
        slot.progress.goes_on(most, lasts)
    }

    /// What the kernel is asked for the request in a slot.
    fn entry(&mut self, index: u16, data: &Arena) -> squeue::Entry {
        let slot = &mut self.slots[usize::from(index)];
        let Progress { request, done, .. } = slot.progress;
        let (offset, length) = slot.piece();
        let file = types::Fd(self.file.as_raw_fd());
        match slot.progress.operation() {
            Operation::Read => {
                let room = slot.buffer.room(length as usize);
                self.bytes.0 += length;
                opcode::Read::new(file, room.as_mut_ptr(), length as u32).offset(offset).build()
            }
            Operation::Write | Operation::WriteZeroes => {
                let room = slot.buffer.room(length as usize);
                self.filler.fill(room, &request, done, data);
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
    fn issue(&mut self, entry: &squeue::Entry) -> Submit {
        // SAFETY: the entry points to the buffer of a slot, which lies on the heap and is
        // neither moved nor used until the slot is free again, which it becomes when the
        // entry has ended. The ring ends before the slots.
        let pushed = unsafe { self.ring.submission().push(entry) };
        let path = &self.path;
        let fail = |why: &str| Fault::Failed(format!("{path}: the kernel takes no more requests{why}"));
        if pushed.is_err() {
            self.world.fail(self.number, || fail(""));
            return Submit::Refused(Status::Gone);
        }
        // Whatever comes of it, it is in the queue, and goes with the next: its slot is not
        // free.
        if let Err(error) = self.ring.submit()
            && !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY | libc::EINTR))
        {
            self.world.fail(self.number, || fail(&format!(": {}", reason(&error))));
        }
        Submit::Accepted
    }

    /// How the request in a slot ended, of which the kernel says `result`.
    fn status(&mut self, index: u16, result: i32) -> Status {
        let slot = &self.slots[usize::from(index)];
        let (operation, place) = (slot.progress.operation(), slot.piece());
        let status = match -result {
            _ if result >= 0 && slot.is_transfer() && result as u64 != place.1 => Status::MediaError,
            _ if result >= 0 => Status::Ok,
            number => requests::failed(operation, number),
        };
        if status != Status::Ok {
            self.world.fail(self.number, || {
                let why = if result >= 0 {
                    format!("{result} bytes were done")
                } else {
                    reason(&std::io::Error::from_raw_os_error(-result))
                };
                Fault::Failed(requests::describe(&self.path, operation, place, &why))
            });
        }
        status
    }

    /// Waits for what is on its way, which still writes to the buffers, unless it takes
    /// longer than `patience`: then the kernel keeps what it may still write to.
    fn close(&mut self, patience: Duration) {
        let deadline = Instant::now() + patience;
        while self.free.len() < self.slots.len() {
            let left = types::Timespec::from(deadline.saturating_duration_since(Instant::now()));
            let wait = types::SubmitArgs::new().timespec(&left);
            let waited = self.ring.submitter().submit_with_args(1, &wait);
            if waited.is_err_and(|error| error.kind() != std::io::ErrorKind::Interrupted) {
                std::mem::forget(std::mem::take(&mut self.slots));
                return;
            }
            while let Some(end) = self.ring.completion().next() {
                self.free.push(end.user_data() as u16);
            }
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.world.leave(self.number);
        self.close(PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Outside;

    use super::*;

    #[test]
    fn a_trim_with_forced_unit_access_is_made_durable() {
        let path = std::env::temp_dir().join(format!("flashkeel-trimmed-{}", std::process::id()));
        std::fs::write(&path, [1; 1 << 20]).expect("it is written");
        let mut world = World::new().expect("a world");
        let mut drive = Drive::open(&world, &path, Access::Destroy, 1).expect("it is a drive");
        std::fs::remove_file(&path).expect("it is removed");
        let mut data = Arena::new();
        for fua in [true, false] {
            let trim = Request::new(Default::default(), Operation::Trim, Default::default(), 8);
            let trim = Request { fua, ..trim };
            assert_eq!(drive.submit(world.now(), &trim, &mut data), Submit::Accepted);
            let mut ended = Vec::new();
            while ended.is_empty() {
                let now = world.wait(None);
                drive.advance(now, &mut data, &mut ended);
            }
            assert_eq!((ended.len(), ended[0].status), (1, Status::Ok));
            assert_eq!(drive.inside().slots[0].progress.flushes, fua);
        }
    }

    #[test]
    fn a_request_that_never_ends_does_not_keep_a_drive_open() {
        let path = std::env::temp_dir().join(format!("flashkeel-stuck-{}", std::process::id()));
        std::fs::write(&path, [0; 8192]).expect("it is written");
        let world = World::new().expect("a world");
        let drive = Drive::open(&world, &path, Access::ReadOnly, 4).expect("it is a drive");
        std::fs::remove_file(&path).expect("it is removed");
        let mut inside = drive.inside();
        // As if the kernel had it, and would never say anything of it.
        inside.free.pop();
        let begun = Instant::now();
        inside.close(Duration::from_millis(20));
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(20) && took < PATIENCE, "{took:?}");
        assert!(inside.slots.is_empty(), "its buffers are left to the kernel");
    }
}
