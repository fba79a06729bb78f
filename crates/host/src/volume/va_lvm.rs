//! `va-lvm`: the volume-aware volume manager of SSDcheck (§IV, Fig. 9). The
//! volume's number takes the place of the LBA bits that select an internal
//! volume, so that no two tenants meet in one: LBA' = high bits, number, low
//! bits.

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Lba, SECTOR_BYTES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ALIGNMENT, Build, Extent, Volumes, along};

/// Settings of `va-lvm`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VaLvm {
    /// LBA bits (of 512-byte sectors) that select an internal volume, as a
    /// diagnosis of the device finds them. `n` bits make 2ⁿ volumes; those beyond the
    /// tenants, and what the device has beyond whole periods of the highest bit, are not used.
    pub bits: Vec<u32>,
}

impl Build for VaLvm {
    fn build(&self, devices: &[u64], volumes: usize) -> Result<Box<dyn Volumes>, String> {
        let mut bits = self.bits.clone();
        bits.sort_unstable();
        let Some(&highest) = bits.last() else {
            return Err("volumes.bits is empty; name the bits that select an internal volume".into());
        };
        if let Some(bit) = bits.iter().find(|bit| !(3..48).contains(*bit)) {
            return Err(format!("volumes.bits: bit {bit} of the LBA; it must lie between 3 (4 KiB) and 47"));
        }
        if bits.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("volumes.bits names a bit twice".into());
        }
        if volumes > 1 << bits.len() {
            return Err(format!(
                "volumes.bits has {} of them, enough for {} volumes; there are {volumes} tenants",
                bits.len(),
                1u64 << bits.len()
            ));
        }
        // Only whole periods of the highest bit have all volumes in them.
        let period = 1u64 << (highest + 1);
        let devices: Vec<u64> =
            devices.iter().map(|sectors| (sectors & !(period - 1)) >> bits.len()).collect();
        let sectors: u64 = devices.iter().sum();
        if sectors < ALIGNMENT {
            let whole = Bytes(period * SECTOR_BYTES);
            return Err(format!("volumes.bits: bit {highest} repeats after {whole}, which no device holds"));
        }
        Ok(Box::new(Interleaved { devices, sectors, bits }))
    }
}

#[derive(Clone)]
struct Interleaved {
    /// Each device's part of a volume, in sectors.
    devices: Vec<u64>,
    sectors: u64,
    /// Rising.
    bits: Vec<u32>,
}

impl Volumes for Interleaved {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn place(&self, volume: usize, lba: Lba) -> Extent {
        let Extent { device, lba, run } = along(&self.devices, lba.0);
        let mut wide = lba.0;
        // From the lowest bit up, so that the bits above are where they will be.
        for (index, &bit) in self.bits.iter().enumerate() {
            let low = wide & ((1 << bit) - 1);
            wide = (wide >> bit << (bit + 1)) | (volume as u64 >> index & 1) << bit | low;
        }
        let stretch = 1u64 << self.bits[0];
        Extent { device, lba: Lba(wide), run: run.min(stretch - lba.0 % stretch) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_takes_the_place_of_the_bits() {
        let volumes = VaLvm { bits: vec![18, 17] }.build(&[1 << 24], 4).unwrap();
        assert_eq!(volumes.sectors(), 1 << 22);
        for volume in 0..4 {
            for lba in [0, 1, (1 << 17) - 1, 1 << 17, (1 << 22) - 1] {
                let place = volumes.place(volume, Lba(lba));
                assert_eq!(place.lba.0 >> 17 & 3, volume as u64);
                let (high, low) = (place.lba.0 >> 19, place.lba.0 & ((1 << 17) - 1));
                assert_eq!(high << 17 | low, lba);
                assert_eq!(place.run, (1 << 17) - lba % (1 << 17));
            }
        }
    }

    #[test]
    fn bits_apart_keep_those_between() {
        let volumes = VaLvm { bits: vec![4, 6] }.build(&[256], 4).unwrap();
        let mut seen: Vec<u64> = (0..4)
            .flat_map(|volume| (0..64).map(move |lba| (volume, lba)))
            .map(|(volume, lba)| {
                let place = volumes.place(volume, Lba(lba)).lba.0;
                assert_eq!((place >> 4 & 1) | (place >> 6 & 1) << 1, volume as u64);
                place
            })
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..256).collect::<Vec<u64>>(), "every sector belongs to one volume");
    }

    #[test]
    fn volumes_that_do_not_fit_are_refused() {
        let refusal = |bits: &[u32], volumes| {
            VaLvm { bits: bits.to_vec() }.build(&[1 << 20], volumes).err().expect("a refusal")
        };
        assert!(refusal(&[], 1).starts_with("volumes.bits is empty"));
        assert!(refusal(&[2], 1).contains("bit 2 of the LBA"));
        assert!(refusal(&[9, 9], 1).ends_with("names a bit twice"));
        assert!(refusal(&[17], 3).contains("enough for 2 volumes; there are 3 tenants"));
        assert!(refusal(&[30], 2).ends_with("bit 30 repeats after 1TiB, which no device holds"));
    }
}
