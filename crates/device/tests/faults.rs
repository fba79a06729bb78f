//! Real data in pages, and flash that fails under them: what was written is
//! read back, byte by byte, whatever fails.

mod support;

use std::collections::BTreeMap;
use std::ops::Range;

use flashkeel_device::{
    Activity, DeviceConfig, Fault, FillPattern, InvocationConfig, MapCacheSize, MovementConfig,
    ReadPathConfig, RotationConfig, SchedulerConfig, Ssd, UpdateConfig,
};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Arena, Completion, Leaf, Operation, Payload, Request, Status, Stream, Submit, Time};
use proptest::prelude::*;
use serde_json::json;
use support::{policy, ready, request};

const PAGE: usize = 4096;

/// A device whose pages hold bytes, beside the bytes that they should hold.
struct Pair {
    ssd: Ssd,
    data: Arena,
    /// The version of each page; 0 where it was never written, or trimmed.
    versions: Vec<u64>,
    /// Requests inside.
    flying: BTreeMap<u64, Flying>,
    now: Time,
    next: u64,
    checked: u64,
    /// Reads that ended in an error, where that is allowed.
    lost: Option<u64>,
    /// In which: without parity the medium has failed, and nothing follows for others.
    end_of_lost: Status,
}

#[derive(Debug)]
struct Flying {
    operation: Operation,
    pages: Range<u64>,
    payload: Payload,
    /// The versions that a read should find.
    versions: Vec<u64>,
}

/// The bytes of a version of a page.
fn bytes(page: u64, version: u64) -> Vec<u8> {
    if version == 0 {
        return vec![0; PAGE];
    }
    let mut random = Stream::new(version, &format!("page {page}"));
    (0..PAGE / 8).flat_map(|_| random.word().to_le_bytes()).collect()
}

impl Pair {
    fn new(config: &DeviceConfig) -> Pair {
        let mut ssd = ready(config, 3);
        ssd.keep_data();
        Pair {
            ssd,
            data: Arena::new(),
            versions: vec![0; (config.logical_capacity.0 / 4096) as usize],
            flying: BTreeMap::new(),
            now: Time::ZERO,
            next: 0,
            checked: 0,
            lost: None,
            end_of_lost: match config.redundancy.name() {
                "none" => Status::MediaError,
                _ => Status::Lost,
            },
        }
    }

    fn submit(&mut self, operation: Operation, page: u64, count: u32) {
        // No host has two requests for a page in flight of which one changes it.
        let pages = page..page + u64::from(count);
        let overlaps = |other: &Flying| {
            (other.operation != Operation::Read || operation != Operation::Read)
                && other.pages.start < pages.end
                && pages.start < other.pages.end
        };
        while self.flying.values().any(overlaps) {
            self.progress();
        }
        let id = self.next;
        self.next += 1;
        let range = pages.start as usize..pages.end as usize;
        let mut payload = Payload::NONE;
        match operation {
            Operation::Write => {
                self.versions[range.clone()].fill(id + 1);
                payload = self.data.take(count * 8);
                let places = self.data.write(payload, count * 8).expect("a buffer").chunks_exact_mut(PAGE);
                pages
                    .clone()
                    .zip(places)
                    .for_each(|(page, place)| place.copy_from_slice(&bytes(page, id + 1)));
            }
            Operation::Trim | Operation::WriteZeroes => self.versions[range.clone()].fill(0),
            Operation::Read => {
                payload = self.data.take(count * 8);
                self.data.write(payload, count * 8).expect("a buffer").fill(0xA5);
            }
            Operation::Flush | Operation::Demote => {}
        }
        self.flying.insert(id, Flying { operation, pages, payload, versions: self.versions[range].to_vec() });
        let request = Request { payload, ..request(id, operation, page, count) };
        assert_eq!(self.ssd.submit(self.now, &request, &mut self.data), Submit::Accepted);
    }

    fn progress(&mut self) {
        let next = self.ssd.next_event().time().unwrap_or_else(|| {
            panic!("nothing to do with {:?} inside, {} pages lost", self.flying, self.ssd.lost_pages())
        });
        self.advance(next);
    }

    fn advance(&mut self, to: Time) {
        let mut done: Vec<Completion> = Vec::new();
        self.ssd.advance(to, &mut self.data, &mut done);
        self.now = to;
        for completion in done {
            let Flying { operation, pages, payload, versions } =
                self.flying.remove(&completion.id.0).expect("a request completes exactly once");
            match (&mut self.lost, completion.status) {
                (Some(lost), status) if operation == Operation::Read && status == self.end_of_lost => {
                    *lost += 1
                }
                (_, status) => assert_eq!(status, Status::Ok),
            }
            if operation == Operation::Read && completion.status == Status::Ok {
                let expected: Vec<u8> = versions
                    .iter()
                    .zip(pages.clone())
                    .flat_map(|(&version, page)| bytes(page, version))
                    .collect();
                let read = self.data.read(payload, versions.len() as u32 * 8);
                assert!(read == Some(&expected[..]), "pages {pages:?}");
                self.checked += 1;
            }
            self.data.give_back(payload);
        }
    }

