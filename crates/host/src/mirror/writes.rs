//! Changes of a mirror: writes, trims and the like go to every copy, and so do
//! flushes.

use std::ops::Range;

use flashkeel_engine::{
    Arena, Cause, Completion, Ledger, Operation, Outbox, Payload, Request, RequestId, Span, Status, Time,
};

use super::each;
use super::held::Held;
use super::pieces::{Work, of_pages};
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
        // that too. It is for nothing that has not been acknowledged.
        let is_behind = match request.operation {
            Operation::Flush => self.changes.oldest_lagging().is_some(),
            _ => self.held.is_ahead(&destination),
        };
        if is_behind || self.agreement.is_locked(destination.pages()) {
            self.report.changes_held += u64::from(request.operation != Operation::Flush);
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

    /// Whether a change has to wait for a window, or behind others that do: it takes no
    /// room that they wait for.
    fn waits_for_window(
        &self,
        now: Time,
        request: &Request,
        destination: &Destination,
        others_wait: bool,
    ) -> bool {
        let present = self.agreement.present();
        let copies = if destination.single != 0 { destination.single } else { present };
        self.windowing.counts(copies, request)
            && (others_wait || self.windowing.holds(now, present, copies, request))
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
            let is_refused = matches!(completion.status, Status::ReadOnly | Status::NoSpace);
            self.report.changes_refused += u64::from(is_refused);
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
            if outstanding != 0 {
                self.changes.lags(id);
            }
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
            self.changes.land(id);
            self.hand_over(pages.clone());
            match behind {
                Some(sequence) if failed & self.agreement.present() == 0 => self.agreement.flushed(sequence),
                Some(_) => {}
                None => {
                    self.agreement.end(pages.clone());
                    self.held.wake(pages.clone());
                }
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
        let write = of_pages(Operation::Write, pages.clone());
        if let Some((copy, count)) = self.reader.again(&write, present) {
            let end = pages.end.min(pages.start + count as usize);
            self.write_again(now, copy, pages.start..end, data, outbox);
        }
    }

    /// Lets what is held go, in order, as far as it may.
    pub(super) fn release(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        self.held.wake_flushes(self.changes.oldest_lagging());
        // Writes that wait for a window are looked through in turn with the others, up to
        // the first that has to wait on.
        let (mut next, mut next_for_window) = (0, Some(0));
        loop {
            let woken = self.held.next_woken(next).map(|(number, _)| number);
            let for_window = next_for_window.and_then(|from| self.held.next_for_window(from));
            let for_window = for_window.map(|(number, _)| number);
            match (woken, for_window) {
                (_, Some(number)) if woken.is_none_or(|woken| number < woken) => {
                    let is_let = self.release_for_window(now, number, data, outbox);
                    next_for_window = is_let.then_some(number + 1);
                }
                (Some(number), _) => {
                    next = number + 1;
                    if !self.release_woken(now, number, next_for_window.is_none(), data, outbox) {
                        next_for_window = None;
                    }
                }
                (None, _) => break,
            }
        }
    }

    /// Lets one go that has been woken, if it may; false if it has to wait for a window, as it
    /// has where `others_wait` for one.
    fn release_woken(
        &mut self,
        now: Time,
        number: u64,
        others_wait: bool,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) -> bool {
        let (_, held) = self.held.next_woken(number).expect("it was woken");
        let pages = held.destination.pages();
        let is_in_doubt = held.is_read() && self.agreement.is_in_doubt(pages.clone());
        let is_behind = match held.request.operation {
            Operation::Read => is_in_doubt,
            Operation::Flush => self.changes.oldest_lagging().is_some_and(|oldest| oldest < held.behind),
            _ => self.held.is_behind_change(number, held),
        };
        if is_behind || self.agreement.is_locked(pages) {
            // Nobody says when copies agree.
            if !is_in_doubt {
                self.held.put_to_sleep(number);
            }
            return true;
        }
        let held = self.held.take_woken(number).expect("it waits");
        if self.waits_for_window(now, &held.request, &held.destination, others_wait) {
            self.report.changes_held_for_windows += 1;
            self.held.put_for_window(number, Held { window_since: Some(now), ..held });
            return false;
        }
        if held.is_read() {
            let Held { since, part, request, destination, .. } = held;
            self.read(now, part, &request, destination, since, data, outbox);
        } else {
            self.send_held(now, held, data, outbox);
        }
        true
    }

    /// Lets a write go that has waited for a window, unless others change its pages; false if it
    /// has to wait on, and so have all behind it.
    fn release_for_window(&mut self, now: Time, number: u64, data: &mut Arena, outbox: &mut Outbox) -> bool {
        let (_, held) = self.held.next_for_window(number).expect("it waits");
        if self.agreement.is_locked(held.destination.pages()) {
            return true;
        }
        if self.waits_for_window(now, &held.request, &held.destination, false) {
            return false;
        }
        let held = self.held.take_for_window(number).expect("it waits");
        self.send_held(now, held, data, outbox);
        true
    }

    fn send_held(&mut self, now: Time, held: Held, data: &mut Arena, outbox: &mut Outbox) {
        let Held { since, part, request, destination, window_since, .. } = held;
        let window = window_since.unwrap_or(now);
        let held = (window.since(since), now.since(window));
        self.send(now, part, &request, destination, held, data, outbox);
        // Where no copy is left it has ended already.
        if !self.agreement.is_locked(destination.pages()) {
            self.held.wake(destination.pages());
        }
    }
}

/// Adds the time that a change was held back behind others, and for a window.
fn held_back(ledger: Ledger, (others, window): (Span, Span)) -> Ledger {
    let mut ledger = behind_other(ledger, others);
    ledger.charge(Cause::Window, window);
    ledger
}
