//! Policies over a small array: who goes first, who gets how much.

mod debit;
mod windows;

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
        Bench::on(policy, depth, 1, None)
    }

    /// The same on chips that suspend.
    fn suspending(policy: &str, depth: u32) -> Bench {
        let suspension = SuspensionConfig::default().resolve(Span(ERASE_NS)).expect("valid times");
        Bench::on(policy.into(), depth, 1, suspension)
    }

    fn on(policy: serde_json::Value, depth: u32, partitions: u32, suspension: Option<Suspension>) -> Bench {
        let (geometry, timing) = timing();
        let arbiter = config(policy).policy().build(4, depth, partitions, Stream::new(1, "scheduler"));
        let array = Array::new(&geometry, timing, suspension);
        let dispatcher = Dispatcher::new(array, arbiter, 4, depth, partitions);
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
        self.control_of(0, signals);
    }

    fn control_of(&mut self, partition: u32, signals: Signals) {
        self.dispatcher.control(self.now, partition, &signals, &mut self.events);
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
