//! Programs and erases suspended for reads: to the nanosecond.

mod support;

use flashkeel_device::{DeviceConfig, SuspensionBudget, SuspensionConfig};
use flashkeel_engine::{Cause, Completion, Operation, Span};
use support::*;

const LATENCY: u64 = 20_000;
const RESUME: u64 = 30_000;
const READ_DELAYS: u64 = LOOKUP + GENERATION;
/// When a write submitted at 0 begins to be programmed into the array.
const CELL: u64 = LOOKUP + GENERATION + 4 * UNIT;

/// One chip that suspends up to `limit` times and acknowledges writes in flash.
fn chip(limit: u32) -> DeviceConfig {
    let mut config = exact_chip(80);
    config.buffer.kind = policy("none");
    config.suspension = Some(SuspensionConfig {
        latency: Span(LATENCY),
        resume: Span(RESUME),
        limit,
        budget: SuspensionBudget::Time(Span(0)),
    });
    config
}

fn owes(completion: &Completion, expected: &[(Cause, u64)]) {
    let mut expected = expected.to_vec();
    expected.sort_by_key(|&(cause, _)| cause);
    let got: Vec<_> = completion.ledger.iter().filter(|&(_, ns)| ns > 0).collect();
    assert_eq!(got, expected);
}

fn write_and_read_at(config: &DeviceConfig, times: &[u64]) -> Vec<Completion> {
    let mut ssd = ready(config, 1);
    let mut requests = vec![(0, Operation::Write, 0, 4)];
    requests.extend(times.iter().map(|&at| (at, Operation::Read, 8, 1)));
    timed(&mut ssd, &requests)
}

#[test]
fn a_read_suspends_a_program_and_both_know() {
    let done = write_and_read_at(&chip(1), &[100_000]);
    let delays = (Cause::Controller, READ_DELAYS);
    owes(&done[1], &[delays, (Cause::Suspension, LATENCY), (Cause::OwnFlash, READ + UNIT)]);
    let lost = LATENCY + READ + UNIT + RESUME;
    let own = (Cause::OwnFlash, 4 * UNIT + PROGRAM);
    owes(&done[0], &[(Cause::Controller, READ_DELAYS), own, (Cause::Suspension, lost)]);
}

#[test]
fn a_read_during_the_transfer_suspends_the_program_as_it_begins() {
    let done = write_and_read_at(&chip(1), &[10_000]);
    let behind = (Cause::BehindHostWrite, CELL - 10_000 - READ_DELAYS);
    let delays = (Cause::Controller, READ_DELAYS);
    owes(&done[1], &[delays, behind, (Cause::Suspension, LATENCY), (Cause::OwnFlash, READ + UNIT)]);
}

#[test]
fn within_its_budget_an_operation_is_suspended_as_often_as_reads_come() {
    // The first read suspends at about 100 us; the third comes 400 us later.
    let time = |ns| SuspensionBudget::Time(Span(ns));
    let [none, erases] = [SuspensionBudget::Erases(0), SuspensionBudget::Erases(2)];
    let short = [(time(0), true), (none, true), (time(350_000), true)];
    for (budget, waits) in short.into_iter().chain([(time(450_000), false), (erases, false)]) {
        let mut config = chip(1);
        config.suspension.as_mut().expect("suspends").budget = budget;
        let done = write_and_read_at(&config, &[100_000, 300_000, 500_000]);
        let waited = |at: usize| done[at].ledger.ns(Cause::BehindHostWrite) > 0;
        let is_none = budget == time(0) || budget == none;
        assert_eq!((waited(1), waited(2), waited(3)), (false, is_none, waits), "{budget:?}");
    }
}

#[test]
fn no_operation_is_suspended_more_often_than_allowed() {
    for (limit, waits) in [(1, true), (2, false)] {
        let done = write_and_read_at(&chip(limit), &[100_000, 300_000]);
        let waited = done[2].ledger.ns(Cause::BehindHostWrite) > 0;
        assert_eq!(waited, waits, "limit {limit}");
    }
    // Reads that come together cost one suspension.
    let done = write_and_read_at(&chip(1), &[100_000, 100_100, 100_200]);
    assert_eq!(done[3].ledger.ns(Cause::BehindHostWrite), 0);
    assert!(done[3].ledger.ns(Cause::BehindHostRead) > 0);
}

#[test]
fn a_limit_of_0_is_a_chip_that_cannot_suspend() {
    let never = write_and_read_at(&chip(0), &[100_000]);
    let cannot = write_and_read_at(&DeviceConfig { suspension: None, ..chip(1) }, &[100_000]);
    assert!(never[1].ledger.ns(Cause::BehindHostWrite) > 0);
    assert!(never.iter().zip(&cannot).all(|(a, b)| a.ledger.iter().eq(b.ledger.iter())));
}

#[test]
fn a_program_about_to_end_is_not_suspended() {
    let done = write_and_read_at(&chip(1), &[CELL + PROGRAM - LATENCY]);
    assert_eq!(done[1].ledger.ns(Cause::Suspension), 0);
    assert_eq!(done[1].ledger.ns(Cause::BehindHostWrite), LATENCY - READ_DELAYS);
}

#[test]
fn reads_never_wait_for_a_whole_erase() {
    let mut config = tiny();
    config.scheduler = policy("fifo");
    let worst = |config: &DeviceConfig| {
        let mut ssd = ready(config, 1);
        let mut random = flashkeel_engine::Stream::new(1, "mixed");
        let requests = (0..20_000).map(|id| {
            let operation = if id % 2 == 0 { Operation::Read } else { Operation::Write };
            request(id, operation, random.below(1_024), 1)
        });
        let done = closed_loop(&mut ssd, 2, requests.collect::<Vec<_>>());
        ssd.check();
        let reads = done.iter().filter(|completion| completion.id.0 % 2 == 0);
        reads.map(|read| read.ledger.ns(Cause::BehindErase)).max().expect("reads")
    };
    let without = worst(&config);
    config.suspension = Some(SuspensionConfig { limit: 1_000, ..Default::default() });
    let with = worst(&config);
    assert!(
        without > ERASE / 2 && with < ERASE / 10,
        "behind an erase: {without} ns, with suspension {with} ns"
    );
}

#[test]
fn impossible_settings_are_refused() {
    let refused = |suspension: SuspensionConfig| {
        let mut config = chip(1);
        config.suspension = Some(suspension);
        config.validate().expect_err("out of range")
    };
    assert!(refused(SuspensionConfig { limit: 1001, ..Default::default() }).contains("suspension.limit"));
    let long = Span::from_secs(3601);
    let budget = SuspensionBudget::Erases(u32::MAX);
    assert!(refused(SuspensionConfig { budget, ..Default::default() }).contains("suspension.budget"));
    assert!(refused(SuspensionConfig { latency: long, ..Default::default() }).contains("suspension.latency"));
    assert!(refused(SuspensionConfig { resume: long, ..Default::default() }).contains("suspension.resume"));
}
