//! NVM sets and their windows: what a deterministic one keeps out of the flash, what
//! begins it and ends it, and what the host is told of it.

mod support;

use flashkeel_device::{Activity, DeviceConfig, Doing, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{
    Answer, Arena, Command, Completion, Event, Leaf, Notice, Operation, Place, Refusal, Span, Status, Submit,
    Time, Window, WindowEnd, WindowLimit,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{
    GENERATION, LOOKUP, PROGRAM, READ, UNIT, exact, policy, reading, ready, request, soak_round, state, tell,
    tiny,
};

/// Collects early, so that there is background work at any time.
fn commanded() -> DeviceConfig {
    let mut config = tiny();
    config.window = policy("commanded");
    config.geometry.blocks_per_plane = 48;
    config.gc.start_below = 40;
    config.gc.stop_above = 60;
    config
}

/// Windows with such settings on a device without randomness in its delays.
fn promising(settings: Value) -> DeviceConfig {
    let mut config = exact();
    let mut window = json!({ "policy": "commanded" });
    window.as_object_mut().expect("a table").extend(settings.as_object().expect("a table").clone());
    config.window = policy(window);
    config
}

fn enter(ssd: &mut Ssd, now: Time, set: usize) -> Result<Answer, Refusal> {
    tell(ssd, now, Command::Window(set, Window::Deterministic))
}

fn leave(ssd: &mut Ssd, now: Time, set: usize) {
    assert_eq!(tell(ssd, now, Command::Window(set, Window::NonDeterministic)), Ok(Answer::Done));
}

fn offer(ssd: &mut Ssd, now: Time, id: u64, operation: Operation, page: u64) {
    let pages = u32::from(operation != Operation::Flush);
    let page = if pages == 0 { 0 } else { page };
    assert_eq!(ssd.submit(now, &request(id, operation, page, pages), &mut Arena::new()), Submit::Accepted);
}

fn advance(ssd: &mut Ssd, now: Time) -> Vec<Completion> {
    let mut done = Vec::new();
    ssd.advance(now, &mut Arena::new(), &mut done);
    done
}

fn events(ssd: &mut Ssd) -> Vec<Event> {
    std::iter::from_fn(|| ssd.notice()).map(|notice| notice.event).collect()
}

/// A write every 400 us from `*write` on, until something is raised, or so many.
fn writes(ssd: &mut Ssd, write: &mut u64, most: u64) -> Option<Notice> {
    for _ in 0..most {
        let now = Time(*write * 400_000);
        advance(ssd, now);
        if let Some(notice) = ssd.notice() {
            return Some(notice);
        }
        offer(ssd, now, *write, Operation::Write, *write * 379 % 1_024);
        *write += 1;
    }
    None
}

fn background(ssd: &Ssd) -> u64 {
    ssd.counters().operations(Activity::Gc.read()) + ssd.counters().operations(Activity::Gc.erase())
}

fn raised(event: Event) -> Option<Notice> {
    Some(Notice { place: Place::default(), event })
}

#[test]
fn a_commanded_window_keeps_background_work_out_until_it_is_left_or_has_to_be() {
    let mut ssd = ready(&commanded(), 1);
    let mut write = 1;
    assert_eq!(writes(&mut ssd, &mut write, 15_000), None);
    assert!(background(&ssd) > 100, "windows let everything run until one is commanded");

    let now = |write: u64| Time((write - 1) * 400_000);
    assert_eq!(enter(&mut ssd, now(write), 0), Ok(Answer::Done));
    assert_eq!(state(&mut ssd, now(write), "deterministic"), 0, "the flash is still at work");
    assert_eq!(writes(&mut ssd, &mut write, 300), raised(Event::WindowBegan(0)));
    assert_eq!(state(&mut ssd, now(write), "deterministic"), 1);
    let before = background(&ssd);
    assert_eq!(writes(&mut ssd, &mut write, 50), None);
    assert_eq!(background(&ssd), before, "background work in a deterministic window");

    leave(&mut ssd, now(write), 0);
    assert_eq!(writes(&mut ssd, &mut write, 200), None);
    assert!(background(&ssd) > before);

    // Nobody leaves this one, and at last the buffer is full.
    assert_eq!(enter(&mut ssd, now(write), 0), Ok(Answer::Done));
    assert_eq!(writes(&mut ssd, &mut write, 300), raised(Event::WindowBegan(0)));
    let urgent = Event::WindowEnded(0, WindowEnd::Urgent);
    assert_eq!(writes(&mut ssd, &mut write, 20_000), raised(urgent));
    assert_eq!(state(&mut ssd, now(write), "deterministic"), 0);
    assert!(!ssd.next_event().has_notice());
    assert_eq!((ssd.counters().deterministic_windows, ssd.counters().broken_windows), (2, 1));
    ssd.check();
}

#[test]
fn an_event_ends_the_wait_for_a_completion() {
    let mut ssd = ready(&commanded(), 1);
    let mut write = 1;
    writes(&mut ssd, &mut write, 2_000);
    let mut now = Time((write - 1) * 400_000);
    assert_eq!(enter(&mut ssd, now, 0), Ok(Answer::Done));
    let (mut raised, mut done) = (Vec::new(), Vec::new());
    for id in write..write + 3_000 {
        offer(&mut ssd, now, id, Operation::Write, id * 379 % 1_024);
        let Some(then) = ssd.advance_to_completion(Time::MAX, &mut Arena::new(), &mut done) else { break };
        assert!(
            then >= now && !done.is_empty() | ssd.next_event().has_notice(),
            "it returns for one of the two"
        );
        now = then;
        raised.append(&mut events(&mut ssd));
        done.clear();
    }
    // What is written meanwhile may leave it no time to begin.
    assert_eq!(raised.last(), Some(&Event::WindowEnded(0, WindowEnd::Urgent)));
}

#[test]
fn windows_are_commanded_only_where_they_are_configured() {
    for name in ["none", "periodic"] {
        let mut config = tiny();
        config.window = policy(name);
        let mut ssd = ready(&config, 1);
        assert_eq!(enter(&mut ssd, Time::ZERO, 0), Err(Refusal::Unknown), "{name}");
    }
    let mut ssd = ready(&commanded(), 1);
    assert_eq!(enter(&mut ssd, Time::ZERO, 1), Err(Refusal::Unknown));
    let elsewhere = ssd.command(Time::ZERO, &Place(vec![0]), &Command::State, &mut Arena::new());
    assert_eq!(elsewhere, Err(Refusal::NoSuchPlace));
}

#[test]
fn a_window_serves_what_it_promises_and_ends_with_the_next() {
    let settings = json!({
        "reads_typical": 5, "writes_typical": 2, "time_maximum": "10ms",
        "reads_warning": 1, "writes_warning": 0, "time_warning": "4ms",
    });
    let pages_each = 4;
    for operation in [Operation::Read, Operation::Write] {
        let mut ssd = ready(&promising(settings.clone()), 1);
        assert_eq!(enter(&mut ssd, Time::ZERO, 0), Ok(Answer::Done));
        assert_eq!(events(&mut ssd), [Event::WindowBegan(0)], "nothing was under way");
        let (promised, limit, warned) = match operation {
            Operation::Read => (5, WindowLimit::Reads, 4),
            _ => (2 * pages_each, WindowLimit::Writes, 2 * pages_each - pages_each + 1),
        };
        for page in 0..promised {
            offer(&mut ssd, Time(page * 1_000), page, operation, page);
            let told = if page + 1 == warned { vec![Event::WindowWarning(0, limit)] } else { vec![] };
            assert_eq!(events(&mut ssd), told, "{operation:?} {page}");
        }
        let now = Time(promised * 1_000);
        let is_read = operation == Operation::Read;
        let (estimate, whole) =
            if is_read { ("set0_reads_estimate", 5) } else { ("set0_writes_estimate", 2) };
        let told = |ssd: &mut Ssd| (state(ssd, now, estimate), state(ssd, now, "set0_status"));
        assert_eq!(told(&mut ssd), (0, 1));
        assert_eq!(state(&mut ssd, now, "set0_time_estimate_ns"), 10_000_000 - now.0);
        offer(&mut ssd, now, promised, operation, promised);
        assert_eq!(events(&mut ssd), [Event::WindowEnded(0, WindowEnd::TypicalExceeded)]);
        // What the next will have.
        assert_eq!(told(&mut ssd), (whole, 2));
    }
}

#[test]
fn a_window_ends_when_its_time_is_over() {
    let mut ssd = ready(&promising(json!({ "time_maximum": "10ms", "time_warning": "4ms" })), 1);
    assert_eq!(enter(&mut ssd, Time(500), 0), Ok(Answer::Done));
    assert_eq!(events(&mut ssd), [Event::WindowBegan(0)]);
    let warning = Event::WindowWarning(0, WindowLimit::Time);
    let end = Event::WindowEnded(0, WindowEnd::TimeExceeded);
    for (at, told) in
        [(6_000_499, vec![]), (6_000_500, vec![warning]), (10_000_499, vec![]), (10_000_500, vec![end])]
    {
        advance(&mut ssd, Time(at));
        assert_eq!(events(&mut ssd), told, "at {at}");
    }
    assert_eq!(ssd.next_event().time(), None);
}

#[test]
fn a_read_in_a_window_waits_for_no_program_and_what_is_written_stays_in_the_buffer() {
    let mut config = promising(json!({}));
    config.buffer.flush = vec![policy("page")];
    let mut ssd = ready(&config, 1);
    // A flash page is full and on its way when the window is commanded.
    (0..4).for_each(|page| offer(&mut ssd, Time::ZERO, page, Operation::Write, page));
    advance(&mut ssd, Time(100_000));
    assert_eq!(enter(&mut ssd, Time(100_000), 0), Ok(Answer::Done));
    assert_eq!(events(&mut ssd), []);
    let begins = LOOKUP + GENERATION + 4 * UNIT + PROGRAM;
    advance(&mut ssd, Time(begins - 1));
    assert_eq!(events(&mut ssd), []);
    advance(&mut ssd, Time(begins));
    assert_eq!(events(&mut ssd), [Event::WindowBegan(0)]);
    let programs = ssd.counters().operations(Activity::Host.program());
    let now = Time(begins + 10);
    (4..24).for_each(|page| offer(&mut ssd, now, page, Operation::Write, page));
    let read = Time(now.0 + 1_000_000);
    let acknowledged = advance(&mut ssd, read);
    assert_eq!(acknowledged.len(), 20);
    offer(&mut ssd, read, 24, Operation::Read, 600);
    // What is durable in the buffer is flushed as it is.
    offer(&mut ssd, read, 25, Operation::Flush, 0);
    let done = advance(&mut ssd, Time(read.0 + 1_000_000));
    let took: Vec<u64> = done.iter().map(|done| done.time.since(read).0).collect();
    assert_eq!(took, [LOOKUP, LOOKUP + GENERATION + READ + UNIT]);
    assert_eq!(ssd.counters().operations(Activity::Host.program()), programs);
    leave(&mut ssd, Time(read.0 + 1_000_000), 0);
    advance(&mut ssd, Time(read.0 + 100_000_000));
    assert_eq!(ssd.counters().operations(Activity::Host.program()), programs + 5);
}

#[test]
fn a_window_begins_only_with_room_for_what_it_promises_and_after_its_minimum() {
    let mut ssd = ready(
        &promising(json!({ "time_minimum_low": "6ms", "time_minimum_high": "10ms", "time_maximum": "8ms" })),
        1,
    );
    assert_eq!(enter(&mut ssd, Time::ZERO, 0), Ok(Answer::Done));
    leave(&mut ssd, Time(4_000_000), 0);
    // Half the time that it might last has been used: half of what is above the minimum.
    assert_eq!(state(&mut ssd, Time(4_000_000), "set0_rest_ns"), 8_000_000);
    let Err(Refusal::NotNow(why)) = enter(&mut ssd, Time(11_999_999), 0) else { panic!("too early") };
    assert_eq!(why, "background work has its time for another 1ns");
    assert_eq!(enter(&mut ssd, Time(12_000_000), 0), Ok(Answer::Done));

    // Free blocks as few as collection leaves them.
    let mut config = promising(json!({ "writes_typical": 16 }));
    config.geometry.blocks_per_plane = 19;
    let mut ssd = ready(&config, 1);
    let mut write = 0;
    let why = loop {
        let now = Time(write * 400_000);
        advance(&mut ssd, now);
        match enter(&mut ssd, now, 0) {
            Err(Refusal::NotNow(why)) => break why,
            _ => leave(&mut ssd, now, 0),
        }
        for page in 0..8 {
            offer(&mut ssd, now, write * 8 + page, Operation::Write, (write * 8 + page) * 379 % 1_024);
        }
        write += 1;
        assert!(write < 10_000, "it never runs short");
    };
    assert!(why.contains("time for another") || why.contains("that a window promises to take"), "{why}");
}

#[test]
fn the_sets_of_a_device_share_no_chip_and_follow_each_other() {
    let mut config = exact();
    config.sets = 2;
    config.window = policy("commanded");
    let mut ssd = ready(&config, 1);
    let half = ssd.sectors() / 2 / 8;
    // The first page of each set lies on the first chip of its own: neither waits.
    let mut done = Vec::new();
    for (id, page) in [(0, 0), (1, half)] {
        offer(&mut ssd, Time::ZERO, id, Operation::Read, page);
    }
    ssd.advance(Time(1_000_000), &mut Arena::new(), &mut done);
    assert!(done.iter().all(|done| done.time.0 == LOOKUP + GENERATION + READ + UNIT), "{done:?}");
    assert_eq!(enter(&mut ssd, Time(1_000_000), 1), Ok(Answer::Done));
    assert_eq!(events(&mut ssd), [Event::WindowBegan(1)]);
    assert_eq!(reading(&mut ssd, Time(1_000_000), "set0_status"), Some(2));
    assert_eq!(reading(&mut ssd, Time(1_000_000), "set1_status"), Some(1));
    assert_eq!(reading(&mut ssd, Time(1_000_000), "set2_status"), None);
}

#[test]
fn sets_take_turns_in_periodic_windows() {
    let mut config = exact();
    (config.sets, config.geometry.blocks_per_plane) = (4, 60);
    config.window =
        policy(json!({ "policy": "periodic", "deterministic": "30ms", "non_deterministic": "10ms" }));
    let mut ssd = ready(&config, 1);
    for now in (0..400).map(|ms| Time(ms * 1_000_000 + 1)) {
        advance(&mut ssd, now);
        assert_eq!(state(&mut ssd, now, "deterministic"), 3, "at {now:?}");
    }
}

/// What happens to a device with sets.
#[derive(Clone, Debug)]
enum Step {
    Request(Operation, f64, u32),
    Window(usize, Window),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let operation = prop::sample::select(vec![
        Operation::Write,
        Operation::Write,
        Operation::Read,
        Operation::Trim,
        Operation::Flush,
    ]);
    let window =
        prop::sample::select(vec![Window::Deterministic, Window::Deterministic, Window::NonDeterministic]);
    prop::collection::vec(
        prop_oneof![
            10 => (operation, 0.0..1.0f64, 1..20u32).prop_map(|(op, place, pages)| Step::Request(op, place, pages)),
            2 => (0..4usize, window).prop_map(|(set, window)| Step::Window(set, window)),
            4 => (1..3_000_000u64).prop_map(Step::Pass),
        ],
        100..600,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(2 + soak_round()), ..ProptestConfig::default() })]

    /// Only what a volatile buffer has to flush, and it ends the window, is programmed.
    #[test]
    fn flash_is_only_read_for_the_host_in_a_deterministic_window(
        steps in steps(),
        sets in prop::sample::select(vec![1u32, 2, 4]),
        allocation in prop::sample::select(vec!["dynamic", "striped"]),
        is_volatile in prop::bool::ANY,
        promised in prop::option::of(1..8u64),
    ) {
        let mut config = commanded();
        config.sets = sets;
        config.logical_capacity = Bytes(2 << 20);
        config.geometry.blocks_per_plane = 160;
        config.buffer.size = Bytes(1 << 20);
        config.allocation = policy(allocation);
        config.buffer.volatile = is_volatile;
        config.window = policy(match promised {
            Some(pages) => json!({ "policy": "commanded", "writes_typical": pages, "time_maximum": "20ms" }),
            None => json!({ "policy": "commanded" }),
        });
        let mut ssd = ready(&config, 1);
        ssd.watch(Time::ZERO, Time::MAX);
        let pages = ssd.sectors() / 8;
        let (mut now, mut submitted, mut completed) = (Time::ZERO, 0, 0);
        let mut begun: Vec<Option<Time>> = vec![None; sets as usize];
        let mut windows = Vec::new();
        let mut hear = |ssd: &mut Ssd, now: Time, left: Option<usize>| {
            for event in events(ssd) {
                match event {
                    Event::WindowBegan(set) => assert!(begun[set].replace(now).is_none()),
                    Event::WindowEnded(set, _) => windows.extend(begun[set].take().map(|from| (set, from, now))),
                    _ => {}
                }
            }
            windows.extend(left.and_then(|set| Some((set, begun[set].take()?, now))));
        };
        for step in &steps {
            match *step {
                Step::Request(operation, place, count) => {
                    let first = (place * pages as f64) as u64;
                    let is_flush = operation == Operation::Flush;
                    let count = if is_flush { 0 } else { count.min((pages - first) as u32) };
                    let request = request(submitted, operation, if is_flush { 0 } else { first }, count);
                    submitted += u64::from(ssd.submit(now, &request, &mut Arena::new()) == Submit::Accepted);
                    hear(&mut ssd, now, None);
                }
                Step::Window(set, window) => {
                    let set = set % sets as usize;
                    let answer = tell(&mut ssd, now, Command::Window(set, window));
                    let is_left = answer.is_ok() && window == Window::NonDeterministic;
                    hear(&mut ssd, now, is_left.then_some(set));
                }
                Step::Pass(ns) => {
                    let until = now + Span(ns);
                    let mut done = Vec::new();
                    while let Some(next) = ssd.next_event().time().filter(|&next| next <= until) {
                        ssd.advance(next, &mut Arena::new(), &mut done);
                        hear(&mut ssd, next, None);
                    }
                    assert!(done.iter().all(|done| done.status == Status::Ok));
                    completed += done.len() as u64;
                    now = until;
                }
            }
        }
        while completed < submitted {
            let next = ssd.next_event().time().expect("requests are inside");
            completed += advance(&mut ssd, next).len() as u64;
            hear(&mut ssd, next, None);
        }
        ssd.check();
        assert_eq!(completed, submitted);
        let chips = ssd.channels().iter().sum::<u32>() / sets;
        for interval in ssd.watched() {
            let Doing::Work(purpose) = interval.doing else { continue };
            let set = (interval.chip / chips) as usize;
            let inside = windows.iter().find(|&&(other, from, to)| {
                other == set && interval.start < to && from < interval.end
            });
            if let Some(window) = inside {
                assert_eq!(purpose, Activity::Host.read(), "in {window:?}: {interval:?}");
            }
        }
    }
}

