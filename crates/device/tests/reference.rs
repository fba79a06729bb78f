//! Random operations on random tiny devices against a plain set of pages.

mod support;

use flashkeel_device::{
    AllocationConfig, BufferKind, DeviceConfig, FillPattern, InvocationConfig, MapCacheSize, MovementConfig,
    ReadPathConfig, RedundancyConfig, RetirementConfig, RotationConfig, SchedulerConfig, Ssd,
    SuspensionConfig, UpdateConfig, VictimConfig, WindowConfig,
};
use flashkeel_engine::units::{Bytes, Rate};
use flashkeel_engine::{Arena, Completion, Leaf, Operation, RequestId, Span, Status, Submit, Time, Wake};
use proptest::prelude::*;
use support::{policy, ready, request, settle};

/// One request of a test: operation, first page and length as fractions of
/// the device, and the pause before it.
#[derive(Clone, Debug)]
struct Step {
    operation: Operation,
    place: f64,
    pages: u32,
    pause_ns: u64,
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let operation = prop_oneof![
        8 => Just(Operation::Write),
        4 => Just(Operation::Read),
        2 => Just(Operation::Trim),
        1 => Just(Operation::Flush),
    ];
    let pause = prop_oneof![6 => Just(0u64), 2 => 0..100_000u64, 1 => 0..20_000_000u64];
    let step = (operation, 0.0..1.0, prop_oneof![4 => 1..5u32, 1 => 1..70u32], pause);
    let step =
        step.prop_map(|(operation, place, pages, pause_ns)| Step { operation, place, pages, pause_ns });
    prop::collection::vec(step, most / 2..most)
}

