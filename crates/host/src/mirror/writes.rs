//! Changes of a mirror: writes, trims and the like go to every copy, and so do
//! flushes.

use std::ops::Range;

use flashkeel_engine::{
    Arena, Cause, Completion, LOGICAL_PAGE_SECTORS, Lba, Ledger, Operation, Outbox, Payload, Request,
    RequestId, Span, Status, Time,
};

use super::each;
use super::held::{Held, Pages};
use super::pieces::Work;
use super::stage::{Destination, Mirror, behind_other};

/// A part of a change, until it has ended on every copy.
#[derive(Clone, Debug)]
pub(super) struct Change {
    part: RequestId,
    destination: Destination,
    /// How long it was held back behind others, and for a window.
    held: (Span, Span),
    /// Copies that have got it, a bit each, and how it has ended there.
    sent: u8,
    done: u8,
    failed: u8,
    /// Copies on which it does not count, because they would forget it when power is
    /// cut, and have nothing to go back to.
    void: u8,
    status: Status,
    /// The host has been told.
    is_over: bool,
    /// What a flush is behind.
    behind: Option<u64>,
    is_write: bool,
}

impl Mirror {
    pub(super) fn change(
        &mut self,
        now: Time,
        part: RequestId,
        request: &Request,
        destination: Destination,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        // What was acknowledged by one copy may be on its way to another: a flush is for
        // that too.
        let is_behind = match request.operation {
            Operation::Flush => self.changes.len() > 0,
            _ => self.held.is_ahead(&destination),
        };
        if is_behind || self.agreement.is_locked(destination.pages()) {
            self.report.changes_held += 1;
            self.held.push(Held::new(now, part, request, destination, self.changes.next_id()));
            return;
        }
        if self.waits_for_window(now, request, &destination, self.held.awaits_window()) {
            self.report.changes_held_for_windows += 1;
            let held = Held::new(now, part, request, destination, self.changes.next_id());
            self.held.push(Held { window_since: Some(now), ..held });
            return;
        }
        self.send(now, part, request, destination, (Span::ZERO, Span::ZERO), data, outbox);
    }

    /// Whether a write has to wait for a window, or behind others that do: it takes no
    /// room that they wait for.
    fn waits_for_window(
        &self,
        now: Time,
        request: &Request,
        destination: &Destination,
        others_wait: bool,
    ) -> bool {
        if request.operation != Operation::Write {
            return false;
        }
        let present = self.agreement.present();
        let copies = if destination.single != 0 { destination.single } else { present };
        others_wait || self.windowing.holds(now, present, copies, request.bytes())
    }

    #[expect(clippy::too_many_arguments, reason = "the request, where it lies, and who serves it")]
    fn send(
        &mut self,
        now: Time,
        part: RequestId,
        request: &Request,
        destination: Destination,
        held: (Span, Span),
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let is_flush = request.operation == Operation::Flush;
        let is_write = request.operation == Operation::Write;
        let sent = if destination.single != 0 { destination.single } else { self.agreement.present() };
        if sent == 0 {
            return self.land(now, part, Status::Gone, held_back(Ledger::ZERO, held), outbox);
        }
        let lacking = self.agreement.lacking(destination.pages());
        self.agreement.begin(destination.pages());
        let behind = is_flush.then(|| self.agreement.flush_begins());
        let change = Change {
            part,
            destination,
            held,
            sent,
            done: 0,
            failed: 0,
            void: if is_write { 0 } else { lacking },
            status: Status::Ok,
            is_over: false,
            behind,
            is_write,
        };
        let id = self.changes.take_off(change);
        if let Some(books) = self.books.as_mut().filter(|_| !destination.pages().is_empty()) {
            books.begin(id.0, request);
        }
        let copies = sent.count_ones();
        // The host's buffer is given back once it has been told.
        let is_early = self.acknowledge.policy().needed(copies) < copies && request.payload.is_some();
        for copy in each(sent) {
            let mut own = Payload::NONE;
            if is_early {
                own = data.take(request.sectors);
                data.copy(request.payload, own, request.sectors);
            }
            let fua = request.fua || is_write && lacking >> copy & 1 == 1;
            self.give(now, copy, Work::Change(id), &Request { fua, ..*request }, own, outbox);
        }
    }

