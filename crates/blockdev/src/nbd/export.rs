//! An export as a leaf.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flashkeel_engine::{
    Arena, Completion, Durable, LOGICAL_PAGE_SECTORS, Leaf, Ledger, Limits, Operation, Request, SECTOR_BYTES,
    Span, Status, Submit, Time, Wake, reason,
};
use flashkeel_nbd::{self as wire, Put, REQUEST_BYTES, Reader, SIMPLE_REPLY_BYTES, command, transmission};

use super::line::{self, Line, Terms};
use super::uri::Uri;
use crate::opening::Access;
use crate::requests::{self, Filler, Progress};
use crate::world::{Fault, World};

/// What is read of a line at a time.
const INPUT_BYTES: usize = 256 << 10;

/// A server that says nothing for so long while it is asked something is taken for gone.
const PATIENCE: Span = Span(120 * 1_000_000_000);

/// What is not used at the end of an export is less than this many bytes, as of a file.
const PAGE_BYTES: u64 = 4096;

/// An export of a server. A copy is the same export: there is only one.
#[derive(Clone)]
pub struct Export {
    limits: Limits,
    inside: Arc<Mutex<Inside>>,
}

struct Inside {
    line: Box<dyn Line>,
    uri: String,
    terms: Terms,
    access: Access,
    world: World,
    /// Its number there.
    number: usize,
    slots: Vec<Option<Progress>>,
    free: Vec<u16>,
    /// Read and written.
    bytes: (u64, u64),
    /// What has ended and has not been told.
    done: Vec<Completion>,
    filler: Filler,
    output: Vec<u8>,
    /// Bytes of it that have gone.
    sent: usize,
    input: Box<[u8]>,
    /// Bytes of it that have come and are not taken: less than the head of a reply, between
    /// two reads.
    filled: usize,
    /// The reply whose data is coming, by its slot, and the bytes of it that have come.
    body: Option<(u16, usize)>,
    /// When something last came, or began to be waited for.
    heard: Time,
    is_lost: bool,
}

impl Export {
    /// The size in bytes of the export at `uri`, which is not used by that.
    ///
    /// # Errors
    /// A sentence without the URI, if there is none, or nothing of whole pages.
    pub fn find(uri: &str) -> Result<u64, String> {
        limits(&line::ask(&Uri::read(uri)?)?).map(|limits| limits.sectors * SECTOR_BYTES)
    }

    /// Connects to the export at `uri`, which is given `queue_depth` requests at a time.
    ///
    /// # Errors
    /// A sentence without the URI, if the server is not there, has no such export or breaks
    /// the protocol.
    pub fn open(world: &World, uri: &str, access: Access, queue_depth: u16) -> Result<Export, String> {
        let (line, terms) = line::begin(&Uri::read(uri)?)?;
        let limits = limits(&terms)?;
        world.hear(line.as_fd()).map_err(|error| reason(&error))?;
        let inside = Inside {
            line,
            terms,
            access,
            number: world.enter(uri),
            uri: uri.to_owned(),
            world: world.clone(),
            slots: vec![None; usize::from(queue_depth)],
            free: (0..queue_depth).rev().collect(),
            bytes: (0, 0),
            done: Vec::new(),
            filler: Filler::new(),
            output: Vec::new(),
            sent: 0,
            input: vec![0; INPUT_BYTES].into(),
            filled: 0,
            body: None,
            heard: Time::ZERO,
            is_lost: false,
        };
        Ok(Export { limits, inside: Arc::new(Mutex::new(inside)) })
    }

