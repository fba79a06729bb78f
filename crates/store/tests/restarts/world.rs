//! Something over a store, beside what it should hold.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use flashkeel_engine::{
    Arena, Completion, LOGICAL_PAGE_SECTORS, Lba, Leaf, Operation, Payload, Request, RequestId, Status,
    Stream, Submit, Time,
};
use flashkeel_store::{Store, Synced};

use crate::film::{End, Film};

pub const PAGE: usize = 4096;
pub const PAGE_SECTORS: u32 = LOGICAL_PAGE_SECTORS as u32;

/// The bytes of a version of a page.
pub fn bytes(page: usize, version: u64) -> Vec<u8> {
    if version == 0 {
        return vec![0; PAGE];
    }
    let mut random = Stream::new(version, &format!("page {page}"));
    (0..PAGE / 8).flat_map(|_| random.word().to_le_bytes()).collect()
}

/// What is ended and found again.
pub trait Subject {
    /// It.
    type Device: Leaf;

    /// It at first, on a new disk.
    fn begin(&self) -> (Self::Device, Store, Film);

    /// It as a disk holds it, from a time on.
    fn find(&self, film: &Film) -> (Self::Device, Store, Time);

    /// Whether it is in good order.
    fn check(&self, _device: &Self::Device) {}
}

/// What a page may hold.
pub struct Page {
    /// Versions that may be found after a loss of power, with the place of their
    /// acknowledgement in the order of all; the last is what is read. Version 0 is zeros.
    pub versions: Vec<(u64, u64)>,
    /// All versions that it has been given.
    pub given: Vec<u64>,
    /// Versions that are being written.
    pub written: Vec<u64>,
    /// Versions that may have been written: there was no room for all of their writes, or others
    /// were written at the same time.
    pub or: Vec<u64>,
    /// A version of which bits have been changed: where it would be found, or read, that may
    /// be an error.
    pub rotten: Option<u64>,
    /// It has been one.
    is_lost: bool,
}

impl Page {
    /// A version is not being written any more.
    fn ends(&mut self, version: u64) {
        let at = self.written.iter().position(|&written| written == version);
        self.written.remove(at.expect("it was being written"));
    }

    /// What is read, unless that may be more than one.
    pub fn newest(&self) -> u64 {
        self.versions.last().expect("there is one").0
    }
}

#[derive(Clone, Debug)]
struct Flying {
    request: Request,
    pages: Range<usize>,
    /// How many acknowledgements there were before.
    after: u64,
}

impl Flying {
    /// What it makes of its pages, if it changes them: zeros, or what is told by its number.
    fn version(&self) -> Option<u64> {
        match self.request.operation {
            Operation::Read | Operation::Flush => None,
            Operation::Write => Some(self.request.id.0),
            _ => Some(0),
        }
    }
}

/// It beside what it should hold.
pub struct World<S: Subject> {
    pub subject: S,
    pub device: S::Device,
    pub film: Film,
    pub store: Store,
    data: Arena,
    pub pages: Vec<Page>,
    flying: BTreeMap<u64, Flying>,
    /// What has ended but for being durable.
    syncing: VecDeque<(Synced, Completion)>,
    pub now: Time,
    next: u64,
    acknowledged: u64,
}

impl<S: Subject> World<S> {
    /// A new one.
    pub fn new(subject: S) -> World<S> {
        let (device, store, film) = subject.begin();
        let page = |_| Page {
            versions: vec![(0, 0)],
            given: vec![0],
            written: vec![],
            or: vec![],
            rotten: None,
            is_lost: false,
        };
        World {
            pages: (0..device.limits().sectors / LOGICAL_PAGE_SECTORS).map(page).collect(),
            subject,
            device,
            film,
            store,
            data: Arena::new(),
            flying: BTreeMap::new(),
            syncing: VecDeque::new(),
            now: Time::ZERO,
            next: 1,
            acknowledged: 0,
        }
    }

    /// Its pages of 4 KiB.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Its time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Its disk.
    pub fn film(&self) -> Film {
        self.film.clone()
    }

    /// Lets the process be killed after so many writes to its disk.
    pub fn kill_after(&self, writes: u32) {
        self.film.kill_after(writes);
    }

    /// Whether it has been.
    pub fn is_dead(&self) -> bool {
        self.film.is_dead()
    }

    /// Submits a request, once nothing in flight touches the same pages.
    pub fn submit(&mut self, operation: Operation, pages: Range<usize>, fua: bool) {
        self.submit_among(operation, pages, fua, false);
    }

