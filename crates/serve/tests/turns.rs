//! Clients take turns: one that asks without end keeps nobody waiting.

mod protocol;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use flashkeel_engine::{
    Arena, Completion, Holds, Lba, Leaf, Ledger, Limits, Operation, Request, Status, Submit, Time, Wake,
};
use flashkeel_serve::nbd::Export;
use flashkeel_serve::{Address, Server, Settings, Watch};
use protocol::*;

/// What has happened to the device.
#[derive(Default)]
struct Seen {
    /// How often it has taken its time.
    steps: AtomicUsize,
    /// And how often before it was asked for a read.
    steps_before_read: AtomicUsize,
    /// How often it was read off.
    readings: AtomicUsize,
    is_over: AtomicBool,
}

/// A device that takes its time to say what there is, and for each MiB that it trims, and while it does so
/// first, another client asks for a read.
struct Slow<'a> {
    seen: &'a Seen,
    other: UnixStream,
    ended: Vec<Completion>,
}

impl Slow<'_> {
    fn step(&self) {
        if self.seen.steps.fetch_add(1, SeqCst) == 0 {
            (&self.other).write_all(&request(0, 0, 1, 0, 4096, b"")).expect("it is asked");
        }
        thread::sleep(Duration::from_micros(100));
    }
}

impl Leaf for Slow<'_> {
    fn limits(&self) -> Limits {
        unreachable!("nobody asks")
    }

    fn holds(&self, _from: Lba, sectors: u32) -> (u32, Holds) {
        self.step();
        (sectors, Holds::Data)
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        if request.operation == Operation::Trim {
            (0..request.sectors / 2048).for_each(|_| self.step());
        } else {
            self.seen.steps_before_read.store(self.seen.steps.load(SeqCst), SeqCst);
        }
        self.ended.push(Completion { id: request.id, time: now, status: Status::Ok, ledger: Ledger::ZERO });
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        Wake::new(self.ended.first().map(|end| end.time), false)
    }

    fn advance(&mut self, _now: Time, _data: &mut Arena, completions: &mut Vec<Completion>) {
        completions.append(&mut self.ended);
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {}
}

struct Until<'a>(&'a Seen);

impl Watch<Slow<'_>> for Until<'_> {
    fn stops(&mut self, _failed: u64) -> bool {
        self.0.is_over.load(SeqCst)
    }

    fn says(&mut self, sentence: &str) {
        panic!("{sentence}");
    }

    fn reads_off(&mut self, _device: &mut Slow<'_>, _now: Time) -> String {
        self.0.readings.fetch_add(1, SeqCst);
        String::new()
    }
}

/// How often the device takes its time before it is asked for a read of one client, where another
/// has asked for `steps` of them at once, in requests of this type and length.
fn steps_before_read(
    name: &str,
    kind: u16,
    length: u32,
    steps: usize,
    requests: usize,
    time_scale: f64,
) -> usize {
    let folder = std::env::temp_dir().join(format!("flashkeel-turns-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("nbd.sock");
    let server = Server::bind(&Address::Unix(path.clone())).expect("a socket");
    let mut reader = UnixStream::connect(&path).expect("a server");
    let mut asker = UnixStream::connect(&path).expect("a server");
    let seen = Seen::default();
    let device = Slow { seen: &seen, other: reader.try_clone().expect("another handle"), ended: Vec::new() };
    let settings = Settings { export: Export { bytes: 1 << 30, ..export() }, time_scale };
    thread::scope(|scope| {
        let mut until = Until(&seen);
        scope.spawn(move || server.run(device, None, None, &settings, &mut until).expect("it serves"));
        // Greeted, it chooses by name alone, which is told in 10 bytes.
        reader.write_all(&[&3u32.to_be_bytes()[..], &option(1, b"disk")].concat()).expect("it is said");
        reader.read_exact(&mut [0; 18 + 10]).expect("an export");
        let asks = (0..requests as u64).flat_map(|cookie| request(0, kind, cookie, 0, length, b""));
        asker.write_all(&negotiation().into_iter().chain(asks).collect::<Vec<u8>>()).expect("it is said");
        reader.read_exact(&mut [0; 16 + 4096]).expect("an answer");
        // Those that were left when its turn was over are answered all the same.
        while seen.steps.load(SeqCst) < steps {
            thread::sleep(Duration::from_millis(1));
        }
        seen.is_over.store(true, SeqCst);
    });
    std::fs::remove_dir_all(&folder).expect("it is ours");
    seen.steps_before_read.load(SeqCst)
}

#[test]
fn who_asks_what_there_is_without_end_keeps_nobody_waiting() {
    for (name, time_scale) in [("status", 1.0), ("slowed", 10_000.0)] {
        let before = steps_before_read(name, 7, 4096, 600, 600, time_scale);
        assert!(before < 10, "{before} answers of 600 before the other's at a scale of {time_scale}");
    }
}

#[test]
fn who_trims_all_there_is_keeps_nobody_waiting() {
    let before = steps_before_read("trim", 4, 256 << 20, 4 * 256, 4, 1.0);
    assert!(before < 10, "{before} MiB of 1024 trimmed before the other's read");
}

#[test]
fn who_looks_without_end_is_answered_together_with_all_others_and_seldom() {
    let folder = std::env::temp_dir().join(format!("flashkeel-looks-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("nbd.sock");
    let server = Server::bind(&Address::Unix(path.clone())).expect("a socket");
    let other = UnixStream::connect(&path).expect("a server");
    let (window, seen) = (server.window(), Seen::default());
    let device = Slow { seen: &seen, other, ended: Vec::new() };
    let settings = Settings { export: export(), time_scale: 1.0 };
    let (answers, begun) = (AtomicUsize::new(0), Instant::now());
    thread::scope(|scope| {
        let mut until = Until(&seen);
        scope.spawn(move || server.run(device, None, None, &settings, &mut until).expect("it serves"));
        let lookers: Vec<_> = (0..8)
            .map(|number| {
                let (window, answers) = (window.clone(), &answers);
                scope.spawn(move || {
                    while begun.elapsed() < Duration::from_millis(400) {
                        let found = window.look(number % 2 == 0).expect("an answer");
                        assert!(number % 2 == 1 || found.recent.is_some());
                        answers.fetch_add(1, SeqCst);
                    }
                })
            })
            .collect();
        lookers.into_iter().for_each(|looker| looker.join().expect("it has been answered"));
        let most = 2 + begun.elapsed().as_millis() as usize / 50;
        let readings = seen.readings.load(SeqCst);
        assert!((3..=most).contains(&readings), "{readings} times, of {most} at most");
        assert!(answers.load(SeqCst) > readings);
        seen.is_over.store(true, SeqCst);
    });
    std::fs::remove_dir_all(&folder).expect("it is ours");
}
