//! One seed reproduces everything, and a saved device is the device it was.

mod support;

use flashkeel_device::{DeviceConfig, MapCacheSize, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Arena, Completion, Leaf, Operation, Request, Stream, Submit, Time};
use support::*;

/// Random reads, writes and trims of a few pages.
fn mixed(span: u64, count: u64, seed: u64) -> impl Iterator<Item = Request> {
    let mut random = Stream::new(seed, "test workload");
    (0..count).map(move |id| {
        let operation = match random.below(8) {
            0..3 => Operation::Read,
            3 => Operation::Trim,
            _ => Operation::Write,
        };
        let pages = random.between(1, 6) as u32;
        request(id, operation, random.below(span - 6), pages)
    })
}

/// Devices that together use every part that draws or remembers something.
fn devices() -> Vec<DeviceConfig> {
    let with = |change: fn(&mut DeviceConfig)| {
        let mut config = tiny();
        change(&mut config);
        config
    };
    vec![
        tiny(),
        with(|c| c.gc.victim = policy("d-choices")),
        with(|c| {
            c.geometry.blocks_per_plane = 96;
            c.logical_capacity = Bytes(12 << 20);
            c.map_cache = MapCacheSize::Size(Bytes(8192));
        }),
        with(|c| {
            c.allocation = policy("striped");
            c.gc.victim = policy("greedy");
            c.gc.invocation = policy("foreground");
            c.scheduler = policy("fair");
        }),
        with(|c| {
            c.partition_bits = vec![7];
            c.gc.victim = policy("fifo");
            c.buffer.kind = policy("none");
        }),
    ]
}

fn run(ssd: &mut Ssd) -> Vec<Completion> {
    let pages = ssd.sectors() / 8;
    closed_loop(ssd, 24, mixed(pages, 4_000, 3))
}

#[test]
fn a_seed_reproduces_a_run_and_another_does_not() {
    for config in devices() {
        let first = run(&mut ready(&config, 1));
        assert_eq!(first, run(&mut ready(&config, 1)));
        assert_ne!(first, run(&mut ready(&config, 2)));
    }
}

#[test]
fn a_restored_device_behaves_as_the_one_that_was_saved() {
    for config in devices() {
        let mut saved = ready(&config, 5);
        let mut image = Vec::new();
        saved.save(&mut image).expect("memory takes everything");
        let mut restored = Ssd::new(&config.validate().expect("a valid device"), 5);
        restored.restore(&mut image.as_slice()).expect("the image is whole");
        restored.check();
        let mut again = Vec::new();
        restored.save(&mut again).expect("memory takes everything");
        assert_eq!(image, again);
        assert_eq!(run(&mut saved), run(&mut restored));
        assert_eq!(saved.counters(), restored.counters());
        assert!(saved.erase_counts().eq(restored.erase_counts()));
    }
}

#[test]
fn a_copy_in_flight_goes_its_own_way_and_the_same_way() {
    for config in devices() {
        let mut ssd = ready(&config, 5);
        let pages = ssd.sectors() / 8;
        let mut done = Vec::new();
        for request in mixed(pages, 200, 3) {
            assert_eq!(ssd.submit(Time(0), &request, &mut Arena::new()), Submit::Accepted);
        }
        ssd.advance(Time(1_000_000), &mut Arena::new(), &mut done);
        let mut copy = ssd.clone();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        settle(&mut copy, &mut first);
        // What the copy has done is not seen here.
        settle(&mut ssd, &mut second);
        assert_eq!(done.len() + second.len(), 200);
        assert_eq!(first, second);
    }
}

#[test]
fn a_damaged_image_is_refused_or_harmless_but_never_a_panic() {
    for config in devices() {
        let mut image = Vec::new();
        ready(&config, 5).save(&mut image).expect("memory takes everything");
        let layout = config.validate().expect("a valid device");
        let restore = |bytes: &[u8]| Ssd::new(&layout, 5).restore(&mut &bytes[..]);
        for length in [0, 3, image.len() / 2, image.len() - 1] {
            restore(&image[..length]).expect_err("the image is cut short");
        }
        let mut random = Stream::new(8, "damage");
        for _ in 0..300 {
            let mut damaged = image.clone();
            let at = random.below(image.len() as u64) as usize;
            damaged[at] ^= 1 << random.below(8);
            // Some damage, such as to an erase count, cannot be told.
            let _ = restore(&damaged);
        }
    }
}
