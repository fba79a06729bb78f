//! Power cuts at any moment: what was durable is read back, byte by byte, and
//! the device goes on working.

mod support;

use std::collections::BTreeMap;
use std::ops::Range;

use flashkeel_device::{DeviceConfig, Fault, FillPattern, MapCacheSize, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{
    Arena, Command, Completion, Durable, Holds, LOGICAL_PAGE_SECTORS, Lba, Leaf, Operation, Payload, Request,
    Status, Stream, Submit, Time, Window,
};
use proptest::prelude::*;
use serde_json::json;
use support::{policy, ready, request, tell};

const PAGE: usize = 4096;
const PAGE_SECTORS: u32 = LOGICAL_PAGE_SECTORS as u32;

/// What a page may hold.
struct Page {
    /// Versions that may be found after a power cut, with the place of their
    /// acknowledgement in the order of all; the last is what is read until then.
    /// Version 0 is zeros.
    versions: Vec<(u64, u64)>,
    /// A version that is being written.
    written: Option<u64>,
    /// Versions that may have been written: there was no room for all of their writes.
    or: Vec<u64>,
}

#[derive(Debug)]
struct Flying {
    request: Request,
    pages: Range<usize>,
    submitted: Time,
    /// How many acknowledgements there were before.
    after: u64,
}

/// A device beside what it should hold.
struct World {
    ssd: Ssd,
    data: Arena,
    pages: Vec<Page>,
    flying: BTreeMap<u64, Flying>,
    now: Time,
    next: u64,
    acknowledged: u64,
    is_volatile: bool,
}

/// The bytes of a version of a page.
fn bytes(page: usize, version: u64) -> Vec<u8> {
    if version == 0 {
        return vec![0; PAGE];
    }
    let mut random = Stream::new(version, &format!("page {page}"));
    (0..PAGE / 8).flat_map(|_| random.word().to_le_bytes()).collect()
}

impl World {
    fn new(config: &DeviceConfig) -> World {
        let mut ssd = ready(config, 5);
        ssd.keep_data();
        let pages = (0..config.logical_capacity.0 / 4096).map(|_| Page {
            versions: vec![(0, 0)],
            written: None,
            or: Vec::new(),
        });
        World {
            is_volatile: ssd.limits().durable == Durable::Flushed,
            ssd,
            data: Arena::new(),
            pages: pages.collect(),
            flying: BTreeMap::new(),
            now: Time::ZERO,
            next: 1,
            acknowledged: 0,
        }
    }

    fn submit(&mut self, operation: Operation, pages: Range<usize>, fua: bool) {
        // No host has two requests for a page in flight of which one changes it.
        let changes = |operation| !matches!(operation, Operation::Read | Operation::Flush);
        let overlaps = |other: &Flying| {
            (changes(operation) || changes(other.request.operation))
                && other.pages.start < pages.end
                && pages.start < other.pages.end
        };
        while self.flying.len() >= 12 || self.flying.values().any(overlaps) {
            self.progress();
        }
        let id = self.next;
        self.next += 1;
        let count = pages.len() as u32;
        let mut payload = Payload::NONE;
        if matches!(operation, Operation::Read | Operation::Write) {
            payload = self.data.take(count * PAGE_SECTORS);
            let place = self.data.write(payload, count * PAGE_SECTORS).expect("a buffer");
            place.fill(0xA5);
            if operation == Operation::Write {
                let places = place.chunks_exact_mut(PAGE).zip(pages.clone());
                places.for_each(|(place, page)| place.copy_from_slice(&bytes(page, id)));
            }
        }
        if changes(operation) {
            let version = if operation == Operation::Write { id } else { 0 };
            self.pages[pages.clone()].iter_mut().for_each(|page| page.written = Some(version));
        }
        let request = Request { payload, fua, ..request(id, operation, pages.start as u64, count) };
        assert_eq!(self.ssd.submit(self.now, &request, &mut self.data), Submit::Accepted);
        let (submitted, after) = (self.now, self.acknowledged);
        self.flying.insert(id, Flying { request, pages, submitted, after });
    }

    fn progress(&mut self) {
        let next = self.ssd.next_event().time();
        self.now = next.unwrap_or_else(|| panic!("nothing to do with {:?} inside", self.flying));
        for completion in self.advance() {
            if completion.status == Status::NoSpace {
                let Flying { request, pages, .. } = self.land(&completion, Status::NoSpace);
                self.pages[pages].iter_mut().for_each(|page| page.or.extend(page.written.take()));
                self.data.give_back(request.payload);
            } else {
                let flying = self.land(&completion, Status::Ok);
                self.end(flying);
            }
        }
    }

    fn advance(&mut self) -> Vec<Completion> {
        let mut done = Vec::new();
        self.ssd.advance(self.now, &mut self.data, &mut done);
        done
    }

    fn land(&mut self, completion: &Completion, status: Status) -> Flying {
        let flying = self.flying.remove(&completion.id.0).expect("a request completes exactly once");
        assert_eq!(completion.status, status);
        assert_eq!(completion.ledger.total(), completion.time.since(flying.submitted));
        flying
    }

    /// A request has been acknowledged.
    fn end(&mut self, Flying { request, pages, after, .. }: Flying) {
        self.acknowledged += 1;
        match request.operation {
            Operation::Read => {
                let found = self.data.read(request.payload, request.sectors).expect("a buffer");
                for (number, found) in pages.zip(found.chunks_exact(PAGE)) {
                    let page = &self.pages[number];
                    let mut may = page
                        .versions
                        .last()
                        .map(|&(version, _)| version)
                        .into_iter()
                        .chain(page.or.iter().copied());
                    assert!(may.any(|version| bytes(number, version) == found), "page {number}");
                    let held = self.ssd.holds(Lba(number as u64 * LOGICAL_PAGE_SECTORS), PAGE_SECTORS);
                    assert!(held.1 == Holds::Data || found.iter().all(|&byte| byte == 0), "page {number}");
                }
            }
            Operation::Flush => {
                for page in &mut self.pages {
                    let older = page.versions.iter().filter(|(_, at)| *at <= after).count();
                    page.versions.drain(..older.saturating_sub(1));
                }
            }
            Operation::Demote => {}
            Operation::Write | Operation::Trim | Operation::WriteZeroes => {
                for page in &mut self.pages[pages] {
                    if !self.is_volatile || request.fua {
                        page.versions.clear();
                        page.or.clear();
                    }
                    let version = page.written.take().expect("it was being written");
                    page.versions.push((version, self.acknowledged));
                }
            }
        }
        self.data.give_back(request.payload);
    }

    fn drain(&mut self) {
        while !self.flying.is_empty() {
            self.progress();
        }
    }

    fn cut_power(&mut self) {
        self.ssd.cut_power(self.now, &mut self.data);
        for completion in self.advance() {
            assert_eq!(completion.time, self.now);
            let flying = self.land(&completion, Status::Aborted);
            self.data.give_back(flying.request.payload);
        }
        assert!(self.flying.is_empty(), "every request ends: {:?}", self.flying);
        assert_eq!(self.data.taken(), 0);
        self.ssd.check();
        self.find();
    }

    /// Reads every page: it holds one of the versions that it may hold.
    fn find(&mut self) {
        for first in (0..self.pages.len()).step_by(64) {
            let pages = first..(first + 64).min(self.pages.len());
            let sectors = pages.len() as u32 * PAGE_SECTORS;
            let payload = self.data.take(sectors);
            let request =
                Request { payload, ..request(0, Operation::Read, first as u64, pages.len() as u32) };
            assert_eq!(self.ssd.submit(self.now, &request, &mut self.data), Submit::Accepted);
            let mut done = Vec::new();
            while done.is_empty() {
                // What happens to windows is not of interest.
                while self.ssd.notice().is_some() {}
                let ended = self.ssd.advance_to_completion(Time::MAX, &mut self.data, &mut done);
                self.now = ended.expect("it ends");
            }
            assert_eq!((done.len(), done[0].status), (1, Status::Ok));
            let found = self.data.read(payload, sectors).expect("a buffer").chunks_exact(PAGE);
            for (number, found) in pages.zip(found) {
                let page = &mut self.pages[number];
                let may = page.versions.iter().map(|&(version, _)| version).chain(page.written.take());
                let mut may = may.chain(page.or.drain(..));
                let version = may.find(|&version| bytes(number, version) == found);
                let version = version.unwrap_or_else(|| {
                    panic!("page {number} holds {:02x?}, none of {:?}", &found[..8], page.versions)
                });
                page.versions = vec![(version, 0)];
            }
            self.data.give_back(payload);
        }
    }
}

/// Something that happens to a device.
#[derive(Clone, Debug)]
enum Step {
    /// A request, its place as a share of the capacity.
    Request(Operation, f64, usize, bool),
    /// So many events.
    Events(u32),
    PowerCut,
    /// A window is commanded, if the device obeys, of one of its sets.
    Window(usize, Window),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let operation = prop_oneof![
        8 => Just(Operation::Write),
        2 => Just(Operation::Read),
        1 => Just(Operation::Trim),
        1 => Just(Operation::WriteZeroes),
        1 => Just(Operation::Flush),
    ];
    let request = (operation, 0.0..1.0f64, 1..10usize, prop::bool::weighted(0.2))
        .prop_map(|(operation, place, pages, fua)| Step::Request(operation, place, pages, fua));
    let step = prop_oneof![
        40 => request,
        10 => (1..60u32).prop_map(Step::Events),
        1 => Just(Step::PowerCut),
        3 => (0..4usize, prop::bool::ANY).prop_map(|(set, is_deterministic)| {
            Step::Window(set, if is_deterministic { Window::Deterministic } else { Window::NonDeterministic })
        }),
    ];
    prop::collection::vec(step, 1..400)
}

/// Devices of every kind, by name.
const DEVICES: [&str; 24] = [
    "plain",
    "checkpoints",
    "map cache",
    "in flash",
    "fore",
    "physical",
    "logical",
    "slc cache",
    "partitions",
    "volatile",
    "volatile, coalescing",
    "volatile, map cache",
    "moved inside",
    "copied back anywhere",
    "copied back anywhere, checkpoints",
    "sets",
    "volatile, sets",
    "sets, logical stripes",
    "volatile, little room",
    "retiring",
    "volatile, retiring",
    "physical, checkpoints",
    "map cache, checkpoints",
    "volatile, map cache, checkpoints",
];

fn device(name: &str) -> DeviceConfig {
    let mut config = support::tiny();
    config.geometry.page_size = Bytes(8192);
    config.geometry.blocks_per_plane = 28;
    config.logical_capacity = Bytes(2 << 20);
    config.buffer.size = Bytes(128 << 10);
    config.precondition.pattern = FillPattern::Random;
    match name {
        "in flash" => config.buffer.kind = policy("none"),
        "fore" => {
            config.buffer.kind = policy("fore");
            config.buffer.flush = vec![policy("full")];
        }
        "physical" | "physical, checkpoints" => {
            config.redundancy = policy(json!({ "policy": "physical", "pages": 2 }));
            config.gc.start_below = 16;
            config.gc.stop_above = 20;
            config.logical_capacity = Bytes(1 << 20);
        }
        "logical" | "sets, logical stripes" => {
            config.geometry.channels = 4;
            config.allocation = policy("striped");
            config.redundancy = policy(json!({ "policy": "logical", "update": "gc-tolerant" }));
            config.read_path = policy("gc-tolerant");
            config.buffer.rewrite = policy("coalesce");
            config.buffer.flush = vec![policy("watermark")];
        }
        "slc cache" => config.slc_cache = policy(json!({ "policy": "fold", "size": "128KiB" })),
        "volatile, little room" => config.buffer.size = Bytes(16 << 10),
        "partitions" => config.partition_bits = vec![5],
        "moved inside" => {
            config.allocation = policy("striped");
            config.gc.movement = policy("plane-blocking");
        }
        "copied back anywhere" | "copied back anywhere, checkpoints" => {
            config.gc.movement = policy("page-copyback");
            config.gc.erasing = policy("in-pauses");
        }
        _ => {}
    }
    if name.contains("sets") {
        config.sets = 2;
        config.window = policy(json!({ "policy": "commanded", "writes_typical": 6, "time_maximum": "20ms" }));
    }
    if name.ends_with("checkpoints") {
        config.checkpoint = policy(json!({ "enabled": true, "period": "1ms", "after_pages": 50 }));
        config.geometry.blocks_per_plane = 40;
    }
    if name.contains("map cache") {
        config.map_cache = MapCacheSize::Size(Bytes(4096));
        config.logical_capacity = Bytes(6 << 20);
        config.geometry.blocks_per_plane = 64;
    }
    if name.ends_with("retiring") {
        config.wear = policy(json!({ "policy": "rated", "rated_cycles": 1 }));
        config.retirement = policy("no-space");
        config.geometry.blocks_per_plane = 16;
    }
    config.buffer.volatile = name.starts_with("volatile");
    if name == "volatile, coalescing" {
        config.buffer.rewrite = policy("coalesce");
    }
    config
}

fn survives(name: &str, steps: &[Step]) {
    let mut world = World::new(&device(name));
    let total = world.pages.len();
    for step in steps {
        match *step {
            Step::Request(Operation::Flush, ..) => world.submit(Operation::Flush, 0..0, false),
            Step::Request(operation, place, pages, fua) => {
                let first = (place * total as f64) as usize;
                world.submit(operation, first..(first + pages).min(total), fua);
            }
            Step::Events(events) => {
                for _ in 0..events {
                    if world.ssd.next_event().time().is_some() {
                        world.progress();
                    }
                }
            }
            Step::PowerCut => world.cut_power(),
            Step::Window(set, window) => {
                let _ = tell(&mut world.ssd, world.now, Command::Window(set, window));
            }
        }
    }
    world.cut_power();
    // It takes as much as ever.
    for first in (0..total).step_by(8) {
        world.submit(Operation::Write, first..(first + 8).min(total), false);
    }
    world.drain();
    world.submit(Operation::Flush, 0..0, false);
    world.drain();
    world.cut_power();
}

/// Cases to try: few enough for every run of the tests; other ones in each round of `make soak`.
const CASES: u32 = 200;

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, max_shrink_iters: 400, rng_seed: proptest::test_runner::RngSeed::Fixed(1 + support::soak_round()), ..ProptestConfig::default() })]

    #[test]
    fn what_was_durable_survives_power_cuts(name in prop::sample::select(&DEVICES[..]), steps in steps()) {
        survives(name, &steps);
    }
}

