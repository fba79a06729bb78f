//! A tier as a stage over a lower and an upper device.

mod background;
mod changes;
mod durability;
mod kept;
mod latency;
mod offers;
mod pieces;
mod report;
mod restoring;
mod trouble;

use std::collections::{BTreeSet, VecDeque};

use flashkeel_engine::{
    Answer, Arena, Command, Completion, Durable, FoundPages, Keeping, LOGICAL_PAGE_SECTORS, Lba, Ledger,
    Limits, Operation, Outbox, Payload, Refusal, Request, RequestId, Span, Stage, Status, Submit, Time, Wake,
};

use latency::Medium;
use report::Accounts;
pub use report::TierReport;

use self::changes::{Group, Written};
use self::durability::Recovery;
use self::pieces::{Piece, Reason};
use self::restoring::Restoring;
use self::trouble::Trouble;
use super::admission::Admission;
use super::budget::Ratings;
use super::eviction::Eviction;
use super::journal::{Journal, Room};
use super::overflow::OverflowConfig;
use super::placement::Placement;
use super::table::{List, Table};
use super::writeback::{Happened, Writeback};
use crate::books::Books;
use crate::flight::Flights;
use crate::parts::Parts;

/// The children, in their order.
pub(crate) const LOWER: usize = 0;
pub(crate) const UPPER: usize = 1;

/// What a tier is made of.
pub struct Plan {
    /// What the lower device states of itself.
    pub lower: Limits,
    /// And the upper.
    pub upper: Limits,
    /// Which writes go to the upper.
    pub placement: Box<dyn Placement>,
    /// Whether any does.
    pub takes_any: bool,
    /// Which clean copies the upper takes.
    pub admission: Box<dyn Admission>,
    /// Whether what reads find below is offered to it.
    pub fills: bool,
    /// What leaves it.
    pub eviction: Box<dyn Eviction>,
    /// Whether clean copies that leave are offered to the lower.
    pub demotes: bool,
    /// When what is modified is written to the lower.
    pub writeback: Box<dyn Writeback>,
    /// What may be written to each.
    pub ratings: Ratings,
    /// Where writes go that are above that.
    pub overflow: OverflowConfig,
    /// Whether the upper has a journal.
    pub journal: bool,
    /// Where what only the upper has is kept, and what has been found there.
    pub kept: Option<Keeping>,
}

/// Sends writes where the policies say, reads where the newest acknowledged copy is,
/// and moves data between the upper and the lower in the background.
///
/// A write that finds no room goes to the lower. Nothing is lost: a modified copy is
/// given up only when the lower has acknowledged it or a newer one. Where a device
/// keeps only what was flushed, it is made to force unit access for that.
///
/// What a device refuses or fails to do leaves the other copy what it was.
#[derive(Clone)]
pub struct Tier {
    placement: Box<dyn Placement>,
    takes_any: bool,
    admission: Box<dyn Admission>,
    fills: bool,
    eviction: Box<dyn Eviction>,
    /// Whether clean copies stay, as eviction says.
    keeps: bool,
    /// Frames that are kept free, as eviction says.
    ahead: u64,
    demotes: bool,
    writeback: Box<dyn Writeback>,
    /// Whether it ever wants anything.
    writes_back: bool,
    /// When writing back wants to be asked again.
    asks_again: Option<Time>,
    overflow: OverflowConfig,
    table: Table,
    upper_durable: Durable,
    lower_durable: Durable,
    journal: Option<Journal>,
    books: Option<Books>,
    /// Pages that were found damaged where they are kept: they cannot be read until they are
    /// changed, as the lower has none that is as new.
    damaged: BTreeSet<u64>,
    recovery: Option<Recovery>,
    parts: Parts,
    pieces: Flights<Piece>,
    /// Writes to the upper that the journal names together.
    groups: Flights<Group>,
    /// Room for their pieces, to be used again.
    spare: Vec<Vec<Written>>,
    /// Changes that wait for room, and when they came.
    held: VecDeque<(Time, Request)>,
    /// Counts changes in the order of submission.
    sequence: u64,
    /// Reads that are on their way, in pieces.
    reads: u64,
    /// Pages being written back.
    draining: u64,
    /// Frames being evicted.
    evicting: u64,
    trouble: Trouble,
    /// Whether requests carry bytes, and so what is moved does too.
    has_bytes: bool,
    accounts: Accounts,
}

