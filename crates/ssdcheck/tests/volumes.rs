//! Requests that lie in several internal volumes.

use flashkeel_engine::{Completion, Lba, Ledger, Operation, Predictor, Request, RequestId, Status, Time};
use flashkeel_ssdcheck::{BufferType, DeviceModel, Engine, FlushTrigger, Latencies, Thresholds, WriteBuffer};

use Operation::{Read, Write};

/// Volumes of 64 KiB stretches, each with a buffer of eight pages.
fn model() -> DeviceModel {
    DeviceModel {
        sectors: 1 << 20,
        volume_bits: vec![7],
        gc_volume_bits: Some(vec![7]),
        write_buffer: WriteBuffer {
            bytes: Some(8 * 4096),
            kind: BufferType::Back,
            flush: vec![FlushTrigger::Full],
        },
        thresholds_ns: Thresholds { read: 250_000, write: 250_000 },
        latencies_ns: Latencies {
            read: 80_000,
            write: 10_000,
            flush: 1_000_000,
            collection: 5_000_000,
            ..Latencies::default()
        },
        sleep: None,
        undetermined: Vec::new(),
        learned: None,
    }
}

fn request(id: u64, operation: Operation, page: u64, pages: u32) -> Request {
    let lba = Lba(page * 8);
    Request::new(RequestId(id), operation, lba, pages * 8)
}

/// Page 16 is the first of the second volume.
#[test]
fn a_read_waits_for_each_volume_it_lies_in() {
    let mut engine = Engine::new(&model(), None);
    engine.submitted(Time(0), &request(0, Write, 16, 8));
    let mut is_slow = |page, pages| engine.predict(Time(1), &[], &request(1, Read, page, pages)).is_slow;
    assert!(is_slow(16, 1), "its volume is being flushed");
    assert!(!is_slow(14, 2), "the other is not");
    assert!(is_slow(14, 3) && is_slow(31, 3), "it lies in both");
}

#[test]
fn a_write_fills_the_buffer_of_each_volume_it_lies_in() {
    let mut engine = Engine::new(&model(), None);
    // Five pages each, then three more of the second.
    let crossing = request(0, Write, 11, 10);
    let rest = request(1, Write, 21, 3);
    let read = |page| request(2, Read, page, 1);
    let ahead = [crossing, rest];
    assert!(!engine.predict(Time(0), &ahead, &read(0)).is_slow);
    assert!(engine.predict(Time(0), &ahead, &read(16)).is_slow, "asked beforehand");
    ahead.iter().for_each(|write| engine.submitted(Time(0), write));
    assert!(!engine.predict(Time(0), &[], &read(0)).is_slow);
    assert!(engine.predict(Time(0), &[], &read(16)).is_slow, "asked afterwards");
}

/// A back buffer takes as much again while the first is flushed, and no more.
#[test]
fn a_write_waits_where_it_is_larger_than_the_buffer_takes() {
    let mut engine = Engine::new(&model(), None);
    let mut write = |id, at, page, pages| {
        let request = request(id, Write, page, pages);
        let is_slow = engine.predict(at, &[], &request).is_slow;
        engine.submitted(at, &request);
        is_slow
    };
    assert!(!write(0, Time(0), 0, 8), "fills it");
    assert!(!write(1, Time(100_000), 0, 7), "while it is flushed");
    assert!(!write(2, Time(50_000_000), 0, 2), "fills it, and begins again");
    assert!(!write(3, Time(100_000_000), 0, 14), "the same");
    assert!(write(4, Time(150_000_000), 0, 10), "has to wait for the first flush");
    assert!(write(5, Time(150_050_000), 0, 8), "finds one going on");
}

/// Asks of each request beforehand, of another one, and behind one that moves nothing.
fn ask(engine: &mut Engine, now: Time, next: &Request) {
    let asked = engine.predict(now, &[], next);
    let behind = [request(u64::MAX, Operation::Trim, 0, 1)];
    assert_eq!(engine.predict(now, &behind, next), asked, "the way for several volumes is the same");
    let _ = engine.predict(now, &[], &request(next.id.0 + 1_000_000, Operation::Write, 3, 5));
    if next.id.0.is_multiple_of(2) {
        assert_eq!(engine.predict(now, &[], next), asked, "nothing has happened");
    }
}

#[test]
fn asking_teaches_nothing() {
    let (mut asking, mut silent) = (Engine::new(&model(), None), Engine::new(&model(), None));
    for id in 0..3_000_u64 {
        let operation = if id % 3 == 0 { Operation::Read } else { Operation::Write };
        let request = request(id, operation, id * 11 % 60, 1 + (id % 5) as u32);
        let now = Time(id * 100_000);
        ask(&mut asking, now, &request);
        let time = Time(now.0 + if id % 7 == 0 { 900_000 } else { 90_000 });
        for engine in [&mut asking, &mut silent] {
            engine.submitted(now, &request);
        }
        ask(&mut asking, Time(now.0 + 10), &request);
        let completion = Completion { id: request.id, time, status: Status::Ok, ledger: Ledger::ZERO };
        for engine in [&mut asking, &mut silent] {
            engine.observe(time, &completion);
        }
    }
    assert_eq!(asking.model(), silent.model());
}
