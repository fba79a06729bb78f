//! A device in real time: what is asked of it, and what is answered when.

use std::collections::VecDeque;
use std::io;

use flashkeel_engine::{
    Arena, Cause, Completion, Lba, Leaf, Operation, Payload, Request, RequestId, SECTOR_BYTES, Status,
    Submit, Time,
};
use flashkeel_store::{Damage, Store, Synced};

use crate::lateness::{Late, Lateness};
use crate::nbd::{Ask, Extent, Failure, Kind};
use crate::pieces::Pieces;
use crate::seen::Seen;

/// What a client is told at a time of what is stored: so many ranges,
const MOST_EXTENTS: usize = 256;
/// and no more than this many bytes are looked at, for others wait meanwhile.
const MOST_LOOKED_AT: u32 = 64 << 20;

/// A device, and whose requests are in it.
pub struct Drive<L> {
    device: L,
    /// What keeps its bytes, if they outlast it.
    store: Option<Store>,
    /// Requests that end once what has been written is durable, the oldest first: since
    /// when they wait, and for what.
    syncing: VecDeque<(Time, Synced, Inside)>,
    /// How long they have waited, beyond what the model says, in its time, as all that is late.
    waits: Lateness,
    data: Arena,
    /// By the number of the request.
    inside: Vec<Option<Inside>>,
    free: Vec<u32>,
    /// What the device was too busy to take, oldest first.
    waiting: VecDeque<Request>,
    /// What is served a piece at a time, so that nobody waits for all of it.
    pieces: Pieces,
    completions: Vec<Completion>,
    /// Those that are being answered: empty otherwise, and kept for its room.
    ended: Vec<Completion>,
    seen: Seen,
}

/// A request in the device.
#[derive(Clone, Copy)]
struct Inside {
    client: Client,
    kind: Kind,
    from: u64,
    /// As the device knows it.
    request: Request,
    asked: Time,
    /// From when on it is to be said who owned its time: since its last piece, if it has any.
    since: Time,
    /// When the device has taken it, or its piece.
    taken: Time,
    /// It is answered when what it is about is durable.
    has_to_last: bool,
}

impl Inside {
    /// What has to be durable before it is answered, now that the device has served it.
    fn lasts_from(&self, store: &Store) -> Option<Synced> {
        match self.kind {
            Kind::Read => store.owed(),
            _ => self.has_to_last.then(|| store.begin_sync()),
        }
    }

    /// Its answer, where it has been served.
    fn served<'a>(&self, data: &'a Arena) -> Answer<'a> {
        match self.kind {
            Kind::Read => {
                let Request { payload, sectors, .. } = self.request;
                Answer::Data(self.from, data.read(payload, sectors).unwrap_or_default())
            }
            _ => Answer::Done,
        }
    }
}

/// Who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The connection.
    pub session: usize,
    /// Its name for the request.
    pub cookie: u64,
    /// Bytes that the request takes in memory until then.
    pub held: u32,
}

/// What is answered.
pub enum Answer<'a> {
    /// A read.
    Data(u64, &'a [u8]),
    /// What is stored.
    Status(Vec<Extent>),
    /// A request without data in its answer.
    Done,
    /// It has failed; whether its answer would have had data.
    Failed(bool, Failure),
}

impl<L: Leaf> Drive<L> {
    /// Over a device that keeps bytes, from `now` on, in `store` if they are to outlast it.
    pub fn new(now: Time, device: L, store: Option<Store>) -> Drive<L> {
        Drive {
            device,
            store,
            syncing: VecDeque::new(),
            waits: Lateness::default(),
            data: Arena::new(),
            inside: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            pieces: Pieces::default(),
            completions: Vec::new(),
            ended: Vec::new(),
            seen: Seen::new(now),
        }
    }

