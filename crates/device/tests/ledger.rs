//! The blame ledger in constructed situations: the right owner, to the
//! nanosecond.

mod support;

use flashkeel_device::{DeviceConfig, FillPattern, MapCacheSize};
use flashkeel_engine::units::{Bytes, Rate};
use flashkeel_engine::{Cause, Completion, Operation, Span, Stream};
use support::*;

const READ_DELAYS: u64 = LOOKUP + GENERATION;
const HOST_PROGRAM: u64 = 4 * UNIT + PROGRAM;

/// Checks a ledger entry by entry, and its sum.
fn owes(completion: &Completion, submitted: u64, expected: &[(Cause, u64)]) {
    let got: Vec<_> = completion.ledger.iter().filter(|&(_, ns)| ns > 0).collect();
    let mut expected: Vec<_> = expected.iter().copied().filter(|&(_, ns)| ns > 0).collect();
    expected.sort_by_key(|&(cause, _)| cause);
    assert_eq!(got, expected);
    assert_eq!(completion.ledger.total().as_ns(), completion.time.0 - submitted);
}

#[test]
fn an_idle_device_owes_nothing_to_others() {
    let mut config = exact();
    config.host_link = Some(Rate(1_000_000_000));
    let mut ssd = ready(&config, 1);
    let done = timed(&mut ssd, &[(0, Operation::Read, 0, 2), (9_000_000, Operation::Write, 0, 2)]);
    let link = (Cause::HostLink, 8192);
    owes(&done[0], 0, &[(Cause::Controller, READ_DELAYS), (Cause::OwnFlash, READ + 2 * UNIT), link]);
    owes(&done[1], 9_000_000, &[(Cause::Controller, LOOKUP), link]);
}

#[test]
fn a_transfer_waits_for_the_host_link() {
    let mut config = exact();
    config.host_link = Some(Rate(100_000_000));
    let mut ssd = ready(&config, 1);
    let done = timed(&mut ssd, &[(0, Operation::Write, 0, 2), (1_000, Operation::Write, 8, 1)]);
    owes(&done[1], 1_000, &[(Cause::HostLink, 81_920 - 1_000 + 40_960), (Cause::Controller, LOOKUP)]);
}

#[test]
fn a_read_behind_a_read_of_its_chip() {
    let mut ssd = ready(&exact_chip(80), 1);
    let done = timed(&mut ssd, &[(0, Operation::Read, 0, 3), (5_000, Operation::Read, 8, 1)]);
    let wait = READ + 3 * UNIT - 5_000;
    let own = (Cause::OwnFlash, READ + UNIT);
    owes(&done[1], 5_000, &[(Cause::Controller, READ_DELAYS), (Cause::BehindHostRead, wait), own]);
}

#[test]
fn a_read_behind_a_read_of_its_channel() {
    let mut config = exact();
    config.geometry.channels = 1;
    config.geometry.chips_per_channel = 4;
    let mut ssd = ready(&config, 1);
    let done = timed(&mut ssd, &[(0, Operation::Read, 0, 4), (1_000, Operation::Read, 4, 1)]);
    // Array reads overlap; the second transfer waits for the first.
    let wait = 4 * UNIT - 1_000;
    let own = (Cause::OwnFlash, READ + UNIT);
    owes(&done[1], 1_000, &[(Cause::Controller, READ_DELAYS), (Cause::BehindHostRead, wait), own]);
}

#[test]
fn a_read_behind_a_program() {
    let mut ssd = ready(&exact_chip(80), 1);
    // The program starts at LOOKUP + GENERATION, as the read would 100 us later.
    let done = timed(&mut ssd, &[(0, Operation::Write, 0, 4), (100_000, Operation::Read, 8, 1)]);
    let wait = HOST_PROGRAM - 100_000;
    let own = (Cause::OwnFlash, READ + UNIT);
    owes(&done[1], 100_000, &[(Cause::Controller, READ_DELAYS), (Cause::BehindHostWrite, wait), own]);
}

#[test]
fn the_operation_that_ends_last_carries_the_blame() {
    let mut ssd = ready(&exact(), 1);
    // Page 0 lies on the chip being programmed, page 4 on an idle one.
    let done = timed(&mut ssd, &[(0, Operation::Write, 100, 4), (100_000, Operation::Read, 0, 8)]);
    let (wait, own) = (HOST_PROGRAM - 100_000, (Cause::OwnFlash, READ + 4 * UNIT));
    owes(&done[1], 100_000, &[(Cause::Controller, READ_DELAYS), (Cause::BehindHostWrite, wait), own]);
}

#[test]
fn a_write_through_write_waits_for_others_to_fill_its_page() {
    let mut config = exact();
    config.buffer.kind = policy("none");
    config.buffer.timeout = Some(Span(300_000));
    let mut ssd = ready(&config, 1);
    let requests =
        [(0, Operation::Write, 0, 1), (70_000, Operation::Write, 8, 3), (10_000_000, Operation::Write, 0, 2)];
    let done = timed(&mut ssd, &requests);
    let (controller, own) = ((Cause::Controller, READ_DELAYS), (Cause::OwnFlash, HOST_PROGRAM));
    owes(&done[0], 0, &[controller, (Cause::Aggregation, 70_000), own]);
    owes(&done[1], 70_000, &[controller, own]);
    owes(&done[2], 10_000_000, &[controller, (Cause::Aggregation, 300_000), own]);
}