    fn drain(&mut self) {
        while !self.flying.is_empty() {
            self.progress();
        }
    }

    fn read_all(&mut self) {
        self.drain();
        for first in (0..self.versions.len() as u64).step_by(7) {
            let pages = 7.min(self.versions.len() as u64 - first);
            self.submit(Operation::Read, first, pages as u32);
        }
        self.drain();
    }

    /// Runs until nothing that was lost is still to be restored.
    fn restore(&mut self) {
        let mut events = 0;
        while self.ssd.lost_pages() > 0 {
            self.progress();
            events += 1;
            assert!(events < 50_000, "{} pages are not restored", self.ssd.lost_pages());
        }
    }
}

/// Four channels of two chips with logical stripes over all channels.
fn striped() -> DeviceConfig {
    let mut config = support::tiny();
    config.geometry.channels = 4;
    config.geometry.page_size = Bytes(4096);
    config.geometry.blocks_per_plane = 24;
    config.geometry.pages_per_block = 8;
    config.logical_capacity = Bytes(630 * 4096);
    config.allocation = policy("striped");
    config.redundancy = policy(json!({ "policy": "logical", "update": "gc-tolerant" }));
    config.read_path = policy("gc-tolerant");
    config.buffer.rewrite = policy("coalesce");
    config.buffer.flush = vec![policy("watermark")];
    config.buffer.size = Bytes(32 * 4096);
    config.gc.start_below = 32;
    config.gc.stop_above = 40;
    config.gc.force_below = 16;
    config.gc.victim = policy("greedy");
    config.precondition.pattern = FillPattern::Random;
    config
}

fn faults() -> [Fault; 4] {
    [
        Fault::Page { chip: 5, block: 3, page: 2 },
        Fault::Plane { chip: 2, plane: 0 },
        Fault::Chip(7),
        Fault::Channel(1),
    ]
}

fn random_steps(pair: &mut Pair, random: &mut Stream, steps: u64) {
    for _ in 0..steps {
        let operation = match random.below(16) {
            0 => Operation::Flush,
            1 => Operation::Trim,
            2 => Operation::WriteZeroes,
            3..=8 => Operation::Read,
            _ => Operation::Write,
        };
        let page = random.below(pair.versions.len() as u64 - 10);
        let pages = if operation == Operation::Flush { 0 } else { random.between(1, 9) as u32 };
        pair.submit(operation, if pages == 0 { 0 } else { page }, pages);
        while pair.flying.len() > 12 {
            pair.progress();
        }
    }
}

#[test]
fn what_fails_is_read_all_the_same_and_restored() {
    for fault in faults() {
        let mut pair = Pair::new(&striped());
        let mut random = Stream::new(1, "faults");
        random_steps(&mut pair, &mut random, 600);
        pair.ssd.check();
        pair.ssd.fail(pair.now, fault).expect("the part exists");
        let lost = pair.ssd.lost_pages();
        assert!(lost > 0 || matches!(fault, Fault::Page { .. }), "{fault:?}");
        pair.read_all();
        random_steps(&mut pair, &mut random, 300);
        pair.drain();
        pair.restore();
        pair.ssd.check();
        pair.read_all();
        assert!(pair.ssd.counters().restored_pages <= lost, "{fault:?}");
        assert!(pair.checked > 400);
    }
}

#[test]
fn one_fault_after_another_loses_nothing() {
    let mut pair = Pair::new(&striped());
    let mut random = Stream::new(2, "faults");
    for chip in 0..8 {
        random_steps(&mut pair, &mut random, 100);
        pair.ssd.fail(pair.now, Fault::Chip(chip)).expect("the chip exists");
        random_steps(&mut pair, &mut random, 100);
        pair.restore();
    }
    pair.read_all();
    assert!(pair.ssd.counters().operations(Activity::Restore.program()) > 100);
}

