//! Windows that a coordinator commands, by what the device tells of them.

use flashkeel_engine::{
    Arena, Command, Durable, Event, Limits, Notice, Outbox, Place, Span, Stage, Time, Window, WindowEnd,
};
use serde_json::json;

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