    /// What it is called.
    pub fn uri(&self) -> String {
        self.inside().uri.clone()
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

fn limits(terms: &Terms) -> Result<Limits, String> {
    let block = u64::from(terms.block_bytes).max(SECTOR_BYTES);
    let whole = block.max(PAGE_BYTES);
    let bytes = terms.bytes / whole * whole;
    if bytes == 0 {
        return Err(format!("{} bytes, less than a block of {whole}", terms.bytes));
    }
    let preferred = u64::from(terms.preferred_bytes).clamp(whole, 1 << 20) / SECTOR_BYTES;
    Ok(Limits {
        sectors: bytes / SECTOR_BYTES,
        block_sectors: (block / SECTOR_BYTES) as u32,
        preferred_sectors: LOGICAL_PAGE_SECTORS.max(preferred) as u32,
        durable: Durable::Flushed,
    })
}

impl Leaf for Export {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena) -> Submit {
        let inside = &mut *self.inside();
        let (access, world, name) = (inside.access, &inside.world, (inside.number, &*inside.uri));
        if let Some(status) = requests::refusal(&self.limits, access, world, name, request) {
            return Submit::Refused(status);
        }
        if inside.is_lost {
            return Submit::Refused(Status::Gone);
        }
        if let Some(why) = inside.cannot(request) {
            inside.world.fail(inside.number, || Fault::Refused(format!("{}: {why}", inside.uri)));
            return Submit::Refused(Status::Invalid);
        }
        if inside.is_nothing(request.operation) {
            let end = Completion { id: request.id, time: now, status: Status::Ok, ledger: Ledger::ZERO };
            inside.done.push(end);
            return Submit::Accepted;
        }
        let Some(index) = inside.free.pop() else { return Submit::Busy };
        if inside.free.len() + 1 == inside.slots.len() {
            inside.heard = now;
        }
        inside.slots[usize::from(index)] = Some(Progress::new(now, request));
        inside.ask(index, data);
        inside.send(now);
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        let inside = self.inside();
        let is_waiting = inside.free.len() < inside.slots.len();
        let lost = is_waiting.then(|| inside.heard + PATIENCE);
        Wake::new(inside.done.first().map(|end| end.time).or(lost), true)
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        let inside = &mut *self.inside();
        if !inside.is_lost {
            inside.send(now);
            inside.receive(now, data);
            if inside.free.len() < inside.slots.len() && now >= inside.heard + PATIENCE {
                inside.lose(now, &format!("the server has said nothing for {PATIENCE}"));
            }
        }
        completions.append(&mut inside.done);
    }

    /// Nobody pulls a real plug here: what is on its way ends as it would have.
    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {}
}

impl Inside {
    fn can(&self, flag: u16) -> bool {
        self.terms.flags & flag != 0
    }

    /// Why the server would not take a request, if so.
    fn cannot(&self, request: &Request) -> Option<String> {
        if request.operation.is_change() && self.can(transmission::READ_ONLY) {
            return Some("the server lets nobody write to it".into());
        }
        // Several transfers one after the other would not be what is measured.
        let is_one = matches!(request.operation, Operation::Read | Operation::Write);
        let (bytes, most) = (request.bytes(), self.most());
        (is_one && bytes > most)
            .then(|| format!("a request of {bytes} bytes, of at most {most} that its server takes"))
    }

    /// The longest piece, of whole blocks.
    fn most(&self) -> u64 {
        let block = u64::from(self.terms.block_bytes).max(SECTOR_BYTES);
        u64::from(self.terms.most_bytes) / block * block
    }

    /// Whether there is nothing to ask the server for an operation.
    fn is_nothing(&self, operation: Operation) -> bool {
        match operation {
            Operation::Demote => true,
            // A server without caches has nothing to flush.
            Operation::Flush => !self.can(transmission::SEND_FLUSH),
            // A trim is advice.
            Operation::Trim => !self.can(transmission::SEND_TRIM),
            Operation::Read | Operation::Write | Operation::WriteZeroes => false,
        }
    }

    /// Whether a forced change lasts without a flush behind it: by its flag, or as there are no
    /// caches.
    fn lasts(&self) -> bool {
        self.can(transmission::SEND_FUA) || !self.can(transmission::SEND_FLUSH)
    }

    /// Puts what is to be done next of a request into what goes out.
    fn ask(&mut self, index: u16, data: &Arena) {
        let Some(progress) = self.slots[usize::from(index)] else { return };
        let request = &progress.request;
        let (offset, length) = progress.piece(self.most());
        let flags = if request.fua && self.can(transmission::SEND_FUA) { command::FUA } else { 0 };
        let zeroes = self.can(transmission::SEND_WRITE_ZEROES);
        let (kind, flags, carried) = match progress.operation() {
            Operation::Read => (command::READ, 0, 0),
            Operation::WriteZeroes if zeroes => (command::WRITE_ZEROES, flags, 0),
            Operation::Write | Operation::WriteZeroes => (command::WRITE, flags, length as usize),
            Operation::Trim => (command::TRIM, flags, 0),
            Operation::Flush | Operation::Demote => (command::FLUSH, 0, 0),
        };
        match progress.operation() {
            Operation::Read => self.bytes.0 += length,
            Operation::Flush | Operation::Demote => {}
            operation => {
                self.world.touch(self.number, offset, length);
                self.bytes.1 += if operation == Operation::Trim { 0 } else { length };
            }
        }
        let place = if kind == command::FLUSH { (0, 0) } else { (offset, length as u32) };
        self.put(flags, kind, index, place);
        let start = self.output.len();
        self.output.resize(start + carried, 0);
        if carried > 0 {
            self.filler.fill(&mut self.output[start..], request, progress.done, data);
        }
    }

    fn put(&mut self, flags: u16, kind: u16, index: u16, (offset, length): (u64, u32)) {
        self.output.reserve(REQUEST_BYTES);
        self.output.u32(wire::REQUEST);
        self.output.u16(flags);
        self.output.u16(kind);
        self.output.u64(u64::from(index));
        self.output.u64(offset);
        self.output.u32(length);
    }

