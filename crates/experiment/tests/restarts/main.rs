//! Stacks over a store, ended at any moment and found again: what was acknowledged outlasts
//! their process, and what was flushed its host.

#[path = "../../../store/tests/restarts/film.rs"]
#[allow(dead_code, reason = "SSDs alone need the rest")]
mod film;
#[path = "../../../store/tests/restarts/lives.rs"]
#[allow(dead_code, reason = "SSDs alone need the rest")]
mod lives;
#[path = "../../../store/tests/restarts/world.rs"]
#[allow(dead_code, reason = "SSDs alone need the rest")]
mod world;

use std::ops::ControlFlow;
use std::sync::Arc;

use film::{End, Film};
use flashkeel_engine::{Holds, Lba, Leaf, Operation, Stream, Time};
use flashkeel_experiment::{Stored, Target, resolve_target};
use flashkeel_host::device::Device;
use flashkeel_store::{Opened, Store};
use world::{Subject, World};

const SMALL: &str = r#"
[device]
logical_capacity = "2MiB"
map_cache = "all"
gc = { start_below = 8, stop_above = 12 }
buffer = { size = "128KiB" }
precondition.pattern = "none"
geometry = { channels = 2, chips_per_channel = 1, planes_per_chip = 1, blocks_per_plane = 48, pages_per_block = 8, page_size = "8KiB" }
"#;

/// Devices of which each keeps something in a way of its own.
const DEVICES: [&str; 23] = [
    r#"nvm = { capacity = "1MiB" }"#,
    r#"tier = { placement = "write-back", writeback = { policy = "periodic", period = "300us", batch = "32KiB" }, upper.nvm.capacity = "256KiB", lower.ssd = {} }"#,
    r#"tier = { placement = "write-back", eviction = "lru", upper.nvm.capacity = "128KiB", lower.ssd = {} }"#,
    r#"tier = { preset = "write-back", journal = true, upper.nvm.capacity = "256KiB", lower.ssd = {} }"#,
    r#"tier = { placement = "small-large", writeback = { policy = "periodic", period = "300us", batch = "32KiB" }, upper.nvm.capacity = "256KiB", lower.ssd = {} }"#,
    r#"tier = { placement = "small-large", journal = true, eviction = "lru", fills = true, admission = "all", writeback = { policy = "periodic", period = "300us", batch = "32KiB" }, upper.nvm.capacity = "256KiB", lower.ssd = {} }"#,
    r#"tier = { placement = "small-large", writeback = "opportunistic", upper.ssd = { logical_capacity = "512KiB", geometry.blocks_per_plane = 24 }, lower.ssd.buffer.volatile = true }"#,
    r#"tier = { preset = "oc", upper.dram.capacity = "64KiB", lower.tier = { upper.nvm.capacity = "256KiB", lower.ssd = {} } }"#,
    r#"tier = { preset = "nlcwip", upper.dram.capacity = "64KiB", lower.tier = { upper.nvm.capacity = "256KiB", lower.ssd = {} } }"#,
    r#"tier = { placement = "small-large", upper.mirror.devices = [{ nvm.capacity = "128KiB" }, { nvm.capacity = "128KiB" }], lower.mirror.devices = [{ ssd = {} }, { ssd = {} }] }"#,
    r#"mirror = { devices = [{ ssd = {} }, { ssd.geometry.channels = 4 }] }"#,
    r#"mirror = { devices = [{ ssd = {} }, { ssd.geometry.channels = 4 }], acknowledge = "any" }"#,
    r#"mirror = { devices = [{ ssd = {} }, { ssd.buffer.volatile = true }, { nvm.capacity = "2MiB" }], acknowledge = "any" }"#,
    r#"mirror = { devices = [{ ssd = { wear = { policy = "rated", rated_cycles = 3 }, retirement = "no-space" } }, { ssd = {} }], acknowledge = "any" }"#,
    r#"network.device.ssd = {}"#,
    r#"stack = { volumes = { policy = "striped", chunk = "8KiB" }, scheduler = "deadline", devices = [{ ssd = {} }, { network.device.ssd.buffer.volatile = true }, { ssd.sets = 2 }] }"#,
    r#"mirror = { devices = [{ network.device.ssd = {} }, { ssd = {} }], acknowledge = "any", ranges = [{ from = "512KiB", length = "256KiB" }, { from = "1MiB", length = "64KiB" }] }"#,
    r#"mirror = { devices = [{ ssd = {} }, { ssd = {} }, { ssd = {} }], spares = [{ ssd = {} }], acknowledge = "any", resync = { region = "64KiB" } }"#,
    r#"mirror = { devices = [{ ssd = { sets = 2, geometry.blocks_per_plane = 96 } }], acknowledge = "any" }"#,
    r#"mirror = { devices = [{ tier = { preset = "write-back", journal = true, upper.nvm.capacity = "256KiB", lower.ssd = {} } }, { network.device.ssd.buffer.volatile = true }], acknowledge = "any" }"#,
    r#"tier = { placement = "small-large", eviction = "lru", fills = true, admission = "all", upper.nvm.capacity = "256KiB", lower.mirror = { devices = [{ ssd.buffer.volatile = true }, { network.device.ssd = {} }], acknowledge = "any" } }"#,
    r#"tier = { placement = "write-back", journal = true, eviction = "lru", upper.network.device.nvm = { capacity = "256KiB", atomic_unit = "512B" }, lower.stack = { volumes = { policy = "striped", chunk = "8KiB" }, devices = [{ ssd.logical_capacity = "1MiB" }, { ssd = { logical_capacity = "1MiB", buffer.volatile = true } }] } }"#,
    r#"mirror = { devices = [{ windowed.device.ssd = {} }, { windowed.device.ssd.buffer.volatile = true }], windows = "alternate" }"#,
];

