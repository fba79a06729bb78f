//! The journal, and what a power cut leaves.

use flashkeel_engine::{
    Arena, Completion, Durable, Lba, Operation, Outbox, Payload, Request, Span, Status, Time,
};

use super::latency::Medium;
use super::restoring::Restoring;
use super::{LOWER, Piece, Tier, Trouble, UPPER, background};
use crate::tier::journal::{Journal, Unit, Waiter, decode};

/// Sectors of the journal that are read at once.
const READ_SECTORS: u64 = 256;

/// Finding out what the upper holds: after a power cut from its journal, after a restart from
/// what was kept of it.
#[derive(Clone)]
pub(super) struct Recovery {
    /// When it begins; none once it has.
    begins: Option<Time>,
    source: Source,
    /// Requests that wait, and when they came.
    held: Vec<(Time, Request)>,
}

/// From where it is found out.
#[derive(Clone)]
enum Source {
    Journal {
        /// Reads on their way.
        left: usize,
        /// What was found.
        units: Vec<Unit>,
        /// A part of the journal could not be read.
        is_lost: bool,
    },
    Kept(Restoring),
}

impl Recovery {
    /// From what was kept.
    pub fn of(now: Time, restoring: Restoring) -> Recovery {
        Recovery { begins: Some(now), source: Source::Kept(restoring), held: Vec::new() }
    }

    /// What is being brought back, if that is what happens.
    pub fn restoring(&mut self) -> Option<&mut Restoring> {
        match &mut self.source {
            Source::Kept(restoring) => Some(restoring),
            Source::Journal { .. } => None,
        }
    }

    /// Requests that have waited, and when they came.
    pub fn into_held(self) -> Vec<(Time, Request)> {
        self.held
    }

    pub fn hold(&mut self, now: Time, request: &Request) {
        self.held.push((now, *request));
    }

    pub fn begins(&self) -> Option<Time> {
        self.begins
    }
}

impl Tier {
    /// Lets the journal name the frames that were given up.
    pub(super) fn release(&mut self) {
        if let Some(journal) = &mut self.journal {
            self.table.releases().drain(..).for_each(|frame| journal.release(frame));
        }
    }

    /// Begins to write what the journal, which is due, has to say.
    pub(super) fn write_journal(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        let Some(journal) = &mut self.journal else { return };
        if self.trouble != Trouble::None && !journal.is_awaited() {
            return;
        }
        let payload = if self.has_bytes { data.take(1) } else { Payload::NONE };
        let sector = journal.begin(&self.table, data.write(payload, 1));
        let id = self.pieces.take_off(Piece::Journal { payload });
        let mut write = Request { id, ..background(Operation::Write, Lba(sector), 1, payload) };
        write.fua = self.upper_durable == Durable::Flushed;
        self.accounts.journal_bytes += write.bytes();
        self.accounts.write(now, Medium::Upper, write.bytes());
        outbox.requests.push((UPPER, write));
    }

    /// A unit of the journal has been written, or has not.
    pub(super) fn journaled(&mut self, unit: &Completion, data: &Arena, outbox: &mut Outbox) {
        let is_ok = unit.status == Status::Ok;
        let journal = self.journal.as_mut().expect("it was written");
        if is_ok {
            journal.end(&mut self.table);
        } else {
            journal.fail(unit.status);
        }
        let is_quiet = self.is_quiet();
        while let Some(waiter) = self.journal.as_mut().and_then(Journal::served) {
            let (part, child, mut completion) = match waiter {
                Waiter::Written { frame, pages, sequence, part, mut completion } => {
                    self.end_written(frame, pages, sequence, is_ok, data);
                    completion.ledger.add(&unit.ledger);
                    (part, UPPER, completion)
                }
                // The unit may have been on its way before it began to wait.
                Waiter::Ended { part, completion } => (part, LOWER, completion),
            };
            completion.status = completion.status.max(unit.status);
            completion.time = unit.time;
            let covered = completion.ledger.total();
            if self.end_part(part, covered, child, is_quiet, &mut completion) {
                outbox.completions.push(completion);
            }
        }
        self.release();
    }