    /// Takes a request at `now`, up to which [`advance`](Self::advance) has been called.
    /// What needs no device is answered at once.
    pub fn submit(&mut self, now: Time, session: usize, ask: &Ask<'_>) -> Option<Answer<'static>> {
        let operation = match ask.kind {
            Kind::Read => Operation::Read,
            Kind::Write => Operation::Write,
            Kind::Flush => Operation::Flush,
            Kind::Trim => Operation::Trim,
            Kind::WriteZeroes => Operation::WriteZeroes,
            Kind::Status(one) => {
                return Some(Answer::Status(self.extents(ask, if one { 1 } else { MOST_EXTENTS })));
            }
        };
        let sectors = (u64::from(ask.length) / SECTOR_BYTES) as u32;
        let payload = match ask.kind {
            Kind::Read | Kind::Write => self.data.take(sectors),
            _ => Payload::NONE,
        };
        if let Some(bytes) = self.data.write(payload, sectors).filter(|_| ask.kind == Kind::Write) {
            bytes.copy_from_slice(ask.data);
        }
        let client = Client { session, cookie: ask.cookie, held: ask.held() };
        let has_to_last = ask.fua || ask.kind == Kind::Flush;
        let number = self.free.pop().unwrap_or_else(|| {
            self.inside.push(None);
            self.inside.len() as u32 - 1
        });
        let request = Request {
            fua: ask.fua,
            payload,
            ..Request::new(RequestId(u64::from(number)), operation, Lba(ask.from / SECTOR_BYTES), sectors)
        };
        let (kind, from) = (ask.kind, ask.from);
        self.inside[number as usize] =
            Some(Inside { client, kind, from, request, asked: now, since: now, taken: now, has_to_last });
        let is_cut = matches!(operation, Operation::Trim | Operation::WriteZeroes)
            && Pieces::is_long(&request)
            && self.is_modelled();
        if is_cut {
            self.pieces.add(session, request);
        } else {
            self.waiting.push_back(request);
            self.offer(now);
        }
        None
    }

    /// No model says what a real drive takes, and it serves others meanwhile.
    fn is_modelled(&self) -> bool {
        !self.device.next_event().hears_outside()
    }

    /// Whether there is more of what is served a piece at a time, and no piece has yet to end.
    pub fn has_piece(&self) -> bool {
        self.pieces.has_next()
    }

    /// Gives the device the next piece, if there is one, at `now`, up to which
    /// [`advance`](Self::advance) has been called.
    pub fn give_piece(&mut self, now: Time) {
        if let Some(piece) = self.pieces.next() {
            self.waiting.push_back(piece);
            self.offer(now);
        }
    }

    /// What there is from where is asked on, as much as may be said at a time.
    fn extents(&self, ask: &Ask<'_>, most: usize) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::new();
        let (mut at, end) = (ask.from, ask.from + u64::from(ask.length.min(MOST_LOOKED_AT)));
        while at < end && extents.len() < most {
            let sectors = ((end - at) / SECTOR_BYTES) as u32;
            let (alike, holds) = self.device.holds(Lba(at / SECTOR_BYTES), sectors);
            let length = alike * SECTOR_BYTES as u32;
            match extents.last_mut() {
                Some(last) if last.holds == holds => last.length += length,
                _ => extents.push(Extent { length, holds }),
            }
            at += u64::from(length);
        }
        extents
    }

    /// Offers the device what waits.
    fn offer(&mut self, now: Time) {
        while let Some(request) = self.waiting.front() {
            match self.device.submit(now, request, &mut self.data) {
                Submit::Accepted => {}
                Submit::Busy => return,
                Submit::Refused(status) => {
                    let ledger = flashkeel_engine::Ledger::ZERO;
                    self.completions.push(Completion { id: request.id, time: now, status, ledger });
                }
            }
            if let Some(inside) = &mut self.inside[request.id.0 as usize] {
                inside.taken = now;
            }
            self.waiting.pop_front();
        }
    }

    /// A client has gone: what the device has not taken yet is forgotten, as nobody has been promised
    /// anything; returns how many of its requests have yet to end.
    pub fn forget(&mut self, session: usize) -> usize {
        let is_theirs = |inside: &Inside| inside.client.session == session;
        self.waiting.retain(|request| {
            let number = request.id.0 as u32;
            let place = &mut self.inside[number as usize];
            if !place.as_ref().is_some_and(is_theirs) {
                return true;
            }
            if !self.pieces.give_up(request.id) {
                *place = None;
                self.free.push(number);
                self.data.give_back(request.payload);
            }
            false
        });
        for RequestId(number) in self.pieces.forget(session) {
            self.inside[number as usize] = None;
            self.free.push(number as u32);
        }
        let syncing = self.syncing.iter().filter(|(.., inside)| is_theirs(inside)).count();
        self.inside.iter().flatten().filter(|inside| is_theirs(inside)).count() + syncing
    }

    /// When there is something to do by itself, if ever.
    pub fn next_event(&self) -> Option<Time> {
        if self.completions.is_empty() { self.device.next_event().time() } else { Some(Time::ZERO) }
    }

    /// Whether nobody waits for an answer.
    pub fn is_idle(&self) -> bool {
        self.free.len() == self.inside.len() && self.syncing.is_empty()
    }

    /// Goes on to `now`, and hands over what has ended by then, with the time at which the model
    /// says so, where one does.
    ///
    /// # Errors
    /// If what keeps its bytes has failed: nothing is answered any more.
    pub fn advance(
        &mut self,
        now: Time,
        mut answer: impl FnMut(Client, Option<Time>, Answer<'_>),
    ) -> io::Result<()> {
        self.device.advance(now, &mut self.data, &mut self.completions);
        self.settle(now)?;
        self.end_synced(now, &mut answer);
        let is_modelled = self.is_modelled();
        while !self.completions.is_empty() {
            std::mem::swap(&mut self.completions, &mut self.ended);
            for mut completion in self.ended.drain(..) {
                let number = completion.id.0 as u32;
                let place = &mut self.inside[number as usize];
                let Some(inside) = place else { continue };
                completion.ledger.charge_between(Cause::HostQueue, inside.since, inside.taken);
                if !self.pieces.landed(&mut completion) {
                    inside.since = completion.time;
                    continue;
                }
                let inside = *inside;
                *place = None;
                self.free.push(number);
                self.seen.record(&inside.request, inside.asked, &completion);
                if let Some(store) = self.store.as_ref().filter(|_| completion.status == Status::Ok)
                    && let Some(synced) = inside.lasts_from(store)
                {
                    self.syncing.push_back((now, synced, inside));
                    continue;
                }
                let due = is_modelled.then_some(completion.time);
                match completion.status {
                    Status::Ok => answer(inside.client, due, inside.served(&self.data)),
                    failed => {
                        let has_data = inside.kind == Kind::Read;
                        answer(inside.client, due, Answer::Failed(has_data, failure(failed)));
                    }
                }
                self.data.give_back(inside.request.payload);
            }
            // What has ended has made room.
            self.offer(now);
            self.device.advance(now, &mut self.data, &mut self.completions);
            self.settle(now)?;
        }
        // Where there is nothing to make durable nobody synchronises, and wakes for it.
        self.end_synced(now, &mut answer);
        Ok(())
    }

    /// What is about to be answered outlasts the process.
    fn settle(&self, now: Time) -> io::Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        store.settle(now);
        store.fault().map_or(Ok(()), Err)
    }

    /// Hands over what has become durable.
    fn end_synced(&mut self, now: Time, answer: &mut impl FnMut(Client, Option<Time>, Answer<'_>)) {
        let Some(store) = &self.store else { return };
        let synced = store.synced();
        while let Some((since, _, inside)) =
            self.syncing.front().filter(|(_, wanted, _)| *wanted <= synced).copied()
        {
            self.syncing.pop_front();
            self.waits.record(now.since(since));
            answer(inside.client, None, inside.served(&self.data));
            self.data.give_back(inside.request.payload);
        }
    }

    /// Nobody asks any more: what is stored is left in good order.
    ///
    /// # Errors
    /// If it cannot be made durable.
    pub fn close(&self, now: Time) -> io::Result<()> {
        self.store.as_ref().map_or(Ok(()), |store| store.close(now))
    }

    /// What has been found damaged since this was last asked.
    pub fn damage(&self) -> Damage {
        self.store.as_ref().map(Store::damage).unwrap_or_default()
    }

    /// How long requests have waited until what they were about was durable.
    pub fn synced(&self) -> Late {
        self.waits.report()
    }

    /// What is seen of it.
    pub fn seen(&mut self) -> &mut Seen {
        &mut self.seen
    }

    /// The device.
    pub fn device(&mut self) -> &mut L {
        &mut self.device
    }
}

fn failure(status: Status) -> Failure {
    match status {
        Status::ReadOnly => Failure::NotPermitted,
        Status::NoSpace => Failure::NoSpace,
        Status::Invalid => Failure::Invalid,
        _ => Failure::Io,
    }
}

#[cfg(test)]
mod tests;
