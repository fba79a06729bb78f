//! Copies that are made to agree while they are in windows.

use flashkeel_engine::{
    Answer, Arena, Command, Durable, Event, FoundPages, Limits, Notice, Outbox, Place, Span, Stage, Time,
    Window, WindowEnd,
};

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

#[test]
fn copying_uses_up_nothing_that_a_window_promises() {
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
    let (data, mut outbox) = (&mut Arena::new(), Outbox::default());
    let begin = |copy| (copy, Command::Window(0, Window::Deterministic));
    // First the first copy's, then the other's, which takes no more writes.
    for (copy, time) in [(0, ms(0)), (1, ms(20))] {
        mirror.advance(time, data, &mut outbox);
        assert_eq!(std::mem::take(&mut outbox.commands), [begin(copy)]);
        tell(&mut mirror, time, copy, Event::WindowBegan(0), &mut outbox);
        outbox.commands.clear();
        let readings = [("set0_writes_estimate", 0), ("set0_writes_typical", 1_000)];
        let state = readings.map(|(name, value)| (name.to_owned(), value)).to_vec();
        mirror.answered(time, copy, &Command::State, Ok(Answer::State(state)), &mut outbox);
    }
    mirror.doubt(ms(20), FoundPages::default());
    mirror.advance(ms(20), data, &mut outbox);
    mirror.advance(ms(21), data, &mut outbox);
    assert!(outbox.requests.is_empty(), "{:?}", outbox.requests);
    tell(&mut mirror, ms(22), 1, Event::WindowEnded(0, WindowEnd::Urgent), &mut outbox);
    mirror.advance(ms(23), data, &mut outbox);
    assert_eq!(outbox.requests.len(), 1, "the first pages are read");
}
