//! The NVM device against its specification and against closed forms.

use flashkeel_engine::{Answer, Arena, Command, Place, Refusal, Wake};
use flashkeel_engine::{
    Cause, Completion, Lba, Leaf, Operation, Request, RequestId, Span, Status, Submit, Time,
    units::{Bytes, Rate},
};
use flashkeel_nvm::{LatencyConfig, Nvm, NvmConfig};

/// The P4800X's numbers, as its preset has them.
fn p4800x() -> NvmConfig {
    let us = Span::from_us;
    let latency = |min, p50, p99, p99_999| LatencyConfig { min, p50, p99, p99_999 };
    NvmConfig {
        capacity: Bytes(375_000_000_000),
        read_latency: latency(us(8), us(9), us(10), us(37)),
        write_latency: latency(us(9), us(10), us(12), us(100)),
        bandwidth: flashkeel_nvm::Bandwidth { read: Rate(2_400_000_000), write: Rate(2_000_000_000) },
        units: 7,
        queue_depth: 1024,
        atomic_unit: Bytes(4096),
        endurance: flashkeel_nvm::Endurance { drive_writes_per_day: 30.0, years: 5.0 },
    }
}

/// The same without chance: 10 us a request.
fn steady(units: u32) -> NvmConfig {
    let ten = Span::from_us(10);
    let latency = LatencyConfig { min: ten, p50: ten, p99: ten, p99_999: ten };
    NvmConfig { read_latency: latency.clone(), write_latency: latency, units, ..p4800x() }
}

fn device(config: &NvmConfig) -> Nvm {
    Nvm::new(&config.validate().expect("a valid device"), 1)
}

fn request(id: u64, operation: Operation, sectors: u32) -> Request {
    Request::new(RequestId(id), operation, Lba(id % 1000 * 8), sectors)
}

/// Keeps `depth` requests in flight; returns the latencies in ns and the time
/// it took. Every ledger must sum to its latency.
fn closed_loop(
    config: &NvmConfig,
    operation: Operation,
    sectors: u32,
    depth: u64,
    count: u64,
) -> (Vec<u64>, Time) {
    let mut nvm = device(config);
    let mut begun = Vec::new();
    let mut latencies = Vec::new();
    let mut done = Vec::new();
    let mut now = Time::ZERO;
    while (latencies.len() as u64) < count {
        while (begun.len() as u64) < count && ((begun.len() - latencies.len()) as u64) < depth {
            let id = begun.len() as u64;
            assert_eq!(
                nvm.submit(now, &request(id, operation, sectors), &mut Arena::new()),
                Submit::Accepted
            );
            begun.push(now);
        }
        now = nvm
            .advance_to_completion(Time::MAX, &mut Arena::new(), &mut done)
            .expect("something is in flight");
        for Completion { id, time, status, ledger } in done.drain(..) {
            let latency = time.since(begun[id.0 as usize]);
            assert_eq!((status, ledger.total()), (Status::Ok, latency));
            latencies.push(latency.0);
        }
    }
    (latencies, now)
}

#[test]
fn an_idle_device_has_the_latencies_of_its_data_sheet() {
    let (mut read, _) = closed_loop(&p4800x(), Operation::Read, 8, 1, 400_000);
    read.sort_unstable();
    let at = |share: f64| read[(share * read.len() as f64) as usize];
    assert!((8_000..8_010).contains(&read[0]));
    assert!(at(0.5).abs_diff(9_000) < 20, "{}", at(0.5));
    assert!(at(0.99).abs_diff(10_000) < 20, "{}", at(0.99));
    assert!((30_000..=37_000).contains(&at(0.99998)), "{}", at(0.99998));
    assert!(*read.last().unwrap() <= 37_000);
}

#[test]
fn many_requests_are_limited_by_bandwidth() {
    for (operation, bytes_per_s) in [(Operation::Read, 2.4e9), (Operation::Write, 2.0e9)] {
        for sectors in [8, 128] {
            let (latencies, end) = closed_loop(&p4800x(), operation, sectors, 16, 100_000);
            let reached = latencies.len() as f64 * f64::from(sectors) * 512.0 / end.as_secs_f64();
            assert!((reached / bytes_per_s - 1.0).abs() < 0.01, "{operation:?} {sectors}: {reached}");
        }
    }
}