#[test]
fn what_was_durable_and_failed_under_a_newer_write_is_no_zeros_after_a_power_cut() {
    let mut config = support::tiny();
    config.buffer.volatile = true;
    config.buffer.flush = vec![policy("watermark")];
    let mut ssd = ready(&config, 1);
    ssd.keep_data();
    // Page 0 lies in flash from preconditioning; the newer write stays in memory.
    let at = 10_000_000;
    let done = support::timed(&mut ssd, &[(at, Operation::Write, 0, 1)]);
    let now = done[0].time;
    for chip in 0..4 {
        ssd.fail(now, Fault::Chip(chip)).expect("the chip exists");
    }
    let end = |ssd: &mut Ssd, at: u64, operation| {
        let done = support::timed(ssd, &[(at, operation, 0, 1)]);
        done[0].status
    };
    assert_eq!(end(&mut ssd, now.0 + 1_000_000, Operation::Read), Status::Ok, "it is in memory");
    let cut = Time(now.0 + 50_000_000);
    ssd.cut_power(cut, &mut Arena::new());
    assert_eq!(end(&mut ssd, cut.0 + 1_000_000, Operation::Read), Status::MediaError);
    assert_eq!(end(&mut ssd, cut.0 + 50_000_000, Operation::Write), Status::Ok);
    assert_eq!(end(&mut ssd, cut.0 + 100_000_000, Operation::Read), Status::Ok);
    ssd.check();
}