impl Tier {
    /// Over two devices.
    pub fn new(plan: Plan) -> Tier {
        let mut kept = plan.kept;
        let has_bytes = kept.is_some();
        let found = kept.as_mut().map(|kept| (kept.now, std::mem::take(&mut kept.found)));
        let (now, FoundPages { whole, damaged }) = found.unwrap_or_default();
        let mut room = Room::within(plan.upper.sectors);
        let frames = if plan.journal { room.frames } else { plan.upper.sectors / LOGICAL_PAGE_SECTORS };
        // As many pages are kept at most as there are frames.
        let frames = frames.saturating_sub(damaged.len() as u64).max(1);
        room.frames = frames.min(room.frames);
        let table = Table::new(plan.lower.sectors / LOGICAL_PAGE_SECTORS, frames, plan.journal);
        let restoring = (!whole.is_empty()).then(|| Recovery::of(now, Restoring::new(whole, table.len())));
        Tier {
            placement: plan.placement,
            takes_any: plan.takes_any,
            admission: plan.admission,
            fills: plan.fills,
            keeps: plan.eviction.keeps(),
            ahead: plan.eviction.ahead(table.len()),
            eviction: plan.eviction,
            demotes: plan.demotes,
            writes_back: plan.writeback.wants_any(),
            asks_again: plan.writeback.next_event(),
            writeback: plan.writeback,
            overflow: plan.overflow,
            table,
            upper_durable: plan.upper.durable,
            lower_durable: plan.lower.durable,
            journal: plan.journal.then(|| Journal::new(room)),
            books: kept.map(|kept| Books::new(kept.keeper)),
            damaged: damaged.into_iter().map(u64::from).collect(),
            recovery: restoring,
            parts: Parts::default(),
            pieces: Flights::default(),
            groups: Flights::default(),
            spare: Vec::new(),
            held: VecDeque::new(),
            sequence: 0,
            reads: 0,
            draining: 0,
            evicting: 0,
            trouble: Trouble::None,
            has_bytes,
            accounts: Accounts::new(&plan.ratings, now),
        }
    }

    /// Frames of the upper in use.
    pub fn upper_pages(&self) -> u64 {
        self.table.used()
    }

    /// What has been done since the start or the last reset.
    pub fn report(&self) -> TierReport {
        let is_volatile = self.upper_durable == Durable::Never;
        let volatile = is_volatile.then(|| self.table.modified());
        // Without eviction nothing is given up, whatever the size.
        let is_full = !self.keeps || self.table.free() <= self.ahead;
        self.accounts.report(volatile, is_full, &self.table)
    }

    /// Starts counting anew, as at the end of a warm-up.
    pub fn reset_counters(&mut self) {
        self.accounts.reset();
    }

    #[inline(always)]
    fn give_lower(&mut self, now: Time, piece: Piece, request: &Request, outbox: &mut Outbox) {
        if request.operation == Operation::Write {
            self.accounts.write(now, Medium::Lower, request.bytes());
        }
        let id = self.pieces.take_off(piece);
        // Made in its place: to copy what has just been written takes long.
        outbox.requests.push((LOWER, Request { id, ..*request }));
        outbox.requests.last().inspect(|(_, given)| self.placement.submitted(now, given));
    }

    /// Gives the upper, from `frame` on, `pages` pages of a request from its sector `from` on.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "what a piece is")]
    fn give_upper(
        &mut self,
        now: Time,
        piece: Piece,
        request: &Request,
        from: u32,
        frame: u32,
        pages: u32,
        outbox: &mut Outbox,
    ) {
        let id = self.pieces.take_off(piece);
        let lba = Lba(u64::from(frame) * LOGICAL_PAGE_SECTORS);
        let mut part = request.part(id, from, lba, pages * LOGICAL_PAGE_SECTORS as u32);
        if request.operation == Operation::Write {
            self.accounts.write(now, Medium::Upper, part.bytes());
            part.fua |= self.upper_durable == Durable::Flushed;
        }
        outbox.requests.push((UPPER, part));
    }

