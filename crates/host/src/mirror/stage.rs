//! The mirror as a stage over its copies and spares.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use flashkeel_engine::{
    Answer, Arena, Cause, Command, Completion, Durable, LOGICAL_PAGE_SECTORS, Lba, Ledger, Limits, Notice,
    Operation, Outbox, Payload, Refusal, Request, RequestId, Span, Stage, Status, Submit, Time, Wake,
};

use super::acknowledge::AcknowledgeConfig;
use super::agreement::Agreement;
use super::changes::Changes;
use super::hedge::Hedge;
use super::held::Waiting;
use super::homes::{Home, Homes};
use super::layout::{Layout, Located, over};
use super::pieces::{Piece, Work};
use super::read::Reader;
use super::reads::Read;
use super::restoring::Restoring;
use super::resync::Resync;
use super::windowing::Windowing;
use super::windows::Turns;
use super::{MOST, MirrorReport, RangeConfig, ResyncConfig, each};
use crate::books::Books;
use crate::flight::Flights;
use crate::parts::Parts;

/// Sends reads to one copy and writes to all, sees to it that the copies agree
/// again after failures and power cuts, and lets spares stand in for copies that
/// are gone.
///
/// Changes of the same page go one after the other, so that every copy gets them in
/// the same order.
#[derive(Clone)]
pub struct Mirror {
    pub(super) layout: Layout,
    limits: Limits,
    /// Where each copy and spare is.
    pub(super) homes: Homes,
    /// How many copies there were at first.
    copies: usize,
    /// Spares that have not been needed, a bit each.
    spares: u8,
    pub(super) agreement: Agreement,
    /// Copies that take no writes, a bit each: full or read-only.
    pub(super) refusing: u8,
    pub(super) reader: Box<dyn Reader>,
    pub(super) hedge: Option<Box<dyn Hedge>>,
    pub(super) acknowledge: AcknowledgeConfig,
    pub(super) resync: Resync,
    /// Pages that not every copy has.
    pub(super) books: Option<Books>,
    pub(super) restoring: Option<Restoring>,
    pub(super) parts: Parts,
    pub(super) reads: Flights<Read>,
    pub(super) changes: Changes,
    pub(super) held: Waiting,
    /// Something that is held may go.
    pub(super) may_release: bool,
    /// When a second copy is asked for which read; some are over by then.
    pub(super) hedges: BinaryHeap<Reverse<(Time, u64)>>,
    pub(super) pieces: Flights<Piece>,
    pub(super) windowing: Windowing,
    /// Requests with each copy.
    pub(super) queued: [u32; MOST],
    /// Whether requests carry bytes, and so what is copied does too.
    pub(super) has_bytes: bool,
    pub(super) report: MirrorReport,
}

/// What a mirror is made of.
pub struct MirrorParts<'a> {
    /// Which copy a read goes to.
    pub reader: Box<dyn Reader>,
    /// When a second copy is asked too, if ever.
    pub hedge: Option<Box<dyn Hedge>>,
    /// When a write is acknowledged.
    pub acknowledge: AcknowledgeConfig,
    /// What has copies; empty for everything.
    pub ranges: &'a [RangeConfig],
    /// How copies are made to agree.
    pub resync: &'a ResyncConfig,
    /// Which copy does its background work when.
    pub turns: Option<Box<dyn Turns>>,
    /// NVM sets of each device: a copy is on each.
    pub sets: &'a [u32],
}

/// Where a part of a request goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination {
    /// The only devices that it goes to, a bit each; 0 where there are copies to be
    /// kept in agreement.
    pub single: u8,
    pub first: u32,
    pub count: u32,
}

impl Destination {
    const NOWHERE: Destination = Destination { single: 0, first: 0, count: 0 };

    /// Its pages, where there are copies.
    pub fn pages(&self) -> Range<usize> {
        self.first as usize..(self.first + self.count) as usize
    }
}

