//! Debit scheduling: limits, and the shares that they follow from.

use super::*;

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
    let ppm = |share: f64| (share * 1e6).round() as u64;
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
    let mut queue = ChipQueue::new(0, 0);
    for (purpose, task) in [(Activity::Host.read(), Task::Host), (Activity::Gc.read(), Task::Gc)] {
        let id = operations.create(Time::ZERO, purpose, task, 0, Cause::Controller);
        queue.push(&mut operations, id);
    }
    let pending =
        |mask| Pending { queue: &queue, operations: &operations, timing: &timing, mask, only: None };
    let bit = |task: Task| 1u32 << task as u32;
    // Of 16 slots the host has 12 and collection 4.
    for (host, gc) in [(0, 0), (6, 0), (11, 1), (0, 3), (9, 1)] {
        let mut arbiter = settings.policy().build(4, 4, 1, Stream::new(3, "scheduler"));
        arbiter.control(0, &at_work(&[(Task::Gc, 0)]));
        for (task, count) in [(Task::Host, host), (Task::Gc, gc)] {
            for _ in 0..count {
                assert_eq!(arbiter.pick(ChipId(0), &pending(bit(task))), task);
            }
        }
        let draws = 40_000;
        let picked = (0..draws).filter(|_| {
            let task = arbiter.pick(ChipId(0), &pending(bit(Task::Host) | bit(Task::Gc)));
            arbiter.completed(0, task);
            task == Task::Host
        });
        let got = picked.count() as f64 / f64::from(draws);
        let room = (f64::from(12 - host) / 12.0, f64::from(4 - gc) / 4.0);
        let expected = room.0 / (room.0 + room.1);
        assert!((got - expected).abs() < 0.01, "{host} and {gc} outstanding: {got} instead of {expected}");
    }
}

#[test]
fn partitions_have_limits_and_shares_of_their_own() {
    let settings = serde_json::json!({"policy": "debit", "gc_static": 0.5, "map": 0.25});
    let mut bench = Bench::on(settings, 4, 2, None);
    bench.control_of(0, at_work(&[(Task::Gc, 0)]));
    bench.control_of(1, Signals::default());
    for index in 0..64 {
        bench.queue(index % 4, Activity::Gc.read(), Task::Gc);
        bench.queue(index % 4, Activity::Host.read(), Task::Host);
    }
    let of = |bench: &Bench, task, chips: std::ops::Range<usize>| {
        let slots = bench.dispatcher.queues[chips].iter();
        let slots = slots.flat_map(|queue| queue.slots(&bench.dispatcher.operations));
        slots.filter(|&id| bench.dispatcher.operations[id].task == task).count()
    };
    // Eight slots each: collection and the host have half of those of the first, and what
    // the first has outstanding takes nothing from the second.
    assert_eq!((of(&bench, Task::Gc, 0..2), of(&bench, Task::Host, 0..2)), (4, 4));
    assert_eq!((of(&bench, Task::Gc, 2..4), of(&bench, Task::Host, 2..4)), (4, 4));
    assert_eq!(bench.dispatcher.arbiter().shares_ppm()[..3], [750_000, 250_000, 250_000]);
    assert!(!bench.dispatcher.arbiter().is_settled(), "collection is active in the first");
    assert_eq!(bench.order().len(), 128);
    (0..64).for_each(|index| bench.queue(index % 4, Activity::Host.read(), Task::Host));
    assert_eq!((of(&bench, Task::Host, 0..2), of(&bench, Task::Host, 2..4)), (4, 8));
    assert_eq!(bench.order().len(), 64);
}

#[test]
fn what_others_leave_of_the_slots_is_not_rounded_away() {
    // A fifth of 20 slots; in binary, 1 - 0.8 is less than that.
    let mut bench = Bench::new(serde_json::json!({"policy": "debit", "gc_static": 0.8}), 5);
    bench.control(at_work(&[(Task::Gc, 0)]));
    for index in 0..64 {
        bench.queue(index % 4, Activity::Host.read(), Task::Host);
    }
    assert_eq!(bench.outstanding(Task::Host), 4);
    // Once 199,999, as it was cut off.
    assert_eq!(bench.dispatcher.arbiter().shares_ppm()[..3], [200_000, 250_000, 800_000]);
}
