//! The tier as a stage over an SSD and an NVM.

use flashkeel_device::LOGICAL_PAGE_BYTES;
use flashkeel_engine::{
    Arena, Completion, Durable, Lba, Limits, Operation, Outbox, Payload, Request, RequestId, Span, Stage,
    Status, Submit, Time, Wake,
};
use serde::Serialize;

use super::frames::{Frames, PAGE_SECTORS};
use super::{DrainConfig, Placement};
use crate::flight::Flights;
use crate::parts::Parts;

/// The children, in their order.
const SSD: usize = 0;
const NVM: usize = 1;

/// Sends writes where the policy says, reads where the newest acknowledged copy
/// is, and moves data from the NVM to the SSD in the background.
///
/// A write that finds no room goes to the SSD. Nothing is lost: a copy in the
/// NVM is given up only when the SSD has acknowledged it or a newer one. If that
/// is not enough for a power cut, because the SSD has a volatile buffer, it is
/// made to force unit access; and where the NVM has one, a flush goes to both.
///
/// What a device refuses or fails to do leaves the other copy what it was, and
/// what the background could not move is tried again in the next batch.
#[derive(Clone)]
pub struct Tier {
    placement: Box<dyn Placement>,
    frames: Frames,
    /// Whether the SSD keeps a write only when it is flushed, or forces unit access.
    must_force: bool,
    /// Whether the same is true of the NVM.
    flushes_nvm: bool,
    parts: Parts,
    pieces: Flights<Piece>,
    /// Counts writes in the order of submission.
    sequence: u64,
    period: Span,
    /// Pages of a batch.
    batch: usize,
    /// Pages of the current batch that are on their way.
    draining: usize,
    next_drain: Time,
    /// Whether requests carry bytes, and so what is moved does too.
    has_bytes: bool,
    report: TierReport,
}

/// What a tier has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TierReport {
    /// Bytes that the host wrote to the NVM.
    pub host_bytes_to_nvm: u64,
    /// Bytes that the host wrote to the SSD.
    pub host_bytes_to_ssd: u64,
    /// Bytes moved from the NVM to the SSD.
    pub drained_bytes: u64,
    /// Writes that went to the SSD because the NVM was full.
    pub writes_without_room: u64,
    /// Pages read from the NVM by the host.
    pub pages_read_from_nvm: u64,
}

/// A request to a child. Pages and frames of one piece follow one another.
#[derive(Clone, Copy, Debug)]
enum Piece {
    /// Changes nothing here.
    Plain {
        part: RequestId,
    },
    /// Of the NVM, over so many acknowledged writes.
    Flush {
        part: RequestId,
        acknowledgements: u64,
    },
    SsdWrite {
        part: RequestId,
        page: u64,
        pages: u64,
        sequence: u64,
    },
    NvmRead {
        part: RequestId,
        frame: u32,
        pages: u32,
    },
    NvmWrite {
        part: RequestId,
        frame: u32,
        pages: u32,
        sequence: u64,
        fua: bool,
    },
    DrainRead {
        frame: u32,
        sequence: u64,
        payload: Payload,
    },
    WriteBack {
        frame: u32,
        sequence: u64,
        payload: Payload,
    },
}

/// Pages of a request that go to the same place.
#[derive(Clone, Copy)]
struct Run {
    page: u64,
    pages: u64,
    /// The first frame; `None` for the SSD.
    frame: Option<u32>,
}

impl Run {
    /// Whether the next page of the request belongs to it.
    fn goes_on_with(&self, frame: Option<u32>) -> bool {
        match (self.frame, frame) {
            (None, None) => true,
            (Some(first), Some(frame)) => u64::from(frame) == u64::from(first) + self.pages,
            _ => false,
        }
    }
}