impl Mirror {
    /// Over so many devices and spares with such limits, all of the size of the
    /// first.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub fn new(parts: MirrorParts<'_>, below: &[Limits], devices: usize) -> Result<Mirror, String> {
        let size = below[0].sectors / u64::from(parts.sets[0]);
        let homes = Homes::new(parts.sets, size);
        let copies = parts.sets[..devices].iter().sum::<u32>() as usize;
        let layout = Layout::new(parts.ranges, size, copies as u64)?;
        let limits = over(&layout, below);
        let kept = |limits: &Limits| limits.durable != Durable::Never;
        let keeping = (0..below.len()).filter(|&device| kept(&below[device]));
        let keeping = keeping.fold(0, |copies, device| copies | homes.on(device));
        let needs_flush = below.iter().any(|each| each.durable == Durable::Flushed);
        let keeping = if keeping == 0 { u8::MAX } else { keeping };
        let region = parts.resync.region.0 / flashkeel_engine::SECTOR_BYTES;
        Ok(Mirror {
            agreement: Agreement::new(layout.copied(), region, copies, keeping, needs_flush),
            layout,
            limits,
            copies,
            refusing: 0,
            spares: (((1u16 << homes.len()) - 1) & !((1u16 << copies) - 1)) as u8,
            homes,
            windowing: Windowing::new(parts.turns, below),
            reader: parts.reader,
            hedge: parts.hedge,
            acknowledge: parts.acknowledge,
            resync: Resync::new(parts.resync),
            books: None,
            restoring: None,
            parts: Parts::default(),
            reads: Flights::default(),
            changes: Changes::default(),
            held: Waiting::default(),
            may_release: false,
            hedges: BinaryHeap::new(),
            pieces: Flights::default(),
            queued: [0; MOST],
            has_bytes: false,
            report: MirrorReport::default(),
        })
    }

    /// What a mirror of so many devices of that size holds, in sectors.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub fn sectors(ranges: &[RangeConfig], device: u64, copies: usize) -> Result<u64, String> {
        Ok(Layout::new(ranges, device, copies as u64)?.sectors())
    }

    /// Parts of requests that wait here.
    pub fn waiting(&self) -> usize {
        self.held.len()
    }

    /// What has been done since the start or the last reset.
    pub fn report(&self) -> &MirrorReport {
        &self.report
    }

    /// From now on requests carry bytes, and so does what is copied.
    pub fn keep_data(&mut self) {
        self.has_bytes = true;
    }

    /// Starts counting anew, as at the end of a warm-up. What is on counts from now on.
    pub fn reset_counters(&mut self, now: Time) {
        self.report = MirrorReport::default();
        self.count_windows_from(now);
    }

    /// Pairs of a page and a copy that has not got its newest data.
    pub fn stale_pairs(&self) -> u64 {
        self.agreement.stale_pairs()
    }

    /// Gives a device a request; `own` is a buffer of the mirror's own, which it
    /// uses then.
    pub(super) fn give(
        &mut self,
        now: Time,
        copy: usize,
        work: Work,
        request: &Request,
        own: Payload,
        outbox: &mut Outbox,
    ) {
        let is_read = request.operation == Operation::Read;
        let is_change = request.operation.is_change();
        let id = self.pieces.take_off(Piece { work, copy, begun: now, is_read, is_change, own });
        let payload = if own.is_some() { own } else { request.payload };
        let request = Request { id, payload, ..*request };
        self.queued[copy] += 1;
        self.reader.submitted(now, copy, &request);
        self.windowing.given(copy, &request);
        let Home { device, base, .. } = self.homes.of(copy);
        outbox.requests.push((device, Request { lba: Lba(request.lba.0 + base), ..request }));
    }

    /// A part of a request of the host has ended.
    pub(super) fn land(
        &mut self,
        now: Time,
        part: RequestId,
        status: Status,
        ledger: Ledger,
        outbox: &mut Outbox,
    ) {
        let mut completion = Completion { id: part, time: now, status, ledger };
        if self.parts.land(&mut completion, ledger.total(), false).is_some() {
            outbox.completions.push(completion);
        }
    }

    /// Begins a request that came at `submitted`.
    pub(super) fn begin(
        &mut self,
        now: Time,
        submitted: Time,
        request: &Request,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let whole = self.parts.begin(submitted, submitted, request);
        // The request does not end while it is being split.
        let guard = self.parts.add(whole);
        if request.operation == Operation::Flush {
            let part = self.parts.add(whole);
            self.change(now, part, request, Destination::NOWHERE, data, outbox);
        } else {
            self.split(now, whole, request, data, outbox);
        }
        self.land(now, guard, Status::Ok, Ledger::ZERO, outbox);
        self.wind_up(now, data, outbox);
    }

    /// Splits a request where it passes from what has copies to what has not, and a
    /// read also where other copies have the newest data.
    fn split(
        &mut self,
        now: Time,
        whole: RequestId,
        request: &Request,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let mut from = 0;
        while from < request.sectors {
            let (place, run) = self.layout.place(Lba(request.lba.0 + u64::from(from)));
            let mut sectors = run.min(u64::from(request.sectors - from)) as u32;
            let (lba, mut destination) = match place {
                Located::Single(device, lba) => {
                    (lba, Destination { single: 1 << device, ..Destination::NOWHERE })
                }
                Located::Copied(lba) => {
                    let (first, page) = ((lba.0 / LOGICAL_PAGE_SECTORS) as u32, LOGICAL_PAGE_SECTORS as u32);
                    let mut destination = Destination { single: 0, first, count: sectors / page };
                    if request.operation == Operation::Read {
                        destination.count = self.agreement.run(destination.pages()) as u32;
                        sectors = destination.count * LOGICAL_PAGE_SECTORS as u32;
                    }
                    (lba, destination)
                }
            };
            let part = self.parts.add(whole);
            let request = request.part(request.id, from, lba, sectors);
            if request.operation == Operation::Demote && destination.single == 0 {
                // An offer to those that have it; it changes nothing.
                let is_changing = self.agreement.is_locked(destination.pages());
                let single = if is_changing { 0 } else { self.agreement.valid_all(destination.pages()) };
                if single == 0 {
                    self.land(now, part, Status::Ok, Ledger::ZERO, outbox);
                    from += sectors;
                    continue;
                }
                destination = Destination { single, ..Destination::NOWHERE };
            }
            if request.operation == Operation::Read {
                self.report.reads += 1;
                self.read(now, part, &request, destination, now, data, outbox);
            } else {
                self.report.changes += 1;
                self.change(now, part, &request, destination, data, outbox);
            }
            from += sectors;
        }
    }

    /// A device is not there any more: the next spare stands in for it.
    fn lose(&mut self, now: Time, copy: usize) {
        if self.agreement.present() >> copy & 1 == 0 {
            return;
        }
        self.report.lost_copies += 1;
        self.agreement.lose(copy);
        if self.spares != 0 {
            let spare = self.spares.trailing_zeros() as usize;
            self.spares &= self.spares - 1;
            self.agreement.join(spare);
        }
        self.resync.try_again();
        self.windowing.reconsider(now);
    }

    /// What every call ends with.
    fn wind_up(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        if self.restoring.is_some() {
            return;
        }
        self.turn(now, outbox);
        while std::mem::take(&mut self.may_release) {
            self.release(now, data, outbox);
        }
        let reads = &mut self.reads;
        while let Some(&Reverse((_, read))) = self.hedges.peek()
            && reads.get_mut(RequestId(read)).is_none_or(|read| read.is_over)
        {
            self.hedges.pop();
        }
        if let Some(page) = self.wanted() {
            self.resync.hurry(now, page);
        }
        self.resync.not_before(now);
        // A timer that is due at once would come behind what the host asks next.
        if self.resync.next_event(&self.agreement).is_due(now) {
            self.agree(now, data, outbox);
        }
    }

    /// The first page in doubt that a read waits for, and that nobody changes.
    fn wanted(&self) -> Option<usize> {
        if !self.agreement.has_doubts() {
            return None;
        }
        let mut reads = self.held.woken_reads().map(|held| held.destination.pages());
        let waits = |pages: &Range<usize>| {
            self.agreement.is_in_doubt(pages.clone()) && !self.agreement.is_locked(pages.clone())
        };
        reads.find(waits).map(|pages| pages.start)
    }
}

