//! Devices by preset, the seven workloads, and a loop that serves them.
#![allow(dead_code)]

pub mod joined;
pub mod late;
pub mod loads;
pub mod strangers;

use std::ops::ControlFlow;

use flashkeel_device::{DeviceConfig, PRESETS, Ssd};
use flashkeel_engine::{
    Arena, Completion, Lba, Leaf, Operation, Request, RequestId, Span, Stream, Submit, Time,
};

/// Table II and the 50/50 mix of §V-B: name and share of writes.
pub const WORKLOADS: [(&str, f64); 7] = [
    ("tpce", 0.924),
    ("homes", 0.904),
    ("web", 0.915),
    ("exchange", 0.094),
    ("live-maps-back-end", 0.222),
    ("build-server", 0.539),
    ("rw-mixed", 0.5),
];

/// The presets after the paper's drives.
pub const DRIVES: [&str; 7] = ["ssd-a", "ssd-b", "ssd-c", "ssd-d", "ssd-e", "ssd-f", "ssd-g"];

/// A preset's configuration.
pub fn preset(name: &str) -> DeviceConfig {
    let (_, text) = PRESETS.iter().find(|(known, _)| *known == name).expect("a preset");
    toml::from_str(text).expect("a device")
}

/// A preconditioned device.
pub fn ready(config: &DeviceConfig, seed: u64) -> Ssd {
    let mut ssd = Ssd::new(&config.validate().expect("a valid device"), seed);
    let _ = ssd.precondition(&mut |_| ControlFlow::Continue(()));
    ssd
}

/// A workload of 4 KiB random requests with hyper-exponential gaps: 97 % of
/// them 70 us in the mean, the others 5 ms; each request comes its gap after
/// its predecessor's completion. The paper gives neither sizes nor times.
pub struct Thinks {
    writes: f64,
    pages: u64,
    random: Stream,
}

impl Thinks {
    pub fn new(writes: f64, sectors: u64, seed: u64) -> Self {
        Thinks { writes, pages: sectors / 8, random: Stream::new(seed, "thinks") }
    }

    /// The next request's gap, and the request.
    pub fn next(&mut self, id: u64) -> (Span, Request) {
        let operation = if self.random.chance(self.writes) { Operation::Write } else { Operation::Read };
        let lba = Lba(self.random.below(self.pages) * 8);
        let mean_ns = if self.random.chance(0.03) { 5e6 } else { 70e3 };
        let gap = self.random.exponential(mean_ns);
        (Span(gap as u64), Request::new(RequestId(id), operation, lba, 8))
    }
}

/// Serves `count` requests from `now` on, one at a time; `see` is told before
/// each submission and after each completion. Returns the time.
pub fn serve(
    leaf: &mut dyn Leaf,
    mut now: Time,
    thinks: &mut Thinks,
    count: u64,
    see: &mut dyn FnMut(Time, &Request, Option<&Completion>),
) -> Time {
    let mut done = Vec::new();
    for id in 0..count {
        let (gap, request) = thinks.next(id);
        now += gap;
        leaf.advance(now, &mut Arena::new(), &mut done);
        see(now, &request, None);
        assert_eq!(leaf.submit(now, &request, &mut Arena::new()), Submit::Accepted);
        let submitted = now;
        now = leaf.advance_to_completion(Time(u64::MAX), &mut Arena::new(), &mut done).expect("a completion");
        see(submitted, &request, Some(&done[0]));
        done.clear();
    }
    now
}