    /// Power is cut: what is on its way is forgotten, and what the upper holds has to be
    /// found again.
    pub(super) fn lose_power(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        for (_, piece) in self.pieces.take_all() {
            if let Piece::Moved { payload, .. }
            | Piece::WriteBack { payload, .. }
            | Piece::Fill { payload, .. }
            | Piece::Demoted { payload }
            | Piece::Journal { payload }
            | Piece::Restored { payload, .. }
            | Piece::Recovered { payload, .. } = piece
            {
                data.give_back(payload);
            }
        }
        self.groups.take_all();
        self.books.iter_mut().for_each(|books| books.cut_power());
        let held = self.recovery.take().map_or(Vec::new(), Recovery::into_held);
        for (submitted, request) in self.held.drain(..).chain(held) {
            self.parts.begin(submitted, submitted, &request);
        }
        outbox.completions.append(&mut self.parts.cut_power(now));
        self.placement.cut_power(now);
        (self.reads, self.draining, self.evicting) = (0, 0, 0);
        self.trouble = Trouble::None;
        // Without a journal, which frame holds what is taken to be kept on the device itself.
        let keeps_modified = self.upper_durable != Durable::Never && self.journal.is_none();
        self.table.cut_power(keeps_modified);
        if let Some(journal) = &mut self.journal {
            journal.cut_power();
            self.recovery = Some(Recovery {
                // Nothing can be read at the instant at which the power is off.
                begins: Some(now + Span(1)),
                source: Source::Journal { left: 0, units: Vec::new(), is_lost: false },
                held: Vec::new(),
            });
        }
        // Times for it have passed.
        self.ask_writeback(now, false);
    }

    /// Begins to read the journal, or to bring back what was kept.
    pub(super) fn begin_recovery(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        let Some(recovery) = self.recovery.as_mut().filter(|recovery| recovery.begins.is_some()) else {
            return;
        };
        recovery.begins = None;
        let Source::Journal { left, .. } = &mut recovery.source else {
            return self.restore(now, data, outbox);
        };
        let (first, sectors) = self.journal.as_ref().expect("it is read").sectors();
        for from in (0..sectors).step_by(READ_SECTORS as usize) {
            let sectors = READ_SECTORS.min(sectors - from) as u32;
            let payload = if self.has_bytes { data.take(sectors) } else { Payload::NONE };
            let id = self.pieces.take_off(Piece::Recovered { payload, sectors });
            let read = background(Operation::Read, Lba(first + from), sectors.into(), payload);
            outbox.requests.push((UPPER, Request { id, ..read }));
            *left += 1;
        }
    }

    /// A part of the journal has been read, or could not be.
    pub(super) fn recovered(
        &mut self,
        now: Time,
        payload: Payload,
        sectors: u32,
        is_ok: bool,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let Some(Recovery { source: Source::Journal { left, units, is_lost }, .. }) = &mut self.recovery
        else {
            unreachable!("it is read only then")
        };
        *is_lost |= !is_ok;
        units.extend(data.read(payload, sectors).into_iter().flat_map(decode));
        data.give_back(payload);
        *left -= 1;
        if *left > 0 {
            return;
        }
        let (units, is_lost) = (std::mem::take(units), *is_lost);
        // Where nothing has bytes there is nothing to be found, and what was durable is known.
        if self.has_bytes && !is_lost {
            let journal = self.journal.as_mut().expect("it was read");
            let found = journal.resume(units);
            self.table.rebuild(&found, true);
        }
        for (submitted, request) in self.recovery.take().map_or(Vec::new(), Recovery::into_held) {
            self.start(now, submitted, &request, data, outbox);
        }
    }
}
