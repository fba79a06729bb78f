//! SSDs that are ended and found again.

use std::ops::ControlFlow;
use std::sync::Arc;

use flashkeel_device::{DeviceConfig, FillPattern, MapCacheSize, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Holds, LOGICAL_PAGE_SECTORS, Lba, Leaf, Status, Stream, Time};
use flashkeel_store::{Header, Opened, Refused, SectionShape, Store, Watch};
use serde_json::json;

use crate::film::{End, Film};
use crate::world::{PAGE_SECTORS, Subject, World, bytes};

/// Devices of the kinds that can be found again, by name.
pub const DEVICES: [&str; 27] = [
    "plain",
    "checkpoints",
    "map cache",
    "in flash",
    "fore",
    "coalescing",
    "physical",
    "logical",
    "sets, logical",
    "slc cache",
    "partitions",
    "volatile",
    "copied back",
    "sets",
    "retiring",
    "read-only",
    "physical, retiring",
    "logical, retiring",
    "wear levelling",
    "scrub",
    "one chip",
    "sixteen chips",
    "planes",
    "moved inside",
    "windows",
    "held up",
    "cold map",
];

fn policy<P: serde::de::DeserializeOwned>(value: impl Into<serde_json::Value>) -> P {
    serde_json::from_value(value.into()).expect("a policy of the axis")
}

/// A small device.
pub fn device(name: &str) -> DeviceConfig {
    let mut config = DeviceConfig::default();
    config.geometry.channels = 2;
    config.geometry.chips_per_channel = 2;
    config.geometry.planes_per_chip = 1;
    config.geometry.blocks_per_plane = 28;
    config.geometry.pages_per_block = 8;
    config.geometry.page_size = Bytes(8192);
    config.logical_capacity = Bytes(2 << 20);
    config.map_cache = MapCacheSize::All;
    config.gc.start_below = 8;
    config.gc.stop_above = 12;
    config.buffer.size = Bytes(128 << 10);
    config.precondition.pattern = FillPattern::Random;
    match name {
        "checkpoints" => {
            config.checkpoint = policy(json!({ "enabled": true, "period": "1ms", "after_pages": 50 }));
            config.geometry.blocks_per_plane = 40;
        }
        "map cache" => {
            config.map_cache = MapCacheSize::Size(Bytes(4096));
            config.logical_capacity = Bytes(6 << 20);
            config.geometry.blocks_per_plane = 64;
        }
        "in flash" => config.buffer.kind = policy("none"),
        "fore" => {
            config.buffer.kind = policy("fore");
            config.buffer.flush = vec![policy("full")];
        }
        "coalescing" => config.buffer.rewrite = policy("coalesce"),
        "physical" => {
            config.redundancy = policy(json!({ "policy": "physical", "pages": 2 }));
            config.gc.start_below = 16;
            config.gc.stop_above = 20;
            config.logical_capacity = Bytes(1 << 20);
        }
        "logical" | "sets, logical" => {
            config.geometry.channels = 4;
            config.allocation = policy("striped");
            config.redundancy = policy(json!({ "policy": "logical", "update": "gc-tolerant" }));
            config.read_path = policy("gc-tolerant");
            config.buffer.rewrite = policy("coalesce");
            config.buffer.flush = vec![policy("watermark")];
            config.sets = if name == "logical" { 1 } else { 2 };
        }
        "slc cache" => config.slc_cache = policy(json!({ "policy": "fold", "size": "128KiB" })),
        "partitions" => config.partition_bits = vec![5],
        "volatile" => config.buffer.volatile = true,
        "copied back" => {
            config.gc.movement = policy("page-copyback");
            config.gc.erasing = policy("in-pauses");
        }
        "sets" => config.sets = 2,
        "retiring" | "read-only" => {
            config.wear = policy(json!({ "policy": "rated", "rated_cycles": 3 }));
            config.retirement = policy(if name == "retiring" { "no-space" } else { "read-only" });
            config.geometry.blocks_per_plane = 16;
        }
        "physical, retiring" | "logical, retiring" => {
            config = device(&name[..name.len() - ", retiring".len()]);
            config.wear = policy(json!({ "policy": "rated", "rated_cycles": 4 }));
            config.retirement = policy(if name.starts_with("logical") { "read-only" } else { "no-space" });
        }
        "wear levelling" => {
            config.wear_levelling = policy(json!({ "enabled": true, "threshold": 2 }));
        }
        "scrub" => {
            config.scrub = policy(json!({ "enabled": true, "start_above": 40, "stop_below": 20 }));
        }
        "one chip" => {
            config.geometry.channels = 1;
            config.geometry.chips_per_channel = 1;
            config.geometry.blocks_per_plane = 112;
        }
        "sixteen chips" => {
            config.geometry.channels = 8;
            config.logical_capacity = Bytes(8 << 20);
        }
        "planes" => {
            config.geometry.planes_per_chip = 2;
            config.geometry.blocks_per_plane = 14;
        }
        "moved inside" => config.gc.movement = policy("plane-blocking"),
        "windows" => {
            config.sets = 2;
            config.window = policy(json!({
                "policy": "periodic", "deterministic": "4ms", "non_deterministic": "8ms"
            }));
        }
        "held up" => {
            config.wear = policy(json!({ "policy": "rated", "rated_cycles": 300 }));
            config.throttle = policy(json!({ "policy": "static-cap", "rate": "50MB/s", "period": "10ms" }));
            config.suspension = Some(policy(json!({ "latency": "20us" })));
            config.power = policy(json!({
                "policy": "idle-sleep", "after": "1ms", "wake": { "min": "1ms", "max": "2ms" }
            }));
        }
        "cold map" => {
            config = device("map cache");
            config.checkpoint = policy(json!({ "enabled": true, "period": "1ms", "after_pages": 50 }));
            config.geometry.blocks_per_plane = 80;
        }
        _ => {}
    }
    config
}