prop_compose! {
    /// A device with as little over-provisioning as is accepted, times `slack`.
    fn device()(
        shape in (1..3u32, 1..3u32, 1..3u32, prop::bool::ANY, 8..64u32, prop::sample::select(vec![2u32, 4, 8, 16])),
        page_size in prop::sample::select(vec![4096u64, 16384]),
        buffer in (
            prop::sample::select(BufferKind::NAMES),
            prop::sample::select(vec!["append", "coalesce"]),
            prop::sample::subsequence(vec!["page", "full", "watermark", "read", "timeout"], 1..6),
            1..6u64,
        ),
        policies in (
            prop::sample::select(AllocationConfig::NAMES),
            prop::sample::select(VictimConfig::NAMES),
            prop::sample::select(InvocationConfig::NAMES),
            prop::sample::select(SchedulerConfig::NAMES),
        ),
        gc in (0..6u32, 0..4u32, 1..6u32, 1..8u32),
        map_pages in prop::sample::select(vec![None, Some(1u64), Some(1), Some(3)]),
        partitions in prop::sample::select(vec![vec![], vec![], vec![4u32], vec![6]]),
        others in (1..5u32, prop::bool::ANY, prop::sample::select(vec!["none", "sequential", "random"])),
        front_door in (
            prop::sample::select([&["none"], WindowConfig::NAMES].concat()),
            prop::sample::select(vec!["none", "none", "static-cap"]),
        ),
        slack in prop::sample::select(vec![1.0, 1.0, 0.9, 0.5]),
        scrub in (prop::bool::ANY, 1..60u32, 0.1..1.0f64, 1..4u32, 1..4u32),
        wear_levelling in (prop::bool::ANY, 1..6u32, 1..4u32),
        checkpoint in (prop::bool::ANY, 1..40u64, 1..200u32, 1..4u32),
        rain in (
            prop::sample::select([RedundancyConfig::NAMES, &["logical"]].concat()),
            prop::sample::select([ReadPathConfig::NAMES, &["gc-tolerant"]].concat()),
        ),
        collection in (
            prop::sample::select([&["queued"], MovementConfig::NAMES].concat()),
            prop::sample::select(RotationConfig::NAMES),
            0.0..1.0f64,
        ),
        update in prop::sample::select(UpdateConfig::NAMES),
        suspension in prop::sample::select(vec![None, None, Some(1), Some(4)]),
        retirement in (prop::sample::select([&["none"], RetirementConfig::NAMES].concat()), 1..5u32),
    ) -> Option<DeviceConfig> {
        let (channels, chips, planes, multi_plane, blocks, pages) = shape;
        let (kind, rewrite, flush, size) = buffer;
        let (allocation, victim, invocation, scheduler) = policies;
        let mut config = support::tiny();
        config.geometry.channels = channels;
        config.geometry.chips_per_channel = chips;
        config.geometry.planes_per_chip = planes;
        config.geometry.multi_plane = multi_plane;
        config.geometry.blocks_per_plane = blocks * 2;
        config.geometry.pages_per_block = pages;
        config.geometry.page_size = Bytes(page_size);
        config.map_cache = map_pages.map_or(MapCacheSize::All, |pages| {
            MapCacheSize::Size(Bytes((pages * 4096) << partitions.len()))
        });
        config.allocation = policy(allocation);
        config.suspension = suspension.map(|limit| SuspensionConfig { limit, ..Default::default() });
        config.redundancy = policy(rain.0);
        config.read_path = policy(if rain.0 == "none" { "plain" } else { rain.1 });
        config.buffer.kind = policy(kind);
        config.buffer.rewrite = policy(rewrite);
        config.buffer.flush = policy(flush);
        config.buffer.size = Bytes(size * 4 * 7 * page_size);
        config.gc.victim = policy(victim);
        config.gc.invocation = policy(invocation);
        config.scheduler = policy(scheduler);
        config.gc.start_below = gc.0;
        config.gc.stop_above = gc.0 + gc.1;
        config.gc.concurrent_victims = gc.2;
        config.gc.pages_in_flight = gc.3;
        config.scrub.enabled = scrub.0;
        config.scrub.start_above = scrub.1;
        config.scrub.stop_below = ((f64::from(scrub.1) * scrub.2) as u32).max(1);
        config.scrub.concurrent_blocks = scrub.3;
        config.scrub.pages_in_flight = scrub.4;
        config.wear_levelling.enabled = wear_levelling.0;
        config.wear_levelling.threshold = wear_levelling.1;
        config.wear_levelling.pages_in_flight = wear_levelling.2;
        config.checkpoint.enabled = checkpoint.0 && rain.0 != "logical";
        config.checkpoint.period = Span::from_ms(checkpoint.1);
        config.checkpoint.after_pages = (checkpoint.2 < 100).then_some(checkpoint.2);
        config.checkpoint.pages_in_flight = checkpoint.3;
        config.precondition.read_counts_below = Some(scrub.1);
        config.partition_bits = partitions;
        config.controller.slots_per_chip = others.0;
        config.host_link = others.1.then_some(Rate(1_000_000_000));
        config.precondition.pattern = policy::<FillPattern>(others.2);
        config.window = policy(front_door.0);
        config.throttle = policy(front_door.1);
        config.wear = policy(serde_json::json!({ "policy": "rated", "rated_cycles": retirement.1 }));
        config.retirement = policy(if rain.0 == "logical" { "none" } else { retirement.0 });
        if rain.0 == "logical" {
            // What logical stripes need beside them.
            config.redundancy = policy(serde_json::json!({ "policy": "logical", "update": update }));
            config.geometry.channels *= 2;
            config.allocation = policy("striped");
            config.map_cache = MapCacheSize::All;
            config.buffer.rewrite = policy("coalesce");
            if kind == "none" {
                config.buffer.kind = policy("back");
            }
        }
        let (movement, rotation, force) = collection;
        config.gc.movement = policy(movement);
        config.gc.force_below = (f64::from(config.gc.start_below + 1) * force) as u32;
        if rain.0 == "logical" {
            config.gc.rotation = policy(rotation);
        }
        if !["queued", "none"].contains(&movement) {
            // What moves within a chip need beside them. Chips may be those of addresses.
            if others.1 {
                config.allocation = policy("striped");
            }
            if rain.0 == "physical" {
                config.redundancy = policy("none");
                config.read_path = policy("plain");
            }
            if !multi_plane {
                config.geometry.planes_per_chip = 1;
            }
        }
        tightest(config, slack)
    }
}

