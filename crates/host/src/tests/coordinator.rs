//! Windows that a coordinator commands, by what the device tells of them.

use flashkeel_engine::{
    Arena, Command, Completion, Durable, Event, Ledger, Limits, Notice, Operation, Outbox, Place, Request,
    RequestId, Span, Stage, Status, Time, Window, WindowEnd,
};
use serde_json::json;

use super::request;
use crate::claim::{Claim, Priority};
use crate::coordinator::{CoordinationConfig, Coordinator, Windows};

fn us(count: u64) -> Time {
    Time(Span::from_us(count).0)
}

/// A coordinator that has asked for its first window, for a host of high and one of low
/// priority.
fn asked() -> (Coordinator, Outbox) {
    let config = json!({
        "count": 40, "window": "400us", "rest": "1ms", "message_delay": "0ns", "allocation": "strict-priority",
    });
    let config: CoordinationConfig = serde_json::from_value(config).expect("settings");
    let claims = [Priority::High, Priority::Low].map(|priority| Claim { priority, ..Claim::default() });
    let durable = Durable::Acknowledged;
    let limits = Limits { sectors: 1 << 20, block_sectors: 8, preferred_sectors: 8, durable };
    let mut coordinator = Coordinator::new(&config, &claims, Windows::Commanded, limits);
    let mut outbox = Outbox::default();
    coordinator.advance(Time::ZERO, &mut Arena::new(), &mut outbox);
    assert_eq!(std::mem::take(&mut outbox.commands), [(0, Command::Window(0, Window::Deterministic))]);
    (coordinator, outbox)
}

fn tell(coordinator: &mut Coordinator, now: Time, event: Event, outbox: &mut Outbox) {
    let notice = Notice { place: Place::default(), event };
    assert_eq!(coordinator.noticed(now, 0, notice, outbox), None);
}

#[test]
fn a_window_that_never_began_was_not_ended_by_its_device() {
    let (mut coordinator, mut outbox) = asked();
    let end = Event::WindowEnded(0, WindowEnd::Urgent);
    tell(&mut coordinator, us(10), end, &mut outbox);
    assert_eq!((coordinator.report().windows, coordinator.report().forced), (0, 0));
    tell(&mut coordinator, us(1_000), Event::WindowBegan(0), &mut outbox);
    tell(&mut coordinator, us(1_100), end, &mut outbox);
    assert_eq!((coordinator.report().windows, coordinator.report().forced), (1, 1));
}

#[test]
fn a_window_ends_for_one_reason() {
    let (mut coordinator, mut outbox) = asked();
    let data = &mut Arena::new();
    tell(&mut coordinator, us(0), Event::WindowBegan(0), &mut outbox);
    for id in 0..40 {
        let read = request(id, (id % 2) as u16, Operation::Read, id, 1);
        let _ = coordinator.submit(us(id), &read, data, &mut outbox);
    }
    // Its last reads are on their way.
    tell(&mut coordinator, us(50), Event::WindowEnded(0, WindowEnd::Urgent), &mut outbox);
    let report = coordinator.report();
    assert_eq!((report.windows, report.used_up, report.forced), (1, 1, 0));
}

/// A device whose windows last as long as the coordinator's ends them at the same time.
#[test]
fn a_device_that_ends_a_window_in_time_has_not_forced_it() {
    let (mut coordinator, mut outbox) = asked();
    tell(&mut coordinator, us(0), Event::WindowBegan(0), &mut outbox);
    let read = request(0, 0, Operation::Read, 0, 1);
    let _ = coordinator.submit(us(399), &read, &mut Arena::new(), &mut outbox);
    tell(&mut coordinator, us(400), Event::WindowEnded(0, WindowEnd::TimeExceeded), &mut outbox);
    assert_eq!((coordinator.report().windows, coordinator.report().forced), (1, 0));
}

/// Counts are used up in a quarter of a window, and the last read of it ends a half later.
#[test]
fn what_comes_while_a_window_drains_is_no_part_of_what_it_measures() {
    let (mut coordinator, mut outbox) = asked();
    let data = &mut Arena::new();
    tell(&mut coordinator, us(0), Event::WindowBegan(0), &mut outbox);
    for id in 0..40 {
        let read = request(id, (id % 2) as u16, Operation::Read, id, 1);
        let _ = coordinator.submit(us(100 * id / 39), &read, data, &mut outbox);
    }
    let ids: Vec<RequestId> = outbox.requests.drain(..).map(|(_, read)| read.id).collect();
    assert_eq!(ids.len(), 40, "all that there is");
    for id in ids {
        let mut end = Completion { id, time: us(300), status: Status::Ok, ledger: Ledger::ZERO };
        coordinator.completed(us(300), 0, &mut end, data, &mut outbox);
    }
    assert_eq!(outbox.commands, [(0, Command::Window(0, Window::NonDeterministic))]);
    // Twenty reads in 100 us are eighty in 400.
    tell(&mut coordinator, us(2_000), Event::WindowBegan(0), &mut outbox);
    tell(&mut coordinator, us(2_100), Event::WindowEnded(0, WindowEnd::Urgent), &mut outbox);
    let given: Vec<u64> = coordinator.report().hosts.iter().map(|host| host.given).collect();
    assert_eq!(given, [20 + 40, 20]);
}

#[test]
fn a_window_that_began_before_counting_does_is_left_out() {
    let (mut coordinator, mut outbox) = asked();
    let data = &mut Arena::new();
    let window = |coordinator: &mut Coordinator, outbox: &mut Outbox, data: &mut Arena, from, reset| {
        tell(coordinator, us(from), Event::WindowBegan(0), outbox);
        for id in 0..10 {
            let read = request(id, 0, Operation::Read, id, 1);
            let _ = coordinator.submit(us(from + 1), &read, data, outbox);
        }
        if reset {
            coordinator.reset_counters();
        }
        for (_, Request { id, .. }) in std::mem::take(&mut outbox.requests) {
            let time = us(from + 50);
            let mut end = Completion { id, time, status: Status::Ok, ledger: Ledger::ZERO };
            coordinator.completed(time, 0, &mut end, data, outbox);
        }
        tell(coordinator, us(from + 100), Event::WindowEnded(0, WindowEnd::Urgent), outbox);
        let report = coordinator.report();
        let host = &report.hosts[0];
        [report.windows, report.forced, host.asked, host.used, host.windows as u64]
    };
    assert_eq!(window(&mut coordinator, &mut outbox, data, 0, true), [0; 5]);
    assert_eq!(window(&mut coordinator, &mut outbox, data, 2_000, false), [1, 1, 10, 10, 1]);
}
