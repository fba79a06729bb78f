//! Read scrubbing and wear levelling: when they start and stop, what they
//! choose, and what they are worth.

mod support;

use flashkeel_device::{Activity, DeviceConfig, FillPattern, Purpose, SchedulerConfig, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Arena, Cause, Completion, Leaf, Ledger, Operation, Stream, Submit, Time};
use support::{closed_loop, closed_loop_with, policy, random_pages, ready, request, settle, timed};

fn gauge(ssd: &Ssd, name: &str) -> u64 {
    let mut values = Vec::new();
    ssd.gauges(&mut values);
    values[Ssd::gauge_names().iter().position(|other| other == name).expect("a gauge")]
}

/// An exact device that scrubs above 100 reads and down to 40.
fn scrubbing() -> DeviceConfig {
    let mut config = support::exact();
    config.precondition.read_counts_below = Some(0);
    config.scrub.enabled = true;
    config.scrub.start_above = 100;
    config.scrub.stop_below = 40;
    config
}

/// A device and its time.
struct Bench {
    ssd: Ssd,
    now: Time,
}

impl Bench {
    fn new(config: &DeviceConfig) -> Bench {
        Bench { ssd: ready(config, 1), now: Time::ZERO }
    }

    /// Runs until nothing more happens; `see` is shown the device at each event.
    fn settle(&mut self, mut see: impl FnMut(&Ssd)) {
        while let Some(next) = self.ssd.next_event().time() {
            self.now = next;
            self.ssd.advance(next, &mut Arena::new(), &mut Vec::new());
            see(&self.ssd);
        }
    }

    /// Reads a page so often, one read after another.
    fn read(&mut self, page: u64, times: u64) {
        for id in 0..times {
            assert_eq!(
                self.ssd.submit(self.now, &request(id, Operation::Read, page, 1), &mut Arena::new()),
                Submit::Accepted
            );
            self.settle(|_| ());
        }
    }

    fn operations(&self, purpose: Purpose) -> u64 {
        self.ssd.counters().operations(purpose)
    }

    fn gauge(&self, name: &str) -> u64 {
        gauge(&self.ssd, name)
    }
}

#[test]
fn scrubbing_starts_above_the_start_threshold() {
    let mut bench = Bench::new(&scrubbing());
    bench.read(0, 100);
    assert_eq!(bench.gauge("max_read_count"), 100);
    assert_eq!(bench.operations(Activity::Scrub.read()), 0);

    bench.read(0, 1);
    // The one block: its eight pages are read, programmed elsewhere, and it is
    // erased, which also forgets its reads.
    assert_eq!(bench.operations(Activity::Scrub.read()), 8);
    assert_eq!(bench.operations(Activity::Scrub.program()), 8);
    assert_eq!(bench.operations(Activity::Scrub.erase()), 1);
    assert_eq!(bench.gauge("max_read_count"), 0);
    assert_eq!(bench.gauge("scrub_active"), 0);
    bench.ssd.check();
}

#[test]
fn nothing_is_due_for_scrubbing_before_the_first_read() {
    let mut config = scrubbing();
    config.precondition.read_counts_below = None;
    let bench = Bench::new(&config);
    assert!((50..100).contains(&bench.gauge("max_read_count")), "{}", bench.gauge("max_read_count"));
}

/// Nothing is written any more that could fill the blocks that the host and scrubbing have open.
#[test]
fn a_block_that_stays_open_is_scrubbed_too() {
    let mut bench = Bench::new(&scrubbing());
    let written = request(0, Operation::Write, 0, 4);
    assert_eq!(bench.ssd.submit(bench.now, &written, &mut Arena::new()), Submit::Accepted);
    bench.settle(|_| ());
    bench.read(0, 2_020);
    // After each 101 reads the page lies in another block.
    assert!(bench.gauge("max_read_count") <= 101, "{} reads", bench.gauge("max_read_count"));
    assert_eq!(bench.operations(Activity::Scrub.erase()), 20);
    bench.ssd.check();
}

#[test]
fn scrubbing_goes_on_down_to_the_stop_threshold_and_no_further() {
    let mut bench = Bench::new(&scrubbing());
    // Flash page n lies on chip n mod 4: four blocks, the last to start it.
    for (page, times) in [(4, 39), (8, 60), (12, 40), (0, 101)] {
        bench.read(page, times);
    }
    assert_eq!(bench.operations(Activity::Scrub.erase()), 3);
    assert_eq!(bench.gauge("max_read_count"), 39);
}