/// The device with the largest capacity that is accepted, times `slack`.
fn tightest(mut config: DeviceConfig, slack: f64) -> Option<DeviceConfig> {
    // The period of the highest partition bit used here.
    const UNIT: u64 = 16 * 4096;
    let fits = |config: &mut DeviceConfig, units: u64| {
        config.logical_capacity = Bytes(units * UNIT);
        config.validate().is_ok()
    };
    let (mut fitting, mut beyond) = (1, 2048);
    if !fits(&mut config, fitting) {
        return None;
    }
    while beyond - fitting > 1 {
        let middle = (fitting + beyond) / 2;
        if fits(&mut config, middle) { fitting = middle } else { beyond = middle }
    }
    let units = ((fitting as f64 * slack) as u64).max(1);
    fits(&mut config, units).then_some(config)
}

/// A device beside its reference.
struct Pair {
    ssd: Ssd,
    mapped: Vec<bool>,
    /// Pages of writes for which there was no room, and which may have been written.
    is_open: Vec<bool>,
    may_wear_out: bool,
    /// Requests in the device, by number: completed ones are taken out.
    flying: std::collections::BTreeMap<u64, (Operation, u64, u32, Time)>,
    now: Time,
    next_id: u64,
    idle: u32,
    /// Windows come and go for ever: such a device never comes to rest.
    has_windows: bool,
}

impl Pair {
    fn new(config: &DeviceConfig) -> Pair {
        let ssd = ready(config, 7);
        let pages = config.logical_capacity.0 / 4096;
        let filled = config.precondition.pattern != FillPattern::None;
        let mapped = vec![filled; pages as usize];
        Pair {
            ssd,
            is_open: vec![false; mapped.len()],
            mapped,
            may_wear_out: config.retirement.name() != "none",
            flying: Default::default(),
            now: Time::ZERO,
            next_id: 0,
            idle: 0,
            has_windows: config.window.name() != "none",
        }
    }

    fn advance(&mut self, to: Time) {
        let mut done = Vec::new();
        self.ssd.advance(to, &mut Arena::new(), &mut done);
        self.idle = if done.is_empty() { self.idle + 1 } else { 0 };
        self.now = to;
        done.iter().for_each(|completion| self.landed(completion));
    }

    fn landed(&mut self, completion: &Completion) {
        let flying = self.flying.remove(&completion.id.0).expect("a request completes exactly once");
        let (operation, page, pages, submitted) = flying;
        if completion.status == Status::NoSpace && self.may_wear_out && operation == Operation::Write {
            self.is_open[page as usize..(page + u64::from(pages)) as usize].fill(true);
        } else {
            assert_eq!(completion.status, Status::Ok);
        }
        assert_eq!(completion.ledger.total(), completion.time.since(submitted), "{:?}", completion.ledger);
    }

    /// Runs until something has completed.
    fn progress(&mut self) {
        let next = self.ssd.next_event().time().unwrap_or_else(|| panic!("at rest with {}", self.inside()));
        self.advance(next);
        assert!(self.idle < 200_000, "no progress with {}", self.inside());
    }

    /// What is in the device, to describe a failure.
    fn inside(&self) -> String {
        let mut gauges = Vec::new();
        self.ssd.gauges(&mut gauges);
        let gauges: Vec<_> = Ssd::gauge_names().into_iter().zip(gauges).collect();
        format!("{:?} inside, {gauges:?}", self.flying)
    }

    /// Whether a request in flight changes some of these pages too: then
    /// either may be the last, and no host would send both.
    fn is_contended(&self, page: u64, pages: u32) -> bool {
        self.flying.values().any(|&(operation, first, count, _)| {
            matches!(operation, Operation::Write | Operation::Trim)
                && first < page + u64::from(pages)
                && page < first + u64::from(count)
        })
    }