#[test]
fn units_limit_what_is_worked_on_at_once() {
    // One unit: a write of 10 us holds it until its data move, which takes 2.048 us.
    let (_, end) = closed_loop(&steady(1), Operation::Write, 8, 4, 1000);
    assert_eq!(end.0, 1000 * (10_000 - 2_048) + 2_048);
}

#[test]
fn waiting_is_charged_to_those_ahead() {
    let mut nvm = device(&steady(1));
    for id in 0..2 {
        assert_eq!(
            nvm.submit(Time::ZERO, &request(id, Operation::Write, 8), &mut Arena::new()),
            Submit::Accepted
        );
    }
    let mut done = Vec::new();
    nvm.advance(Time(1_000_000), &mut Arena::new(), &mut done);
    assert_eq!(done[1].time, Time(2 * (10_000 - 2_048) + 2_048));
    assert_eq!(done[1].ledger.ns(Cause::BehindNvm), 10_000 - 2_048);
    assert_eq!(done[1].ledger.ns(Cause::Nvm), 10_000);
    assert_eq!(nvm.report().bytes_written, 8192);
    // 30 drive writes a day for 5 years.
    assert_eq!(nvm.report().endurance_bytes, 375e9 * 30.0 * 365.0 * 5.0);
}

#[test]
fn a_full_queue_is_busy_and_ranges_outside_are_refused() {
    let mut nvm = device(&NvmConfig { queue_depth: 1, capacity: Bytes(8192), ..steady(1) });
    let mut outside = request(0, Operation::Read, 8);
    outside.lba = Lba(9);
    assert_eq!(nvm.submit(Time::ZERO, &outside, &mut Arena::new()), Submit::Refused(Status::Invalid));
    assert_eq!(nvm.next_event(), Wake::NEVER, "no completion follows a refusal");
    assert_eq!(nvm.submit(Time(5), &request(1, Operation::Read, 8), &mut Arena::new()), Submit::Accepted);
    assert_eq!(nvm.submit(Time(5), &request(2, Operation::Read, 8), &mut Arena::new()), Submit::Busy);
}