    /// Takes a request in that came at `submitted`.
    #[inline(always)]
    fn start(
        &mut self,
        now: Time,
        submitted: Time,
        request: &Request,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        if self.is_plain(request) {
            // The lower makes its writes durable, or refuses the request.
            let part = self.parts.whole(submitted, submitted, request);
            return self.give_lower(now, Piece::Plain { part }, request, outbox);
        }
        match request.operation {
            Operation::Read => self.read(now, submitted, request, outbox),
            Operation::Write => self.write(now, submitted, request, data, outbox),
            Operation::Trim | Operation::WriteZeroes => self.change(now, submitted, request, false, outbox),
            Operation::Demote => self.demoted(now, submitted, request, data, outbox),
            Operation::Flush => unreachable!("it is passed on"),
        }
    }

    /// Ends a part as a request of `child` has ended, whose ledger sums to `covered`; if the whole
    /// has ended with it, makes it the end of that, and says so. `is_quiet` is whether nothing
    /// was moved when that ended.
    #[inline(always)]
    fn end_part(
        &mut self,
        part: RequestId,
        covered: Span,
        child: usize,
        is_quiet: bool,
        completion: &mut Completion,
    ) -> bool {
        completion.id = part;
        let Some(landed) = self.parts.land(completion, covered, child == LOWER) else { return false };
        if completion.status == Status::Ok {
            self.accounts.served(landed, is_quiet);
        }
        true
    }
}

impl Stage for Tier {
    fn limits(&self, below: &[Limits]) -> Limits {
        let lower = below[LOWER];
        let page = LOGICAL_PAGE_SECTORS as u32;
        // What the upper only has a copy of is not lost with it.
        let upper = if self.takes_any { below[UPPER].durable } else { Durable::Acknowledged };
        Limits {
            sectors: self.table.lower_pages() * LOGICAL_PAGE_SECTORS,
            block_sectors: lower.block_sectors.max(page),
            preferred_sectors: lower.preferred_sectors.max(page),
            durable: lower.durable.max(upper),
        }
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena, outbox: &mut Outbox) -> Submit {
        self.has_bytes |= request.payload.is_some();
        self.accounts.pass(now, self.table.modified());
        if matches!(request.operation, Operation::Read | Operation::Write) {
            let written = if request.operation == Operation::Write { request.bytes() } else { 0 };
            self.accounts.come(now, written);
            self.writeback.hear(now, Happened::Arrived);
        }
        match &mut self.recovery {
            Some(recovery) => {
                recovery.hold(now, request);
                // Nobody may have asked when it begins.
                if self.next_event().is_due(now) {
                    self.begin_recovery(now, data, outbox);
                }
            }
            None => {
                self.try_again(now, request, data, outbox);
                self.start(now, now, request, data, outbox);
                self.go_on(now, false, data, outbox);
            }
        }
        Submit::Accepted
    }

    fn goes_straight(&self) -> Option<usize> {
        // To look each up costs more than what is fetched in vain of those that are above.
        Some(LOWER)
    }

    fn finds(&self, from: Lba, sectors: u32) -> Option<(usize, Lba, u32)> {
        (self.recovery.is_none() && !self.is_damaged(from, sectors)).then(|| self.newest(from, sectors))
    }

    #[inline(always)]
    fn next_event(&self) -> Wake {
        if let Some(recovery) = &self.recovery {
            return recovery.begins().into();
        }
        let is_any = self.trouble == Trouble::None && self.table.count(List::Modified) > 0;
        if is_any { self.asks_again.into() } else { Wake::NEVER }
    }

    fn advance(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        self.accounts.pass(now, self.table.modified());
        if self.recovery.is_some() {
            if self.next_event().is_due(now) {
                self.begin_recovery(now, data, outbox);
            }
            return;
        }
        if self.next_event().is_due(now) {
            self.go_on(now, true, data, outbox);
        }
    }

