//! What copies are given while they are in windows.

use flashkeel_engine::{
    Answer, Arena, Command, Durable, Event, FoundPages, Limits, Notice, Operation, Outbox, Place, Span,
    Stage, Time, Window, WindowEnd,
};

use super::request;
use crate::mirror::acknowledge::AcknowledgeConfig;
use crate::mirror::read::ReadConfig;
use crate::mirror::windows::WindowsConfig;
use crate::mirror::{Mirror, MirrorParts, ResyncConfig};

fn ms(count: u64) -> Time {
    Time(Span::from_ms(count).0)
}

fn tell(mirror: &mut Mirror, now: Time, copy: usize, event: Event, outbox: &mut Outbox) {
    let notice = Notice { place: Place::default(), event };
    assert_eq!(mirror.noticed(now, copy, notice, outbox), None);
}

/// A mirror whose two copies are both in windows from 20 ms on, of which their devices say that.
fn in_windows(readings: &[(&str, u64)]) -> (Mirror, Outbox) {
    let durable = Durable::Acknowledged;
    let limits = Limits { sectors: 1 << 12, block_sectors: 8, preferred_sectors: 8, durable };
    let turns: WindowsConfig = serde_json::from_value("alternate".into()).expect("a policy");
    let read: ReadConfig = serde_json::from_value("first".into()).expect("a policy");
    let parts = MirrorParts {
        reader: read.policy().build(Vec::new()),
        hedge: None,
        acknowledge: AcknowledgeConfig::default(),
        ranges: &[],
        resync: &ResyncConfig::default(),
        turns: turns.policy().build(),
        sets: &[1, 1],
    };
    let mut mirror = Mirror::new(parts, &[limits, limits], 2).expect("a mirror");
    let mut outbox = Outbox::default();
    let begin = |copy| (copy, Command::Window(0, Window::Deterministic));
    // First the first copy's, then the other's.
    for (copy, time) in [(0, ms(0)), (1, ms(20))] {
        mirror.advance(time, &mut Arena::new(), &mut outbox);
        assert_eq!(std::mem::take(&mut outbox.commands), [begin(copy)]);
        tell(&mut mirror, time, copy, Event::WindowBegan(0), &mut outbox);
        outbox.commands.clear();
        let state = readings.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        mirror.answered(time, copy, &Command::State, Ok(Answer::State(state)), &mut outbox);
    }
    (mirror, outbox)
}

#[test]
fn copying_uses_up_nothing_that_a_window_promises() {
    let (mut mirror, mut outbox) = in_windows(&[("set0_writes_estimate", 0), ("set0_writes_typical", 1_000)]);
    let data = &mut Arena::new();
    mirror.doubt(ms(20), FoundPages::default());
    mirror.advance(ms(20), data, &mut outbox);
    mirror.advance(ms(21), data, &mut outbox);
    assert!(outbox.requests.is_empty(), "{:?}", outbox.requests);
    tell(&mut mirror, ms(22), 1, Event::WindowEnded(0, WindowEnd::Urgent), &mut outbox);
    mirror.advance(ms(23), data, &mut outbox);
    assert_eq!(outbox.requests.len(), 1, "the first pages are read");
}

#[test]
fn large_writes_that_pass_and_what_is_held_back_are_counted_apart() {
    let (mirror, _) = in_windows(&[
        ("set0_writes_estimate", 4),
        ("set0_writes_typical", 4),
        ("set0_direct_above", 64 << 10),
        ("set0_direct_estimate", 40),
        ("set0_direct_typical", 40),
    ]);
    // Which of some changes of so many pages the copies are given.
    let given = |changes: &[(Operation, u32)]| {
        let (mut mirror, data) = (mirror.clone(), &mut Arena::new());
        let submit = |(id, &(operation, pages)): (u64, &(Operation, u32))| {
            let mut outbox = Outbox::default();
            let _ = mirror.submit(ms(21), &request(id, 0, operation, 50 * id, pages), data, &mut outbox);
            outbox.requests.len() == 2
        };
        (0..).zip(changes).map(submit).collect::<Vec<_>>()
    };
    let (write, trim) = (Operation::Write, Operation::Trim);
    assert_eq!(given(&[(write, 20), (write, 4), (write, 1)]), [true, true, false]);
    assert_eq!(given(&[(write, 4), (write, 20), (write, 20), (write, 17)]), [true, true, true, false]);
    // One that no window takes ends it.
    assert_eq!(given(&[(write, 41), (trim, 40), (write, 3), (write, 1)]), [true, true, true, false]);
}
