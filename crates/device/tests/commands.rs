//! What the device is told and asked beside requests: it takes no writes, it is
//! taken out, it enters windows and leaves them when it has to, it tells its state.

mod support;

use flashkeel_device::{Activity, DeviceConfig, Ssd};
use flashkeel_engine::{
    Answer, Arena, Command, Event, Leaf, Notice, Operation, Place, Refusal, Status, Submit, Time, Wake,
    Window, WindowEnd,
};
use support::{policy, ready, request, settle, tiny};

fn tell(ssd: &mut Ssd, now: Time, command: Command) -> Result<Answer, Refusal> {
    ssd.command(now, &Place::default(), &command, &mut Arena::new())
}

fn state(ssd: &mut Ssd, now: Time, name: &str) -> u64 {
    let Ok(Answer::State(readings)) = tell(ssd, now, Command::State) else { panic!("no state") };
    readings.into_iter().find(|(other, _)| other == name).expect("a reading").1
}

#[test]
fn a_read_only_device_refuses_what_changes_it_and_ends_what_it_has_taken() {
    let mut ssd = ready(&tiny(), 1);
    let now = Time(1_000);
    let offer = |ssd: &mut Ssd, id, operation| {
        let pages = u32::from(operation != Operation::Flush);
        ssd.submit(now, &request(id, operation, 0, pages), &mut Arena::new())
    };
    assert_eq!(offer(&mut ssd, 0, Operation::Write), Submit::Accepted);
    assert_eq!(tell(&mut ssd, now, Command::ReadOnly(true)), Ok(Answer::Done));
    assert_eq!(state(&mut ssd, now, "read_only"), 1);
    for operation in [Operation::Write, Operation::Trim, Operation::WriteZeroes] {
        assert_eq!(offer(&mut ssd, 1, operation), Submit::Refused(Status::ReadOnly), "{operation:?}");
    }
    for (id, operation) in [(2, Operation::Read), (3, Operation::Flush)] {
        assert_eq!(offer(&mut ssd, id, operation), Submit::Accepted, "{operation:?}");
    }
    let mut done = Vec::new();
    settle(&mut ssd, &mut done);
    assert_eq!(done.len(), 3);
    assert!(done.iter().all(|completion| completion.status == Status::Ok));
    assert_eq!(tell(&mut ssd, now, Command::ReadOnly(false)), Ok(Answer::Done));
    let again = request(4, Operation::Write, 0, 1);
    assert_eq!(ssd.submit(done[2].time, &again, &mut Arena::new()), Submit::Accepted);
}

#[test]
fn what_is_inside_a_device_that_is_taken_out_is_gone_and_so_is_all_that_follows() {
    let mut ssd = ready(&tiny(), 1);
    let operations = [Operation::Write, Operation::Read, Operation::Trim, Operation::Flush];
    for (id, operation) in (0..40).map(|id| (id, operations[id as usize % 4])) {
        let pages = if operation == Operation::Flush { 0 } else { 9 };
        let request = request(id, operation, id * 10 * u64::from(pages > 0), pages);
        assert_eq!(ssd.submit(Time::ZERO, &request, &mut Arena::new()), Submit::Accepted);
    }
    let (mut before, mut done) = (Vec::new(), Vec::new());
    let now = Time(90_000);
    ssd.advance(now, &mut Arena::new(), &mut before);
    assert!(!before.is_empty() && before.len() < 40, "{} have ended", before.len());
    assert_eq!(tell(&mut ssd, now, Command::Remove), Ok(Answer::Done));
    assert_eq!(ssd.next_event(), Wake::At(now));
    ssd.advance(now, &mut Arena::new(), &mut done);
    assert_eq!(before.len() + done.len(), 40);
    for completion in &done {
        assert_eq!((completion.status, completion.time), (Status::Gone, now));
        assert_eq!(completion.ledger.total(), now.since(Time::ZERO));
    }
    assert_eq!(ssd.next_event(), Wake::Never);
    for operation in [Operation::Read, Operation::Flush] {
        let pages = u32::from(operation == Operation::Read);
        let answer = ssd.submit(Time(99_000), &request(40, operation, 0, pages), &mut Arena::new());
        assert_eq!(answer, Submit::Refused(Status::Gone));
    }
    assert!(matches!(tell(&mut ssd, now, Command::State), Err(Refusal::NotNow(_))));
    ssd.cut_power(Time(99_000), &mut Arena::new());
    assert_eq!(ssd.next_event(), Wake::Never);
}

