//! What has come of requests.

use std::collections::BTreeSet;

use flashkeel_engine::{Arena, Completion, Ledger, Operation, Request, Status, Time};

use crate::config::Medium;
use crate::device::Inside;
use crate::memory::Memory;

/// What the device has done, and what it holds.
#[derive(Clone)]
pub(crate) struct Served {
    medium: Medium,
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Ended, and not handed over yet.
    pub completed: Vec<Completion>,
    /// Sectors that cannot be read before they are written again.
    pub failed: BTreeSet<u64>,
    /// What the device holds, where its data is real.
    pub memory: Option<Memory>,
}

impl Served {
    pub fn new(medium: Medium) -> Served {
        Served {
            medium,
            bytes_read: 0,
            bytes_written: 0,
            completed: Vec::new(),
            failed: BTreeSet::new(),
            memory: None,
        }
    }

    /// A request's data have moved.
    #[inline(always)]
    pub fn complete(&mut self, now: Time, inside: &Inside, data: &mut Arena) {
        let Inside { request, mark, waited, worked, .. } = inside;
        match request.operation {
            Operation::Read => self.bytes_read += request.bytes(),
            _ => self.bytes_written += request.bytes(),
        }
        let served = self.memory.as_mut().map_or(Status::Ok, |memory| memory.serve(request, data));
        let status = if self.failed.is_empty() { served } else { served.max(self.meet_failed(request)) };
        // With room for it, it is made where it will stand.
        self.completed.reserve(1);
        self.completed.push(Completion { id: request.id, time: now, status, ledger: Ledger::ZERO });
        if let Some(Completion { ledger, .. }) = self.completed.last_mut() {
            ledger.charge(self.medium.wait, *waited);
            ledger.charge(self.medium.work, *worked + now.since(*mark));
        }
    }

    /// A request takes no time.
    pub fn at_once(&mut self, now: Time, request: &Request, data: &mut Arena) {
        let status = self.memory.as_mut().map_or(Status::Ok, |memory| memory.serve(request, data));
        if !self.failed.is_empty() && request.operation != Operation::Demote {
            self.meet_failed(request);
        }
        self.completed.push(Completion { id: request.id, time: now, status, ledger: Ledger::ZERO });
    }

    /// How a request ends, as far as failed sectors go; those that it changes are
    /// good again.
    #[cold]
    fn meet_failed(&mut self, request: &Request) -> Status {
        let sectors = request.lba.0..request.lba.0 + u64::from(request.sectors);
        if request.operation == Operation::Read {
            let is_hit = self.failed.range(sectors).next().is_some();
            return if is_hit { Status::MediaError } else { Status::Ok };
        }
        self.failed.retain(|sector| !sectors.contains(sector));
        Status::Ok
    }
}
