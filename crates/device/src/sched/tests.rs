//! Policies over a small array: who goes first, who gets how much.

use flashkeel_engine::{Cause, EventQueue, Ledger, Span, Stream, Time};

use super::queue::{ChipQueue, Pending};
use super::*;
use crate::address::ChipId;
use crate::flash::{Array, Geometry, GeometryConfig, Suspension, SuspensionConfig, Timing, TimingConfig};

const READ_NS: u64 = 50_000 + 10_240;
const PROGRAM_NS: u64 = 500_000 + 10_240;
const ERASE_NS: u64 = 5_000_000;

fn config(policy: serde_json::Value) -> SchedulerConfig {
    serde_json::from_value(policy).expect("a scheduler")
}

fn timing() -> (Geometry, Timing) {
    let geometry = Geometry::resolve(&GeometryConfig {
        channels: 4,
        chips_per_channel: 1,
        planes_per_chip: 1,
        ..Default::default()
    });
    let geometry = geometry.expect("a valid geometry");
    let timing = Timing::resolve(&TimingConfig::default(), None, &geometry).expect("valid times");
    (geometry, timing)
}

/// Four chips, each on a channel of its own, under one policy.
struct Bench {
    dispatcher: Dispatcher,
    events: EventQueue,
    now: Time,
    created: u32,
}

impl Bench {
    fn new(policy: serde_json::Value, depth: u32) -> Bench {
        Bench::on(policy, depth, None)
    }

    /// The same on chips that suspend.
    fn suspending(policy: &str, depth: u32) -> Bench {
        let suspension = SuspensionConfig::default().resolve(Span(ERASE_NS)).expect("valid times");
        Bench::on(policy.into(), depth, suspension)
    }

    fn on(policy: serde_json::Value, depth: u32, suspension: Option<Suspension>) -> Bench {
        let (geometry, timing) = timing();
        let arbiter = config(policy).policy().build(4, depth, Stream::new(1, "scheduler"));
        let dispatcher = Dispatcher::new(Array::new(&geometry, timing, suspension), arbiter, 4, depth);
        Bench { dispatcher, events: EventQueue::new(), now: Time::ZERO, created: 0 }
    }

    /// Queues an operation; operations are numbered from 0 on.
    fn queue(&mut self, chip: u32, purpose: Purpose, task: Task) {
        self.add(chip, purpose, task);
    }

    fn add(&mut self, chip: u32, purpose: Purpose, task: Task) -> FlashOpId {
        let operations = &mut self.dispatcher.operations;
        let id = operations.create(self.now, purpose, task, 0, Cause::Controller);
        let operation = &mut operations[id];
        operation.chip = ChipId(chip);
        operation.units = 1;
        operation.page_in_block = 0;
        operation.owner = self.created;
        if task == Task::Host {
            operations.track(id, &Ledger::ZERO);
        }
        self.created += 1;
        self.dispatcher.enqueue(self.now, id, &mut self.events);
        id
    }

    /// Runs until an operation is done; its number, task and id.
    fn next(&mut self) -> Option<(u32, Task, FlashOpId)> {
        while let Some((time, chip)) = self.events.pop_due(Time::MAX) {
            self.now = time;
            if let Some(id) = self.dispatcher.step(time, ChipId(chip as u32), &mut self.events) {
                let operation = &self.dispatcher.operations[id];
                return Some((operation.owner, operation.task, id));
            }
        }
        None
    }

    fn order(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.next().map(|(number, ..)| number)).collect()
    }

    /// Operations of `task` in slots, over all chips.
    fn outstanding(&self, task: Task) -> usize {
        let slots = self.dispatcher.queues.iter().flat_map(|queue| queue.slots(&self.dispatcher.operations));
        slots.filter(|&id| self.dispatcher.operations[id].task == task).count()
    }

    fn control(&mut self, signals: Signals) {
        self.dispatcher.control(self.now, &signals, &mut self.events);
    }
}

/// These tasks at work, so far from their targets.
fn at_work(tasks: &[(Task, u32)]) -> Signals {
    let mut signals = Signals::default();
    tasks.iter().for_each(|&(task, error)| signals.set(task, true, error));
    signals
}