/// How a request of a page ends, and what it carries then.
fn served(ssd: &mut Ssd, now: &mut Time, operation: Operation, page: u64, given: &[u8]) -> (Status, Vec<u8>) {
    let (mut data, mut done) = (Arena::new(), Vec::new());
    let payload = data.take(PAGE_SECTORS);
    data.write(payload, PAGE_SECTORS).expect("a buffer").copy_from_slice(given);
    let request = Request { payload, ..request(page, operation, page, 1) };
    assert_eq!(ssd.submit(*now, &request, &mut data), Submit::Accepted);
    *now = ssd.advance_to_completion(Time::MAX, &mut data, &mut done).expect("it ends");
    (done[0].status, data.read(payload, PAGE_SECTORS).expect("a buffer").to_vec())
}

/// Whatever of the flash has failed: also copies that had been moved elsewhere before.
#[test]
fn a_power_cut_loses_nothing_that_failed_flash_has_not() {
    let mut random = Stream::new(7, "failed flash");
    let is_tried = |name: &&str| !name.starts_with("physical") && !name.starts_with("volatile");
    for name in DEVICES.into_iter().filter(is_tried) {
        let config = device(name);
        let mut ssd = ready(&config, 5);
        ssd.keep_data();
        let pages = config.logical_capacity.0 as usize / PAGE;
        let (mut now, mut failed, mut versions) = (Time::ZERO, 0, vec![0; pages]);
        let (chips, blocks) = (config.geometry.channels * 2, config.geometry.blocks_per_plane);
        for round in 0..12 {
            for write in 1..=pages as u64 / 2 {
                let page = random.below(pages as u64) as usize;
                versions[page] = round * pages as u64 + write;
                served(&mut ssd, &mut now, Operation::Write, page as u64, &bytes(page, versions[page]));
            }
            for _ in 0..30 {
                let [chip, block, page] = [chips, blocks, 8].map(|count| random.below(count.into()) as u32);
                ssd.fail(now, Fault::Page { chip, block, page }).expect("there is such a page");
            }
            // Read on a copy: power is cut in the middle of collection.
            let (mut copy, mut later) = (ssd.clone(), now);
            ssd.cut_power(now, &mut Arena::new());
            for (page, &version) in versions.iter().enumerate() {
                let read = |ssd: &mut Ssd, now: &mut Time| {
                    served(ssd, now, Operation::Read, page as u64, &[0xA5; PAGE])
                };
                let (before, _) = read(&mut copy, &mut later);
                let (after, found) = read(&mut ssd, &mut now);
                failed += usize::from(after != Status::Ok);
                assert!(before != Status::Ok || after == Status::Ok, "{name}: page {page} is {after:?}");
                assert!(after != Status::Ok || found == bytes(page, version), "{name}: page {page}");
            }
        }
        assert!(failed > 0, "{name}: nothing has failed");
    }
}