#[test]
fn what_parity_cannot_make_up_for_is_an_error_and_never_wrong() {
    let mut pair = Pair::new(&striped());
    let mut random = Stream::new(3, "faults");
    random_steps(&mut pair, &mut random, 400);
    pair.drain();
    // Two chips of one plane group, with no time between.
    pair.lost = Some(0);
    for chip in [0, 2] {
        pair.ssd.fail(pair.now, Fault::Chip(chip)).expect("the chip exists");
    }
    let gone = pair.ssd.counters().given_up_pages;
    assert!((50..200).contains(&gone), "{gone} pages of 630");
    pair.read_all();
    let lost = pair.lost.expect("counted");
    assert!(lost > 20 && lost == pair.ssd.counters().lost_reads, "{lost} reads");
    pair.restore();
    pair.ssd.check();
    // With what collection had under way then.
    let gone = pair.ssd.counters().given_up_pages;
    assert!((50..200).contains(&gone), "{gone} pages of 630");

    // What is written again is there again, and the new parity is good for it.
    for page in 0..pair.versions.len() as u64 {
        pair.submit(Operation::Write, page, 1);
        while pair.flying.len() > 12 {
            pair.progress();
        }
    }
    pair.drain();
    pair.lost = None;
    pair.read_all();
    pair.ssd.fail(pair.now, Fault::Channel(3)).expect("the channel exists");
    pair.read_all();
    pair.restore();
    pair.ssd.check();
    assert_eq!(pair.ssd.counters().given_up_pages, gone);
}

#[test]
fn what_is_left_of_a_stripe_survives_the_next_fault() {
    let mut pair = Pair::new(&striped());
    random_steps(&mut pair, &mut Stream::new(4, "faults"), 400);
    pair.drain();
    pair.lost = Some(0);
    for chip in [1, 3] {
        pair.ssd.fail(pair.now, Fault::Chip(chip)).expect("the chip exists");
    }
    let gone = pair.ssd.counters().given_up_pages;
    pair.restore();
    pair.ssd.fail(pair.now, Fault::Chip(5)).expect("the chip exists");
    pair.restore();
    pair.read_all();
    pair.ssd.check();
    assert_eq!(pair.ssd.counters().given_up_pages, gone, "the parity had been computed anew");
}

#[test]
fn reads_of_lost_pages_take_the_rest_of_their_stripe() {
    let mut config = striped();
    config.read_path = policy("plain");
    let mut pair = Pair::new(&config);
    pair.ssd.fail(pair.now, Fault::Channel(2)).expect("the channel exists");
    let before = pair.ssd.counters().operations(Activity::Rebuild.read());
    for page in 0..40 {
        pair.submit(Operation::Read, page, 1);
        pair.drain();
    }
    // One page of four lies there; each takes two other pages and the parity.
    let rebuilt = pair.ssd.counters().operations(Activity::Rebuild.read()) - before;
    assert!((15..=45).contains(&rebuilt) && rebuilt.is_multiple_of(3), "{rebuilt} reads");
}

#[test]
fn data_is_kept_without_stripes_too() {
    for (kind, redundancy) in [("none", "none"), ("back", "physical")] {
        let mut config = support::tiny();
        config.redundancy = policy(redundancy);
        config.buffer.kind = policy(kind);
        config.map_cache = MapCacheSize::Size(Bytes(8192));
        config.geometry.blocks_per_plane = 48;
        let mut pair = Pair::new(&config);
        random_steps(&mut pair, &mut Stream::new(1, "data"), 2_000);
        pair.ssd.check();
        pair.read_all();
        assert_eq!(pair.ssd.fail(pair.now, Fault::Chip(0)).is_ok(), redundancy == "none");
    }
}

#[test]
fn without_stripes_what_fails_is_an_error_until_it_is_written_again() {
    for (kind, cached) in [("none", false), ("back", false), ("back", true)] {
        let mut config = support::tiny();
        config.buffer.kind = policy(kind);
        config.geometry.blocks_per_plane = 48;
        if cached {
            config.map_cache = MapCacheSize::Size(Bytes(8192));
        }
        let mut pair = Pair::new(&config);
        let mut random = Stream::new(4, "media");
        random_steps(&mut pair, &mut random, 1_000);
        // In the middle of what is going on.
        pair.lost = Some(0);
        for fault in [Fault::Chip(1), Fault::Page { chip: 2, block: 3, page: 1 }] {
            pair.ssd.fail(pair.now, fault).expect("the part exists");
            pair.ssd.check();
            random_steps(&mut pair, &mut random, 200);
        }
        pair.read_all();
        let failed = pair.lost.expect("counted");
        assert!(failed > 10 && failed == pair.ssd.counters().lost_reads, "{failed} reads");
        assert!(pair.ssd.counters().given_up_pages > 50);
        for page in 0..pair.versions.len() as u64 {
            pair.submit(Operation::Write, page, 1);
            while pair.flying.len() > 12 {
                pair.progress();
            }
        }
        pair.lost = None;
        pair.read_all();
        pair.drain();
        pair.ssd.check();
    }
}