    pub(super) fn change_ended(
        &mut self,
        now: Time,
        copy: usize,
        id: RequestId,
        completion: &Completion,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let change = self.changes.get_mut(id).expect("a change stays until every copy has ended it");
        let pages = change.destination.pages();
        if completion.status == Status::Ok && change.void >> copy & 1 == 0 {
            change.done |= 1 << copy;
            self.agreement.done(pages.clone(), copy);
        } else {
            change.failed |= 1 << copy;
            // What became of it is for those to say that are still there.
            if completion.status != Status::Gone {
                change.status = change.status.max(completion.status);
            }
        }
        let Change { part, held, sent, done, failed, void, status, is_over, behind, is_write, .. } = *change;
        let outstanding = sent & !(done | failed);
        // A flush is for what any copy has acknowledged.
        let needed = match behind {
            Some(_) => u32::MAX,
            None => self.acknowledge.policy().needed(sent.count_ones()),
        };
        let is_enough = done.count_ones() >= needed && self.agreement.is_led_by(pages.clone(), done, failed);
        if !is_over && (outstanding == 0 || is_enough) {
            change.is_over = true;
            if done != 0 {
                self.agreement.behind(pages.clone(), sent & !done);
            } else if status != Status::ReadOnly || void != 0 {
                // It may have been done in part anywhere: one of them is what counts.
                for page in pages.clone() {
                    let valid = self.agreement.valid(page);
                    self.agreement.behind(page..page + 1, valid & valid.wrapping_sub(1));
                }
            }
            // What a flush has left anywhere in a cache may be what is found later.
            let has_done = done != 0 && (behind.is_none() || failed & self.agreement.present() == 0);
            if let Some(books) = &mut self.books {
                let count = pages.len() as u64;
                for page in pages.clone().filter(|_| has_done) {
                    // Otherwise it is on its way to the others, or nowhere else.
                    books.keep(page as u64, id.0, done == sent, data);
                }
                books.end(id.0, count);
            }
            let status = match status {
                _ if has_done => Status::Ok,
                Status::Ok if sent & self.agreement.present() == 0 => Status::Gone,
                Status::Ok => Status::MediaError,
                status => status,
            };
            self.land(now, part, status, held_back(completion.ledger, held), outbox);
        }
        if outstanding == 0 {
            if done != 0 {
                self.agreement.behind(pages.clone(), failed);
            }
            let _ = self.changes.land(id);
            self.hand_over(pages.clone());
            match behind {
                Some(sequence) if failed & self.agreement.present() == 0 => self.agreement.flushed(sequence),
                Some(_) => {}
                None => self.agreement.end(pages.clone()),
            }
            if is_write && done == sent && !pages.is_empty() {
                self.spread(now, pages.clone(), sent, data, outbox);
            }
            self.may_release = true;
            // A search that finds nothing goes through all that is stale.
            if self.resync.has_tried_in_vain() || self.agreement.may_any_agree(pages, self.refusing) {
                self.resync.try_again();
            }
        }
    }

    /// A copy has done a change, or tried to.
    pub(super) fn takes_writes(&mut self, copy: usize) {
        if self.refusing >> copy & 1 == 1 {
            self.refusing &= !(1 << copy);
            self.resync.try_again();
        }
    }

    /// A copy gets again what all have got, if that is wanted.
    fn spread(&mut self, now: Time, pages: Range<usize>, present: u8, data: &mut Arena, outbox: &mut Outbox) {
        let lba = Lba(pages.start as u64 * LOGICAL_PAGE_SECTORS);
        let sectors = (pages.len() as u64 * LOGICAL_PAGE_SECTORS) as u32;
        let write = Request::new(RequestId(0), Operation::Write, lba, sectors);
        if let Some((copy, count)) = self.reader.again(&write, present) {
            let end = pages.end.min(pages.start + count as usize);
            self.write_again(now, copy, pages.start..end, data, outbox);
        }
    }

    /// Lets what is held go, in order, as far as it may.
    pub(super) fn release(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        // Writes that wait for a window are looked through in turn with the others, up to
        // the first that has to wait on.
        let mut windows = Some(0);
        // Changes of these pages stay.
        let mut kept = Pages::default();
        for (number, held) in self.held.take_others() {
            windows = self.release_for_window(now, windows, number, data, outbox);
            let is_read = held.is_read();
            let is_behind = match held.request.operation {
                Operation::Read => self.agreement.is_in_doubt(held.destination.pages()),
                Operation::Flush => self.changes.has_before(held.behind),
                _ => kept.overlap(&held.destination) || self.held.is_ahead_in_window(&held.destination),
            };
            if is_behind || self.agreement.is_locked(held.destination.pages()) {
                kept.add(&held);
                self.held.put(number, held);
                continue;
            }
            if self.waits_for_window(now, &held.request, &held.destination, windows.is_none()) {
                self.report.changes_held_for_windows += 1;
                self.held.put(number, Held { window_since: Some(now), ..held });
                windows = None;
                continue;
            }
            if is_read {
                let Held { since, part, request, destination, .. } = held;
                self.read(now, part, &request, destination, since, data, outbox);
                self.held.keep_place(number);
            } else {
                self.send_held(now, held, data, outbox);
            }
        }
        self.release_for_window(now, windows, u64::MAX, data, outbox);
    }

    /// Lets writes go that have waited for a window, from the number `from` to before `end`;
    /// `None` if one of them has to wait on, and so all behind it.
    fn release_for_window(
        &mut self,
        now: Time,
        from: Option<u64>,
        end: u64,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) -> Option<u64> {
        let mut from = from?;
        while let Some((number, held)) = self.held.next_for_window(from)
            && number < end
        {
            from = number + 1;
            if self.agreement.is_locked(held.destination.pages()) {
                continue;
            }
            if self.waits_for_window(now, &held.request, &held.destination, false) {
                return None;
            }
            let held = self.held.take_for_window(number).expect("it is there");
            self.send_held(now, held, data, outbox);
        }
        Some(from)
    }

    fn send_held(&mut self, now: Time, held: Held, data: &mut Arena, outbox: &mut Outbox) {
        let Held { since, part, request, destination, window_since, .. } = held;
        let window = window_since.unwrap_or(now);
        let held = (window.since(since), now.since(window));
        self.send(now, part, &request, destination, held, data, outbox);
    }
}

/// Adds the time that a change was held back behind others, and for a window.
fn held_back(ledger: Ledger, (others, window): (Span, Span)) -> Ledger {
    let mut ledger = behind_other(ledger, others);
    ledger.charge(Cause::Window, window);
    ledger
}