impl Tier {
    /// Over an SSD and an NVM that state this of themselves.
    pub fn new(placement: Box<dyn Placement>, ssd: Limits, nvm: Limits, drain: &DrainConfig) -> Tier {
        Tier {
            placement,
            frames: Frames::new(ssd.sectors / PAGE_SECTORS, nvm.sectors / PAGE_SECTORS, nvm.durable),
            must_force: ssd.durable == Durable::Flushed,
            flushes_nvm: nvm.durable == Durable::Flushed,
            parts: Parts::default(),
            pieces: Flights::default(),
            sequence: 0,
            period: drain.period,
            batch: (drain.batch.0 / LOGICAL_PAGE_BYTES) as usize,
            draining: 0,
            next_drain: Time::ZERO,
            has_bytes: false,
            report: TierReport::default(),
        }
    }

    /// Pages that the NVM holds.
    pub fn nvm_pages(&self) -> u64 {
        self.frames.used()
    }

    /// What has been done since the start or the last reset.
    pub fn report(&self) -> &TierReport {
        &self.report
    }

    /// Starts counting anew, as at the end of a warm-up.
    pub fn reset_counters(&mut self) {
        self.report = TierReport::default();
    }

    /// Gives the SSD a request as it is.
    fn pass(&mut self, now: Time, whole: RequestId, request: &Request, outbox: &mut Outbox) {
        let part = self.parts.add(whole);
        self.give_ssd(now, Piece::Plain { part }, request, outbox);
    }

    fn give_ssd(&mut self, now: Time, piece: Piece, request: &Request, outbox: &mut Outbox) {
        let request = Request { id: self.pieces.take_off(piece), ..*request };
        self.placement.submitted(now, &request);
        outbox.requests.push((SSD, request));
    }

    /// Gives the NVM, from `frame` on, what a request asks of `pages` pages from
    /// its sector `from` on.
    fn give_nvm(
        &mut self,
        piece: Piece,
        request: &Request,
        from: u32,
        frame: u32,
        pages: u32,
        outbox: &mut Outbox,
    ) {
        let id = self.pieces.take_off(piece);
        let lba = Lba(u64::from(frame) * PAGE_SECTORS);
        outbox.requests.push((NVM, request.part(id, from, lba, pages * PAGE_SECTORS as u32)));
    }

    /// Splits a request into runs and sends them off.
    fn split(
        &mut self,
        now: Time,
        request: &Request,
        outbox: &mut Outbox,
        mut frame_of: impl FnMut(&mut Frames, u64) -> Option<u32>,
    ) {
        let whole = self.parts.begin(now, now, request);
        let first = request.lba.0 / PAGE_SECTORS;
        let end = first + u64::from(request.sectors) / PAGE_SECTORS;
        let mut run = Run { page: first, pages: 1, frame: frame_of(&mut self.frames, first) };
        for page in first + 1..end {
            let frame = frame_of(&mut self.frames, page);
            if run.goes_on_with(frame) {
                run.pages += 1;
            } else {
                self.send(now, whole, request, run, outbox);
                run = Run { page, pages: 1, frame };
            }
        }
        self.send(now, whole, request, run, outbox);
    }

    fn send(&mut self, now: Time, whole: RequestId, request: &Request, run: Run, outbox: &mut Outbox) {
        let part = self.parts.add(whole);
        let Run { page, pages, frame } = run;
        let lba = Lba(page * PAGE_SECTORS);
        let from = (lba.0 - request.lba.0) as u32;
        let is_read = request.operation == Operation::Read;
        if let Some(frame) = frame {
            let count = pages as u32;
            let piece = if is_read {
                self.report.pages_read_from_nvm += pages;
                Piece::NvmRead { part, frame, pages: count }
            } else {
                if request.operation == Operation::Write {
                    self.report.host_bytes_to_nvm += pages * LOGICAL_PAGE_BYTES;
                }
                Piece::NvmWrite { part, frame, pages: count, sequence: self.sequence, fua: request.fua }
            };
            return self.give_nvm(piece, request, from, frame, count, outbox);
        }
        let piece = if is_read {
            Piece::Plain { part }
        } else {
            if request.operation == Operation::Write {
                self.report.host_bytes_to_ssd += pages * LOGICAL_PAGE_BYTES;
            }
            Piece::SsdWrite { part, page, pages, sequence: self.sequence }
        };
        let sectors = (pages * PAGE_SECTORS) as u32;
        let mut piece_of = request.part(request.id, from, lba, sectors);
        // The older copy in the NVM may be all that a power cut would leave.
        piece_of.fua |=
            !is_read && self.must_force && (page..page + pages).any(|page| self.frames.has_frame(page));
        self.give_ssd(now, piece, &piece_of, outbox);
    }

