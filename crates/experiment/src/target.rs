//! What a run drives, and a probe probes: the `[device]` and `[stack]` of a document.

use std::cell::RefCell;
use std::path::Path;

use flashkeel_blockdev::{Access, World};
use flashkeel_device::DeviceConfig;
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{LOGICAL_PAGE_BYTES, Limits, SECTOR_BYTES};
use flashkeel_host::StackConfig;
use flashkeel_host::device::{Build, Device, DeviceKind, Maker, Size, Unmade};
use serde::{Deserialize, Serialize};

use crate::real::RealDrives;
use crate::run::{Progress, steady_state};
use crate::{Error, Experiment, RunPlan};

/// A device alone, or a stack over its own devices or else over this one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The SSD.
    pub device: DeviceConfig,
    /// What the host puts before it, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackConfig>,
    /// Whether the data of real drives may be destroyed. No document says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub destroys: bool,
}

/// A device, and what to listen to while it runs.
pub struct Opened {
    /// The device.
    pub device: Box<dyn Device>,
    /// The world of the real drives in it, if there are any.
    pub world: Option<World>,
    /// What was to be known before it was made.
    pub(crate) size: Size,
}

impl Opened {
    /// The real drives in it, if there are any.
    pub fn real(&self) -> Option<RealDrives> {
        Some(RealDrives::of(self.world.clone()?, self.size))
    }
}

/// Refuses blocks that are larger than a page.
fn takes_pages(limits: &Limits) -> Result<(), Error> {
    let block = Bytes(u64::from(limits.block_sectors) * SECTOR_BYTES);
    if block.0 <= LOGICAL_PAGE_BYTES {
        return Ok(());
    }
    let page = Bytes(LOGICAL_PAGE_BYTES);
    Err(Error::Input(format!(
        "the device reads and writes blocks of {block}, larger than {page}; stack.block = \"{page}\" has whole \
         blocks read and written for parts of them"
    )))
}

impl Target {
    /// What an experiment drives.
    pub fn of(config: &Experiment) -> Target {
        Target { device: config.device.clone(), stack: config.stack.clone(), destroys: false }
    }

    /// The stack, if there is one, with devices named.
    pub(crate) fn stack(&self) -> Option<StackConfig> {
        let mut stack = self.stack.clone()?;
        if stack.devices.is_empty() {
            stack.devices.push(DeviceKind::Ssd(Box::new(self.device.clone())));
        }
        Some(stack)
    }

    /// Checks it as a whole.
    ///
    /// # Errors
    /// The table at fault, and a sentence that begins with the key in it.
    pub fn check(&self) -> Result<Size, (&'static str, String)> {
        match self.stack() {
            Some(stack) => stack.validate().map_err(|message| ("stack", message)),
            None => self.device.check().map_err(|message| ("device", message)),
        }
    }

    /// The same for whoever has no document with it.
    ///
    /// # Errors
    /// [`Error::Input`], which begins with the key.
    pub(crate) fn size(&self) -> Result<Size, Error> {
        self.check().map_err(|(table, message)| Error::Input(format!("{table}.{message}")))
    }

    /// The device in its steady state, which is taken from `cache_dir`, or made and
    /// kept there. Everything random follows from `seed`.
    ///
    /// # Errors
    /// [`Error::Input`] if it cannot be made, [`Error::Interrupted`] if `progress`
    /// stops that.
    pub fn build(
        &self,
        seed: u64,
        cache_dir: Option<&Path>,
        progress: &mut Progress<'_>,
    ) -> Result<Box<dyn Device>, Error> {
        self.build_in(None, seed, cache_dir, progress)
    }

    /// The same for whoever listens to real drives, which there may be then.
    ///
    /// # Errors
    /// As for [`build`](Self::build), and if a real drive cannot be used.
    pub fn open(
        &self,
        seed: u64,
        cache_dir: Option<&Path>,
        progress: &mut Progress<'_>,
    ) -> Result<Opened, Error> {
        let size = self.size()?;
        if let Some(stack) = self.stack().filter(|_| size.is_real && !self.destroys) {
            DeviceKind::Stack(Box::new(stack)).only_reads().map_err(Error::Input)?;
        }
        let world = size.is_real.then(World::new).transpose();
        let world = world.map_err(|error| Error::Failure(format!("nothing to listen to: {error}")))?;
        let device = self.build_in(world.as_ref(), seed, cache_dir, progress)?;
        Ok(Opened { device, world, size })
    }

    /// The same for whoever asks for pages of 4 KiB.
    ///
    /// # Errors
    /// As for [`open`](Self::open), and if its blocks are larger.
    pub(crate) fn open_for_pages(
        &self,
        seed: u64,
        cache_dir: Option<&Path>,
        progress: &mut Progress<'_>,
    ) -> Result<Opened, Error> {
        let opened = self.open(seed, cache_dir, progress)?;
        takes_pages(&opened.device.limits())?;
        Ok(opened)
    }

    fn build_in(
        &self,
        world: Option<&World>,
        seed: u64,
        cache_dir: Option<&Path>,
        progress: &mut Progress<'_>,
    ) -> Result<Box<dyn Device>, Error> {
        // Those who make SSDs and those who probe tell it in turn.
        let progress = RefCell::new(progress);
        let mut precondition =
            |ssd: &_, seed| steady_state(ssd, seed, cache_dir, &mut **progress.borrow_mut());
        let mut probing = |fraction| (progress.borrow_mut())("probe", fraction);
        let mut maker = Maker::new(seed, &mut precondition);
        maker.watch(&mut probing);
        if let Some(world) = world {
            maker.open_in(world, if self.destroys { Access::Destroy } else { Access::ReadOnly });
        }
        Ok(self.assemble(seed, &mut maker)?)
    }

    /// The device, of what `maker` makes.
    pub(crate) fn assemble(&self, seed: u64, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        match self.stack() {
            Some(stack) => stack.assemble(seed, maker),
            None => self.device.build(maker),
        }
    }

    /// Puts it in the place of what a plan drives. The plan's tenants, if it has any,
    /// share it.
    pub fn put_into(self, plan: &mut RunPlan) {
        let tenants = plan.config.stack.take().map(|stack| stack.tenants).unwrap_or_default();
        plan.config.device = self.device;
        plan.config.stack = self.stack;
        plan.destroys = self.destroys;
        if !tenants.is_empty() {
            plan.config.stack.get_or_insert_default().tenants = tenants;
        }
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Durable;

    use super::*;

    #[test]
    fn blocks_larger_than_a_page_are_refused() {
        let of = |block_sectors| Limits {
            sectors: 1 << 20,
            block_sectors,
            preferred_sectors: 128,
            durable: Durable::Flushed,
        };
        assert!(takes_pages(&of(1)).is_ok() && takes_pages(&of(8)).is_ok());
        let error = takes_pages(&of(128)).expect_err("64 KiB").to_string();
        assert!(
            error.starts_with("the device reads and writes blocks of 64KiB, larger than 4KiB"),
            "{error}"
        );
    }
}
