//! Small devices and the loops to exercise them.

#![allow(dead_code, reason = "each test file uses its part")]

use std::ops::ControlFlow;

use flashkeel_config::{ConfigError, Node, Origin};
use flashkeel_device::{
    BlockId, Cycle, Delay, DeviceConfig, FillPattern, Found, Lpn, MapCacheSize, Medium, Page,
    Place as Written, Ppn, Ssd,
};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{
    Answer, Arena, Command, Completion, Lba, Leaf, Operation, Place, Refusal, Request, RequestId, Stream,
    Submit, Time,
};

/// The controller's delays in devices made by [`exact`], in nanoseconds.
pub const LOOKUP: u64 = 700;
pub const GENERATION: u64 = 1_500;
pub const BACKGROUND: u64 = 2_000;
/// Operation times of the default device, in nanoseconds.
pub const READ: u64 = 50_000;
pub const PROGRAM: u64 = 500_000;
pub const ERASE: u64 = 5_000_000;
/// Channel time of a 4 KiB unit at 400 MB/s, in nanoseconds.
pub const UNIT: u64 = 10_240;

/// A device of four chips on two channels with little of everything.
pub fn tiny() -> DeviceConfig {
    let mut config = DeviceConfig::default();
    config.geometry.channels = 2;
    config.geometry.chips_per_channel = 2;
    config.geometry.planes_per_chip = 1;
    config.geometry.blocks_per_plane = 24;
    config.geometry.pages_per_block = 8;
    config.logical_capacity = Bytes(4 << 20);
    config.map_cache = MapCacheSize::All;
    config.gc.start_below = 8;
    config.gc.stop_above = 12;
    config.buffer.size = Bytes(256 << 10);
    config
}

/// A tiny device without randomness in its delays, written once from first to
/// last page: flash page n of the logical space lies on the nth chip in
/// rotation over the channels.
pub fn exact() -> DeviceConfig {
    let mut config = tiny();
    config.controller.lookup = Delay::between_ns(LOOKUP, LOOKUP);
    config.controller.host_generation = Delay::between_ns(GENERATION, GENERATION);
    config.controller.background_generation = Delay::between_ns(BACKGROUND, BACKGROUND);
    config.precondition.pattern = FillPattern::Sequential;
    config
}

/// Like [`exact`], with a single chip of `blocks` blocks.
pub fn exact_chip(blocks: u32) -> DeviceConfig {
    let mut config = exact();
    config.geometry.channels = 1;
    config.geometry.chips_per_channel = 1;
    config.geometry.blocks_per_plane = blocks;
    config
}

/// Builds and preconditions a device.
pub fn ready(config: &DeviceConfig, seed: u64) -> Ssd {
    let layout = config.validate().expect("the test's device is valid");
    let mut ssd = Ssd::new(&layout, seed);
    if config.precondition.pattern != FillPattern::None {
        let _ = ssd.precondition(&mut |_| ControlFlow::Continue(()));
    }
    ssd
}

/// The policy of an axis by name, or with its settings.
pub fn policy<P: serde::de::DeserializeOwned>(value: impl Into<serde_json::Value>) -> P {
    serde_json::from_value(value.into()).expect("a policy of the axis")
}

/// A device as a document has it.
///
/// # Errors
/// As a user sees them: the key and what is wrong with it.
pub fn read(device: serde_json::Value) -> Result<DeviceConfig, String> {
    let device = Node::from_json(device, &Origin::Default).read();
    device.map_err(|error: ConfigError| error.to_string())
}

/// The round of `make soak`, which tries other cases in each; 0 in any other test.
pub fn soak_round() -> u64 {
    std::env::var("FLASHKEEL_SOAK_ROUND").map_or(0, |round| round.parse().expect("a number"))
}

/// A request of whole 4 KiB pages.
pub fn request(id: u64, operation: Operation, page: u64, pages: u32) -> Request {
    Request::new(RequestId(id), operation, Lba(page * 8), pages * 8)
}

/// Submits each request at its time, in nanoseconds; returns the completions
/// by request, after everything has settled.
pub fn timed(ssd: &mut Ssd, requests: &[(u64, Operation, u64, u32)]) -> Vec<Completion> {
    let mut all = Vec::new();
    for (id, &(at, operation, page, pages)) in requests.iter().enumerate() {
        ssd.advance(Time(at), &mut Arena::new(), &mut all);
        assert_eq!(
            ssd.submit(Time(at), &request(id as u64, operation, page, pages), &mut Arena::new()),
            Submit::Accepted
        );
    }
    settle(ssd, &mut all);
    assert_eq!(all.len(), requests.len(), "every request completes exactly once");
    all.sort_by_key(|completion| completion.id);
    all
}

/// Runs the device until nothing more happens by itself.
pub fn settle(ssd: &mut Ssd, completions: &mut Vec<Completion>) {
    let mut events = 0;
    while let Some(next) = ssd.next_event().time() {
        ssd.advance(next, &mut Arena::new(), completions);
        events += 1;
        assert!(events < 5_000_000, "the device never comes to rest");
    }
}

