//! A served device does what it does in virtual time: the same requests at the same times
//! complete at the same times, however late the wall clock let it look.

use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;

use flashkeel_device::{DeviceConfig, MapCacheSize, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{
    Arena, Completion, Leaf, Limits, Payload, Request, RequestId, Status, Stream, Submit, Time, Wake,
};
use flashkeel_serve::nbd::Export;
use flashkeel_serve::{Address, Server, Settings, Watch};

/// What was asked of a device, when and in which order, and what came of it.
#[derive(Default)]
struct Log {
    asked: Vec<(Time, Request)>,
    ended: Vec<(RequestId, Time, Status)>,
}

/// A device that keeps a log.
struct Logged {
    ssd: Ssd,
    log: Arc<Mutex<Log>>,
}

impl Leaf for Logged {
    fn limits(&self) -> Limits {
        self.ssd.limits()
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena) -> Submit {
        let answer = self.ssd.submit(now, request, data);
        if answer == Submit::Accepted {
            self.log.lock().unwrap().asked.push((now, *request));
        }
        answer
    }

    fn next_event(&self) -> Wake {
        self.ssd.next_event()
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        let before = completions.len();
        self.ssd.advance(now, data, completions);
        let ended = completions[before..].iter().map(|each| (each.id, each.time, each.status));
        self.log.lock().unwrap().ended.extend(ended);
    }

    fn cut_power(&mut self, now: Time, data: &mut Arena) {
        self.ssd.cut_power(now, data);
    }
}

struct UntilDone(Arc<Mutex<bool>>);

impl Watch<Logged> for UntilDone {
    fn stops(&mut self, _failed: u64) -> bool {
        *self.0.lock().unwrap()
    }

    fn says(&mut self, sentence: &str) {
        panic!("{sentence}");
    }

    fn reads_off(&mut self, _device: &mut Logged, _now: Time) -> String {
        String::new()
    }
}

fn device() -> Ssd {
    let mut config = DeviceConfig::default();
    config.geometry.channels = 2;
    config.geometry.chips_per_channel = 2;
    config.geometry.planes_per_chip = 1;
    config.geometry.blocks_per_plane = 48;
    config.geometry.pages_per_block = 16;
    config.logical_capacity = Bytes(8 << 20);
    config.map_cache = MapCacheSize::All;
    config.gc.start_below = 8;
    config.gc.stop_above = 12;
    config.buffer.size = Bytes(256 << 10);
    let mut ssd = Ssd::new(&config.validate().expect("the test's device is valid"), 7);
    assert!(matches!(ssd.precondition(&mut |_| ControlFlow::Continue(())), ControlFlow::Continue(_)));
    ssd.keep_data();
    ssd
}

/// Asks for so many random things, up to sixteen at a time.
fn client(path: &std::path::Path, requests: u64, seed: u64) {
    let mut stream = UnixStream::connect(path).expect("a server");
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).unwrap();
    let choice = [&3u32.to_be_bytes()[..], b"IHAVEOPT", &1u32.to_be_bytes(), &0u32.to_be_bytes()].concat();
    stream.write_all(&choice).unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    let mut random = Stream::new(seed, "client");
    let mut lengths = vec![0u32; requests as usize];
    let (mut asked, mut answered) = (0, 0);
    while answered < requests {
        while asked < requests && asked - answered < 16 {
            let pages = 1 + random.below(8) as u32;
            let from = random.below(2048 - u64::from(pages)) * 4096;
            let kind: u16 = [0, 0, 1, 1, 1, 1, 3, 4][random.below(8) as usize];
            let (from, length) = if kind == 3 { (0, 0) } else { (from, pages * 4096) };
            let head = [&0x2560_9513u32.to_be_bytes()[..], &0u16.to_be_bytes(), &kind.to_be_bytes()].concat();
            let place = [&asked.to_be_bytes()[..], &from.to_be_bytes(), &length.to_be_bytes()].concat();
            stream.write_all(&[head, place].concat()).unwrap();
            if kind == 1 {
                stream.write_all(&vec![asked as u8; length as usize]).unwrap();
            }
            lengths[asked as usize] = if kind == 0 { length } else { 0 };
            asked += 1;
        }
        let mut answer = [0; 16];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[4..8], [0; 4], "no error");
        let cookie = u64::from_be_bytes(answer[8..].try_into().unwrap());
        stream.read_exact(&mut vec![0; lengths[cookie as usize] as usize]).unwrap();
        answered += 1;
    }
}

#[test]
fn what_was_served_is_the_same_in_virtual_time() {
    let folder = std::env::temp_dir().join(format!("flashkeel-replay-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("nbd.sock");
    let log = Arc::new(Mutex::new(Log::default()));
    let server = Server::bind(&Address::Unix(path.clone())).expect("a socket");
    let limits = device().limits();
    let export = Export {
        name: "disk".into(),
        description: String::new(),
        bytes: limits.sectors * 512,
        block_bytes: 4096,
        preferred_bytes: 4096,
        is_read_only: false,
    };
    let done = Arc::new(Mutex::new(false));
    let mut until = UntilDone(Arc::clone(&done));
    let served = Logged { ssd: device(), log: Arc::clone(&log) };
    let serving = thread::spawn(move || {
        server.run(served, None, None, &Settings { export, time_scale: 1.0 }, &mut until).expect("it serves")
    });
    thread::scope(|scope| {
        scope.spawn(|| client(&path, 600, 1));
        scope.spawn(|| client(&path, 600, 2));
    });
    *done.lock().unwrap() = true;
    let found = serving.join().expect("no panic");
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((found.requests, found.faults, found.clients), (1200, 0, 2));

    let log = log.lock().unwrap();
    let mut ssd = device();
    let (mut data, mut done) = (Arena::new(), Vec::new());
    for (at, request) in &log.asked {
        ssd.advance(*at, &mut data, &mut done);
        let request = Request { payload: Payload::NONE, ..*request };
        assert_eq!(ssd.submit(*at, &request, &mut data), Submit::Accepted);
    }
    let end = log.ended.iter().map(|(_, time, _)| *time).max().expect("something ended");
    ssd.advance(end, &mut data, &mut done);
    // Numbers are used again, so each end is told by its time too; what ends at one instant
    // may be found in another order.
    let mut replayed: Vec<_> = done.iter().map(|each| (each.time, each.id.0, each.status as u8)).collect();
    let mut ended: Vec<_> = log.ended.iter().map(|(id, time, status)| (*time, id.0, *status as u8)).collect();
    replayed.sort_unstable();
    ended.sort_unstable();
    assert_eq!(ended.len(), 1200);
    assert_eq!(replayed, ended);
}
