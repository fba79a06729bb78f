//! `ssd`: an SSD. It is laid over the experiment's own device, unless it names a
//! preset.

use flashkeel_config::{ConfigError, Node, Origin, preset_layer};
pub use flashkeel_device::DeviceConfig;
use flashkeel_device::{Geometry, GeometryConfig, Interval, PRESETS, Purpose, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{LOGICAL_PAGE_BYTES, Time};
use serde_json::{Value, json};

use super::{Build, Device, HasWindows, Maker, Size, Unmade};
use crate::part::Part;

/// Puts bytes where the capacity of an SSD, whose settings stand at `key`, is written as
/// a share of its flash, as `"87.5%"`: so that a set of policies fits any geometry.
///
/// # Errors
/// If it is no share.
pub fn put_capacity(settings: &mut Node, key: &str) -> Result<(), ConfigError> {
    let Some(capacity) = settings.get("logical_capacity") else { return Ok(()) };
    let Some(written) = capacity.as_str().and_then(|text| text.trim().strip_suffix('%')) else {
        return Ok(());
    };
    let origin = capacity.origin.clone();
    let percent = written.trim().parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
    let Some(percent) = percent else {
        let message = format!("\"{written}%\" is no share of the flash; write one as \"87.5%\"");
        return Err(ConfigError::new(Some(origin), &format!("{key}.logical_capacity"), message));
    };
    // What is wrong with these is said when the whole is read.
    let geometry = settings.get("geometry").and_then(|node| node.read::<GeometryConfig>().ok());
    let geometry = geometry.and_then(|config| Geometry::resolve(&config).ok());
    let bits =
        settings.get("partition_bits").and_then(|node| node.read::<Vec<u32>>().ok()).unwrap_or_default();
    let flash = geometry.map_or(1, |geometry| geometry.units());
    let sets = settings.get("sets").and_then(|node| node.read::<u32>().ok()).map_or(1, |sets| sets.max(1));
    // Partitions are of one size, and so are sets.
    let period = bits.iter().filter(|bit| (3..48).contains(*bit)).max().map_or(1, |bit| 2u64 << (bit - 3));
    let step = period * u64::from(sets);
    let share = (flash as f64 * percent / 100.0) as u64;
    // Where not one such step fits, what asks for it is wrong, and not the share.
    let pages = if share < step { share } else { share / step * step };
    let bytes = Bytes(pages * LOGICAL_PAGE_BYTES);
    settings.merge(Node::from_json(json!({ "logical_capacity": bytes }), &origin))
}

impl Build for DeviceConfig {
    fn expand(settings: &mut Node, key: &str, ground: Option<&Node>) -> Result<(), ConfigError> {
        let mut base = match (settings.remove("preset"), ground) {
            (None, Some(device)) => device.clone(),
            (preset, _) => {
                let mut base = Node::from_json(json!(DeviceConfig::default()), &Origin::Default);
                if let Some(preset) = preset {
                    base.merge(preset_layer(&preset, &format!("{key}.preset"), PRESETS)?)?;
                }
                base
            }
        };
        base.merge(settings.clone())?;
        *settings = base;
        put_capacity(settings, key)
    }

    fn check(&self) -> Result<Size, String> {
        let layout = self.validate()?;
        let window = self.window.policy();
        let obeys = window.obeys();
        let commanded = HasWindows::Commanded { longest: window.longest() };
        Ok(Size {
            memory_bytes: layout.memory_bytes(),
            sets: self.sets,
            windows: if obeys { commanded } else { HasWindows::None },
            erase: obeys.then_some(self.timing.erase),
            reads_per_s: Some(layout.reads_per_s()),
            takes_pages: true,
            ..Size::plain(layout.sectors(), self.controller.queue_depth)
        })
    }

    fn build(&self, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        Ok(Box::new(maker.ssd(self)?))
    }
}

impl Device for Ssd {
    fn parts<'a>(&'a self, parts: &mut Vec<&'a dyn Part>) {
        parts.push(self);
    }

    fn keep_data(&mut self) {
        Ssd::keep_data(self);
    }

    fn reset_counters(&mut self, _now: Time) {
        Ssd::reset_counters(self);
    }

    fn watch(&mut self, from: Time, to: Time) {
        Ssd::watch(self, from, to);
    }
}

impl Part for Ssd {
    fn kind(&self) -> &'static str {
        "ssd"
    }

    fn report(&self) -> Value {
        json!(Ssd::report(self))
    }

    fn counters(&self) -> Vec<u64> {
        let counters = Ssd::counters(self);
        // A purpose that never came up leaves digests as they were before it existed.
        let counts = Purpose::ALL.iter().map(|&purpose| counters.operations(purpose));
        let mut values: Vec<u64> = counts.filter(|&count| count > 0).collect();
        values.extend([counters.host_pages_written, counters.host_pages_read, counters.moved_pages]);
        values
    }

    fn gauge_names(&self) -> Vec<String> {
        Ssd::gauge_names()
    }

    fn gauges(&self, values: &mut Vec<u64>) {
        Ssd::gauges(self, values);
    }

    fn watched(&self) -> &[Interval] {
        Ssd::watched(self)
    }

    fn channels(&self) -> Vec<u32> {
        Ssd::channels(self)
    }
}
