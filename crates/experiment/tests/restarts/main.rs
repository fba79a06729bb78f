//! Stacks over a store, ended at any moment and found again: what was acknowledged outlasts
//! their process, and what was flushed its host.

#[path = "../../../store/tests/restarts/film.rs"]
#[allow(dead_code, reason = "SSDs alone need the rest")]
mod film;
#[path = "../../../store/tests/restarts/world.rs"]
#[allow(dead_code, reason = "SSDs alone need the rest")]
mod world;

use std::ops::ControlFlow;
use std::sync::Arc;

use film::Film;
use flashkeel_engine::{Stream, Time};
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
const DEVICES: [&str; 14] = [
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
                    Store::create(Arc::new(film.clone()), header, None).map(Opened::New)
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
fn what_was_acknowledged_outlasts_the_process_and_what_was_flushed_its_host() {
    for device in DEVICES {
        for case in 0..3 {
            println!("{device}, case {case}");
            World::new(Document::of(device)).live(&mut Stream::new(100 * seed() + case, device), 8);
        }
    }
}