#[test]
fn impossible_devices_are_refused_by_key() {
    let slow =
        NvmConfig { bandwidth: flashkeel_nvm::Bandwidth { read: Rate(1), write: Rate(1) }, ..p4800x() };
    let narrow = NvmConfig {
        bandwidth: flashkeel_nvm::Bandwidth { read: Rate(100_000_000), write: Rate(2_000_000_000) },
        ..p4800x()
    };
    let mut falling = p4800x();
    falling.write_latency.p50 = Span::from_us(20);
    for (config, expected) in [
        (NvmConfig { capacity: Bytes(100), ..p4800x() }, "capacity is 100B"),
        (NvmConfig { units: 0, ..p4800x() }, "units is 0"),
        (NvmConfig { queue_depth: 0, ..p4800x() }, "queue_depth is 0"),
        (slow, "bandwidth.read is 1B/s"),
        (narrow, "read_latency.min is 8us, but the bandwidth alone"),
        (falling, "write_latency: 20us stands before 12us"),
    ] {
        let message = config.validate().unwrap_err();
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn what_is_written_is_read_sector_by_sector() {
    let mut nvm = device(&steady(7));
    nvm.keep_data();
    let mut data = Arena::new();
    let mut next = 0;
    let mut run = |operation, lba, sectors, fill: u8, data: &mut Arena| {
        let payload = data.take(sectors);
        data.write(payload, sectors).expect("a buffer").fill(fill);
        let request = Request::new(RequestId(next), operation, Lba(lba), sectors);
        next += 1;
        let now = Time(next * 1_000_000);
        assert_eq!(nvm.submit(now, &Request { payload, ..request }, data), Submit::Accepted);
        let mut done = Vec::new();
        nvm.advance(Time(now.0 + 999_999), data, &mut done);
        assert_eq!((done.len(), done[0].status), (1, Status::Ok));
        let sectors = data.read(payload, sectors).expect("a buffer").chunks(512);
        let found = sectors.map(|sector| (sector.iter().all(|&byte| byte == sector[0])).then_some(sector[0]));
        let found: Vec<u8> = found.map(|byte| byte.expect("a sector is of one write")).collect();
        data.give_back(payload);
        (found, done[0].ledger.total())
    };
    let write = run(Operation::Write, 5, 12, 7, &mut data).1;
    run(Operation::Write, 9, 1, 8, &mut data);
    let expected = [0, 7, 7, 7, 7, 8, 7, 7, 7, 7, 7, 7, 7, 0];
    assert_eq!(run(Operation::Read, 4, 14, 0xA5, &mut data).0, expected);
    let zeroes = run(Operation::WriteZeroes, 6, 2, 9, &mut data).1;
    run(Operation::Trim, 15, 2, 9, &mut data);
    let expected = [0, 7, 0, 0, 7, 8, 7, 7, 7, 7, 7, 0, 0, 0];
    assert_eq!(run(Operation::Read, 4, 14, 0xA5, &mut data).0, expected);
    assert!(zeroes < write, "zeros do not cross the interface");
}

fn tell(nvm: &mut Nvm, now: Time, command: Command) -> Result<Answer, Refusal> {
    nvm.command(now, &Place::default(), &command, &mut Arena::new())
}

#[test]
fn sectors_that_failed_cannot_be_read_until_they_are_written() {
    let mut nvm = device(&steady(1));
    nvm.fail(3..5).expect("the sectors exist");
    assert!(nvm.fail(nvm.sectors() - 1..nvm.sectors() + 1).is_err());
    let mut ends = |operation, lba, sectors| {
        let request = Request::new(RequestId(0), operation, Lba(lba), sectors);
        assert_eq!(nvm.submit(Time::ZERO, &request, &mut Arena::new()), Submit::Accepted);
        let mut done = Vec::new();
        nvm.advance_to_completion(Time::MAX, &mut Arena::new(), &mut done).expect("it ends");
        done[0].status
    };
    assert_eq!(ends(Operation::Read, 0, 3), Status::Ok);
    assert_eq!(ends(Operation::Read, 0, 4), Status::MediaError);
    assert_eq!(ends(Operation::Write, 3, 1), Status::Ok);
    assert_eq!(ends(Operation::Read, 0, 4), Status::Ok);
    assert_eq!(ends(Operation::Read, 4, 1), Status::MediaError);
    assert_eq!(ends(Operation::Trim, 0, 8), Status::Ok);
    assert_eq!(ends(Operation::Read, 0, 8), Status::Ok);
}

#[test]
fn it_takes_no_writes_while_it_is_told_so() {
    let mut nvm = device(&steady(1));
    assert_eq!(tell(&mut nvm, Time::ZERO, Command::ReadOnly(true)), Ok(Answer::Done));
    let mut offer = |operation| nvm.submit(Time::ZERO, &request(0, operation, 8), &mut Arena::new());
    for operation in [Operation::Write, Operation::Trim, Operation::WriteZeroes] {
        assert_eq!(offer(operation), Submit::Refused(Status::ReadOnly), "{operation:?}");
    }
    assert_eq!(offer(Operation::Read), Submit::Accepted);
    let Ok(Answer::State(state)) = tell(&mut nvm, Time::ZERO, Command::State) else { panic!("no state") };
    assert_eq!(state, [("read_only".to_owned(), 1), ("requests".to_owned(), 1)]);
    let window = Command::Window(0, flashkeel_engine::Window::Deterministic);
    assert_eq!(tell(&mut nvm, Time::ZERO, window), Err(Refusal::Unknown));
}

#[test]
fn what_is_inside_when_it_is_taken_out_is_gone() {
    let mut nvm = device(&steady(2));
    for id in 0..5 {
        let answer = nvm.submit(Time::ZERO, &request(id, Operation::Write, 8), &mut Arena::new());
        assert_eq!(answer, Submit::Accepted);
    }
    let (now, mut done) = (Time(11_000), Vec::new());
    nvm.advance(now, &mut Arena::new(), &mut done);
    let before = done.len();
    assert_eq!(tell(&mut nvm, now, Command::Remove), Ok(Answer::Done));
    nvm.advance(now, &mut Arena::new(), &mut done);
    assert_eq!(done.len(), 5);
    for completion in &done[before..] {
        assert_eq!((completion.status, completion.time), (Status::Gone, now));
        assert_eq!(completion.ledger.total(), now.since(Time::ZERO));
    }
    assert_eq!(nvm.next_event(), Wake::NEVER);
    let answer = nvm.submit(now, &request(9, Operation::Read, 8), &mut Arena::new());
    assert_eq!(answer, Submit::Refused(Status::Gone));
    assert!(matches!(tell(&mut nvm, now, Command::State), Err(Refusal::NotNow(_))));
}