    fn submit(&mut self, operation: Operation, page: u64, pages: u32) {
        let changes = matches!(operation, Operation::Write | Operation::Trim);
        while changes && self.is_contended(page, pages) {
            self.progress();
        }
        let id = self.next_id;
        self.next_id += 1;
        let answer = self.ssd.submit(self.now, &request(id, operation, page, pages), &mut Arena::new());
        if answer == Submit::Refused(Status::ReadOnly) && changes && self.may_wear_out {
            return;
        }
        assert_eq!(answer, Submit::Accepted);
        self.flying.insert(id, (operation, page, pages, self.now));
        if changes {
            let pages = page as usize..(page + u64::from(pages)) as usize;
            self.mapped[pages.clone()].fill(operation == Operation::Write);
            self.is_open[pages].fill(false);
        }
    }

    fn step(&mut self, step: &Step) {
        let until = self.now + Span(step.pause_ns);
        while let Some(next) = self.ssd.next_event().time().filter(|&next| next < until) {
            self.advance(next);
            assert!(self.idle < 200_000, "no progress with {}", self.inside());
        }
        self.advance(until);
        let total = self.mapped.len() as u64;
        let page = (step.place * total as f64) as u64;
        let pages = step.pages.min((total - page) as u32);
        let (page, pages) = if step.operation == Operation::Flush { (0, 0) } else { (page, pages) };
        self.submit(step.operation, page, pages);
    }

    /// Completes everything, and flushes.
    fn finish(&mut self) {
        while !self.flying.is_empty() {
            self.progress();
        }
        self.submit(Operation::Flush, 0, 0);
        while !self.flying.is_empty() {
            self.progress();
        }
        let mut none = Vec::new();
        if self.has_windows {
            self.now += Span::from_secs(5);
            self.ssd.advance(self.now, &mut Arena::new(), &mut none);
        } else {
            settle(&mut self.ssd, &mut none);
        }
        assert_eq!(none, []);
        let mut gauges = Vec::new();
        self.ssd.gauges(&mut gauges);
        let buffered = Ssd::gauge_names().iter().position(|name| name == "buffered_pages");
        assert_eq!(gauges[buffered.expect("a gauge")], 0, "pages left in the buffer after a flush");
        self.ssd.check();
    }

    /// Reads every page by itself: exactly those of the reference are there.
    fn compare(&mut self) {
        self.now += Span::from_secs(10);
        for page in 0..self.mapped.len() {
            let before = self.ssd.counters().clone();
            self.submit(Operation::Read, page as u64, 1);
            while !self.flying.is_empty() {
                self.progress();
            }
            let after = self.ssd.counters();
            let unmapped = after.unmapped_pages_read - before.unmapped_pages_read;
            assert!((unmapped == 0) == self.mapped[page] || self.is_open[page], "page {page}");
        }
    }
}

fn agrees(config: &DeviceConfig, steps: &[Step]) {
    let mut pair = Pair::new(config);
    pair.ssd.check();
    for (index, step) in steps.iter().enumerate() {
        pair.step(step);
        if index % 32 == 0 {
            pair.ssd.check();
        }
    }
    pair.finish();
    pair.compare();
    pair.ssd.check();
}

/// Devices tried; the environment may ask for more.
const CASES: u32 = 256;

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, max_shrink_iters: 300, rng_seed: proptest::test_runner::RngSeed::Fixed(1 + support::soak_round()), ..ProptestConfig::default() })]

    #[test]
    fn any_device_keeps_exactly_what_was_written(config in device(), steps in steps(600)) {
        if let Some(config) = config {
            agrees(&config, &steps);
        }
    }
}

/// Runs `requests` until everything has settled, with no more memory of what
/// is mapped than the device's own.
fn comes_to_rest(config: &DeviceConfig, requests: &[(u64, Operation, u64, u32)]) {
    let mut ssd = ready(config, 1);
    assert_eq!(support::timed(&mut ssd, requests).len(), requests.len());
    ssd.check();
    let mut gauges = Vec::new();
    ssd.gauges(&mut gauges);
    let active = Ssd::gauge_names().iter().position(|name| name == "gc_active");
    assert_eq!(gauges[active.expect("a gauge")], 0, "collection stands still");
}