    fn flush(&mut self, now: Time, request: &Request, outbox: &mut Outbox) {
        let whole = self.parts.begin(now, now, request);
        self.pass(now, whole, request, outbox);
        if self.flushes_nvm {
            let part = self.parts.add(whole);
            let piece = Piece::Flush { part, acknowledgements: self.frames.acknowledgements() };
            self.give_nvm(piece, request, 0, 0, 0, outbox);
        }
    }

    fn write(&mut self, now: Time, request: &Request, outbox: &mut Outbox) {
        let first = request.lba.0 / PAGE_SECTORS;
        let pages = first..first + u64::from(request.sectors) / PAGE_SECTORS;
        let is_taken = if self.frames.has_room(pages) {
            self.placement.takes(now, request)
        } else {
            self.report.writes_without_room += 1;
            false
        };
        self.change(now, request, is_taken, outbox);
    }

    /// Changes pages: in the NVM if that takes them or has to, else on the SSD.
    fn change(&mut self, now: Time, request: &Request, is_taken: bool, outbox: &mut Outbox) {
        self.sequence += 1;
        let sequence = self.sequence;
        self.split(now, request, outbox, |frames, page| {
            if is_taken || frames.must_take(page) {
                return Some(frames.begin_write(page, sequence));
            }
            frames.begin_ssd_write(page);
            None
        });
    }

    /// Begins a batch.
    fn drain(&mut self, data: &mut Arena, outbox: &mut Outbox) {
        for _ in 0..self.frames.queued() {
            if self.draining == self.batch {
                return;
            }
            let Some((frame, sequence)) = self.frames.begin_drain() else { continue };
            self.draining += 1;
            let payload = if self.has_bytes { data.take(PAGE_SECTORS as u32) } else { Payload::NONE };
            let piece = Piece::DrainRead { frame, sequence, payload };
            self.give_nvm(piece, &background(Operation::Read, payload), 0, frame, 1, outbox);
        }
    }

    fn plan_drain(&mut self, now: Time) {
        if self.next_drain <= now {
            let periods = now.0 / self.period.0 + 1;
            self.next_drain = Time(periods * self.period.0);
        }
    }
}

/// A request of the background for one page, without its number and address.
fn background(operation: Operation, payload: Payload) -> Request {
    Request { payload, ..Request::new(RequestId(0), operation, Lba(0), PAGE_SECTORS as u32) }
}

