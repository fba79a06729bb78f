//! Clients take turns: one that asks without end keeps nobody waiting.

mod protocol;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use flashkeel_engine::{
    Arena, Completion, Holds, Lba, Leaf, Ledger, Limits, Request, Status, Submit, Time, Wake,
};
use flashkeel_serve::{Address, Server, Settings, Watch};
use protocol::*;

/// What has happened to the device.
#[derive(Default)]
struct Seen {
    /// How often it was asked what there is.
    looks: AtomicUsize,
    /// And how often before it was asked for a read.
    looks_before_read: AtomicUsize,
    is_over: AtomicBool,
}

/// A device that takes its time to say what there is, and while it does so first, another client asks for a
/// read.
struct Slow<'a> {
    seen: &'a Seen,
    other: UnixStream,
    ended: Vec<Completion>,
}

impl Leaf for Slow<'_> {
    fn limits(&self) -> Limits {
        unreachable!("nobody asks")
    }

    fn holds(&self, _from: Lba, sectors: u32) -> (u32, Holds) {
        if self.seen.looks.fetch_add(1, SeqCst) == 0 {
            (&self.other).write_all(&request(0, 0, 1, 0, 4096, b"")).expect("it is asked");
        }
        thread::sleep(Duration::from_micros(100));
        (sectors, Holds::Data)
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        self.seen.looks_before_read.store(self.seen.looks.load(SeqCst), SeqCst);
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

struct Until<'a>(&'a AtomicBool);

impl Watch<Slow<'_>> for Until<'_> {
    fn stops(&mut self, _failed: u64) -> bool {
        self.0.load(SeqCst)
    }

    fn says(&mut self, sentence: &str) {
        panic!("{sentence}");
    }

    fn reads_off(&mut self, _device: &mut Slow<'_>, _now: Time) -> String {
        String::new()
    }
}

#[test]
fn who_asks_what_there_is_without_end_keeps_nobody_waiting() {
    const LOOKS: usize = 600;
    let folder = std::env::temp_dir().join(format!("flashkeel-turns-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("nbd.sock");
    let server = Server::bind(&Address::Unix(path.clone())).expect("a socket");
    let mut reader = UnixStream::connect(&path).expect("a server");
    let mut looker = UnixStream::connect(&path).expect("a server");
    let seen = Seen::default();
    let device = Slow { seen: &seen, other: reader.try_clone().expect("another handle"), ended: Vec::new() };
    let settings = Settings { export: export(), time_scale: 1.0 };
    thread::scope(|scope| {
        let mut until = Until(&seen.is_over);
        scope.spawn(move || server.run(device, None, None, &settings, &mut until).expect("it serves"));
        // Greeted, it chooses by name alone, which is told in 10 bytes.
        reader.write_all(&[&3u32.to_be_bytes()[..], &option(1, b"disk")].concat()).expect("it is said");
        reader.read_exact(&mut [0; 18 + 10]).expect("an export");
        let looks = (0..LOOKS as u64).flat_map(|cookie| request(0, 7, cookie, 0, 4096, b""));
        looker.write_all(&negotiation().into_iter().chain(looks).collect::<Vec<u8>>()).expect("it is said");
        reader.read_exact(&mut [0; 16 + 4096]).expect("an answer");
        // Those that were left when its turn was over are answered all the same.
        while seen.looks.load(SeqCst) < LOOKS {
            thread::sleep(Duration::from_millis(1));
        }
        seen.is_over.store(true, SeqCst);
    });
    std::fs::remove_dir_all(&folder).expect("it is ours");
    let before = seen.looks_before_read.load(SeqCst);
    assert!(before < 10, "{before} answers of {LOOKS} before the other's");
}
