//! Windows that software imposes: what passes in one, what ends it, and that nothing is
//! lost or held for ever, whatever is commanded, pulled or cut.

use std::collections::BTreeMap;

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{
    Answer, Arena, Cause, Command, Completion, Durable, Event, Leaf, Ledger, Limits, Operation, Place,
    Refusal, Request, RequestId, Span, Stack, Status, Stream, Submit, Time, Wake, Window, WindowEnd,
    WindowLimit,
};

use super::drive::{Drive, PAGES, value_of};
use super::request;
use crate::flight::nth;
use crate::windowed::{WindowSettings, Windowed};

const SERVICE: Span = Span::from_us(10);
const DETERMINISTIC: Command = Command::Window(0, Window::Deterministic);
const NON_DETERMINISTIC: Command = Command::Window(0, Window::NonDeterministic);

/// Serves any number of requests at once, each in the same time, and notes what it got.
#[derive(Clone, Default)]
pub(super) struct Device {
    inside: Vec<(Time, Request)>,
    got: Vec<(Time, u64)>,
}

impl Device {
    /// When it got each request.
    pub fn begun(&self) -> impl Iterator<Item = Time> {
        self.got.iter().map(|&(time, _)| time)
    }
}

impl Leaf for Device {
    fn limits(&self) -> Limits {
        let durable = Durable::Acknowledged;
        Limits { sectors: 1 << 20, block_sectors: 8, preferred_sectors: 16, durable }
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        self.inside.push((now, *request));
        self.got.push((now, request.id.0));
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        self.inside.first().map(|&(begun, _)| begun + SERVICE).into()
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, completions: &mut Vec<Completion>) {
        while self.next_event().is_due(now) {
            let (begun, Request { id, .. }) = self.inside.remove(0);
            let mut ledger = Ledger::ZERO;
            ledger.charge(Cause::OwnFlash, SERVICE);
            completions.push(Completion { id, time: begun + SERVICE, status: Status::Ok, ledger });
        }
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {
        self.inside.clear();
    }
}

/// A device with windows, and what has come of it.
struct Bench {
    stack: Stack<Windowed, Device>,
    data: Arena,
    now: Time,
    next: u64,
    done: Vec<Completion>,
    raised: Vec<(Time, Event)>,
}

impl Bench {
    fn new(settings: &WindowSettings) -> Bench {
        let device = Device::default();
        let windowed = Windowed::new(settings, device.limits());
        let (data, now) = (Arena::new(), Time::ZERO);
        let stack = Stack::new(windowed, vec![device]);
        Bench { stack, data, now, next: 0, done: Vec::new(), raised: Vec::new() }
    }

    /// Goes on to a time in microseconds.
    fn at(&mut self, us: u64) -> &mut Bench {
        let to = Time(us * 1_000);
        while let Some(next) = self.stack.next_event().time().filter(|&next| next <= to) {
            self.stack.advance(next, &mut self.data, &mut self.done);
            self.now = next;
            self.listen();
        }
        self.now = to;
        self
    }

    fn listen(&mut self) {
        while let Some(notice) = self.stack.notice() {
            assert_eq!(notice.place, Place::default());
            self.raised.push((self.now, notice.event));
        }
    }

    /// Asks for pages; returns the number.
    fn ask(&mut self, operation: Operation, page: u64, pages: u32) -> u64 {
        let id = self.next;
        self.next += 1;
        let mut request = request(id, 0, operation, page, pages);
        if operation == Operation::Flush {
            (request.lba.0, request.sectors) = (0, 0);
        }
        assert_eq!(self.stack.submit(self.now, &request, &mut self.data), Submit::Accepted);
        self.listen();
        id
    }

    fn tell(&mut self, command: &Command) -> Result<Answer, Refusal> {
        let answer = self.stack.command(self.now, &Place::default(), command, &mut self.data);
        self.listen();
        answer
    }

