//! A device over a store, beside what it should hold.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use flashkeel_device::{DeviceConfig, FillPattern, MapCacheSize, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{
    Arena, Holds, LOGICAL_PAGE_SECTORS, Lba, Leaf, Operation, Payload, Request, RequestId, Status, Stream,
    Submit, Time,
};
use flashkeel_store::{Header, Opened, Refused, Store, Watch};
use serde_json::json;

use crate::film::{End, Film};

const PAGE: usize = 4096;
const PAGE_SECTORS: u32 = LOGICAL_PAGE_SECTORS as u32;

/// Devices of the kinds that can be found again, by name.
pub const DEVICES: [&str; 15] = [
    "plain",
    "checkpoints",
    "map cache",
    "in flash",
    "fore",
    "coalescing",
    "physical",
    "logical",
    "sets, logical",
    "slc cache",
    "partitions",
    "volatile",
    "copied back",
    "sets",
    "retiring",
];

fn policy<P: serde::de::DeserializeOwned>(value: impl Into<serde_json::Value>) -> P {
    serde_json::from_value(value.into()).expect("a policy of the axis")
}

/// A small device.
pub fn device(name: &str) -> DeviceConfig {
    let mut config = DeviceConfig::default();
    config.geometry.channels = 2;
    config.geometry.chips_per_channel = 2;
    config.geometry.planes_per_chip = 1;
    config.geometry.blocks_per_plane = 28;
    config.geometry.pages_per_block = 8;
    config.geometry.page_size = Bytes(8192);
    config.logical_capacity = Bytes(2 << 20);
    config.map_cache = MapCacheSize::All;
    config.gc.start_below = 8;
    config.gc.stop_above = 12;
    config.buffer.size = Bytes(128 << 10);
    config.precondition.pattern = FillPattern::Random;
    match name {
        "checkpoints" => {
            config.checkpoint = policy(json!({ "enabled": true, "period": "1ms", "after_pages": 50 }));
            config.geometry.blocks_per_plane = 40;
        }
        "map cache" => {
            config.map_cache = MapCacheSize::Size(Bytes(4096));
            config.logical_capacity = Bytes(6 << 20);
            config.geometry.blocks_per_plane = 64;
        }
        "in flash" => config.buffer.kind = policy("none"),
        "fore" => {
            config.buffer.kind = policy("fore");
            config.buffer.flush = vec![policy("full")];
        }
        "coalescing" => config.buffer.rewrite = policy("coalesce"),
        "physical" => {
            config.redundancy = policy(json!({ "policy": "physical", "pages": 2 }));
            config.gc.start_below = 16;
            config.gc.stop_above = 20;
            config.logical_capacity = Bytes(1 << 20);
        }
        "logical" | "sets, logical" => {
            config.geometry.channels = 4;
            config.allocation = policy("striped");
            config.redundancy = policy(json!({ "policy": "logical", "update": "gc-tolerant" }));
            config.read_path = policy("gc-tolerant");
            config.buffer.rewrite = policy("coalesce");
            config.buffer.flush = vec![policy("watermark")];
            config.sets = if name == "logical" { 1 } else { 2 };
        }
        "slc cache" => config.slc_cache = policy(json!({ "policy": "fold", "size": "128KiB" })),
        "partitions" => config.partition_bits = vec![5],
        "volatile" => config.buffer.volatile = true,
        "copied back" => {
            config.gc.movement = policy("page-copyback");
            config.gc.erasing = policy("in-pauses");
        }
        "sets" => config.sets = 2,
        "retiring" => {
            config.wear = policy(json!({ "policy": "rated", "rated_cycles": 3 }));
            config.retirement = policy("no-space");
            config.geometry.blocks_per_plane = 16;
        }
        _ => {}
    }
    config
}

/// The bytes of a version of a page.
fn bytes(page: usize, version: u64) -> Vec<u8> {
    if version == 0 {
        return vec![0; PAGE];
    }
    let mut random = Stream::new(version, &format!("page {page}"));
    (0..PAGE / 8).flat_map(|_| random.word().to_le_bytes()).collect()
}

fn header(ssd: &Ssd) -> Header {
    Header::new(ssd.sectors() * 512, &ssd.media(), "").expect("it has room")
}

fn fresh(config: &DeviceConfig) -> Ssd {
    Ssd::new(&config.validate().expect("the test's device is valid"), 5)
}

