//! The volume manager axis: where each tenant's volume lies on the devices.
//!
//! One file per policy. To add one: write the file, add its line to the list.

mod stage;

use dyn_clone::DynClone;
use flashkeel_engine::{Lba, Request, Time, Wake};

pub use stage::VolumeManager;

flashkeel_config::axis! {
    /// Where each tenant's volume lies on the devices.
    pub enum VolumeConfig as "volume manager": Build {
        /// One after the other, all of one size.
        Linear(Linear) in linear = "linear",
        /// Each in internal volumes of the devices of its own (SSDcheck's
        /// VA-LVM).
        VaLvm(VaLvm) in va_lvm = "va-lvm",
        /// One after the other on devices that take turns chunk by chunk (RAID 0).
        Striped(Striped) in striped = "striped",
    }
}

impl Default for VolumeConfig {
    fn default() -> Self {
        VolumeConfig::Linear(linear::Linear::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy for devices of these sizes in sectors and for a number of
    /// volumes.
    ///
    /// # Errors
    /// A sentence naming the key and what does not fit.
    fn build(&self, devices: &[u64], volumes: usize) -> Result<Box<dyn Volumes>, String>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Where volumes lie.
pub trait Volumes: DynClone + Send {
    /// Size of every volume in sectors.
    fn sectors(&self) -> u64;

    /// Where sector `lba` of `volume` lies.
    fn place(&self, volume: usize, lba: Lba) -> Extent;

    /// Whether there is one volume, and that is the only device, of so many
    /// sectors, and nothing is held.
    fn is_the_device(&self, _sectors: u64) -> bool {
        false
    }

    /// Whether a request of a volume, the oldest of it that waits, may go to the devices
    /// now: a budget or a pace. One that may not is asked about again after every timer
    /// and completion. Called once more for none that has gone.
    fn lets(&mut self, _now: Time, _request: &Request) -> bool {
        true
    }

    /// When something changes by itself, if ever.
    fn next_event(&self) -> Wake {
        Wake::NEVER
    }

    /// Runs every timer due at or before `now`.
    fn advance(&mut self, _now: Time) {}
}

dyn_clone::clone_trait_object!(Volumes);

/// A place on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Index of the device.
    pub device: usize,
    /// Its sector.
    pub lba: Lba,
    /// Sectors from there on that follow one another in the volume too, at
    /// least 1.
    pub run: u64,
}

/// Volumes begin and end at multiples of this, in sectors: 4 KiB.
const ALIGNMENT: u64 = 8;

/// The place on devices laid end to end; `sizes` in sectors.
fn along(sizes: &[u64], mut lba: u64) -> Extent {
    for (device, &size) in sizes.iter().enumerate() {
        if lba < size {
            return Extent { device, lba: Lba(lba), run: size - lba };
        }
        lba -= size;
    }
    unreachable!("a volume lies on its devices")
}