/// One chip, whose only slot is taken by operation 0 while the others come.
fn contest(policy: &str) -> Vec<u32> {
    let mut bench = Bench::new(policy.into(), 1);
    bench.queue(0, Activity::Host.read(), Task::Host);
    bench.queue(0, Activity::Gc.read(), Task::Gc);
    bench.queue(0, Activity::Host.read(), Task::Host);
    bench.queue(0, Activity::Map.read(), Task::Map);
    bench.queue(0, Activity::Gc.program(), Task::Gc);
    bench.queue(0, Activity::Host.program(), Task::Host);
    bench.queue(0, Activity::WearLevelling.read(), Task::WearLevelling);
    bench.queue(0, Activity::Scrub.read(), Task::Scrub);
    bench.queue(0, Activity::Gc.read(), Task::Gc);
    bench.order()
}

#[test]
fn fifo_serves_in_order_of_arrival() {
    assert_eq!(contest("fifo"), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn priority_serves_map_host_collection_scrubbing_wear_levelling() {
    assert_eq!(contest("priority"), [0, 3, 2, 5, 1, 4, 8, 7, 6]);
}

#[test]
fn reads_first_serves_the_hosts_reads_before_what_waits_in_slots() {
    // The three behind operation 0 are in slots when the reads of the host and its map come.
    let mut bench = Bench::new("reads-first".into(), 4);
    bench.queue(0, Activity::Host.read(), Task::Host);
    bench.queue(0, Activity::Host.program(), Task::Host);
    bench.queue(0, Activity::Gc.read(), Task::Gc);
    bench.queue(0, Activity::Host.program(), Task::Host);
    bench.queue(0, Activity::Gc.program(), Task::Gc);
    bench.queue(0, Activity::Host.read(), Task::Host);
    bench.queue(0, Activity::Host.program(), Task::Host);
    bench.queue(0, Activity::Map.read(), Task::Map);
    assert_eq!(bench.order(), [0, 5, 7, 1, 2, 3, 6, 4]);
}

#[test]
fn reads_first_keeps_reads_in_order_and_waits_for_what_has_begun() {
    let mut bench = Bench::new("reads-first".into(), 4);
    bench.queue(0, Activity::Host.program(), Task::Host);
    bench.queue(0, Activity::Host.program(), Task::Host);
    bench.queue(0, Activity::Host.read(), Task::Host);
    assert_eq!(bench.next().map(|(number, ..)| number), Some(0));
    // One that comes while another passes goes behind it, and before the slots.
    bench.queue(0, Activity::Host.read(), Task::Host);
    assert_eq!(bench.now, Time(PROGRAM_NS));
    assert_eq!(bench.order(), [2, 3, 1]);
}

#[test]
fn a_promoted_operation_goes_with_its_new_task_in_order_of_arrival() {
    for (policy, order) in [("priority", [0, 3, 4, 1, 2]), ("fifo", [0, 1, 2, 3, 4])] {
        let mut bench = Bench::new(policy.into(), 1);
        bench.queue(0, Activity::Host.read(), Task::Host);
        bench.queue(0, Activity::Gc.read(), Task::Gc);
        bench.queue(0, Activity::Gc.read(), Task::Gc);
        let wanted = bench.add(0, Activity::Map.read(), Task::Gc);
        bench.queue(0, Activity::Map.read(), Task::Map);
        let running = bench.add(1, Activity::Map.read(), Task::Gc);
        for id in [wanted, running, wanted] {
            bench.dispatcher.promote(bench.now, id, Task::Map, &mut bench.events);
        }
        let mut served = bench.order();
        served.retain(|&number| number != 5);
        assert_eq!(served, order, "{policy}");
    }
}

#[test]
fn a_promoted_operation_leaves_the_limit_of_its_former_task() {
    let mut bench = Bench::new(serde_json::json!({"policy": "debit", "gc_static": 0.0}), 4);
    bench.queue(0, Activity::Gc.erase(), Task::Gc);
    bench.queue(1, Activity::Gc.read(), Task::Gc);
    let wanted = bench.add(1, Activity::Map.read(), Task::Gc);
    assert_eq!(bench.outstanding(Task::Gc), 1);
    bench.dispatcher.promote(bench.now, wanted, Task::Map, &mut bench.events);
    assert_eq!((bench.outstanding(Task::Gc), bench.outstanding(Task::Map)), (1, 1));
    assert_eq!(bench.order(), [2, 0, 1]);
    assert!(!bench.dispatcher.collects(ChipId(1)), "its work is no background work any more");
}

#[test]
fn an_erase_follows_what_empties_a_block_and_keeps_its_age_when_suspended() {
    for (purpose, erase) in [(Activity::Gc.read(), ERASE_NS), (Activity::Check.read(), 0)] {
        let mut bench = Bench::suspending("priority", 1);
        bench.queue(0, purpose, purpose.activity().task());
        bench.queue(1, Activity::Gc.erase(), Task::Gc);
        bench.now = Time(1_000_000);
        bench.queue(1, Activity::Host.read(), Task::Host);
        let left = [0, 1].map(|chip| bench.dispatcher.background_left(bench.now, ChipId(chip)));
        assert_eq!(left, [Span(erase), Span(ERASE_NS - 1_000_000)]);
        assert_eq!(bench.dispatcher.collects(ChipId(0)), erase > 0);
    }
}

#[test]
fn a_map_page_suspends_an_erase_once_the_host_waits_for_it() {
    // In the chip's queue, and in a slot behind the erase.
    for depth in [1, 4] {
        let mut bench = Bench::suspending("priority", depth);
        bench.queue(0, Activity::Gc.erase(), Task::Gc);
        bench.queue(0, Activity::Gc.read(), Task::Gc);
        let wanted = bench.add(0, Activity::Map.read(), Task::Gc);
        bench.queue(1, Activity::Host.read(), Task::Host);
        assert_eq!(bench.next().map(|(number, ..)| number), Some(3));
        bench.dispatcher.promote(bench.now, wanted, Task::Map, &mut bench.events);
        let (number, task, _) = bench.next().expect("it goes first");
        assert_eq!((number, task), (2, Task::Map), "{depth} slots");
        assert!(bench.now < Time(ERASE_NS));
        assert_eq!(bench.order(), [0, 1]);
        assert!(!bench.dispatcher.collects(ChipId(0)));
    }
}

#[test]
fn a_map_page_that_only_collection_needs_suspends_nothing() {
    let mut bench = Bench::suspending("priority", 1);
    bench.queue(0, Activity::Gc.erase(), Task::Gc);
    bench.queue(0, Activity::Map.read(), Task::Gc);
    assert_eq!(bench.order(), [0, 1]);
    assert!(bench.now >= Time(ERASE_NS + READ_NS));
}

#[test]
fn a_read_suspends_a_map_page_that_is_written_back() {
    let mut bench = Bench::suspending("priority", 4);
    bench.queue(0, Activity::Map.program(), Task::Map);
    bench.queue(0, Activity::Gc.erase(), Task::Gc);
    bench.queue(0, Activity::Host.read(), Task::Host);
    assert_eq!(bench.order(), [2, 0, 1]);
}

#[test]
fn a_busy_chip_holds_up_no_other() {
    for policy in ["fifo", "priority", "fair", "debit"] {
        let mut bench = Bench::new(policy.into(), 1);
        bench.queue(0, Activity::Gc.erase(), Task::Gc);
        bench.queue(0, Activity::Host.read(), Task::Host);
        bench.queue(1, Activity::Host.read(), Task::Host);
        assert_eq!(bench.order(), [2, 0, 1], "{policy}");
    }
}

#[test]
fn fair_divides_chip_time_by_weight_whatever_operations_cost() {
    let mut bench = Bench::new(serde_json::json!({"policy": "fair", "host": 4, "map": 2, "gc": 1}), 1);
    for _ in 0..20_000 {
        bench.queue(0, Activity::Host.read(), Task::Host);
    }
    for _ in 0..2_000 {
        bench.queue(0, Activity::Map.program(), Task::Map);
    }
    for _ in 0..200 {
        bench.queue(0, Activity::Gc.erase(), Task::Gc);
    }
    let mut spent = [0.0; Task::COUNT];
    while bench.now < Time(800_000_000) {
        let (_, task, _) = bench.next().expect("a backlog");
        let cost = [READ_NS, PROGRAM_NS, ERASE_NS][task as usize];
        spent[task as usize] += cost as f64;
    }
    let total: f64 = spent.iter().sum();
    for (task, share) in [(Task::Host, 4.0 / 7.0), (Task::Map, 2.0 / 7.0), (Task::Gc, 1.0 / 7.0)] {
        let got = spent[task as usize] / total;
        assert!((got / share - 1.0).abs() < 0.04, "{task:?}: {got} of the time instead of {share}");
    }
}

#[test]
fn fair_saves_nothing_up_for_a_task_that_was_away() {
    let mut bench = Bench::new("fair".into(), 1);
    for _ in 0..50 {
        bench.queue(0, Activity::Host.read(), Task::Host);
    }
    for _ in 0..20 {
        bench.next();
    }
    for _ in 0..10 {
        bench.queue(0, Activity::Gc.read(), Task::Gc);
    }
    let gc = (0..10).filter(|_| bench.next().is_some_and(|(_, task, _)| task == Task::Gc)).count();
    assert!((4..=6).contains(&gc), "{gc} of 10 operations were the newcomer's");
}

#[test]
fn debit_never_exceeds_its_limits_and_reaches_them() {
    // 16 slots: collection may have 4 outstanding, the host 12, the map 4.
    let mut bench = Bench::new(serde_json::json!({"policy": "debit", "gc_static": 0.25, "map": 0.25}), 4);
    bench.control(at_work(&[(Task::Gc, 0)]));
    let limits = [(Task::Host, 12), (Task::Map, 4), (Task::Gc, 4)];
    let mut stream = Stream::new(4, "test workload");
    for _ in 0..2_000 {
        let chip = stream.below(4) as u32;
        match stream.below(5) {
            0..3 => bench.queue(chip, Activity::Host.read(), Task::Host),
            3 => bench.queue(chip, Activity::Map.read(), Task::Map),
            _ => bench.queue(chip, Activity::Gc.program(), Task::Gc),
        }
    }
    let mut most = [0; Task::COUNT];
    loop {
        for (task, limit) in limits {
            let outstanding = bench.outstanding(task);
            assert!(outstanding <= limit, "{task:?}: {outstanding} above {limit}");
            most[task as usize] = outstanding.max(most[task as usize]);
        }
        if bench.next().is_none() {
            break;
        }
    }
    assert_eq!(most[..3], [12, 4, 4]);
    assert_eq!(bench.created, 2_000);
}

#[test]
fn debit_leaves_the_host_everything_while_collection_rests() {
    let mut bench = Bench::new(serde_json::json!({"policy": "debit", "gc_static": 0.5}), 4);
    for index in 0..64 {
        bench.queue(index % 4, Activity::Host.read(), Task::Host);
    }
    assert_eq!(bench.outstanding(Task::Host), 16);
}

#[test]
fn a_task_at_its_limit_is_held_by_the_scheduler() {
    // The host's limit is a single operation over four idle chips.
    let mut bench = Bench::new(serde_json::json!({"policy": "debit", "gc_static": 1.0}), 4);
    bench.control(at_work(&[(Task::Gc, 0)]));
    for chip in 0..3 {
        bench.queue(chip, Activity::Host.read(), Task::Host);
    }
    for number in 0..3u64 {
        let (owner, _, id) = bench.next().expect("an operation");
        assert_eq!(u64::from(owner), number);
        let ledger = bench.dispatcher.operations.ledger(id);
        assert_eq!(ledger.ns(Cause::SchedulerHold), number * READ_NS);
        assert_eq!(ledger.ns(Cause::OwnFlash), READ_NS);
        assert_eq!(ledger.total().as_ns(), (number + 1) * READ_NS);
    }
}

#[test]
fn shares_follow_the_feedback_equation() {
    let settings = serde_json::json!({
        "policy": "debit", "gc_p": 0.001, "gc_i": 0.9, "gc_min": 0.05, "gc_max": 0.5, "map": 0.125,
    });
    let mut bench = Bench::new(settings, 4);
    let ppm = |share: f64| (share * 1e6) as u64;
    // A task starts with a small share, which counts once it is active.
    assert_eq!(bench.dispatcher.arbiter().shares_ppm()[..3], [1_000_000, 125_000, 0]);
    let mut share = 0.05f64;
    let script = [40, 120, 300, 300, 700, 90, 0, 0, 10];
    let mut seen = Vec::new();
    for error in script.into_iter().chain([0; 30]) {
        bench.control(at_work(&[(Task::Gc, error)]));
        share = (0.001 * f64::from(error) + 0.9 * share).clamp(0.05, 0.5);
        assert_eq!(bench.dispatcher.arbiter().shares_ppm()[..3], [ppm(1.0 - share), 125_000, ppm(share)]);
        assert!(!bench.dispatcher.arbiter().is_settled(), "collection is active");
        seen.push(share);
    }
    assert!(seen.contains(&0.5) && seen.contains(&0.05), "the script meets both bounds");
}

#[test]
fn shares_settle_when_collection_rests() {
    for least in [0.0, 0.02] {
        let settings = serde_json::json!({"policy": "debit", "gc_p": 0.01, "gc_i": 0.9, "gc_min": least});
        let mut bench = Bench::new(settings, 4);
        bench.control(at_work(&[(Task::Gc, 50)]));
        let rest = Signals::default();
        let periods = (0..1_000).take_while(|_| {
            bench.control(rest);
            !bench.dispatcher.arbiter().is_settled()
        });
        let periods = periods.count();
        assert!((1..200).contains(&periods), "{periods} periods");
        assert_eq!(bench.dispatcher.arbiter().shares_ppm()[..3], [1_000_000, 250_000, 0]);
    }
}

#[test]
fn collection_has_its_largest_share_while_the_host_is_stalled() {
    let settings = serde_json::json!({"policy": "debit", "gc_max": 0.75});
    let mut bench = Bench::new(settings, 4);
    bench.control(Signals { host_stalled: true, ..at_work(&[(Task::Gc, 0)]) });
    assert_eq!(bench.dispatcher.arbiter().shares_ppm()[..3], [250_000, 250_000, 750_000]);
}

#[test]
fn foresight_gives_all_in_idleness_and_a_part_while_requests_are_expected() {
    let control = serde_json::json!({"policy": "foresight", "busy": 0.5});
    let mut bench = Bench::new(
        serde_json::json!({"policy": "debit", "gc_p": 0.04, "gc_i": 0.0, "gc_min": 0.05, "gc_max": 0.5, "control": control}),
        4,
    );
    let gc = |bench: &mut Bench, error, idle_expected, host_stalled| {
        bench.control(Signals { idle_expected, host_stalled, ..at_work(&[(Task::Gc, error)]) });
        bench.dispatcher.arbiter().shares_ppm()[Task::Gc as usize]
    };
    assert_eq!(gc(&mut bench, 10, false, false), 200_000);
    assert_eq!(gc(&mut bench, 0, false, false), 50_000);
    assert_eq!(gc(&mut bench, 0, true, false), 500_000);
    assert_eq!(gc(&mut bench, 0, false, true), 500_000);
    bench.control(Signals { idle_expected: true, ..Signals::default() });
    assert_eq!(bench.dispatcher.arbiter().shares_ppm()[..3], [1_000_000, 250_000, 0]);
}

#[test]
fn each_background_task_has_a_share_of_its_own() {
    let settings = serde_json::json!({
        "policy": "debit", "gc_min": 0.25,
        "scrub_p": 0.001, "scrub_i": 0.5, "scrub_min": 0.0, "scrub_max": 0.25,
        "wear_levelling_p": 0.01, "wear_levelling_i": 0.0, "wear_levelling_min": 0.0,
        "wear_levelling_max": 0.125,
    });
    let mut bench = Bench::new(settings, 4);
    let shares = |bench: &Bench| bench.dispatcher.arbiter().shares_ppm();
    let mut at = |tasks: &[(Task, u32)]| {
        bench.control(at_work(tasks));
        shares(&bench)
    };
    assert_eq!(at(&[(Task::Scrub, 100)])[..5], [900_000, 250_000, 0, 100_000, 0]);
    assert_eq!(at(&[(Task::Scrub, 100)])[..5], [850_000, 250_000, 0, 150_000, 0]);
    assert_eq!(at(&[(Task::Scrub, 9_000)])[..5], [750_000, 250_000, 0, 250_000, 0]);
    assert_eq!(at(&[(Task::WearLevelling, 5)])[..5], [950_000, 250_000, 0, 0, 50_000]);
    let all = [(Task::Gc, 0), (Task::Scrub, 9_000), (Task::WearLevelling, 90)];
    assert_eq!(at(&all)[..5], [375_000, 250_000, 250_000, 250_000, 125_000]);
}

#[test]
fn an_active_task_may_always_have_one_operation_outstanding() {
    let settings = serde_json::json!({
        "policy": "debit", "gc_min": 0.0, "gc_max": 1.0, "gc_p": 1.0,
        "scrub_min": 0.0, "wear_levelling_min": 0.0,
    });
    let mut bench = Bench::new(settings, 4);
    bench.control(at_work(&[(Task::Gc, 100), (Task::Scrub, 0), (Task::WearLevelling, 0)]));
    let tasks = [
        (Task::Host, Activity::Host.read(), 1),
        (Task::Gc, Activity::Gc.read(), 16),
        (Task::Scrub, Activity::Scrub.read(), 1),
        (Task::WearLevelling, Activity::WearLevelling.read(), 1),
    ];
    for (task, purpose, limit) in tasks {
        let mut alone = Bench { created: 0, ..bench };
        (0..64).for_each(|index| alone.queue(index % 4, purpose, task));
        assert_eq!(alone.outstanding(task), limit, "{task:?}");
        alone.order();
        bench = alone;
    }
}

#[test]
fn debit_chooses_in_favour_of_the_smaller_debit() {
    let (_, timing) = timing();
    let settings = config(serde_json::json!({"policy": "debit", "gc_static": 0.25}));
    let mut operations = FlashOps::default();
    let mut queue = ChipQueue::new(0);
    for (purpose, task) in [(Activity::Host.read(), Task::Host), (Activity::Gc.read(), Task::Gc)] {
        let id = operations.create(Time::ZERO, purpose, task, 0, Cause::Controller);
        queue.push(&mut operations, id);
    }
    let pending =
        |mask| Pending { queue: &queue, operations: &operations, timing: &timing, mask, only: None };
    let bit = |task: Task| 1u32 << task as u32;
    // Of 16 slots the host has 12 and collection 4.
    for (host, gc) in [(0, 0), (6, 0), (11, 1), (0, 3), (9, 1)] {
        let mut arbiter = settings.policy().build(4, 4, Stream::new(3, "scheduler"));
        arbiter.control(&at_work(&[(Task::Gc, 0)]));
        for (task, count) in [(Task::Host, host), (Task::Gc, gc)] {
            for _ in 0..count {
                assert_eq!(arbiter.pick(ChipId(0), &pending(bit(task))), task);
            }
        }
        let draws = 40_000;
        let picked = (0..draws).filter(|_| {
            let task = arbiter.pick(ChipId(0), &pending(bit(Task::Host) | bit(Task::Gc)));
            arbiter.completed(task);
            task == Task::Host
        });
        let got = picked.count() as f64 / f64::from(draws);
        let room = (f64::from(12 - host) / 12.0, f64::from(4 - gc) / 4.0);
        let expected = room.0 / (room.0 + room.1);
        assert!((got - expected).abs() < 0.01, "{host} and {gc} outstanding: {got} instead of {expected}");
    }
}