#[test]
fn the_most_read_block_is_scrubbed_first() {
    let mut config = scrubbing();
    config.scrub.concurrent_blocks = 1;
    let mut bench = Bench::new(&config);
    for (page, times) in [(4, 90), (8, 60), (0, 100)] {
        bench.read(page, times);
    }
    assert_eq!(
        bench.ssd.submit(bench.now, &request(0, Operation::Read, 0, 1), &mut Arena::new()),
        Submit::Accepted
    );
    let mut counts = Vec::new();
    bench.settle(|ssd| counts.push(gauge(ssd, "max_read_count")));
    // The largest count falls when its block is erased. Reading a block to
    // empty it counts too, eight pages each.
    let erased: Vec<u64> = counts.windows(2).filter(|pair| pair[1] < pair[0]).map(|pair| pair[0]).collect();
    assert_eq!(erased, [109, 98, 68], "{counts:?}");
}

/// Nothing collects, as long as the host does not write.
#[test]
fn where_a_domain_has_no_block_to_spare_those_of_others_are_scrubbed() {
    let mut config = scrubbing();
    config.allocation = policy("striped");
    config.gc.invocation = policy("foreground");
    let mut bench = Bench::new(&config);
    let erases = |bench: &Bench| bench.operations(Activity::Scrub.erase());
    // Pages of the first chip, until its blocks that are read are scrubbed no more.
    let is_short = (0..400).any(|step| {
        let write = request(step, Operation::Write, step % 16 * 16, 4);
        assert_eq!(bench.ssd.submit(bench.now, &write, &mut Arena::new()), Submit::Accepted);
        bench.settle(|_| ());
        let before = erases(&bench);
        bench.read(40 * 16, 120);
        erases(&bench) == before
    });
    let before = erases(&bench);
    bench.read(40 * 16 + 4, 101);
    assert!(is_short);
    assert_eq!(erases(&bench), before + 1);
    bench.ssd.check();
}

#[test]
fn scrubbing_bounds_read_counts_and_the_blocks_in_progress() {
    let mut config = scrubbing();
    config.scrub.concurrent_blocks = 2;
    for &scheduler in SchedulerConfig::NAMES {
        config.scheduler = policy(scheduler);
        let mut ssd = ready(&config, 1);
        let (mut most, mut most_due) = (0, 0);
        closed_loop_with(&mut ssd, 8, random_pages(Operation::Read, 1024, 30_000, 3), |ssd, _| {
            most = most.max(gauge(ssd, "max_read_count"));
            most_due = most_due.max(gauge(ssd, "scrub_blocks_due"));
        });
        // 32 full blocks, each read as often as any other: nearly all are due
        // at once, yet two at a time are moved.
        assert!(most_due > 16, "{scheduler}: {most_due} due");
        assert!((101..400).contains(&most), "{scheduler}: up to {most} reads");
        settle(&mut ssd, &mut Vec::new());
        assert!(gauge(&ssd, "max_read_count") <= 100, "{scheduler}");
        assert_eq!(gauge(&ssd, "scrub_blocks_due"), 0, "{scheduler}");
        ssd.check();
    }
}

#[test]
fn a_read_behind_scrubbing_is_told_so() {
    let mut bench = Bench::new(&scrubbing());
    bench.read(0, 100);
    // The read that starts scrubbing, and another that meets it on chip 0.
    let start = 1_000_000_000;
    let done =
        timed(&mut bench.ssd, &[(start, Operation::Read, 0, 1), (start + 130_000, Operation::Read, 0, 1)]);
    let ledger: &Ledger = &done[1].ledger;
    assert!(ledger.ns(Cause::BehindScrub) > 0, "{ledger:?}");
    assert!(!ledger.has_gc(), "{ledger:?}");
}

#[test]
fn a_stripes_blocks_are_counted_apart_and_scrubbed_together() {
    let mut config = scrubbing();
    config.redundancy = policy("physical");
    config.logical_capacity = Bytes(2 << 20);
    config.scrub.concurrent_blocks = 1;
    let mut bench = Bench::new(&config);
    // Pages 0 and 4 lie in one stripe, on different chips.
    bench.read(0, 100);
    bench.read(4, 100);
    assert_eq!(bench.operations(Activity::Scrub.erase()), 0);
    assert_eq!(bench.gauge("max_read_count"), 100);
    bench.read(4, 1);
    assert_eq!(bench.operations(Activity::Scrub.erase()), 4, "one block on each chip");
}