/// A stack of one device.
struct Document(Target);

impl Document {
    fn of(device: &str) -> Document {
        let document = format!("{SMALL}[[stack.devices]]\n{device}\n");
        Document(resolve_target(&document, "stack.toml", &[]).expect("a valid document"))
    }

    fn stored(&self, film: &mut Option<Film>) -> Stored {
        let progress = &mut |_: &'static str, _| ControlFlow::Continue(());
        let stored = self.0.stored_in(
            "the film",
            1,
            |header, watch| match film {
                Some(film) => Store::resume(Arc::new(film.clone()), header, None, watch),
                None => {
                    let film = &*film.insert(Film::of_zeros(header.bytes()));
                    Store::create(Arc::new(film.clone()), header, None, watch).map(Opened::New)
                }
            },
            None,
            progress,
        );
        stored.unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Subject for Document {
    type Device = Box<dyn Device>;

    fn begin(&self) -> (Box<dyn Device>, Store, Film) {
        let mut film = None;
        let Stored { device, store, .. } = self.stored(&mut film);
        (device, store, film.expect("it was made"))
    }

    fn find(&self, film: &Film) -> (Box<dyn Device>, Store, Time) {
        let Stored { device, store, now } = self.stored(&mut Some(film.clone()));
        (device, store, now)
    }
}

/// Rounds of `make soak` try other seeds.
fn seed() -> u64 {
    std::env::var("FLASHKEEL_SOAK_ROUND").ok().and_then(|round| round.parse().ok()).unwrap_or(0)
}

#[test]
fn whatever_rots_costs_no_more_than_itself() {
    let lost = DEVICES.map(|device| {
        println!("{device}");
        World::new(Document::of(device)).live(&mut Stream::new(100 * seed(), device), 8, true).1
    });
    assert!(lost.iter().filter(|lost| **lost > 0).count() > DEVICES.len() / 2, "{lost:?}");
}

#[test]
fn what_is_damaged_outside_flash_cannot_be_read_until_it_is_written_or_trimmed() {
    for device in DEVICES {
        println!("{device}");
        let mut world = World::new(Document::of(device));
        let random = &mut Stream::new(1, device);
        let pages = world.pages().min(24);
        for _ in 0..2 {
            (0..pages).for_each(|page| world.submit(Operation::Write, page..page + 1, false));
        }
        world.submit(Operation::Write, 3..6, false);
        world.drain();
        world.damage(3..6, random);
        assert!(world.store.damage().said.len() >= 3);
        (6..pages).for_each(|page| world.submit(Operation::Write, page..page + 1, false));
        world.submit(Operation::Read, 2..4, false);
        world.submit(Operation::Flush, 0..0, false);
        world.drain();
        for end in [End::Killed, End::PowerLost, End::Killed] {
            assert_eq!(world.lost(), [3, 4, 5]);
            (3..6).for_each(|page| assert_eq!(world.device.holds(Lba(page * 8), 8), (8, Holds::Data)));
            world.restart(end, random);
        }
        world.submit(Operation::Write, 3..4, true);
        world.submit(Operation::Trim, 4..5, true);
        world.submit(Operation::WriteZeroes, 5..6, true);
        world.submit(Operation::Flush, 0..0, false);
        world.drain();
        world.restart(End::PowerLost, random);
        assert!(world.lost().is_empty() && world.store.damage().said.is_empty());
    }
}

#[test]
fn what_is_damaged_on_one_copy_of_a_mirror_the_other_has() {
    let device = r#"mirror = { devices = [{ nvm.capacity = "256KiB" }, { nvm.capacity = "256KiB" }] }"#;
    let mut world = World::new(Document::of(device));
    world.submit(Operation::Write, 0..8, false);
    world.drain();
    for copy in 0..2 {
        world.close();
        let places = world.film().places(&world::bytes(3, 1));
        assert_eq!(places.len(), 2, "one on each");
        world.film().flip(places[copy]);
        world.restart(End::Killed, &mut Stream::new(1, device));
        assert_eq!(world.store.damage().said.len(), 1);
        // The first copy gets it again before the second is damaged.
        (0..100).for_each(|_| world.progress());
    }
}

/// Copies differ in what was never flushed, are made to agree, differ once more, and then the one
/// that counts is damaged.
#[test]
fn what_has_been_read_of_a_mirror_is_not_older_the_next_time() {
    let nvm = r#"{ nvm.capacity = "2MiB" }"#;
    for copies in [[nvm, nvm], ["{ ssd = {} }", "{ ssd = {} }"], [nvm, "{ ssd.buffer.volatile = true }"]] {
        let device = format!("mirror = {{ devices = [{}] }}", copies.join(", "));
        for case in 0..6 {
            let random = &mut Stream::new(case, &device);
            let mut world = World::new(Document::of(&device));
            for is_flushed in [true, false] {
                (0..16).for_each(|page| world.submit(Operation::Write, page..page + 1, false));
                if is_flushed {
                    world.submit(Operation::Flush, 0..0, false);
                }
                world.drain();
            }
            world.restart(End::PowerLost, random);
            let film = world.film.left(End::PowerLost, random);
            for (number, page) in world.pages[..16].iter_mut().enumerate() {
                let version = page.newest();
                film.flip(film.places(&world::bytes(number, version))[0]);
                page.rotten = Some(version);
            }
            world.open(film);
            world.find();
        }
    }
}

/// Once what the first copy had was found, which had worn out before.
#[test]
fn what_only_one_copy_of_a_mirror_has_is_found_where_none_takes_anything_any_more() {
    let worn = |cycles| {
        format!(
            r#"{{ ssd = {{ wear = {{ policy = "rated", rated_cycles = {cycles} }}, retirement = "read-only" }} }}"#
        )
    };
    for acknowledge in ["all", "any"] {
        let device =
            format!(r#"mirror = {{ devices = [{}, {}], acknowledge = "{acknowledge}" }}"#, worn(3), worn(6));
        let mut world = World::new(Document::of(&device));
        let random = &mut Stream::new(1, &device);
        let refused = |world: &World<Document>| world.pages.iter().any(|page| !page.or.is_empty());
        while !refused(&world) {
            let first = random.below(world.pages() as u64 / 8) as usize * 8;
            world.submit(Operation::Write, first..first + 8, false);
        }
        world.submit(Operation::Flush, 0..0, false);
        world.drain();
        for end in [End::Killed, End::PowerLost] {
            world.restart(end, random);
            assert!(world.lost().is_empty());
        }
    }
}

#[test]
fn a_tier_goes_on_where_all_is_damaged_that_only_its_upper_had() {
    for device in &DEVICES[2..4] {
        let mut world = World::new(Document::of(device));
        let random = &mut Stream::new(1, device);
        (0..30).for_each(|page| world.submit(Operation::Write, page..page + 1, false));
        world.drain();
        world.damage(0..30, random);
        for end in [End::Killed, End::PowerLost] {
            for _ in 0..4 {
                (30..world.pages()).for_each(|page| world.submit(Operation::Write, page..page + 1, false));
            }
            world.submit(Operation::Flush, 0..0, false);
            world.drain();
            world.restart(end, random);
            assert_eq!(world.lost().len(), 30);
        }
        world.submit(Operation::Write, 0..30, true);
        world.drain();
        world.restart(End::PowerLost, random);
        assert!(world.lost().is_empty());
    }
}

#[test]
fn what_was_acknowledged_outlasts_the_process_and_what_was_flushed_its_host() {
    for device in DEVICES {
        for case in 0..3 {
            println!("{device}, case {case}");
            World::new(Document::of(device)).live(&mut Stream::new(100 * seed() + case, device), 8, false);
        }
    }
}

#[test]
fn so_it_does_however_soon_the_next_process_ends() {
    for device in DEVICES {
        for case in 0..4 {
            println!("{device}, case {case}");
            let seed = 100 * seed() + case;
            World::new(Document::of(device)).live_briefly(&mut Stream::new(seed, device), 20, case % 2 == 0);
        }
    }
}