#[test]
fn short_lanes_that_fill_the_buffer_together_are_flushed() {
    let mut config = support::tiny();
    config.allocation = policy("striped");
    config.buffer.flush = vec![policy("page")];
    config.buffer.size = Bytes(16 << 10);
    // While the first page is programmed four more come, none with company.
    let pages = [0, 4, 8, 12, 5, 9];
    let mut requests = vec![(0, Operation::Write, 0, 4)];
    requests.extend(pages.iter().map(|&page| (10_000, Operation::Write, page, 1)));
    comes_to_rest(&config, &requests);
}

#[test]
fn collection_goes_on_when_a_block_becomes_full() {
    // A burst that opens every block before one is full: nothing to collect
    // at first.
    let mut config = support::exact_chip(16);
    config.geometry.pages_per_block = 2;
    config.logical_capacity = Bytes(128 << 10);
    config.buffer.size = Bytes(448 << 10);
    config.buffer.flush = vec![policy("watermark")];
    config.gc.start_below = 0;
    config.gc.stop_above = 0;
    config.gc.concurrent_victims = 1;
    config.precondition.pattern = FillPattern::None;
    for count in 1..20 {
        let mut requests = vec![(0, Operation::Write, 0, 32); count];
        requests.push((0, Operation::Flush, 0, 0));
        comes_to_rest(&config, &requests);
    }
}

#[test]
fn blocks_being_emptied_keep_the_room_they_need() {
    // Many victims at a time on a single chip with hardly any room.
    let mut config = support::exact_chip(58);
    config.geometry.pages_per_block = 16;
    config.geometry.page_size = Bytes(4096);
    config.logical_capacity = Bytes(736 * 4096);
    config.gc.start_below = 5;
    config.gc.stop_above = 5;
    config.gc.concurrent_victims = 5;
    config.gc.pages_in_flight = 1;
    config.gc.victim = policy("greedy");
    config.scheduler = policy("fifo");
    config.buffer.size = Bytes(112 << 10);
    config.buffer.flush = vec![policy("watermark")];
    config.precondition.pattern = FillPattern::Random;
    for seed in 1..8 {
        let mut ssd = ready(&config, seed);
        let mut random = flashkeel_engine::Stream::new(seed, "test workload");
        let requests = (0..500).map(|id| {
            let pages = random.between(1, 60) as u32;
            request(id, Operation::Write, random.below(736 - 60), pages)
        });
        assert_eq!(support::closed_loop(&mut ssd, 16, requests).len(), 500);
        ssd.check();
    }
}

#[test]
fn an_idle_device_comes_to_rest_under_any_share() {
    let mut config = support::exact();
    config.precondition.pattern = FillPattern::Random;
    config.scheduler = policy(serde_json::json!({"policy": "debit", "gc_min": 0.0}));
    comes_to_rest(&config, &[(0, Operation::Write, 0, 1000); 8]);
}

#[test]
fn requests_outside_the_device_or_off_its_pages_are_refused() {
    let mut ssd = ready(&support::tiny(), 1);
    let sectors = ssd.sectors();
    let mut refused = |lba: u64, sectors: u32| {
        let request = flashkeel_engine::Request::new(
            RequestId(1),
            Operation::Read,
            flashkeel_engine::Lba(lba),
            sectors,
        );
        ssd.submit(Time(5), &request, &mut Arena::new()) == Submit::Refused(Status::Invalid)
    };
    assert!(refused(sectors, 8) && refused(sectors - 8, 16), "beyond the end");
    assert!(refused(4, 8) && refused(0, 12), "not whole pages");
    assert!(refused(0, 0), "no length");
    assert!(refused(u64::MAX - 7, 8), "beyond every end");
    assert_eq!(ssd.next_event(), Wake::NEVER, "no completion follows a refusal");
}