/// Hot and cold writes: nine of ten go to a twentieth of the device.
fn hot_and_cold(pages: u64, count: u64) -> impl Iterator<Item = flashkeel_engine::Request> {
    let mut random = Stream::new(5, "test workload");
    let hot = pages / 20;
    (0..count).map(move |id| {
        let page = if random.chance(0.9) { random.below(hot) } else { hot + random.below(pages / 10) };
        request(id, Operation::Write, page, 1)
    })
}

/// Wear under those writes: (spread of erase counts, write amplification).
fn worn(threshold: Option<u32>) -> (u32, f64, u64) {
    let mut config = support::tiny();
    config.precondition.pattern = FillPattern::Sequential;
    config.gc.victim = policy("greedy");
    config.wear_levelling.enabled = threshold.is_some();
    config.wear_levelling.threshold = threshold.unwrap_or(1);
    let mut ssd = ready(&config, 1);
    let written: Vec<Completion> = closed_loop(&mut ssd, 32, hot_and_cold(1024, 120_000));
    assert_eq!(written.len(), 120_000);
    settle(&mut ssd, &mut Vec::new());
    ssd.check();
    let counts: Vec<u32> = ssd.erase_counts().collect();
    let spread = counts.iter().max().unwrap() - counts.iter().min().unwrap();
    assert_eq!(u64::from(spread), gauge(&ssd, "erase_count_spread"));
    let moves = ssd.counters().operations(Activity::WearLevelling.program());
    (spread, ssd.report().waf.expect("the host wrote"), moves)
}

#[test]
fn wear_levelling_narrows_the_spread_of_erases_at_a_price() {
    let (without, waf_without, no_moves) = worn(None);
    let (wide, waf_wide, few_moves) = worn(Some(20));
    let (narrow, waf_narrow, many_moves) = worn(Some(4));
    assert_eq!(no_moves, 0);
    assert!(without > 60, "cold blocks stay where they are: {without}");
    assert!(wide <= 30 && narrow <= 10 && narrow < wide, "{narrow} and {wide} against {without}");
    assert!(few_moves < many_moves);
    assert!(waf_without < waf_wide && waf_wide < waf_narrow, "{waf_without} {waf_wide} {waf_narrow}");
}

#[test]
fn blocks_that_hold_nothing_any_more_wear_in_turn() {
    for victim in ["greedy", "cost-benefit"] {
        let mut config = support::tiny();
        config.precondition.pattern = FillPattern::Sequential;
        config.gc.victim = policy(victim);
        let mut ssd = ready(&config, 1);
        let in_order = (0..60_000).map(|id| request(id, Operation::Write, id % 1024, 1));
        closed_loop(&mut ssd, 4, in_order);
        settle(&mut ssd, &mut Vec::new());
        ssd.check();
        let counts: Vec<u32> = ssd.erase_counts().collect();
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(*least > 10 && most - least <= 4, "{victim}: {least} to {most} erases of a block");
    }
}

#[test]
fn a_device_that_cannot_level_wear_comes_to_rest() {
    // Collection only runs for a flush, so free blocks stay short in between.
    let mut config = support::tiny();
    config.geometry.blocks_per_plane = 40;
    config.geometry.pages_per_block = 2;
    config.geometry.page_size = Bytes(4096);
    config.logical_capacity = Bytes(96 * 4096);
    config.allocation = policy("striped");
    config.gc.invocation = policy("foreground");
    (config.gc.start_below, config.gc.stop_above, config.gc.concurrent_victims) = (0, 0, 3);
    (config.wear_levelling.enabled, config.wear_levelling.threshold) = (true, 3);
    config.precondition.pattern = FillPattern::None;
    for seed in 1..40 {
        let mut ssd = ready(&config, seed);
        let mut random = Stream::new(seed, "test workload");
        let requests = (0..400).map(|id| {
            let pages = random.between(1, 20) as u32;
            request(id, Operation::Write, random.below(76), pages)
        });
        closed_loop(&mut ssd, 4, requests);
        settle(&mut ssd, &mut Vec::new());
    }
}
