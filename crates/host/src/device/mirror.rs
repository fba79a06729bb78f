//! `mirror`: two or more devices with the same data, of everything or of ranges.

use flashkeel_config::{ConfigError, Kind, Node};
use flashkeel_engine::{FoundPages, Leaf, Limits, SECTOR_BYTES, Stack, Time, units::Bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Build, Composed, Contents, Device, DeviceKind, HasWindows, Held, Maker, Size, Unmade};
use crate::mirror::acknowledge::AcknowledgeConfig;
use crate::mirror::hedge::HedgeConfig;
use crate::mirror::read::ReadConfig;
use crate::mirror::windows::WindowsConfig;
use crate::mirror::{MOST, Mirror, MirrorParts, RangeConfig, ResyncConfig};
use crate::part::Part;
use crate::predictor::PredictorConfig;

/// Devices of one size with the same data, as one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MirrorConfig {
    /// What the copies are on, of any kind and of one size: a copy on each NVM set of each
    /// device, two or more in all.
    pub devices: Vec<DeviceKind>,
    /// Devices of the same size that stand in for copies that are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spares: Vec<DeviceKind>,
    /// Addresses with copies; empty for all. The rest has one place each, so that
    /// the mirror holds more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<RangeConfig>,
    /// Which copy a read goes to.
    #[serde(default)]
    pub read: ReadConfig,
    /// When a second copy is asked for what the first has not given yet.
    #[serde(default)]
    pub hedge: HedgeConfig,
    /// When a write is acknowledged.
    #[serde(default)]
    pub acknowledge: AcknowledgeConfig,
    /// How copies are made to agree after failures and power cuts.
    #[serde(default)]
    pub resync: ResyncConfig,
    /// Which copy does its background work when; the others are in deterministic
    /// windows.
    #[serde(default)]
    pub windows: WindowsConfig,
    /// Who predicts the copies, for a read choice that asks; `oracle` only where no windows
    /// are commanded.
    #[serde(default)]
    pub predictor: PredictorConfig,
}

impl MirrorConfig {
    /// Copies and spares, in the order in which they are made, each with its key.
    pub fn all(&self) -> impl Iterator<Item = (String, &DeviceKind)> {
        let keyed = |key: &'static str, devices: &'_ [DeviceKind]| {
            (0..devices.len()).map(move |index| format!("{key}.{index}")).collect::<Vec<_>>()
        };
        let keys = keyed("devices", &self.devices).into_iter().chain(keyed("spares", &self.spares));
        keys.zip(self.devices.iter().chain(&self.spares))
    }
}

