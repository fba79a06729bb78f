//! What a window keeps from chips.

use super::*;

/// Work in slots and pending on chip 0, on chip 1 one erase; then no more may begin.
fn closed() -> Bench {
    let mut bench = Bench::new("fifo".into(), 2);
    for purpose in [Activity::Gc.read(), Activity::Gc.read(), Activity::Gc.program()] {
        bench.queue(0, purpose, Task::Gc);
    }
    bench.queue(1, Activity::Gc.erase(), Task::Gc);
    bench.dispatcher.allow_background(bench.now, 0, false, &mut bench.events);
    bench
}

#[test]
fn what_a_chip_has_begun_ends_and_the_rest_waits() {
    let mut bench = closed();
    assert_eq!(bench.dispatcher.loads(ChipId(0), 4), [1, 1, 0, 0], "what is kept back is no load");
    bench.queue(0, Activity::Gc.read(), Task::Gc);
    bench.queue(0, Activity::Host.read(), Task::Host);
    assert_eq!(bench.dispatcher.loads(ChipId(0), 4), [2, 1, 0, 0]);
    assert_eq!(bench.order(), [0, 5, 3]);
    assert_eq!(bench.dispatcher.loads(ChipId(0), 4), [0; 4]);
    bench.dispatcher.allow_background(bench.now, 0, true, &mut bench.events);
    assert_eq!(bench.dispatcher.loads(ChipId(0), 4), [3, 0, 0, 0]);
    assert_eq!(bench.order(), [1, 2, 4]);
    assert_eq!(bench.dispatcher.loads(ChipId(0), 4), [0; 4]);
}

#[test]
fn a_chip_collects_only_what_it_may() {
    let mut bench = closed();
    assert!(bench.dispatcher.collects(ChipId(0)) && bench.dispatcher.collects(ChipId(1)));
    assert_eq!(bench.order(), [0, 3]);
    assert!(!bench.dispatcher.collects(ChipId(0)));
    assert_eq!(bench.dispatcher.background_left(bench.now, ChipId(0)), Span(0));
    bench.dispatcher.allow_background(bench.now, 0, true, &mut bench.events);
    assert!(bench.dispatcher.collects(ChipId(0)));
}

#[test]
fn a_map_page_that_the_host_needs_is_not_kept_back() {
    let mut bench = closed();
    let wanted = bench.add(0, Activity::Map.read(), Task::Gc);
    assert_eq!(bench.order(), [0, 3]);
    bench.dispatcher.promote(bench.now, wanted, Task::Map, &mut bench.events);
    assert_eq!(bench.dispatcher.loads(ChipId(0), 1), [1]);
    assert_eq!(bench.order(), [4]);
    assert_eq!(bench.dispatcher.loads(ChipId(0), 1), [0]);
}