/// Collects early, so that there is background work at any time.
fn commanded() -> DeviceConfig {
    let mut config = tiny();
    config.window = policy("commanded");
    config.geometry.blocks_per_plane = 48;
    config.gc.start_below = 40;
    config.gc.stop_above = 60;
    config
}

/// A write every 400 us from `*write` on, until something is raised, or so many.
fn writes(ssd: &mut Ssd, write: &mut u64, most: u64) -> Option<Notice> {
    let mut done = Vec::new();
    for _ in 0..most {
        let now = Time(*write * 400_000);
        ssd.advance(now, &mut Arena::new(), &mut done);
        if let Some(notice) = ssd.notice() {
            return Some(notice);
        }
        let page = request(*write, Operation::Write, *write * 379 % 1_024, 1);
        assert_eq!(ssd.submit(now, &page, &mut Arena::new()), Submit::Accepted);
        *write += 1;
    }
    None
}

fn collections(ssd: &Ssd) -> u64 {
    ssd.counters().operations(Activity::Gc.read()) + ssd.counters().operations(Activity::Gc.erase())
}

#[test]
fn a_commanded_window_keeps_background_work_out_until_it_is_left_or_has_to_be() {
    let mut ssd = ready(&commanded(), 1);
    let mut write = 1;
    assert_eq!(writes(&mut ssd, &mut write, 15_000), None);
    assert!(collections(&ssd) > 100, "windows let everything run until one is commanded");

    let now = |write: u64| Time((write - 1) * 400_000);
    let window = |kind| Command::Window(0, kind);
    assert_eq!(tell(&mut ssd, now(write), window(Window::Deterministic)), Ok(Answer::Done));
    assert_eq!(state(&mut ssd, now(write), "deterministic"), 1);
    assert_eq!(writes(&mut ssd, &mut write, 3), None);
    let before = collections(&ssd);
    assert_eq!(writes(&mut ssd, &mut write, 50), None);
    assert_eq!(collections(&ssd), before, "background work in a deterministic window");

    assert_eq!(tell(&mut ssd, now(write), window(Window::NonDeterministic)), Ok(Answer::Done));
    assert_eq!(writes(&mut ssd, &mut write, 200), None);
    assert!(collections(&ssd) > before);

    // Nobody leaves this one, and at last the host needs a block.
    assert_eq!(tell(&mut ssd, now(write), window(Window::Deterministic)), Ok(Answer::Done));
    let raised = writes(&mut ssd, &mut write, 20_000).expect("it cannot last");
    assert_eq!(raised, Notice { place: Place::default(), event: Event::WindowEnded(0, WindowEnd::Urgent) });
    assert_eq!(state(&mut ssd, now(write), "deterministic"), 0);
    assert!(!ssd.has_notice());
    ssd.check();
}

#[test]
fn an_event_ends_the_wait_for_a_completion() {
    let mut ssd = ready(&commanded(), 1);
    let mut write = 1;
    writes(&mut ssd, &mut write, 2_000);
    let now = Time((write - 1) * 400_000);
    assert_eq!(tell(&mut ssd, now, Command::Window(0, Window::Deterministic)), Ok(Answer::Done));
    let (mut now, mut events, mut done) = (now, 0, Vec::new());
    for id in write..write + 3_000 {
        while ssd.submit(now, &request(id, Operation::Write, id * 379 % 1_024, 1), &mut Arena::new())
            == Submit::Busy
        {}
        let Some(then) = ssd.advance_to_completion(Time::MAX, &mut Arena::new(), &mut done) else { break };
        assert!(then >= now && done.is_empty() == ssd.has_notice(), "it returns for one of the two");
        now = then;
        events += u64::from(ssd.notice().is_some());
        done.clear();
    }
    assert_eq!(events, 1);
}

#[test]
fn windows_are_commanded_only_where_they_are_configured_and_there_is_room() {
    let window = |set, kind| Command::Window(set, kind);
    for name in ["none", "periodic"] {
        let mut config = tiny();
        config.window = policy(name);
        let mut ssd = ready(&config, 1);
        let answer = tell(&mut ssd, Time::ZERO, window(0, Window::Deterministic));
        assert_eq!(answer, Err(Refusal::Unknown), "{name}");
    }
    let mut ssd = ready(&commanded(), 1);
    assert_eq!(tell(&mut ssd, Time::ZERO, window(1, Window::Deterministic)), Err(Refusal::Unknown));
    let elsewhere = ssd.command(Time::ZERO, &Place(vec![0]), &Command::State, &mut Arena::new());
    assert_eq!(elsewhere, Err(Refusal::NoSuchPlace));
}
