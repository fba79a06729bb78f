//! Flush commands, and writes that have to be durable, between writes that fill a buffer.

use flashkeel_engine::{Completion, Lba, Ledger, Operation, Predictor, Request, RequestId, Status, Time};
use flashkeel_ssdcheck::{BufferType, DeviceModel, Engine, FlushTrigger, Latencies, Thresholds, WriteBuffer};

use Operation::{Flush, Read, Write};

/// Pages of the buffer.
const PAGES: usize = 8;
/// What a write takes that waits for nothing, and one that waits for flash.
const QUICK_NS: u64 = 10_000;
const LONG_NS: u64 = 1_000_000;

fn model() -> DeviceModel {
    DeviceModel {
        sectors: 1 << 20,
        volume_bits: Vec::new(),
        gc_volume_bits: None,
        write_buffer: WriteBuffer {
            bytes: Some(PAGES as u64 * 4_096),
            kind: BufferType::Back,
            flush: vec![FlushTrigger::Full],
        },
        thresholds_ns: Thresholds { read: 250_000, write: 250_000 },
        latencies_ns: Latencies {
            read: 80_000,
            write: QUICK_NS,
            flush: LONG_NS,
            collection: 5 * LONG_NS,
            ..Latencies::default()
        },
        sleep: None,
        undetermined: Vec::new(),
        learned: None,
    }
}

/// A drive that is asked one thing after the other.
struct Drive {
    engine: Engine,
    now: Time,
    next: u64,
}

impl Drive {
    fn new() -> Drive {
        Drive::of(&model())
    }

    fn of(model: &DeviceModel) -> Drive {
        Drive { engine: Engine::new(model, None), now: Time(0), next: 0 }
    }

    fn request(&self, operation: Operation) -> Request {
        let sectors = if operation == Flush { 0 } else { 8 };
        Request::new(RequestId(self.next), operation, Lba(0), sectors)
    }

    fn serve(&mut self, request: &Request, took_ns: u64) {
        self.engine.submitted(self.now, request);
        self.now.0 += took_ns;
        let completion =
            Completion { id: request.id, time: self.now, status: Status::Ok, ledger: Ledger::ZERO };
        self.engine.observe(self.now, &completion);
        self.now.0 += QUICK_NS;
        self.next += 1;
    }

    fn write(&mut self, pages: usize) {
        (0..pages).for_each(|_| self.serve(&self.request(Write), QUICK_NS));
    }

    fn flush(&mut self, took_ns: u64) {
        self.serve(&self.request(Flush), took_ns);
    }

    /// A write that has to be durable; whether it was called slow.
    fn write_durably(&mut self, took_ns: u64) -> bool {
        let write = Request { fua: true, ..self.request(Write) };
        let is_called = self.engine.predict(self.now, &[], &write).is_slow;
        self.serve(&write, took_ns);
        is_called
    }

    /// Whether a read would be slow: the buffer is being flushed.
    fn is_flushing(&mut self) -> bool {
        let read = self.request(Read);
        self.engine.predict(self.now, &[], &read).is_slow
    }

    /// Lets what is going on end.
    fn rest(&mut self) {
        self.now.0 += 5 * LONG_NS;
    }
}

#[test]
fn a_flush_command_empties_the_buffer() {
    let mut drive = Drive::new();
    drive.write(3);
    let (flush, read) = (drive.request(Flush), drive.request(Read));
    assert!(!drive.is_flushing());
    assert!(drive.engine.predict(drive.now, &[flush], &read).is_slow, "behind one");
    drive.engine.submitted(drive.now, &flush);
    assert!(drive.is_flushing(), "meanwhile");
    drive.flush(LONG_NS);
    drive.rest();
    drive.write(PAGES - 1);
    assert!(!drive.is_flushing(), "it begins anew");
    drive.write(1);
    assert!(drive.is_flushing());
}

#[test]
fn of_an_empty_buffer_nothing_is_flushed() {
    let mut drive = Drive::new();
    drive.flush(QUICK_NS);
    assert!(!drive.is_flushing());
}

/// As in a drive whose buffer outlasts a loss of power.
#[test]
fn flush_commands_that_do_nothing_are_passed_over() {
    let mut drive = Drive::new();
    for _ in 0..2 * PAGES {
        drive.write(1);
        drive.flush(QUICK_NS);
    }
    drive.rest();
    let mut writes_until_flushing = || {
        let found = (1..=PAGES).find(|_| {
            drive.write(1);
            drive.flush(QUICK_NS);
            drive.is_flushing()
        });
        drive.rest();
        found
    };
    assert!(writes_until_flushing().is_some());
    assert_eq!(writes_until_flushing(), Some(PAGES));
}

#[test]
fn durable_writes_that_take_as_long_as_flash_empty_the_buffer() {
    let mut drive = Drive::new();
    for _ in 0..4 {
        drive.write_durably(LONG_NS);
        drive.rest();
    }
    drive.write(3);
    assert!(drive.write_durably(LONG_NS), "it waits for its own flush");
    drive.rest();
    drive.write(PAGES - 1);
    assert!(!drive.is_flushing());
    drive.write(1);
    assert!(drive.is_flushing());
    drive.rest();
    drive.write(3);
    drive.engine.cut_power(drive.now);
    drive.rest();
    drive.write(PAGES - 1);
    assert!(!drive.is_flushing(), "what was buffered is lost");
}

#[test]
fn durable_writes_that_are_as_quick_as_others_fill_it_as_others() {
    let mut drive = Drive::new();
    let called = (1..PAGES).filter(|_| drive.write_durably(QUICK_NS)).count();
    assert_eq!((called, drive.is_flushing()), (0, false));
    drive.write_durably(QUICK_NS);
    assert!(drive.is_flushing());
}

#[test]
fn a_durable_write_ahead_empties_the_buffers_of_all_volumes() {
    let mut drive = Drive::of(&DeviceModel { volume_bits: vec![10], ..model() });
    for _ in 0..4 {
        drive.write_durably(LONG_NS);
        drive.rest();
    }
    drive.write(3);
    let read = drive.request(Read);
    let mut is_flushing_behind = |ahead| drive.engine.predict(drive.now, &[ahead], &read).is_slow;
    let elsewhere = Request { lba: Lba(1 << 10), ..Request::new(RequestId(1_000), Write, Lba(0), 8) };
    assert!(!is_flushing_behind(elsewhere));
    assert!(is_flushing_behind(Request { fua: true, ..elsewhere }));
    assert!(!is_flushing_behind(Request { fua: true, ..read }), "a read writes nothing out");
}