#[test]
fn parts_that_do_not_exist_are_refused() {
    let mut pair = Pair::new(&striped());
    let wrong = [
        Fault::Page { chip: 0, block: 24, page: 0 },
        Fault::Page { chip: 0, block: 0, page: 8 },
        Fault::Plane { chip: 0, plane: 1 },
        Fault::Chip(8),
        Fault::Channel(4),
    ];
    for fault in wrong {
        assert!(pair.ssd.fail(Time::ZERO, fault).is_err(), "{fault:?}");
    }
    assert_eq!(pair.ssd.lost_pages(), 0);
}

prop_compose! {
    fn device()(
        width in prop::sample::select(vec![2u32, 4]),
        page_size in prop::sample::select(vec![4096u64, 8192]),
        movement in prop::sample::select(MovementConfig::NAMES),
        rotation in prop::sample::select(RotationConfig::NAMES),
        invocation in prop::sample::select(InvocationConfig::NAMES),
        read_path in prop::sample::select(ReadPathConfig::NAMES),
        update in prop::sample::select(UpdateConfig::NAMES),
        scheduler in prop::sample::select(SchedulerConfig::NAMES),
        flush in prop::sample::subsequence(vec!["page", "full", "watermark", "timeout"], 1..5),
        suspension in prop::bool::ANY,
        (planes, multi_plane) in prop::sample::select(vec![(1, false), (2, false), (2, true)]),
    ) -> DeviceConfig {
        let mut config = striped();
        config.geometry.page_size = Bytes(page_size);
        config.geometry.blocks_per_plane = 32;
        // Copyback stays in its plane: it needs one plane, or all of them at once.
        let planes = if ["plane-blocking", "page-copyback"].contains(&movement) && !multi_plane { 1 } else { planes };
        config.geometry.planes_per_chip = planes;
        config.geometry.multi_plane = multi_plane;
        let pages = if width == 2 { 500 } else { 700 };
        config.logical_capacity = Bytes(pages * u64::from(planes) * page_size);
        config.redundancy = policy(json!({ "policy": "logical", "pages": width, "update": update }));
        config.gc.movement = policy(movement);
        config.gc.rotation = policy(rotation);
        config.gc.invocation = policy(invocation);
        config.read_path = policy(read_path);
        config.scheduler = policy(scheduler);
        config.suspension = suspension.then(Default::default);
        config.buffer.flush = flush.into_iter().chain(["full"]).map(policy).collect();
        config
    }
}

/// Cases to try: `PROPTEST_CASES`, else few enough for every run of the tests.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, max_shrink_iters: 20, rng_seed: proptest::test_runner::RngSeed::Fixed(1 + support::soak_round()), ..ProptestConfig::default() })]

    #[test]
    fn nothing_written_is_lost_whatever_fails_whenever(
        config in device(), seed in 0..u64::MAX, when in prop::collection::vec(0..400u64, 1..4)
    ) {
        let mut pair = Pair::new(&config);
        let mut random = Stream::new(seed, "faults");
        for steps in when {
            random_steps(&mut pair, &mut random, steps);
            // At any moment: in the middle of what is going on.
            for _ in 0..random.below(30) {
                if pair.ssd.next_event().time().is_some() {
                    pair.progress();
                }
            }
            let chip = random.below(8) as u32;
            let fault = match random.below(4) {
                0 => Fault::Page { chip, block: random.below(32) as u32, page: random.below(8) as u32 },
                1 => {
                    let plane = random.below(u64::from(config.geometry.planes_per_chip)) as u32;
                    Fault::Plane { chip, plane }
                }
                2 => Fault::Chip(chip),
                _ => Fault::Channel(chip / 2),
            };
            pair.ssd.fail(pair.now, fault).expect("the part exists");
            random_steps(&mut pair, &mut random, 60);
            pair.restore();
        }
        pair.read_all();
        pair.ssd.check();
    }

    #[test]
    fn no_read_is_wrong_however_much_fails(
        config in device(), seed in 0..u64::MAX, when in prop::collection::vec(0..200u64, 1..3)
    ) {
        let mut pair = Pair::new(&config);
        pair.lost = Some(0);
        let mut random = Stream::new(seed, "faults");
        for steps in when {
            random_steps(&mut pair, &mut random, steps);
            for _ in 0..random.between(2, 3) {
                let chip = random.below(8) as u32;
                pair.ssd.fail(pair.now, Fault::Chip(chip)).expect("the chip exists");
                for _ in 0..random.below(30) {
                    if pair.ssd.next_event().time().is_some() {
                        pair.progress();
                    }
                }
            }
            random_steps(&mut pair, &mut random, 60);
            pair.restore();
        }
        pair.read_all();
        pair.ssd.check();
        prop_assert_eq!(pair.lost, Some(pair.ssd.counters().lost_reads));
    }
}