#[test]
fn a_write_to_a_full_buffer_waits_for_the_program_that_makes_room() {
    let mut config = exact_chip(80);
    config.buffer.size = Bytes(16 << 10);
    let mut ssd = ready(&config, 1);
    // Four pages are being programmed, four wait, and the ninth finds no room.
    let done = timed(&mut ssd, &[(0, Operation::Write, 0, 8), (50_000, Operation::Write, 20, 1)]);
    owes(&done[0], 0, &[(Cause::Controller, LOOKUP)]);
    let freed = READ_DELAYS + HOST_PROGRAM;
    let wait = freed - 50_000 - LOOKUP;
    owes(&done[1], 50_000, &[(Cause::Controller, LOOKUP), (Cause::BehindHostWrite, wait)]);
}

#[test]
fn a_flush_command_waits_for_the_programs_before_it() {
    let mut ssd = ready(&exact_chip(80), 1);
    let requests =
        [(0, Operation::Read, 100, 4), (100, Operation::Write, 0, 1), (1_000, Operation::Flush, 0, 0)];
    let done = timed(&mut ssd, &requests);
    // The padded page is generated, waits for the read, and is programmed.
    let read_until = READ_DELAYS + READ + 4 * UNIT;
    let behind = read_until - (1_000 + READ_DELAYS);
    let waits = [(Cause::BehindHostRead, behind), (Cause::BehindHostWrite, HOST_PROGRAM)];
    owes(&done[2], 1_000, &[&[(Cause::Controller, READ_DELAYS)], &waits[..]].concat());
}

#[test]
fn a_write_that_fills_a_foreground_buffer_waits_for_its_flush() {
    let mut config = exact_chip(80);
    config.buffer.kind = policy("fore");
    config.buffer.flush = vec![policy("full")];
    config.buffer.size = Bytes(16 << 10);
    let mut ssd = ready(&config, 1);
    let done = timed(&mut ssd, &[(0, Operation::Write, 0, 4), (10_000, Operation::Write, 9, 1)]);
    let over = READ_DELAYS + HOST_PROGRAM;
    owes(&done[0], 0, &[(Cause::Controller, READ_DELAYS), (Cause::BehindHostWrite, HOST_PROGRAM)]);
    let wait = over - 10_000 - LOOKUP;
    owes(&done[1], 10_000, &[(Cause::Controller, LOOKUP), (Cause::BehindHostWrite, wait)]);
}

#[test]
fn a_read_waits_for_the_flush_it_triggers() {
    let mut config = exact_chip(80);
    config.buffer.flush.push(policy("read"));
    let mut ssd = ready(&config, 1);
    let done = timed(&mut ssd, &[(0, Operation::Write, 0, 1), (5_000, Operation::Read, 0, 1)]);
    // The page just written is read back from flash.
    let own = (Cause::OwnFlash, READ + UNIT);
    let controller = (Cause::Controller, READ_DELAYS + GENERATION);
    owes(&done[1], 5_000, &[controller, (Cause::BehindHostWrite, HOST_PROGRAM), own]);
}

/// What a read had waited for before was counted for its own flash reads, too.
#[test]
fn a_read_delayed_while_the_buffer_is_flushed_for_it_is_not_delayed_in_flash() {
    let mut config = tiny();
    config.scheduler = policy("fifo");
    config.buffer.flush = vec![policy("full"), policy("read")];
    config.precondition.pattern = FillPattern::Random;
    let mut ssd = ready(&config, 1);
    let mut random = Stream::new(1, "mixed");
    let operation = |id: u64| if id.is_multiple_of(2) { Operation::Read } else { Operation::Write };
    let requests = (0..20_000).map(|id| request(id, operation(id), random.below(1_000), 1));
    let done = closed_loop(&mut ssd, 4, requests);
    let is_blocked = |read: &&Completion| read.id.0.is_multiple_of(2) && read.ledger.has_gc();
    let blocked = done.iter().filter(is_blocked).count() as u64;
    let pages = ssd.counters().gc_blocked_pages_read;
    assert!(pages > 0 && pages < blocked, "{pages} pages, {blocked} requests");
}

#[test]
fn a_read_of_several_flash_pages_flushes_on_arrival_only() {
    let mut config = exact();
    config.buffer.flush.push(policy("read"));
    let mut ssd = ready(&config, 1);
    // The write comes between the first and the last operation of the read.
    let arrival = READ_DELAYS + GENERATION - LOOKUP - 100;
    let done = timed(&mut ssd, &[(0, Operation::Read, 0, 16), (arrival, Operation::Write, 50, 1)]);
    assert_eq!(done[0].ledger.ns(Cause::BehindHostWrite), 0);
    assert_eq!(done[0].time.0, LOOKUP + 2 * GENERATION + READ + 8 * UNIT);
}