impl Stage for Tier {
    fn limits(&self, below: &[Limits]) -> Limits {
        let ssd = below[SSD];
        let page = PAGE_SECTORS as u32;
        Limits {
            sectors: self.frames.pages() * PAGE_SECTORS,
            block_sectors: ssd.block_sectors.max(page),
            preferred_sectors: ssd.preferred_sectors.max(page),
            durable: ssd.durable.max(below[NVM].durable),
        }
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena, outbox: &mut Outbox) -> Submit {
        self.has_bytes |= request.payload.is_some();
        let end = request.lba.0.checked_add(u64::from(request.sectors));
        if request.operation == Operation::Flush {
            self.flush(now, request, outbox);
            return Submit::Accepted;
        }
        let is_plain = request.sectors == 0
            || !request.lba.0.is_multiple_of(PAGE_SECTORS)
            || !u64::from(request.sectors).is_multiple_of(PAGE_SECTORS)
            || end.is_none_or(|end| end > self.frames.pages() * PAGE_SECTORS);
        if is_plain {
            // The SSD refuses it.
            let whole = self.parts.begin(now, now, request);
            self.pass(now, whole, request, outbox);
            return Submit::Accepted;
        }
        match request.operation {
            Operation::Read => self.split(now, request, outbox, |frames, page| {
                let frame = frames.to_read(page)?;
                frames.pin(frame);
                Some(frame)
            }),
            Operation::Write => self.write(now, request, outbox),
            Operation::Trim | Operation::WriteZeroes | Operation::Flush => {
                self.change(now, request, false, outbox);
            }
        }
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        (!self.frames.is_queue_empty()).then_some(self.next_drain).into()
    }

    fn advance(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        if self.frames.is_queue_empty() || self.next_drain > now {
            return;
        }
        if self.draining == 0 {
            self.drain(data, outbox);
        }
        self.plan_drain(now);
    }

    fn cut_power(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        for (_, piece) in self.pieces.take_all() {
            if let Piece::DrainRead { payload, .. } | Piece::WriteBack { payload, .. } = piece {
                data.give_back(payload);
            }
        }
        // Which frame holds what is taken to be kept on the NVM itself.
        self.frames.cut_power();
        self.placement.cut_power(now);
        self.draining = 0;
        self.plan_drain(now);
        outbox.completions.append(&mut self.parts.cut_power(now));
    }

    fn completed(
        &mut self,
        now: Time,
        child: usize,
        completion: &mut Completion,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) -> bool {
        if child == SSD {
            self.placement.completed(now, completion);
        }
        // Where nothing was left to drain, times for it have passed.
        self.plan_drain(now);
        let is_ok = completion.status == Status::Ok;
        let part = match self.pieces.land(completion.id) {
            Piece::Plain { part } => part,
            Piece::Flush { part, acknowledgements } => {
                if is_ok {
                    self.frames.flushed(acknowledgements);
                }
                part
            }
            Piece::SsdWrite { part, page, pages, sequence } => {
                for page in page..page + pages {
                    if is_ok {
                        self.frames.end_ssd_write(page, sequence);
                    } else {
                        self.frames.fail_ssd_write(page);
                    }
                }
                part
            }
            Piece::NvmRead { part, frame, pages } => {
                (frame..frame + pages).for_each(|frame| self.frames.unpin(frame));
                part
            }
            Piece::NvmWrite { part, frame, pages, sequence, fua } => {
                for frame in frame..frame + pages {
                    if is_ok {
                        self.frames.end_write(frame, sequence, fua);
                    } else {
                        self.frames.fail_write(frame, sequence);
                    }
                }
                part
            }
            Piece::DrainRead { frame, sequence, payload } => {
                let page = if is_ok {
                    self.frames.begin_write_back(frame, sequence)
                } else {
                    self.frames.fail_drain(frame);
                    None
                };
                match page {
                    Some(page) => {
                        self.report.drained_bytes += LOGICAL_PAGE_BYTES;
                        let lba = Lba(page * PAGE_SECTORS);
                        let fua = self.must_force;
                        let write = Request { lba, fua, ..background(Operation::Write, payload) };
                        self.give_ssd(now, Piece::WriteBack { frame, sequence, payload }, &write, outbox);
                    }
                    None => {
                        data.give_back(payload);
                        self.draining -= 1;
                    }
                }
                return false;
            }
            Piece::WriteBack { frame, sequence, payload } => {
                data.give_back(payload);
                if is_ok {
                    self.frames.end_write_back(frame, sequence);
                } else {
                    self.frames.fail_write_back(frame);
                }
                self.draining -= 1;
                return false;
            }
        };
        completion.id = part;
        self.parts.land(completion).is_some()
    }
}
