//! `linear`: one after the other on the devices laid end to end, as a plain
//! logical volume manager has them.

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Lba, SECTOR_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ALIGNMENT, Build, Extent, Volumes, along};

/// Settings of `linear`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Linear {}

impl Build for Linear {
    fn build(&self, devices: &[u64], volumes: usize) -> Result<Box<dyn Volumes>, String> {
        let all: u64 = devices.iter().sum();
        let sectors = all / volumes as u64 / ALIGNMENT * ALIGNMENT;
        if sectors == 0 {
            return Err(format!("volumes: {volumes} volumes do not fit on {}", Bytes(all * SECTOR_BYTES)));
        }
        Ok(Box::new(EndToEnd { devices: devices.to_vec(), sectors }))
    }
}

#[derive(Clone)]
struct EndToEnd {
    devices: Vec<u64>,
    sectors: u64,
}

impl Volumes for EndToEnd {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn is_the_device(&self, sectors: u64) -> bool {
        self.devices == [sectors] && self.sectors == sectors
    }

    fn place(&self, volume: usize, lba: Lba) -> Extent {
        let place = along(&self.devices, volume as u64 * self.sectors + lba.0);
        Extent { run: place.run.min(self.sectors - lba.0), ..place }
    }
}