/// The device that a disk holds.
pub fn open(film: &Film, config: &DeviceConfig) -> Result<(Ssd, Store, Time), Refused> {
    open_watched(film, config, &mut |_| ControlFlow::Continue(()))
}

/// The same; `watch` is told how much has been read.
pub fn open_watched(
    film: &Film,
    config: &DeviceConfig,
    watch: &mut Watch<'_>,
) -> Result<(Ssd, Store, Time), Refused> {
    let mut ssd = fresh(config);
    let opened = Store::resume(Arc::new(film.clone()), &header(&ssd), None, watch)?;
    let Opened::Old(store, found, now) = opened else { panic!("nothing is begun on a disk") };
    ssd.recover(now, store.media().into_iter().zip(found).collect());
    Ok((ssd, store, now))
}

/// What a page may hold.
struct Page {
    /// Versions that may be found after a loss of power, with the place of their
    /// acknowledgement in the order of all; the last is what is read. Version 0 is zeros.
    versions: Vec<(u64, u64)>,
    /// A version that is being written.
    written: Option<u64>,
    /// Versions that may have been written: there was no room for all of their writes.
    or: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Flying {
    request: Request,
    pages: Range<usize>,
    /// How many acknowledgements there were before.
    after: u64,
}

/// A device beside what it should hold.
pub struct World {
    config: DeviceConfig,
    ssd: Ssd,
    film: Film,
    store: Store,
    data: Arena,
    pages: Vec<Page>,
    flying: BTreeMap<u64, Flying>,
    now: Time,
    next: u64,
    acknowledged: u64,
}

impl World {
    /// A preconditioned one.
    pub fn new(config: &DeviceConfig) -> World {
        let mut ssd = fresh(config);
        let _ = ssd.precondition(&mut |_| ControlFlow::Continue(()));
        let film = Film::of_zeros(header(&ssd).bytes());
        let mut store =
            Store::create(Arc::new(film.clone()), &header(&ssd), None).expect("a disk that does not fail");
        ssd.keep_data_in(store.media());
        store.complete().expect("a disk that does not fail");
        let page = |_| Page { versions: vec![(0, 0)], written: None, or: vec![] };
        World {
            pages: (0..config.logical_capacity.0 / PAGE as u64).map(page).collect(),
            config: config.clone(),
            ssd,
            film,
            store,
            data: Arena::new(),
            flying: BTreeMap::new(),
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

    /// What there is of each page.
    pub fn holds(&self) -> Vec<Holds> {
        let lba = |page| Lba(page as u64 * LOGICAL_PAGE_SECTORS);
        (0..self.pages.len()).map(|page| self.ssd.holds(lba(page), PAGE_SECTORS).1).collect()
    }

    /// Its disk.
    pub fn film(&self) -> Film {
        self.film.clone()
    }

    /// Where the first record lies.
    pub fn sections_start(&self) -> u64 {
        3 * PAGE as u64
    }

    /// Effective cycles of its blocks.
    pub fn worn(&self) -> f64 {
        self.ssd.worn().sum()
    }

    /// Lets the process be killed after so many writes to its disk.
    pub fn kill_after(&self, writes: u32) {
        self.film.kill_after(writes);
    }

    /// Whether it has been.
    pub fn is_dead(&self) -> bool {
        self.film.is_dead()
    }

    /// Submits a request, if nothing in flight touches the same pages.
    pub fn submit(&mut self, operation: Operation, pages: Range<usize>, fua: bool) {
        let changes = |operation| !matches!(operation, Operation::Read | Operation::Flush);
        let overlaps = |other: &Flying| {
            (changes(operation) || changes(other.request.operation))
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
        if changes(operation) {
            let version = if operation == Operation::Write { id } else { 0 };
            self.pages[pages.clone()].iter_mut().for_each(|page| page.written = Some(version));
        }
        let lba = Lba(pages.start as u64 * LOGICAL_PAGE_SECTORS);
        let request = Request { payload, fua, ..Request::new(RequestId(id), operation, lba, sectors) };
        self.flying.insert(id, Flying { request, pages, after: self.acknowledged });
        assert_eq!(self.ssd.submit(self.now, &request, &mut self.data), Submit::Accepted);
        self.store.settle(self.now);
    }

    /// What happens next.
    pub fn progress(&mut self) {
        let Some(next) = self.ssd.next_event().time() else { return };
        self.now = next;
        let mut done = Vec::new();
        self.ssd.advance(self.now, &mut self.data, &mut done);
        while self.ssd.notice().is_some() {}
        self.store.settle(self.now);
        let waits = done.iter().any(|completion| {
            let request = &self.flying[&completion.id.0].request;
            request.fua || request.operation == Operation::Flush
        });
        if waits {
            self.store.begin_sync();
        }
        assert!(self.store.fault().is_none());
        if self.is_dead() {
            // Nobody has heard of it.
            return;
        }
        for completion in done {
            let flying = self.flying.remove(&completion.id.0).expect("a request completes exactly once");
            if completion.status == Status::NoSpace {
                let pages = &mut self.pages[flying.pages];
                pages.iter_mut().for_each(|page| page.or.extend(page.written.take()));
            } else {
                assert_eq!(completion.status, Status::Ok);
                self.end(&flying);
            }
            self.data.give_back(flying.request.payload);
        }
    }

    /// A request has been acknowledged.
    fn end(&mut self, Flying { request, pages, after }: &Flying) {
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
                for page in &mut self.pages[pages.clone()] {
                    if request.fua {
                        page.versions.clear();
                        page.or.clear();
                    }
                    let version = page.written.take().expect("it was being written");
                    page.versions.push((version, self.acknowledged));
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

    /// Its process or host ends, and another one takes over. Returns the wear of its blocks
    /// and its time, as they are found.
    pub fn restart(&mut self, end: End, random: &mut Stream) -> (f64, Time) {
        if end == End::Killed {
            // What was acknowledged is there.
            for page in &mut self.pages {
                page.versions.drain(..page.versions.len() - 1);
            }
        }
        self.film = self.film.left(end, random);
        (self.ssd, self.store, self.now) = open(&self.film, &self.config).expect("it is fit");
        self.data = Arena::new();
        self.flying.clear();
        self.ssd.check();
        let found = (self.ssd.worn().sum(), self.now);
        self.find();
        found
    }

    /// Reads every page: it holds one of the versions that it may hold.
    fn find(&mut self) {
        for number in 0..self.pages.len() {
            let (status, found) = self.read(number);
            assert_eq!(status, Status::Ok);
            let page = &mut self.pages[number];
            let may = page.versions.iter().map(|&(version, _)| version).chain(page.written.take());
            let mut may = may.chain(page.or.drain(..));
            let version = may.find(|&version| bytes(number, version) == found);
            let version = version.unwrap_or_else(|| {
                panic!("page {number} holds {:02x?}, none of {:?}", &found[..8], page.versions)
            });
            page.versions = vec![(version, 0)];
        }
    }

    fn read(&mut self, number: usize) -> (Status, Vec<u8>) {
        let payload = self.data.take(PAGE_SECTORS);
        let lba = Lba(number as u64 * LOGICAL_PAGE_SECTORS);
        let request = Request { payload, ..Request::new(RequestId(0), Operation::Read, lba, PAGE_SECTORS) };
        assert_eq!(self.ssd.submit(self.now, &request, &mut self.data), Submit::Accepted);
        let mut done = Vec::new();
        while done.is_empty() {
            while self.ssd.notice().is_some() {}
            let ended = self.ssd.advance_to_completion(Time::MAX, &mut self.data, &mut done);
            self.now = ended.expect("it ends");
        }
        let found = self.data.read(payload, PAGE_SECTORS).expect("a buffer").to_vec();
        self.data.give_back(payload);
        (done[0].status, found)
    }

    /// Changes a bit of some page's bytes on a copy of the disk. Returns how many pages
    /// cannot be read then; all others are as they were.
    pub fn rot(&mut self, random: &mut Stream) -> usize {
        let film = self.film.left(End::Killed, random);
        let pages = self.store.pages_at(0);
        film.flip(pages.start + random.below(pages.end - pages.start));
        let former = std::mem::replace(&mut self.film, film);
        (self.ssd, self.store, self.now) = open(&self.film, &self.config).expect("it is fit");
        let mut unread = 0;
        for number in 0..self.pages.len() {
            let (status, found) = self.read(number);
            if status == Status::MediaError {
                unread += 1;
            } else {
                let (version, _) = *self.pages[number].versions.last().expect("there is one");
                assert_eq!((status, found), (Status::Ok, bytes(number, version)), "page {number}");
            }
        }
        assert_eq!(self.store.damage().len(), unread);
        assert!(unread <= 1);
        self.film = former;
        unread
    }
}