    /// The same; where it is `at_once`, changes of the same pages may be in flight, such as those of
    /// other clients.
    pub fn submit_among(&mut self, operation: Operation, pages: Range<usize>, fua: bool, at_once: bool) {
        let changes = |operation| !matches!(operation, Operation::Read | Operation::Flush);
        let overlaps = |other: &Flying| {
            let (this, other_changes) = (changes(operation), changes(other.request.operation));
            (this || other_changes)
                && !(at_once && this && other_changes)
                && other.pages.start < pages.end
                && pages.start < other.pages.end
        };
        while !self.is_dead() && (self.flying.len() >= 12 || self.flying.values().any(overlaps)) {
            self.progress();
        }
        if self.is_dead() {
            return;
        }
        let id = self.next;
        self.next += 1;
        let sectors = pages.len() as u32 * PAGE_SECTORS;
        let mut payload = Payload::NONE;
        if matches!(operation, Operation::Read | Operation::Write) {
            payload = self.data.take(sectors);
        }
        if operation == Operation::Write {
            let place = self.data.write(payload, sectors).expect("a buffer");
            let places = place.chunks_exact_mut(PAGE).zip(pages.clone());
            places.for_each(|(place, page)| place.copy_from_slice(&bytes(page, id)));
        }
        let lba = Lba(pages.start as u64 * LOGICAL_PAGE_SECTORS);
        let request = Request { payload, fua, ..Request::new(RequestId(id), operation, lba, sectors) };
        let flying = Flying { request, pages, after: self.acknowledged };
        if let Some(version) = flying.version() {
            for page in &mut self.pages[flying.pages.clone()] {
                page.written.push(version);
                page.given.push(version);
            }
        }
        self.flying.insert(id, flying);
        match self.device.submit(self.now, &request, &mut self.data) {
            Submit::Accepted => {}
            refused => {
                assert_eq!(refused, Submit::Refused(Status::ReadOnly));
                let flying = self.flying.remove(&id).expect("it was added");
                self.pages[flying.pages]
                    .iter_mut()
                    .for_each(|page| page.written.truncate(page.written.len() - 1));
                self.data.give_back(payload);
            }
        }
        self.store.settle(self.now);
    }

    /// What happens next.
    pub fn progress(&mut self) {
        if self.syncing.len() > 4 {
            self.film.go_on();
        }
        let Some(next) = self.device.next_event().time() else { return self.end_synced() };
        self.now = next.max(self.now);
        let mut done = Vec::new();
        self.device.advance(self.now, &mut self.data, &mut done);
        while self.device.notice().is_some() {}
        self.store.settle(self.now);
        assert!(self.store.fault().is_none());
        for completion in done {
            let request = &self.flying[&completion.id.0].request;
            let lasts_from = match request.operation {
                _ if completion.status != Status::Ok => None,
                Operation::Read => self.store.owed(),
                Operation::Flush => Some(self.store.begin_sync()),
                _ => request.fua.then(|| self.store.begin_sync()),
            };
            match lasts_from {
                Some(synced) => self.syncing.push_back((synced, completion)),
                None => self.end(completion),
            }
        }
        self.end_synced();
    }

    /// What has become durable ends.
    fn end_synced(&mut self) {
        while let Some((synced, completion)) = self.syncing.front().copied() {
            if synced > self.store.synced() {
                break;
            }
            self.syncing.pop_front();
            self.end(completion);
        }
    }

    /// A request ends, unless its owner has been killed: then nobody has heard of it.
    fn end(&mut self, completion: Completion) {
        if self.is_dead() {
            return;
        }
        let flying = self.flying.remove(&completion.id.0).expect("a request completes exactly once");
        match completion.status {
            Status::NoSpace | Status::ReadOnly => {
                let version = flying.version().expect("a change");
                for page in &mut self.pages[flying.pages] {
                    page.ends(version);
                    page.or.push(version);
                }
            }
            Status::MediaError | Status::Lost => {
                assert_eq!(flying.request.operation, Operation::Read);
                let mut pages = self.pages[flying.pages].iter();
                let may = |page: &Page, version| page.newest() == version || page.or.contains(&version);
                assert!(pages.any(|page| page.rotten.is_some_and(|rotten| may(page, rotten))));
            }
            status => {
                assert_eq!(status, Status::Ok);
                self.acknowledge(&flying);
            }
        }
        self.data.give_back(flying.request.payload);
    }