    fn command(&mut self, _now: Time, command: &Command, _outbox: &mut Outbox) -> Result<Answer, Refusal> {
        match command {
            Command::State => Ok(self.state()),
            _ => Err(Refusal::Unknown),
        }
    }

    fn cut_power(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        self.accounts.pass(now, self.table.modified());
        self.lose_power(now, data, outbox);
    }

    #[inline(always)]
    fn completed(
        &mut self,
        now: Time,
        child: usize,
        completion: &mut Completion,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) -> bool {
        self.accounts.pass(now, self.table.modified());
        if child == LOWER {
            self.placement.completed(now, completion);
        }
        let is_ok = completion.status == Status::Ok;
        if !is_ok {
            self.trouble = self.trouble.max(Trouble::of(child, completion.status));
        }
        let is_quiet = self.is_quiet();
        // The part of a request that it ends, if it does, and what the ledger sums to.
        let part = match self.pieces.land(completion.id) {
            Piece::Plain { part } => Some((part, completion.ledger.total())),
            Piece::DamagedRead { part } => {
                self.reads -= 1;
                completion.status = completion.status.max(Status::MediaError);
                Some((part, completion.ledger.total()))
            }
            Piece::LowerRead { part, page, pages, sequence, payload } => {
                self.reads -= 1;
                let latency = completion.ledger.total();
                self.writeback.hear(now, Happened::Served(latency));
                self.found(now, page..page + pages, sequence, payload, is_ok, data, outbox);
                Some((part, latency))
            }
            Piece::LowerWrite { part, page, pages, sequence, written } => {
                if let Some(submitted) = written {
                    self.writeback.hear(now, Happened::Served(now.since(submitted)));
                }
                self.taken(is_ok);
                let part = self.lower_written(page..page + pages, sequence, part, completion, data);
                part.map(|part| (part, completion.ledger.total()))
            }
            Piece::UpperRead { part, frame, pages } => {
                self.reads -= 1;
                (frame..frame + pages).for_each(|frame| self.table.unpin(frame));
                Some((part, completion.ledger.total()))
            }
            Piece::UpperWrite { part, frame, pages, sequence, group } => {
                let latency = completion.ledger.total();
                let part = self.upper_written(frame, pages, sequence, part, group, completion, data, outbox);
                part.map(|part| (part, latency))
            }
            Piece::Fill { part, frame, pages, sequence, uses, payload } => {
                data.give_back(payload);
                (frame..frame + pages).for_each(|frame| self.table.end_fill(frame, sequence, uses, is_ok));
                // It was an offer, which may come to nothing.
                completion.status = Status::Ok;
                part.map(|part| (part, completion.ledger.total()))
            }
            Piece::Moved { frame, sequence, payload, reason } => {
                self.moved(now, frame, sequence, payload, reason, is_ok, data, outbox);
                None
            }
            Piece::WriteBack { frame, sequence, payload, reason, submitted } => {
                data.give_back(payload);
                self.writeback.hear(now, Happened::Served(now.since(submitted)));
                self.taken(is_ok);
                self.written_back(frame, sequence, reason, is_ok);
                None
            }
            Piece::Demoted { payload } => {
                data.give_back(payload);
                None
            }
            Piece::Journal { payload } => {
                data.give_back(payload);
                self.journaled(completion, data, outbox);
                None
            }
            Piece::Recovered { payload, sectors } => {
                self.recovered(now, payload, sectors, is_ok, data, outbox);
                None
            }
            Piece::Restored { page, frame, payload } => {
                self.restored(now, page, frame, payload, is_ok, data, outbox);
                None
            }
        };
        let is_end = match part {
            Some((part, covered)) => self.end_part(part, covered, child, is_quiet, completion),
            None => false,
        };
        self.go_on(now, false, data, outbox);
        is_end
    }
}

/// A request of the background, without its number.
fn background(operation: Operation, lba: Lba, sectors: u64, payload: Payload) -> Request {
    Request { payload, ..Request::new(RequestId(0), operation, lba, sectors as u32) }
}

/// A completion here and now, of what took no time.
fn at_once(id: RequestId, now: Time) -> Completion {
    Completion { id, time: now, status: Status::Ok, ledger: Ledger::ZERO }
}