    /// Sends what the line has room for.
    fn send(&mut self, now: Time) {
        if self.output.is_empty() || self.is_lost {
            return;
        }
        while self.sent < self.output.len() {
            match self.line.write(&self.output[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let _ = self.world.hear_room(self.line.as_fd(), true);
                    return;
                }
                Err(error) => return self.lose(now, &format!("the line is cut: {}", reason(&error))),
            }
        }
        self.output.clear();
        self.sent = 0;
        let _ = self.world.hear_room(self.line.as_fd(), false);
    }

    /// Takes what has come.
    fn receive(&mut self, now: Time, data: &mut Arena) {
        while !self.is_lost {
            match self.line.read(&mut self.input[self.filled..]) {
                Ok(0) => return self.lose(now, "the server has hung up"),
                Ok(count) => (self.filled, self.heard) = (self.filled + count, now),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => return self.lose(now, &format!("the line is cut: {}", reason(&error))),
            }
            match self.take(now, data) {
                Ok(taken) => {
                    self.input.copy_within(taken..self.filled, 0);
                    self.filled -= taken;
                }
                Err(why) => return self.lose(now, &format!("the server breaks the protocol: {why}")),
            }
            self.send(now);
        }
    }

    /// Takes whole replies, and what there is of a read's data; returns how many bytes.
    fn take(&mut self, now: Time, data: &mut Arena) -> Result<usize, String> {
        let mut taken = 0;
        loop {
            if let Some((index, come)) = self.body {
                let Some(slot) = self.slots[usize::from(index)] else { return Ok(taken) };
                let part = (self.filled - taken).min(slot.request.bytes() as usize - come);
                if let Some(bytes) = data.write(slot.request.payload, slot.request.sectors) {
                    bytes[come..come + part].copy_from_slice(&self.input[taken..taken + part]);
                }
                taken += part;
                self.body = Some((index, come + part));
                if ((come + part) as u64) < slot.request.bytes() {
                    return Ok(taken);
                }
                self.body = None;
                self.end(now, index, Status::Ok);
            }
            let Some(&head) = self.input[taken..self.filled].first_chunk::<SIMPLE_REPLY_BYTES>() else {
                return Ok(taken);
            };
            taken += SIMPLE_REPLY_BYTES;
            self.reply(now, &mut Reader(&head), data)?;
        }
    }

    /// Takes the head of a reply.
    fn reply(&mut self, now: Time, head: &mut Reader<'_>, data: &Arena) -> Result<(), String> {
        let magic = head.u32();
        let (error, cookie) = (head.u32().unwrap_or(0), head.u64().unwrap_or(u64::MAX));
        if magic != Some(wire::SIMPLE_REPLY) {
            return Err("no reply where one has to be".into());
        }
        let asked = usize::try_from(cookie).ok().and_then(|index| *self.slots.get(index)?);
        let Some(mut progress) = asked else {
            return Err(format!("a reply to {cookie}, which nobody asked"));
        };
        let (index, operation, most) = (cookie as u16, progress.operation(), self.most());
        let status = match error {
            0 => Status::Ok,
            number => requests::failed(operation, number as i32),
        };
        if status != Status::Ok {
            let why = reason(&io::Error::from_raw_os_error(error as i32));
            self.world.fail(self.number, || {
                Fault::Failed(requests::describe(&self.uri, operation, progress.piece(most), &why))
            });
            self.end(now, index, status);
        } else if operation == Operation::Read {
            self.body = Some((index, 0));
        } else if progress.goes_on(most, self.lasts()) {
            self.slots[usize::from(index)] = Some(progress);
            self.ask(index, data);
        } else {
            self.end(now, index, status);
        }
        Ok(())
    }

    /// The request in a slot has ended.
    fn end(&mut self, now: Time, index: u16, status: Status) {
        if let Some(progress) = self.slots[usize::from(index)].take() {
            self.done.push(progress.end(now, status));
            self.free.push(index);
        }
    }

    /// The server is gone, and what was on its way with it.
    fn lose(&mut self, now: Time, why: &str) {
        let asked = self.slots.len() - self.free.len();
        self.world.fail(self.number, || {
            Fault::Failed(format!("{}: {why}, with {asked} requests on their way", self.uri))
        });
        self.is_lost = true;
        self.world.forget(self.line.as_fd());
        for index in 0..self.slots.len() {
            self.end(now, index as u16, Status::Gone);
        }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if !self.is_lost {
            // As a courtesy: a server takes a closed line for the same.
            self.put(0, command::DISCONNECT, 0, (0, 0));
            let _ = self.line.write(&self.output[self.sent..]);
            self.world.forget(self.line.as_fd());
        }
    }
}