impl Stage for Mirror {
    fn limits(&self, below: &[Limits]) -> Limits {
        over(&self.layout, below)
    }

    fn finds(&self, from: Lba, sectors: u32) -> Option<(usize, Lba, u32)> {
        self.restoring.is_none().then(|| self.whereabouts(from, sectors))?
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena, outbox: &mut Outbox) -> Submit {
        let is_flush = request.operation == Operation::Flush;
        if !is_flush && !self.limits.admit(request.lba.0, request.sectors) {
            return Submit::Refused(Status::Invalid);
        }
        self.has_bytes |= request.payload.is_some();
        match &mut self.restoring {
            Some(restoring) => {
                restoring.hold(now, request);
                // Nobody may have asked when it begins.
                if restoring.next_event().is_due(now) {
                    self.restore(now, data, outbox);
                }
            }
            None => self.begin(now, now, request, data, outbox),
        }
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        if let Some(restoring) = &self.restoring {
            return restoring.next_event();
        }
        let hedge = self.hedges.peek().map(|&Reverse((time, _))| time);
        Wake::from(hedge).or(self.resync.next_event(&self.agreement)).or(self.windowing.next_event())
    }

    fn advance(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        if self.restoring.is_some() {
            return self.restore(now, data, outbox);
        }
        while let Some(&Reverse((time, read))) = self.hedges.peek()
            && time <= now
        {
            self.hedges.pop();
            self.ask_another(now, RequestId(read), data, outbox);
        }
        self.wind_up(now, data, outbox);
    }