#[test]
fn what_windows_cannot_keep_is_refused() {
    let refused = |expected: &str, sets: u32, window: Value| {
        let mut config = tiny();
        config.sets = sets;
        config.window = policy(window);
        let message = config.validate().expect_err(expected);
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    };
    let commanded = |settings: Value| {
        let mut window = json!({ "policy": "commanded" });
        window.as_object_mut().expect("a table").extend(settings.as_object().expect("a table").clone());
        window
    };
    refused("sets is 0; it must lie between 1 and 64", 0, json!("none"));
    refused("sets is 3, but there are 4 chips; the chips must divide evenly", 3, json!("none"));
    refused("sets is 65; it must lie between 1 and 64", 65, json!("none"));
    refused(
        "window.time_minimum_low is 1ms, in which no block could be erased; at least 5ms",
        2,
        commanded(json!({ "time_minimum_low": "1ms" })),
    );
    refused(
        "window.non_deterministic is 4ms, in which no block could be erased",
        1,
        json!({ "policy": "periodic", "non_deterministic": "4ms" }),
    );
    refused(
        "window.writes_typical is 100, but the buffer of a set has room for 8 flash pages",
        2,
        commanded(json!({ "writes_typical": 100 })),
    );
    let mut config = tiny();
    (config.sets, config.partition_bits) = (2, vec![3]);
    let message = config.validate().expect_err("two kinds of partitions");
    assert!(message.starts_with("sets: NVM sets are partitions of consecutive addresses"), "{message}");
    let mut config = tiny();
    (config.sets, config.logical_capacity) = (2, Bytes(4096 * 1_023));
    let message = config.validate().expect_err("a page too many");
    assert!(message.contains("no multiple of 4KiB for each of 2 sets; use 4088KiB"), "{message}");
    for (expected, settings) in [
        ("reads_typical: is zero", json!({ "reads_typical": 0 })),
        ("time_maximum: is zero", json!({ "time_maximum": "0ns" })),
        (
            "reads_warning: is of what is left of reads_typical, which is not given",
            json!({ "reads_warning": 1 }),
        ),
        (
            "time_minimum_low: is 9ms, above time_minimum_high, 8ms",
            json!({ "time_minimum_low": "9ms", "time_minimum_high": "8ms" }),
        ),
    ] {
        let message = support::read(json!({ "window": commanded(settings) })).expect_err(expected);
        assert!(message.contains(expected), "{message:?} does not say {expected:?}");
    }
}