fn header(ssd: &Ssd) -> Header {
    let sections = ssd.media().into_iter().map(Into::into).collect();
    Header::new(ssd.sectors() * 512, sections, "", &ssd.addresses()).expect("it has room")
}

fn fresh(config: &DeviceConfig) -> Ssd {
    Ssd::new(&config.validate().expect("the test's device is valid"), 5)
}

/// The device that a disk holds.
pub fn open(film: &Film, config: &DeviceConfig) -> Result<(Ssd, Store, Time), Refused> {
    open_watched(film, config, &mut |_, _| ControlFlow::Continue(()))
}

/// The same; `watch` is told how much has been read.
pub fn open_watched(
    film: &Film,
    config: &DeviceConfig,
    watch: &mut Watch<'_>,
) -> Result<(Ssd, Store, Time), Refused> {
    let mut ssd = fresh(config);
    let opened = Store::resume(Arc::new(film.clone()), &header(&ssd), wake(film), watch)?;
    let Opened::Old(mut store, found, now) = opened else { panic!("nothing is begun on a disk") };
    ssd.recover(now, store.media(0..found.len()).into_iter().zip(found).collect());
    store.complete()?;
    Ok((ssd, store, now))
}

/// What is told that something has been synchronised, where that takes its time: it is asked.
fn wake(film: &Film) -> Option<Box<dyn Fn() + Send>> {
    film.is_slow().then(|| Box::new(|| ()) as Box<dyn Fn() + Send>)
}

/// A preconditioned SSD, and whether its disk takes its time.
pub struct Drive(pub DeviceConfig, bool);

impl Subject for Drive {
    type Device = Ssd;

    fn begin(&self) -> (Ssd, Store, Film) {
        let mut ssd = fresh(&self.0);
        let _ = ssd.precondition(&mut |_| ControlFlow::Continue(()));
        let film = if self.1 { Film::slow } else { Film::of_zeros }(header(&ssd).bytes());
        let mut store = Store::create(Arc::new(film.clone()), &header(&ssd), wake(&film), &mut |_, _| {
            ControlFlow::Continue(())
        })
        .expect("a disk that does not fail");
        let _ = ssd.keep_data_in(store.media(0..ssd.media().len()), &mut |_| ControlFlow::Continue(()));
        store.complete().expect("a disk that does not fail");
        (ssd, store, film)
    }

    fn find(&self, film: &Film) -> (Ssd, Store, Time) {
        open(film, &self.0).expect("it is fit")
    }

    fn check(&self, ssd: &Ssd) {
        ssd.check();
    }
}

impl World<Drive> {
    /// One of these settings.
    pub fn of(config: &DeviceConfig) -> World<Drive> {
        World::new(Drive(config.clone(), false))
    }

    /// The same over a disk that takes its time to synchronise.
    pub fn slow(config: &DeviceConfig) -> World<Drive> {
        World::new(Drive(config.clone(), true))
    }

    /// What there is of each page.
    pub fn holds(&self) -> Vec<Holds> {
        let lba = |page| Lba(page as u64 * LOGICAL_PAGE_SECTORS);
        (0..self.pages.len()).map(|page| self.device.holds(lba(page), PAGE_SECTORS).1).collect()
    }

    /// Where its file has records, by pages.
    pub fn records(&self) -> Vec<u64> {
        let shapes: Vec<SectionShape> = self.device.media().into_iter().map(Into::into).collect();
        let mut records = vec![4096, 2 * 4096];
        let mut end = self.sections_start();
        for (section, shape) in shapes.iter().enumerate() {
            // Between them and the pages lie those of the write buffer.
            let pages = self.store.pages_at(section);
            records.extend((end..pages.start - u64::from(shape.slots) * 4096).step_by(4096));
            end = pages.end;
        }
        records
    }

    /// Where the first record lies.
    pub fn sections_start(&self) -> u64 {
        3 * 4096
    }

    /// Effective cycles of its blocks.
    pub fn worn(&self) -> f64 {
        self.device.worn().sum()
    }

    /// Lets it do whatever it does by itself.
    pub fn rest(&mut self) {
        (0..10_000).for_each(|_| self.progress());
    }

    /// Changes a bit of some page's bytes on a copy of the disk. Returns how many pages
    /// cannot be read then; all others are as they were.
    pub fn rot(&mut self, random: &mut Stream) -> usize {
        let film = self.film.left(End::Killed, random);
        let pages = self.store.pages_at(0);
        film.flip(pages.start + random.below(pages.end - pages.start));
        let former = std::mem::replace(&mut self.film, film);
        (self.device, self.store, self.now) = self.subject.find(&self.film);
        let mut unread = 0;
        for number in 0..self.pages.len() {
            let (status, found) = self.read(number);
            if status == Status::MediaError {
                unread += 1;
            } else {
                let (version, _) = *self.pages[number].versions.last().expect("there is one");
                assert_eq!((status, found), (Status::Ok, bytes(number, version)), "page {number}");
            }
        }
        assert_eq!(self.store.damage().said.len(), unread);
        assert!(unread <= 1);
        self.film = former;
        unread
    }
}