    fn reading(&mut self, name: &str) -> Option<u64> {
        let Ok(Answer::State(readings)) = self.tell(&Command::State) else { panic!("no state") };
        readings.into_iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// What the device has got, in order, and when in microseconds. The n-th request there is
    /// the n-th here.
    fn got(&self) -> Vec<(u64, u64)> {
        let device = self.stack.children().next().expect("there is one");
        device.got.iter().map(|&(time, id)| (time.0 / 1_000, nth(RequestId(id)).0)).collect()
    }

    /// What has been raised, and when in microseconds.
    fn raised(&self) -> Vec<(u64, Event)> {
        self.raised.iter().map(|&(time, event)| (time.0 / 1_000, event)).collect()
    }

    fn ledger(&self, id: u64) -> Ledger {
        self.done.iter().find(|completion| completion.id.0 == id).expect("it has ended").ledger
    }
}

fn settings() -> WindowSettings {
    WindowSettings { time_maximum: Span::from_ms(1), ..WindowSettings::default() }
}

#[test]
fn changes_are_held_in_order_and_reads_and_flushes_pass() {
    let mut bench = Bench::new(&settings());
    assert_eq!(bench.tell(&DETERMINISTIC), Ok(Answer::Done));
    assert_eq!(bench.raised(), [(0, Event::WindowBegan(0))]);
    assert_eq!(bench.reading("set0_status"), Some(1));
    bench.at(5).ask(Operation::Write, 0, 1);
    bench.ask(Operation::Trim, 0, 1);
    bench.ask(Operation::Read, 0, 1);
    bench.ask(Operation::WriteZeroes, 0, 1);
    bench.ask(Operation::Flush, 0, 0);
    bench.at(50);
    assert_eq!(bench.got(), [(5, 2), (5, 4)]);
    assert_eq!(bench.reading("held"), Some(3));
    assert_eq!(bench.tell(&NON_DETERMINISTIC), Ok(Answer::Done));
    bench.at(100);
    assert_eq!(bench.got()[2..], [(50, 0), (50, 1), (50, 3)]);
    for id in [0, 1, 3] {
        assert_eq!(
            [Cause::Window, Cause::OwnFlash].map(|cause| bench.ledger(id).ns(cause)),
            [45_000, SERVICE.0]
        );
    }
    assert_eq!(bench.raised().len(), 1);
    let report = bench.stack.stage().report();
    assert_eq!((report.changes_held, report.held_bytes_max), (3, 3 * 4096));
    assert_eq!(report.deterministic_ns, 50_000);
}

#[test]
fn a_window_that_is_on_when_counting_begins_counts_from_then_on() {
    let mut bench = Bench::new(&settings());
    assert_eq!(bench.tell(&DETERMINISTIC), Ok(Answer::Done));
    bench.at(30);
    let now = bench.now;
    bench.stack.stage_mut().reset_counters(now);
    bench.at(50);
    assert_eq!(bench.tell(&NON_DETERMINISTIC), Ok(Answer::Done));
    let report = bench.stack.stage().report();
    assert_eq!((report.windows_begun, report.deterministic_ns), (1, 20_000));
    // How long it might have lasted is counted from its own beginning.
    assert_eq!(bench.tell(&DETERMINISTIC), Ok(Answer::Done));
    bench.at(150);
    let now = bench.now;
    bench.stack.stage_mut().reset_counters(now);
    bench.at(1_500);
    let report = bench.stack.stage().report();
    assert_eq!((report.windows_ended_time_exceeded, report.deterministic_ns), (1, 900_000));
}

#[test]
fn a_window_begins_when_no_change_is_under_way_and_the_last_has_settled() {
    let mut bench = Bench::new(&WindowSettings { settle: Span::from_us(7), ..settings() });
    bench.ask(Operation::Write, 0, 1);
    bench.at(2).tell(&DETERMINISTIC).expect("it obeys");
    assert_eq!((bench.reading("set0_status"), bench.reading("changing")), (Some(2), Some(1)));
    bench.at(5).ask(Operation::Write, 1, 1);
    bench.ask(Operation::Write, 8, 32);
    // Asked for twice, it begins once.
    bench.at(16).tell(&DETERMINISTIC).expect("it obeys");
    bench.at(30);
    assert_eq!(bench.raised(), [(17, Event::WindowBegan(0))]);
    // The large one was held only until then.
    assert_eq!(bench.got(), [(0, 0), (17, 2)]);
    assert_eq!(bench.ledger(2).ns(Cause::Window), 12_000);
    // What was not begun is given up without an event.
    bench.tell(&NON_DETERMINISTIC).expect("it obeys");
    bench.tell(&DETERMINISTIC).expect("it obeys");
    bench.tell(&NON_DETERMINISTIC).expect("it obeys");
    bench.at(9_000);
    assert_eq!(bench.raised().len(), 1);
    assert_eq!(bench.done.len(), 3);
}

#[test]
fn large_writes_pass_until_their_count_is_used_which_ends_the_window() {
    let mut bench = Bench::new(&WindowSettings { writes: Some(40), writes_warning: Some(10), ..settings() });
    bench.tell(&DETERMINISTIC).expect("it obeys");
    let small = bench.at(1).ask(Operation::Write, 100, 16);
    let large = bench.ask(Operation::Write, 0, 17);
    assert_eq!(bench.reading("set0_direct_estimate"), Some(23));
    // It overlaps one that is held, and is held behind it at no cost.
    let behind = bench.ask(Operation::Write, 90, 17);
    assert_eq!(bench.reading("set0_direct_estimate"), Some(23));
    let other = bench.at(2).ask(Operation::Write, 20, 17);
    assert_eq!(bench.raised()[1..], [(2, Event::WindowWarning(0, WindowLimit::Writes))]);
    let last = bench.at(3).ask(Operation::Write, 60, 17);
    assert_eq!(bench.raised()[2..], [(3, Event::WindowEnded(0, WindowEnd::TypicalExceeded))]);
    bench.at(50);
    assert_eq!(bench.got(), [(1, large), (2, other), (3, small), (3, behind), (3, last)]);
    assert_eq!(bench.stack.stage().report().windows_ended_typical_exceeded, 1);
    assert_eq!(bench.stack.stage().report().direct_writes, 2);
}

#[test]
fn more_than_may_be_held_ends_the_window_or_gives_it_up() {
    let mut bench = Bench::new(&WindowSettings { held: Bytes(16 << 10), ..settings() });
    assert_eq!(bench.reading("set0_writes_typical"), Some(2));
    bench.tell(&DETERMINISTIC).expect("it obeys");
    bench.ask(Operation::Write, 0, 3);
    assert_eq!(bench.reading("set0_writes_estimate"), Some(0));
    bench.ask(Operation::Trim, 8, 100);
    bench.at(4).ask(Operation::Write, 20, 1);
    assert_eq!(bench.got(), [(4, 0), (4, 1), (4, 2)]);
    // Before it could begin.
    bench.tell(&DETERMINISTIC).expect("it obeys");
    bench.at(5).ask(Operation::Write, 40, 5);
    let urgent = Event::WindowEnded(0, WindowEnd::Urgent);
    assert_eq!(bench.raised(), [(0, Event::WindowBegan(0)), (4, urgent), (5, urgent)]);
    bench.at(50);
    assert_eq!(bench.done.len(), 4);
    assert_eq!(bench.stack.stage().report().held_bytes_max, 16 << 10);
}

#[test]
fn a_window_ends_when_its_time_is_over_and_says_so_before() {
    let mut bench = Bench::new(&WindowSettings { time_warning: Some(Span::from_us(200)), ..settings() });
    bench.at(10).tell(&DETERMINISTIC).expect("it obeys");
    bench.ask(Operation::Write, 0, 1);
    bench.at(400);
    assert_eq!(bench.reading("set0_time_estimate_ns"), Some(610_000));
    bench.at(3_000);
    assert_eq!(
        bench.raised(),
        [
            (10, Event::WindowBegan(0)),
            (810, Event::WindowWarning(0, WindowLimit::Time)),
            (1_010, Event::WindowEnded(0, WindowEnd::TimeExceeded)),
        ]
    );
    assert_eq!(bench.got(), [(1_010, 0)]);
    assert_eq!(bench.tell(&Command::Window(1, Window::Deterministic)), Err(Refusal::Unknown));
}

#[test]
fn a_power_cut_ends_what_is_held_and_the_window() {
    let mut bench = Bench::new(&settings());
    bench.tell(&DETERMINISTIC).expect("it obeys");
    bench.ask(Operation::Write, 0, 1);
    bench.at(3).ask(Operation::Read, 0, 1);
    bench.at(7);
    bench.stack.cut_power(Time(7_000), &mut bench.data);
    bench.at(8);
    bench.stack.advance(Time(8_000), &mut bench.data, &mut bench.done);
    let ends: Vec<_> = bench.done.iter().map(|it| (it.id.0, it.status, it.time, it.ledger.total())).collect();
    let at = Time(7_000);
    assert_eq!(ends, [(0, Status::Aborted, at, Span(7_000)), (1, Status::Aborted, at, Span(4_000))]);
    assert_eq!((bench.reading("set0_status"), bench.reading("held")), (Some(2), Some(0)));
    // The next change goes on at once, and the next window begins behind it.
    bench.ask(Operation::Write, 0, 1);
    bench.tell(&DETERMINISTIC).expect("it obeys");
    bench.at(30);
    assert_eq!(bench.raised()[1..], [(18, Event::WindowBegan(0))]);
}

/// A host that writes, reads and commands windows at random, over a drive that serves in
/// any order.
struct World {
    stack: Stack<Windowed, Drive>,
    random: Stream,
    data: Arena,
    now: Time,
    /// What each page holds, or may hold since a power cut.
    pages: Vec<Vec<u64>>,
    inside: BTreeMap<u64, (Request, Time)>,
    next: u64,
    may_refuse: bool,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Stream::new(seed, "world");
        let mut pick = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        let settings = WindowSettings {
            direct_above: Bytes(pick(&[0, 4 << 10, 8 << 10, 64 << 10])),
            writes: Some(pick(&[0, 1, 8, 1_000])).filter(|&writes| writes < 1_000),
            held: Bytes(pick(&[1, 4 << 10, 40 << 10, 1 << 20])),
            // As short as the drive is quick, which no configuration has.
            time_maximum: Span(pick(&[1, 300, 5_000])),
            settle: Span(pick(&[0, 1, 2_000])),
            ..WindowSettings::default()
        };
        let drive = Drive::new(seed);
        let windowed = Windowed::new(&settings, drive.limits());
        World {
            stack: Stack::new(windowed, vec![drive]),
            random,
            data: Arena::new(),
            now: Time::ZERO,
            pages: vec![vec![0]; PAGES],
            inside: BTreeMap::new(),
            next: 1,
            may_refuse: false,
        }
    }