/// Serves `requests` with `depth` of them outstanding; returns completions in
/// order. Panics if the device stops making progress.
pub fn closed_loop(
    ssd: &mut Ssd,
    depth: usize,
    requests: impl IntoIterator<Item = Request>,
) -> Vec<Completion> {
    let mut all = Vec::new();
    closed_loop_with(ssd, depth, requests, |_, completion| all.push(*completion));
    all
}

/// Like [`closed_loop`], but hands each completion, and the device, to `see`.
pub fn closed_loop_with(
    ssd: &mut Ssd,
    depth: usize,
    requests: impl IntoIterator<Item = Request>,
    mut see: impl FnMut(&Ssd, &Completion),
) {
    let mut requests = requests.into_iter();
    let (mut new, mut flying, mut now, mut idle) = (Vec::new(), 0, Time::ZERO, 0);
    loop {
        while flying < depth {
            let Some(request) = requests.next() else { break };
            assert_eq!(ssd.submit(now, &request, &mut Arena::new()), Submit::Accepted);
            flying += 1;
        }
        if flying == 0 {
            return;
        }
        now = ssd.next_event().time().expect("a device with requests inside has something to do");
        ssd.advance(now, &mut Arena::new(), &mut new);
        idle = if new.is_empty() { idle + 1 } else { 0 };
        assert!(idle < 1_000_000, "no request completes any more");
        flying -= new.len();
        for completion in new.drain(..) {
            see(ssd, &completion);
        }
    }
}

/// Submits one of `requests` every `gap_ns`; hands each completion, and the
/// device, to `see`.
pub fn open_loop_with(
    ssd: &mut Ssd,
    gap_ns: u64,
    requests: impl IntoIterator<Item = Request>,
    mut see: impl FnMut(&Ssd, &Completion),
) {
    let mut new = Vec::new();
    for (index, request) in requests.into_iter().enumerate() {
        let now = Time(index as u64 * gap_ns);
        ssd.advance(now, &mut Arena::new(), &mut new);
        assert_eq!(ssd.submit(now, &request, &mut Arena::new()), Submit::Accepted);
        for completion in new.drain(..) {
            see(ssd, &completion);
        }
    }
    settle(ssd, &mut new);
}

/// Uniform random requests of one page each.
pub fn random_pages(operation: Operation, span: u64, count: u64, seed: u64) -> impl Iterator<Item = Request> {
    let mut random = Stream::new(seed, "test workload");
    (0..count).map(move |id| request(id, operation, random.below(span), 1))
}

/// Tells a device something.
pub fn tell(ssd: &mut Ssd, now: Time, command: Command) -> Result<Answer, Refusal> {
    ssd.command(now, &Place::default(), &command, &mut Arena::new())
}

/// A reading of its state; `None` if it does not tell that.
pub fn reading(ssd: &mut Ssd, now: Time, name: &str) -> Option<u64> {
    let Ok(Answer::State(readings)) = tell(ssd, now, Command::State) else { panic!("no state") };
    readings.into_iter().find(|(other, _)| other == name).map(|(_, value)| value)
}

/// A reading that it tells.
pub fn state(ssd: &mut Ssd, now: Time, name: &str) -> u64 {
    reading(ssd, now, name).expect("a reading")
}

/// A medium that forgets everything.
struct Forgetful;

impl Medium for Forgetful {
    fn read(&self, _ppn: Ppn) -> Option<Page> {
        Some([0; 4096])
    }

    fn matches(&self, _ppn: Ppn, _page: &Page) -> bool {
        true
    }

    fn program(&mut self, _ppn: Ppn, _place: Written, _page: Option<&Page>) {}

    fn copy(&mut self, _from: Ppn, _to: Ppn, _place: Written) {}

    fn hold(&mut self, _entry: u32, _place: Written, _page: Option<&Page>) {}

    fn release(&mut self, _entry: u32) {}

    fn trim(&mut self, _lpn: Lpn, _sequence: u64) {}

    fn erase(&mut self, _block: BlockId, _cycle: Cycle) {}
}

/// A device of one partition as a restart finds it: nothing in flash, so many pages in its
/// buffer, and its blocks after what `cycle` says of each.
pub fn restarted(config: &DeviceConfig, buffered: u32, cycle: impl Fn(usize) -> Cycle) -> Ssd {
    let mut ssd = Ssd::new(&config.validate().expect("the test's device is valid"), 1);
    let shape = ssd.media()[0];
    let blocks = (shape.ppns / shape.units_per_block) as usize;
    let held = |page| (Written { lpn: Lpn(page), sequence: 1 + u64::from(page) }, Some(Box::new([7; 4096])));
    let found = Found {
        places: vec![None; shape.ppns as usize],
        held: (0..buffered).map(held).collect(),
        cycles: (0..blocks).map(cycle).collect(),
        ..Found::default()
    };
    ssd.recover(Time::ZERO, vec![(Box::new(Forgetful), found)]);
    ssd
}