#[test]
fn a_read_waits_for_its_map_page() {
    let mut config = exact_chip(160);
    config.logical_capacity = Bytes(8 << 20);
    config.map_cache = MapCacheSize::Size(Bytes(4096));
    let mut ssd = ready(&config, 1);
    let done = timed(&mut ssd, &[(0, Operation::Read, 0, 1), (1_000_000, Operation::Read, 1, 1)]);
    let own = (Cause::OwnFlash, READ + UNIT);
    let load = GENERATION + READ + UNIT;
    owes(&done[0], 0, &[(Cause::Controller, READ_DELAYS), (Cause::MapLoad, load), own]);
    owes(&done[1], 1_000_000, &[(Cause::Controller, READ_DELAYS), own]);
    // Another request waits behind the flash read of a map page.
    let done =
        timed(&mut ssd, &[(10_000_000, Operation::Read, 1024, 1), (10_002_000, Operation::Read, 8, 1)]);
    assert_eq!(done[0].ledger.ns(Cause::MapLoad), load);
    let wait = READ + UNIT - (2_000 - GENERATION);
    assert_eq!(done[1].ledger.ns(Cause::BehindMap), wait);
}

/// A chip of 44 blocks with 32 pages each, 28 of them filled, that starts
/// collecting when less than 8 are free.
fn collecting() -> DeviceConfig {
    let mut config = exact_chip(44);
    config.logical_capacity = Bytes(28 * 32 * 4096);
    config.gc.start_below = 8;
    config.gc.stop_above = 8;
    config.gc.concurrent_victims = 1;
    config.gc.victim = policy("greedy");
    config.scheduler = policy("fifo");
    config
}

/// When everything of [`eight_blocks`] has come to rest.
const FILLED: u64 = 100_000_000;

/// Writes that fill eight blocks and leave each former one mostly valid; then
/// eight blocks are free, and the next write opens one of them.
fn eight_blocks() -> Vec<(u64, Operation, u64, u32)> {
    (0..64).map(|index| (index * 1_000_000, Operation::Write, 64 + index * 13, 4)).collect()
}

#[test]
fn a_read_behind_collection() {
    // Of the first block only page 0 stays valid: one read, one program, one erase.
    let opened = FILLED + READ_DELAYS;
    let read = opened + HOST_PROGRAM;
    let program = read + READ + UNIT + BACKGROUND;
    let erase = program + HOST_PROGRAM + BACKGROUND;
    for (operation, cause, lasts) in [
        (read, Cause::BehindGcRead, READ + UNIT),
        (program, Cause::BehindGcProgram, HOST_PROGRAM),
        (erase, Cause::BehindErase, ERASE),
    ] {
        // It arrives in the middle of the operation, after its own delays.
        let submitted = operation + 20_000 - READ_DELAYS;
        let mut requests = eight_blocks();
        requests.push((90_000_000, Operation::Trim, 1, 31));
        requests.push((FILLED, Operation::Write, 100, 4));
        requests.push((submitted, Operation::Read, 40, 1));
        let done = timed(&mut ready(&collecting(), 1), &requests);
        let read = done.last().expect("the read");
        let own = (Cause::OwnFlash, READ + UNIT);
        owes(read, submitted, &[(Cause::Controller, READ_DELAYS), (cause, lasts - 20_000), own]);
        assert!(read.ledger.has_gc());
    }
}

#[test]
fn a_write_waits_for_a_free_block() {
    let mut config = collecting();
    config.gc.invocation = policy("foreground");
    config.buffer.kind = policy("none");
    // The first write opens a block; the next program then finds too few
    // free. Two blocks without valid pages have to be erased.
    let second = FILLED + 1_000_000;
    let mut requests = eight_blocks();
    requests.push((90_000_000, Operation::Trim, 0, 64));
    requests.push((FILLED, Operation::Write, 100, 4));
    requests.push((second, Operation::Write, 200, 4));
    let done = timed(&mut ready(&config, 1), &requests);
    let [.., first, last] = &done[..] else { panic!("two writes") };
    let (controller, own) = ((Cause::Controller, READ_DELAYS), (Cause::OwnFlash, HOST_PROGRAM));
    owes(first, FILLED, &[controller, own]);
    owes(last, second, &[controller, (Cause::NoFreeBlock, 2 * (BACKGROUND + ERASE)), own]);
}

#[test]
fn collection_that_takes_no_time_holds_up_nobody() {
    let mut config = tiny();
    config.gc.invocation = policy("foreground");
    config.gc.movement = policy("none");
    let mut ssd = ready(&config, 1);
    let span = ssd.sectors() / 8;
    let done = closed_loop(&mut ssd, 8, random_pages(Operation::Write, span, 4_000, 1));
    assert!(ssd.counters().victims > 100);
    let blocked = done.iter().filter(|completion| completion.ledger.has_gc()).count();
    assert_eq!(blocked, 0, "writes waited for collection");
}