    fn submit(&mut self) {
        let operation = match self.random.below(12) {
            0..5 => Operation::Read,
            5..10 => Operation::Write,
            10 => Operation::Trim,
            _ => Operation::Flush,
        };
        let count = self.random.between(1, 5);
        let first = self.random.below(PAGES as u64 - count + 1);
        let meets = |(other, _): &(Request, Time)| {
            let end = other.lba.0 + u64::from(other.sectors);
            other.lba.0 < (first + count) * 8 && first * 8 < end
        };
        // The drive keeps no order.
        if operation != Operation::Flush && self.inside.values().any(meets) {
            return;
        }
        let id = self.next;
        self.next += 1;
        let mut new = request(id, 0, operation, first, count as u32);
        match operation {
            Operation::Flush => (new.sectors, new.lba.0) = (0, 0),
            Operation::Read => new.payload = self.data.take(new.sectors),
            Operation::Write => {
                new.payload = self.data.take(new.sectors);
                let bytes = self.data.write(new.payload, new.sectors).expect("bytes");
                bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&id.to_le_bytes()));
            }
            _ => {}
        }
        self.inside.insert(id, (new, self.now));
        assert_eq!(self.stack.submit(self.now, &new, &mut self.data), Submit::Accepted);
    }

    fn advance(&mut self, to: Time) {
        let mut done = Vec::new();
        self.stack.advance(to, &mut self.data, &mut done);
        self.now = to;
        while self.stack.notice().is_some() {}
        done.iter().for_each(|completion| self.end(completion));
    }

    fn end(&mut self, completion: &Completion) {
        let (request, submitted) = self.inside.remove(&completion.id.0).expect("inside, once");
        assert_eq!(completion.ledger.total(), completion.time.since(submitted));
        let first = request.lba.0 as usize / 8;
        let value = if request.operation == Operation::Write { request.id.0 } else { 0 };
        for (index, page) in (first..first + request.sectors as usize / 8).enumerate() {
            let known = &mut self.pages[page];
            match (completion.status, request.operation.is_change()) {
                (Status::Ok, true) => *known = vec![value],
                (Status::Ok, false) => {
                    let read = Request { operation: Operation::Write, ..request };
                    let found = value_of(&read, index, &self.data);
                    assert!(known.contains(&found), "page {page} holds {found}, not one of {known:?}");
                    *known = vec![found];
                }
                (Status::Aborted, true) => known.push(value),
                (Status::Aborted, false) => {}
                _ => assert!(self.may_refuse, "{completion:?}"),
            }
        }
        self.data.give_back(request.payload);
    }

    fn tell(&mut self, place: Vec<usize>, command: &Command) {
        let answer = self.stack.command(self.now, &Place(place), command, &mut self.data);
        assert_eq!(answer, Ok(Answer::Done));
    }

    fn finish(&mut self) {
        let begun = self.now;
        while !self.inside.is_empty() {
            let next = self.stack.next_event().time().expect("something is inside").max(self.now);
            self.advance(next);
            assert!(self.now < begun + Span(200_000), "{:?}", self.inside);
        }
        assert_eq!((self.data.taken(), self.stack.stage().held()), (0, (0, 0)));
    }
}

#[test]
fn nothing_is_lost_or_held_for_ever() {
    for seed in 0..300 {
        let mut world = World::new(seed);
        for step in 0..400 {
            let pause = Span(world.random.below(80));
            world.advance(world.now + pause);
            world.submit();
            match world.random.below(100) {
                0..6 => world.tell(vec![], &DETERMINISTIC),
                6..8 => world.tell(vec![], &NON_DETERMINISTIC),
                8 => {
                    world.stack.cut_power(world.now, &mut world.data);
                    world.advance(world.now);
                    assert!(world.inside.is_empty());
                }
                9 if seed % 3 == 1 => {
                    world.may_refuse = true;
                    let is_read_only = world.random.chance(0.5);
                    world.tell(vec![0], &Command::ReadOnly(is_read_only));
                }
                10 if seed % 3 == 2 && step > 200 => {
                    world.may_refuse = true;
                    world.tell(vec![0], &Command::Remove);
                }
                11 => world.finish(),
                _ => {}
            }
        }
        world.finish();
    }
}
