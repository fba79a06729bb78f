//! Blocks that wear out and retire: as many as a device can spare, and what becomes
//! of it then, also through power cuts.

mod support;

use flashkeel_device::{Cycle, DeviceConfig, FillPattern, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{
    Answer, Arena, Command, Completion, Event, Leaf, Notice, Operation, Place, Refusal, Status, Stream,
    Submit, Time,
};
use serde_json::json;
use support::{policy, read, ready, request, settle, tiny};

/// Four chips of 24 blocks that endure so many cycles.
fn worn(retirement: &str, rated_cycles: u32) -> DeviceConfig {
    DeviceConfig {
        retirement: policy(retirement),
        wear: policy(json!({ "policy": "rated", "rated_cycles": rated_cycles })),
        // The blocks that data of 3 MiB fill, with a flash page of garbage each: 28.
        // Two open on each chip, free ones up to where collection stops, and one.
        logical_capacity: Bytes(3 << 20),
        ..tiny()
    }
}

/// What [`worn`] can do without: all but 28 + 8 + 12 + 1 of its blocks.
const SPARE: u64 = 96 - 49;

struct Host {
    ssd: Ssd,
    now: Time,
    next: u64,
    random: Stream,
}

impl Host {
    fn new(config: &DeviceConfig) -> Host {
        Host { ssd: ready(config, 3), now: Time::ZERO, next: 0, random: Stream::new(5, "pages") }
    }

    /// Serves one request; how it ends.
    fn ask(&mut self, operation: Operation, page: u64, pages: u32) -> Status {
        let mut done: Vec<Completion> = Vec::new();
        let request = request(self.next, operation, page, pages);
        self.next += 1;
        match self.ssd.submit(self.now, &request, &mut Arena::new()) {
            Submit::Refused(status) => return status,
            answer => assert_eq!(answer, Submit::Accepted),
        }
        while done.is_empty() {
            let next = self.ssd.advance_to_completion(Time::MAX, &mut Arena::new(), &mut done);
            self.now = next.expect("it ends");
        }
        done[0].status
    }

    /// Writes single pages below `span`, until one ends otherwise than well; how.
    fn write_until_refused(&mut self, span: u64) -> Status {
        for _ in 0..2_000_000 {
            let page = self.random.below(span);
            match self.ask(Operation::Write, page, 1) {
                Status::Ok => {}
                status => return status,
            }
        }
        panic!("it is never worn out");
    }

    fn tell(&mut self, command: Command) -> Result<Answer, Refusal> {
        self.ssd.command(self.now, &Place::default(), &command, &mut Arena::new())
    }

    fn state(&mut self, name: &str) -> u64 {
        let Ok(Answer::State(readings)) = self.tell(Command::State) else { panic!("no state") };
        readings.into_iter().find(|(other, _)| other == name).expect("a reading").1
    }

    fn cut_power(&mut self) {
        self.ssd.cut_power(self.now, &mut Arena::new());
        while let Some(next) = self.ssd.next_event().time() {
            self.ssd.advance(next, &mut Arena::new(), &mut Vec::new());
            self.now = next;
        }
        self.ssd.check();
    }
}

#[test]
fn a_device_out_of_spares_is_read_only_for_good() {
    let mut host = Host::new(&worn("read-only", 4));
    assert_eq!(host.write_until_refused(768), Status::ReadOnly);
    assert_eq!(host.ssd.counters().retired_blocks, SPARE);
    assert_eq!((host.state("read_only"), host.state("retired_blocks")), (1, SPARE));
    assert_eq!(host.ssd.notice(), Some(Notice { place: Place::default(), event: Event::WornOut }));
    assert_eq!(host.ssd.notice(), None);
    // A block retires only once it is worn out, and one that is has to go on.
    let worn: Vec<f64> = host.ssd.worn().collect();
    assert!(worn.iter().filter(|&&cycles| cycles >= 4.0).count() as u64 > SPARE, "{worn:?}");
    for _ in 0..2 {
        for operation in [Operation::Write, Operation::Trim, Operation::WriteZeroes] {
            assert_eq!(host.ask(operation, 5, 1), Status::ReadOnly, "{operation:?}");
        }
        assert_eq!(host.ask(Operation::Read, 0, 768), Status::Ok);
        assert_eq!(host.ask(Operation::Flush, 0, 0), Status::Ok);
        assert!(matches!(host.tell(Command::ReadOnly(false)), Err(Refusal::NotNow(_))));
        host.cut_power();
        assert_eq!((host.state("read_only"), host.state("retired_blocks")), (1, SPARE));
    }
}

#[test]
fn a_device_out_of_spares_is_read_only_after_a_restart_too() {
    let restarted = |retired: u64, cycles: f64| {
        let cycle = |block: usize| {
            let is_retired = (block as u64) < retired;
            let worn = if is_retired { 4.0 } else { cycles };
            Cycle { erases: worn as u32, worn, is_retired, ..Cycle::default() }
        };
        let ssd = support::restarted(&worn("read-only", 4), 0, cycle);
        Host { ssd, now: Time::ZERO, next: 0, random: Stream::new(5, "pages") }
    };
    let mut host = restarted(SPARE, 4.0);
    assert_eq!((host.state("read_only"), host.state("retired_blocks")), (1, SPARE));
    assert_eq!(host.ssd.notice(), Some(Notice { place: Place::default(), event: Event::WornOut }));
    assert_eq!(host.ask(Operation::Write, 5, 1), Status::ReadOnly);
    assert!(matches!(host.tell(Command::ReadOnly(false)), Err(Refusal::NotNow(_))));
    // With a block to spare, or none worn out, it goes on.
    for (retired, cycles) in [(SPARE - 1, 4.0), (SPARE, 3.0)] {
        let mut host = restarted(retired, cycles);
        assert_eq!((host.state("read_only"), host.ssd.notice()), (0, None));
        assert_eq!(host.ask(Operation::Write, 5, 1), Status::Ok);
    }
}

#[test]
fn what_is_inside_when_spares_end_is_written() {
    let mut ssd = ready(&worn("read-only", 3), 1);
    let mut random = Stream::new(1, "pages");
    let (mut now, mut done, mut accepted) = (Time::ZERO, Vec::new(), 0);
    for id in 0.. {
        match ssd.submit(now, &request(id, Operation::Write, random.below(700), 3), &mut Arena::new()) {
            Submit::Accepted => accepted += 1,
            answer => {
                assert_eq!(answer, Submit::Refused(Status::ReadOnly));
                break;
            }
        }
        if accepted - done.len() >= 16 {
            now = ssd.advance_to_completion(Time::MAX, &mut Arena::new(), &mut done).expect("it goes on");
        }
    }
    assert!(accepted > done.len(), "several are inside");
    settle(&mut ssd, &mut done);
    assert_eq!(done.len(), accepted);
    assert!(done.iter().all(|completion| completion.status == Status::Ok));
    ssd.check();
}

#[test]
fn a_host_that_takes_each_block_as_soon_as_it_is_free_wears_the_device_out() {
    // 32 writes at a time, and a block after the other is emptied: when one has been erased,
    // no more are free than collection needs.
    let worn_out = |retirement: &str| {
        let mut config = worn(retirement, 4);
        config.geometry.blocks_per_plane = 48;
        config.logical_capacity = Bytes(12 << 20);
        config.buffer.size = Bytes(4 << 20);
        config.gc.concurrent_victims = 1;
        let mut ssd = ready(&config, 1);
        let mut random = Stream::new(1, "pages");
        let (mut now, mut done, mut inside) = (Time::ZERO, Vec::new(), 0);
        for id in 0..60_000 {
            match ssd.submit(now, &request(id, Operation::Write, random.below(3072), 1), &mut Arena::new()) {
                Submit::Accepted => inside += 1,
                answer => {
                    assert_eq!(answer, Submit::Refused(Status::ReadOnly));
                    break;
                }
            }
            while inside >= 32 {
                done.clear();
                now = ssd.advance_to_completion(Time::MAX, &mut Arena::new(), &mut done).expect("it goes on");
                inside -= done.len();
            }
        }
        settle(&mut ssd, &mut done);
        ssd.check();
        ssd
    };
    let mut ssd = worn_out("read-only");
    assert_eq!(ssd.notice(), Some(Notice { place: Place::default(), event: Event::WornOut }));
    let most = ssd.worn().fold(0.0, f64::max);
    assert!(most <= 2.0 * 4.0, "a block of 4 cycles was used {most} times");
    let retired = ssd.counters().retired_blocks;
    assert!(retired > 0);
    assert_eq!(worn_out("no-space").counters().retired_blocks, retired);
}

/// A device that holds pages below 500 of 768, and whose room has shrunk by the
/// wear of writing those again and again.
fn shrunk() -> Host {
    let mut config = worn("no-space", 3);
    config.precondition.pattern = FillPattern::None;
    let mut host = Host::new(&config);
    for _ in 0..30_000 {
        let page = host.random.below(500);
        assert_eq!(host.ask(Operation::Write, page, 1), Status::Ok);
    }
    assert!(host.ssd.counters().retired_blocks > SPARE);
    host
}

#[test]
fn a_device_that_has_shrunk_takes_what_there_is_room_for() {
    let mut host = shrunk();
    let retired = host.state("retired_blocks");
    // Of 30 units a block, all but a flash page count.
    let lost = (retired - SPARE) as u32 * 28;
    assert_eq!(host.write_until_refused(768), Status::NoSpace);
    assert_eq!(host.state("read_only"), 0);
    let held = |host: &mut Host| {
        let before = host.ssd.counters().unmapped_pages_read;
        assert_eq!(host.ask(Operation::Read, 0, 768), Status::Ok);
        768 - (host.ssd.counters().unmapped_pages_read - before) as u32
    };
    assert_eq!(held(&mut host), 768 - lost);
    // What holds something is written as ever, in one request with what does not:
    // up to that.
    for page in 0..500 {
        assert_eq!(host.ask(Operation::Write, page, 1), Status::Ok);
    }
    assert_eq!(host.ask(Operation::Write, 490, 278), Status::NoSpace);
    // A power cut gives back neither blocks nor room.
    host.cut_power();
    assert_eq!(host.state("retired_blocks"), retired);
    assert_eq!(held(&mut host), 768 - lost);
    assert_eq!(host.write_until_refused(768), Status::NoSpace);
    // A trim makes room for as many others.
    let written = host.ssd.report().host_bytes_written;
    assert_eq!(host.ask(Operation::Trim, 10, 4), Status::Ok);
    assert_eq!(host.ask(Operation::Write, 10, 5), Status::Ok);
    assert_eq!(host.ask(Operation::Trim, 10, 4), Status::Ok);
    let mut fit = 0;
    for page in 500..768 {
        let before = held(&mut host);
        fit += u32::from(host.ask(Operation::Write, page, 1) == Status::Ok && held(&mut host) > before);
    }
    assert_eq!(fit, 4);
    assert!(host.ssd.report().host_bytes_written > written);
    host.ssd.check();
}

#[test]
fn blocks_whose_room_is_in_use_are_used_on_until_it_is_not() {
    // Every page holds something: there is no room to take.
    let mut host = Host::new(&worn("no-space", 2));
    for _ in 0..20_000 {
        let page = host.random.below(768);
        assert_eq!(host.ask(Operation::Write, page, 1), Status::Ok);
    }
    assert_eq!(host.state("retired_blocks"), SPARE);
    assert_eq!(host.ask(Operation::Trim, 0, 100), Status::Ok);
    for _ in 0..20_000 {
        let page = 100 + host.random.below(668);
        assert_eq!(host.ask(Operation::Write, page, 1), Status::Ok);
    }
    assert_eq!(host.state("retired_blocks"), SPARE + 100 / 28);
    assert_eq!(host.ask(Operation::Write, 0, 100), Status::NoSpace);
}

#[test]
fn a_device_keeps_the_blocks_that_it_cannot_do_without_even_if_it_holds_nothing() {
    let mut config = worn("no-space", 1);
    config.precondition.pattern = FillPattern::None;
    let mut host = Host::new(&config);
    for _ in 0..12_000 {
        let page = host.random.below(768);
        assert_eq!(host.ask(Operation::Write, page, 1), Status::Ok);
        assert_eq!(host.ask(Operation::Trim, page, 1), Status::Ok);
    }
    host.ssd.check();
    // All the room but what is less than a block's.
    assert_eq!(host.state("retired_blocks"), SPARE + 768 / 28);
    assert_eq!(host.write_until_refused(768), Status::NoSpace);
}

#[test]
fn blocks_go_on_for_ever_unless_they_are_to_retire() {
    let mut host = Host::new(&worn("none", 1));
    for _ in 0..20_000 {
        let page = host.random.below(768);
        assert_eq!(host.ask(Operation::Write, page, 1), Status::Ok);
    }
    assert!(host.ssd.worn().all(|cycles| cycles >= 1.0));
    assert_eq!(host.state("retired_blocks"), 0);
}

#[test]
fn an_ideal_device_wears_nothing() {
    for retirement in ["read-only", "no-space"] {
        let mut config = worn(retirement, 1);
        config.gc.movement = policy("none");
        let mut host = Host::new(&config);
        for _ in 0..20_000 {
            let page = host.random.below(768);
            assert_eq!(host.ask(Operation::Write, page, 1), Status::Ok, "{retirement}");
        }
        assert!(host.ssd.worn().all(|cycles| cycles == 0.0), "{retirement}");
        assert_eq!(host.state("retired_blocks"), 0);
    }
}

#[test]
fn retirement_that_cannot_be_is_refused() {
    let refused = |changes: serde_json::Value| {
        let mut value = serde_json::to_value(worn("no-space", 3)).expect("plain data");
        for (key, setting) in changes.as_object().expect("a table") {
            value[key] = setting.clone();
        }
        let error = read(value.clone()).and_then(|config| config.validate().map(|_| ()));
        error.expect_err("refused")
    };
    let error = refused(json!({ "wear": "none" }));
    assert!(error.contains("retirement is \"no-space\"") && error.contains("wear is \"none\""), "{error}");
    let stripes = json!({
        "redundancy": "logical", "allocation": "striped", "map_cache": "all",
        "buffer": { "rewrite": "coalesce", "size": "256KiB" }, "logical_capacity": "1MiB",
    });
    let error = refused(stripes);
    assert!(
        error.contains("retirement is \"no-space\"") && error.contains("a trim makes no room"),
        "{error}"
    );
    let error = refused(json!({ "retirement": "readonly" }));
    assert!(error.contains("did you mean \"read-only\""), "{error}");
}
