//! `striped`: one after the other on devices that take turns chunk by chunk (RAID 0).

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Lba, SECTOR_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ALIGNMENT, Build, Extent, Volumes};

/// Settings of `striped`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Striped {
    /// What lies on a device before the next one's turn; a multiple of 4 KiB. Of larger
    /// devices as much is used as the smallest has.
    pub chunk: Bytes,
}

impl Default for Striped {
    /// That of LVM's striped volumes.
    fn default() -> Self {
        Striped { chunk: Bytes(64 << 10) }
    }
}

impl Build for Striped {
    fn build(&self, devices: &[u64], volumes: usize) -> Result<Box<dyn Volumes>, String> {
        let chunk = self.chunk.0 / 512;
        let smallest = devices.iter().copied().min().unwrap_or(0);
        let all = smallest / chunk * chunk * devices.len() as u64;
        let sectors = all / volumes as u64 / ALIGNMENT * ALIGNMENT;
        if sectors == 0 {
            return Err(format!(
                "volumes: {volumes} volumes of chunks of {} do not fit on {} devices of {}",
                self.chunk,
                devices.len(),
                Bytes(smallest * SECTOR_BYTES)
            ));
        }
        Ok(Box::new(InTurn { devices: devices.len() as u64, chunk, sectors }))
    }

    fn validate(&self) -> Result<(), String> {
        match self.chunk.0 {
            0 => Err("chunk is zero".into()),
            bytes if bytes % (ALIGNMENT * 512) != 0 => {
                Err(format!("chunk is {}; it must be a multiple of 4KiB", self.chunk))
            }
            _ => Ok(()),
        }
    }
}

#[derive(Clone)]
struct InTurn {
    devices: u64,
    /// In sectors, as the size of a volume.
    chunk: u64,
    sectors: u64,
}

impl Volumes for InTurn {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn place(&self, volume: usize, lba: Lba) -> Extent {
        let at = volume as u64 * self.sectors + lba.0;
        let (chunk, inside) = (at / self.chunk, at % self.chunk);
        Extent {
            device: (chunk % self.devices) as usize,
            lba: Lba(chunk / self.devices * self.chunk + inside),
            run: (self.chunk - inside).min(self.sectors - lba.0),
        }
    }
}