    /// A request has been acknowledged.
    fn acknowledge(&mut self, flying: &Flying) {
        let Flying { request, pages, after } = flying;
        self.acknowledged += 1;
        match request.operation {
            Operation::Read => {
                let found = self.data.read(request.payload, request.sectors).expect("a buffer");
                for (number, found) in pages.clone().zip(found.chunks_exact(PAGE)) {
                    let page = &self.pages[number];
                    let newest = page.versions.last().map(|&(version, _)| version);
                    let mut may = newest.into_iter().chain(page.or.iter().copied());
                    assert!(may.any(|version| bytes(number, version) == found), "page {number}");
                }
            }
            Operation::Flush => {
                for page in &mut self.pages {
                    let older = page.versions.iter().filter(|(_, at)| at <= after).count();
                    page.versions.drain(..older.saturating_sub(1));
                }
            }
            _ => {
                let version = flying.version().expect("a change");
                for page in &mut self.pages[pages.clone()] {
                    page.ends(version);
                    // Those at the same time may have come after it.
                    let rivals: Vec<u64> =
                        page.versions.iter().filter(|(_, at)| at > after).map(|(rival, _)| *rival).collect();
                    if request.fua && rivals.is_empty() {
                        page.versions.clear();
                        page.or.clear();
                    }
                    page.or.extend(rivals);
                    page.versions.push((version, self.acknowledged));
                    page.is_lost = false;
                }
            }
        }
    }

    /// Until nothing is in flight.
    pub fn drain(&mut self) {
        while !self.flying.is_empty() {
            self.progress();
        }
    }

    /// Its process ends in good order.
    pub fn close(&mut self) {
        self.store.close(self.now).expect("a disk that does not fail");
    }

    /// Its process or host ends, and another one takes over, which finds what it has to find.
    pub fn restart(&mut self, end: End, random: &mut Stream) {
        self.end_and_open(end, random);
        self.find();
    }

    /// Its process or host ends, and another one takes over.
    pub fn end_and_open(&mut self, end: End, random: &mut Stream) {
        if end == End::Killed {
            // What was acknowledged is there.
            for page in &mut self.pages {
                page.versions.drain(..page.versions.len() - 1);
            }
        }
        self.open(self.film.left(end, random));
    }

    /// Another process takes over, with this disk.
    pub fn open(&mut self, film: Film) {
        self.film = film;
        (self.device, self.store, self.now) = self.subject.find(&self.film);
        self.data = Arena::new();
        self.flying.clear();
        self.syncing.clear();
        self.subject.check(&self.device);
    }

    /// Pages that cannot be read.
    pub fn lost(&self) -> Vec<usize> {
        (0..self.pages.len()).filter(|&page| self.pages[page].is_lost).collect()
    }

    /// Reads every page: it holds one of the versions that it may hold, or cannot be read where
    /// that is one of which bits have been changed.
    pub fn find(&mut self) {
        for number in 0..self.pages.len() {
            let (status, found) = self.read(number);
            let page = &mut self.pages[number];
            if matches!(status, Status::MediaError | Status::Lost) {
                let versions = page.versions.iter().map(|&(version, _)| version);
                let others = page.written.iter().chain(&page.or).copied();
                let mut may = versions.chain(others);
                let rotten = page.rotten.filter(|rotten| may.any(|version| version == *rotten));
                page.versions = vec![(rotten.unwrap_or_else(|| panic!("page {number}: {status:?}")), 0)];
                page.is_lost = true;
                page.written.clear();
                page.or.clear();
                continue;
            }
            assert_eq!(status, Status::Ok);
            // Another place may be found that has the same.
            page.is_lost = false;
            let may = page.versions.iter().map(|&(version, _)| version).chain(page.written.drain(..));
            let mut may = may.chain(page.or.drain(..));
            let version = may.find(|&version| bytes(number, version) == found);
            let version = version.unwrap_or_else(|| {
                panic!("page {number} holds {:02x?}, none of {:?}", &found[..8], page.versions)
            });
            page.versions = vec![(version, 0)];
        }
    }

    /// What a page holds.
    pub fn read(&mut self, number: usize) -> (Status, Vec<u8>) {
        let payload = self.data.take(PAGE_SECTORS);
        let lba = Lba(number as u64 * LOGICAL_PAGE_SECTORS);
        let request = Request { payload, ..Request::new(RequestId(0), Operation::Read, lba, PAGE_SECTORS) };
        assert_eq!(self.device.submit(self.now, &request, &mut self.data), Submit::Accepted);
        let mut done = Vec::new();
        while done.is_empty() {
            while self.device.notice().is_some() {}
            let ended = self.device.advance_to_completion(Time::MAX, &mut self.data, &mut done);
            self.now = ended.expect("it ends");
        }
        while self.store.owed().is_some() {
            self.film.go_on();
        }
        let found = self.data.read(payload, PAGE_SECTORS).expect("a buffer").to_vec();
        self.data.give_back(payload);
        (done[0].status, found)
    }
}
