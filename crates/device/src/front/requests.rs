//! Requests inside the device.

use std::cmp::Reverse;

use flashkeel_engine::{
    Cause, Hint, LOGICAL_PAGE_BYTES, LOGICAL_PAGE_SECTORS, Ledger, Operation, Payload, Request, RequestId,
    Time,
};

use crate::address::NONE;

/// No logical page has so high a number.
const AWAITED: u64 = 1 << 63;

/// One request on its way through the device.
#[derive(Clone, Debug)]
pub(crate) struct RequestState {
    pub id: RequestId,
    /// The request of the workload that it is part of.
    pub origin: RequestId,
    /// Its number in the order in which requests came, modulo 2^32.
    pub turn: u32,
    pub operation: Operation,
    pub payload: Payload,
    /// It ends only when what it has written is durable.
    pub fua: bool,
    /// For policies that decide on requests.
    pub hint: Hint,
    pub submitted: Time,
    /// The range of logical pages of the device, and the next to work on.
    pub first: u64,
    pub end: u64,
    pub next: u64,
    /// The logical page whose map entry has been found in memory, or with [`AWAITED`] is
    /// being loaded.
    pub translated: u64,
    /// The partition and logical stripe of which a page is rebuilt.
    pub rebuilt: Option<(u16, u32)>,
    /// Flash operations, or buffered pages, that must be done before the end.
    pub outstanding: u32,
    /// Every page has been worked on.
    pub issued: bool,
    /// Bit set of the partitions whose flush it has to wait for, because it
    /// caused or commanded it.
    pub awaited_flushes: u64,
    /// The delay of generating its next flash read is over.
    pub is_generated: bool,
    /// It generates no further read before one of those on their way is done.
    pub held_back: bool,
    /// There was no room for its last page.
    pub lacks_room: bool,
    /// A page that it reads is damaged in the medium.
    pub is_unreadable: bool,
    /// A page that it reads was lost for good when it was looked up.
    pub is_lost: bool,
    /// The request behind it in a queue of waiting requests.
    pub behind: u32,
    /// Who owns the time since `mark`.
    pub owner: Cause,
    pub mark: Time,
    pub ledger: Ledger,
}

impl RequestState {
    /// Length in bytes.
    #[inline]
    pub fn bytes(&self) -> u64 {
        (self.end - self.first) * LOGICAL_PAGE_BYTES
    }

    /// Takes over the blame since submission from the flash operation that carries it.
    #[inline]
    pub fn take_blame(&mut self, now: Time, ledger: &Ledger) {
        self.ledger = *ledger;
        self.mark = now;
    }

    /// Waits for the map entry of its next page.
    pub fn await_map(&mut self, now: Time) {
        self.translated = self.next | AWAITED;
        self.pass(now, Cause::MapLoad);
    }

    /// Whether it has waited for the map entry of its next page.
    #[inline]
    pub fn has_awaited_map(&self) -> bool {
        self.translated == self.next | AWAITED
    }

    /// Charges the time since the last change to its owner; from `now` on
    /// `owner` owns it.
    #[inline]
    pub fn pass(&mut self, now: Time, owner: Cause) {
        self.ledger.charge_between(self.owner, self.mark, now);
        self.mark = now;
        self.owner = owner;
    }
}

/// The pool of requests in the device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    list: Vec<RequestState>,
    free: Vec<u32>,
    /// Requests taken in so far, modulo 2^32.
    admitted: u32,
}

impl Requests {
    /// Takes a request in.
    #[inline(always)]
    pub fn admit(&mut self, now: Time, request: &Request) -> u32 {
        self.admitted = self.admitted.wrapping_add(1);
        let first = request.lba.0 / LOGICAL_PAGE_SECTORS;
        let state = RequestState {
            id: request.id,
            origin: request.origin,
            turn: self.admitted,
            operation: request.operation,
            payload: request.payload,
            fua: request.fua,
            hint: request.hint,
            submitted: now,
            first,
            next: first,
            end: first + u64::from(request.sectors) / LOGICAL_PAGE_SECTORS,
            translated: u64::MAX,
            rebuilt: None,
            outstanding: 0,
            issued: false,
            awaited_flushes: 0,
            is_generated: false,
            held_back: false,
            lacks_room: false,
            is_unreadable: false,
            is_lost: false,
            behind: NONE,
            owner: Cause::Controller,
            mark: now,
            ledger: Ledger::ZERO,
        };
        if let Some(index) = self.free.pop() {
            self.list[index as usize] = state;
            return index;
        }
        self.list.push(state);
        self.list.len() as u32 - 1
    }

    /// Lets a completed request go.
    #[inline]
    pub fn release(&mut self, index: u32) {
        self.free.push(index);
    }

    /// Takes all requests out, in the order of their submission.
    pub fn take_all(&mut self) -> Vec<RequestState> {
        let mut is_free = vec![false; self.list.len()];
        self.free.drain(..).for_each(|index| is_free[index as usize] = true);
        let all = self.list.drain(..).zip(is_free).filter(|(_, is_free)| !is_free);
        let mut inside: Vec<RequestState> = all.map(|(request, _)| request).collect();
        // The newest has the number `admitted`, the oldest the one farthest before it.
        inside.sort_by_key(|request| Reverse(self.admitted.wrapping_sub(request.turn)));
        inside
    }

    /// Requests in the device.
    #[inline]
    pub fn len(&self) -> usize {
        self.list.len() - self.free.len()
    }
}

impl std::ops::Index<u32> for Requests {
    type Output = RequestState;
    #[inline]
    fn index(&self, index: u32) -> &RequestState {
        &self.list[index as usize]
    }
}

impl std::ops::IndexMut<u32> for Requests {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut RequestState {
        &mut self.list[index as usize]
    }
}