impl Build for MirrorConfig {
    fn expand(settings: &mut Node, key: &str, ground: Option<&Node>) -> Result<(), ConfigError> {
        for list in ["devices", "spares"] {
            let Some(Node { kind: Kind::Array(devices), .. }) = settings.get_mut(list) else { continue };
            for (index, device) in devices.iter_mut().enumerate() {
                DeviceKind::expand(device, &format!("{key}.{list}.{index}"), ground)?;
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<Size, String> {
        if !self.ranges.is_empty() && !self.spares.is_empty() {
            return Err(
                "spares: with ranges there are none, because what has no copy could not be rebuilt".into()
            );
        }
        self.resync.validate()?;
        let mut sizes: Vec<Size> = Vec::new();
        for (key, device) in self.all() {
            let size = device.check().map_err(|message| format!("{key}.{message}"))?;
            let first = sizes.first().unwrap_or(&size);
            let first = first.sectors / u64::from(first.sets);
            if size.sectors / u64::from(size.sets) != first {
                return Err(format!(
                    "{key}: it holds {}, but devices.0 holds {}; those of a mirror are of one size",
                    Bytes(size.sectors / u64::from(size.sets) * SECTOR_BYTES),
                    Bytes(first * SECTOR_BYTES)
                ));
            }
            let is_commanded = matches!(size.windows, HasWindows::Commanded { .. });
            if self.windows.policy().build().is_some() && !is_commanded {
                return Err(format!(
                    "{key}: windows is {:?}, but its windows cannot be commanded; an SSD's can with window = \
                     \"commanded\", those of any device as {{ windowed = {{ device = … }} }}",
                    self.windows.name()
                ));
            }
            size.gets_all_reads(&key)?;
            if let Some(turns) = self.windows.policy().build() {
                size.has_time_to_erase("windows.rest", turns.rest())?;
            }
            sizes.push(size);
        }
        let on = |sizes: &[Size]| sizes.iter().map(|size| size.sets as usize).sum::<usize>();
        let (copies, all) = (on(&sizes[..self.devices.len()]), on(&sizes));
        if copies < 2 {
            return Err(format!("devices: there are {copies}; a mirror needs 2 or more"));
        }
        if all > MOST {
            return Err(format!("devices: {all} with the spares; a mirror has {MOST} at most"));
        }
        let read = self.read.policy();
        if read.needs_windows() && self.windows.policy().build().is_none() {
            return Err(format!("read is {:?}, but windows is {:?}", self.read.name(), self.windows.name()));
        }
        if read.writes_again() && self.windows.policy().build().is_some() {
            return Err(format!(
                "read is {:?}, which has no room in windows, but windows is {:?}",
                self.read.name(),
                self.windows.name()
            ));
        }
        if read.needs_predictor()
            && matches!(self.predictor, PredictorConfig::Oracle(_))
            && self.windows.policy().build().is_some()
        {
            return Err(format!(
                "predictor is {:?}, whose copies are not told when their windows begin, but windows is {:?}",
                self.predictor.name(),
                self.windows.name()
            ));
        }
        if read.needs_predictor() && sizes.iter().any(|size| size.sets > 1) {
            return Err(format!("read is {:?}, which knows devices, and no sets of one", self.read.name()));
        }
        // What has one place only is lost with that.
        let lost = |is_lost: fn(&Size) -> bool| match self.ranges[..] {
            [] => sizes.iter().all(is_lost),
            _ => sizes.iter().any(is_lost),
        };
        Ok(Size {
            sectors: Mirror::sectors(&self.ranges, sizes[0].sectors / u64::from(sizes[0].sets), copies)?,
            is_volatile: lost(|size| size.is_volatile),
            in_memory: lost(|size| size.in_memory),
            takes_pages: true,
            windows: match self.windows.policy().build() {
                Some(turns) if read.needs_windows() => HasWindows::InTurn(turns.rest()),
                _ => HasWindows::None,
            },
            needs_drives: !self.ranges.is_empty() && sizes.iter().any(|size| size.needs_drives),
            ..Size::over(&sizes)
        })
    }

    fn within(&self) -> Vec<(String, &DeviceKind)> {
        self.all().collect()
    }

    fn build(&self, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        // Before they are made: a server may have one client at a time.
        let sizes = self.all().map(|(_, device)| device.check()).collect::<Result<Vec<_>, _>>()?;
        let devices = self.all().map(|(_, device)| device.build(maker)).collect::<Result<Vec<_>, _>>()?;
        let limits: Vec<Limits> = devices.iter().map(|device| device.limits()).collect();
        let sets: Vec<u32> = sizes.iter().map(|size| size.sets).collect();
        let read = self.read.policy();
        let asked = if read.needs_predictor() { &devices[..] } else { &[] };
        // A mirror gives its devices as much as comes.
        let predictors = asked.iter().map(|device| maker.predictor(&self.predictor, &**device, usize::MAX));
        let parts = MirrorParts {
            reader: read.build(predictors.collect::<Result<_, _>>()?),
            hedge: self.hedge.policy().build(),
            acknowledge: self.acknowledge.clone(),
            ranges: &self.ranges,
            resync: &self.resync,
            turns: self.windows.policy().build(),
            sets: &sets,
        };
        let mut mirror = Mirror::new(parts, &limits, self.devices.len())?;
        let found = match maker.contents() {
            Contents::Kept(kept) => {
                mirror.keep_in(kept.keeper);
                kept.found
            }
            Contents::None | Contents::InMemory => FoundPages::default(),
        };
        if let Some(now) = maker.found() {
            mirror.doubt(now, found);
        }
        Ok(Box::new(Stack::new(mirror, devices)))
    }
}

impl Composed for Mirror {
    fn part(&self) -> Option<&dyn Part> {
        Some(self)
    }

    fn keep_data(&mut self) {
        Mirror::keep_data(self);
    }

    fn reset_counters(&mut self, now: Time) {
        Mirror::reset_counters(self, now);
    }

    fn held(&self) -> Held {
        Held { requests: self.waiting() as u64, ..Held::default() }
    }
}

impl Part for Mirror {
    fn kind(&self) -> &'static str {
        "mirror"
    }

    fn report(&self) -> Value {
        json!(Mirror::report(self))
    }

    fn counters(&self) -> Vec<u64> {
        let report = Mirror::report(self);
        vec![report.reads, report.hedged_reads, report.changes, report.resynced_bytes]
    }

    fn gauge_names(&self) -> Vec<String> {
        vec!["stale_pages".into()]
    }

    fn gauges(&self, values: &mut Vec<u64>) {
        values.clear();
        values.push(self.stale_pairs());
    }
}