    fn completed(
        &mut self,
        now: Time,
        child: usize,
        completion: &mut Completion,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) -> bool {
        let piece = self.pieces.land(completion.id);
        let copy = piece.copy;
        self.queued[copy] -= 1;
        self.reader.completed(now, &piece.ended(now), completion);
        self.windowing.answered(now, copy, completion.id, piece.is_read);
        match completion.status {
            Status::Gone => each(self.homes.on(child)).for_each(|copy| self.lose(now, copy)),
            Status::ReadOnly | Status::NoSpace => self.refusing |= 1 << copy,
            Status::Ok | Status::MediaError if piece.is_change => self.takes_writes(copy),
            _ => {}
        }
        match piece.work {
            Work::Read(read) => self.read_ended(now, copy, read, &piece, completion, data, outbox),
            Work::Change(change) => self.change_ended(now, copy, change, completion, data, outbox),
            Work::Agree => self.agree_ended(now, copy, piece.is_read, completion, data, outbox),
            Work::Restore(page) | Work::Compare(page) => {
                self.restored(now, &piece, page, completion.status, data, outbox);
            }
        }
        data.give_back(piece.own);
        self.wind_up(now, data, outbox);
        // What has ended is in the outbox: it may be more than one.
        false
    }

    fn cut_power(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        for (_, piece) in self.pieces.take_all() {
            data.give_back(piece.own);
        }
        self.reader.cut_power(now);
        self.windowing.cut_power(now);
        self.queued = [0; MOST];
        let _ = self.reads.take_all();
        self.changes.clear();
        self.books.iter_mut().for_each(Books::cut_power);
        self.held.clear();
        self.hedges.clear();
        self.resync.cut_power(now, data);
        self.report.dirty_regions += self.agreement.cut_power();
        self.stop_restoring(now, data);
        outbox.completions.append(&mut self.parts.cut_power(now));
        self.wind_up(now, data, outbox);
    }

    fn refuses(&self, _child: usize, command: &Command) -> Option<Refusal> {
        let is_ours = matches!(command, Command::Window(..)) && self.windowing.commands();
        is_ours.then(|| Refusal::NotNow("the mirror commands its windows".into()))
    }

    fn answered(
        &mut self,
        now: Time,
        child: usize,
        command: &Command,
        answer: Result<Answer, Refusal>,
        _outbox: &mut Outbox,
    ) {
        self.window_answered(now, child, command, answer);
    }

    fn noticed(&mut self, now: Time, child: usize, notice: Notice, outbox: &mut Outbox) -> Option<Notice> {
        let is_for_us = self.window_noticed(now, child, &notice, outbox);
        (!is_for_us).then(|| Notice { place: notice.place.below(child), event: notice.event })
    }

    fn command(&mut self, _now: Time, command: &Command, _outbox: &mut Outbox) -> Result<Answer, Refusal> {
        let Command::State = command else { return Err(Refusal::Unknown) };
        let present = self.agreement.present();
        let count = |copies: u8| u64::from((copies & present).count_ones());
        Ok(Answer::state([
            ("copies", count(present)),
            ("copies_lost", self.copies as u64 - count(present)),
            ("spares", u64::from(self.spares.count_ones())),
            ("stale_pages", self.agreement.stale_pairs()),
            ("dirty_regions", self.agreement.dirty_regions()),
            ("copies_deterministic", count(self.windowing.deterministic())),
            ("copies_refusing", count(self.refusing)),
        ]))
    }
}

/// Adds the time that a request waited for another copy or change.
pub(super) fn behind_other(mut ledger: Ledger, span: Span) -> Ledger {
    ledger.charge(Cause::OtherCopy, span);
    ledger
}
