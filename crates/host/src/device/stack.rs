//! `stack`: volumes over schedulers over devices, as one device.

use flashkeel_config::{ConfigError, Kind, Node};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{LOGICAL_PAGE_BYTES, Leaf, SECTOR_BYTES, Stack, Stream, Time};

use super::{Build, Device, DeviceKind, Held, Maker, Size, Unmade, seed_of};
use crate::blocks::WholeBlocks;
use crate::coordinator::Foresight;
use crate::part::Part;
use crate::scheduler::Scheduling;
use crate::stack::Passing;
pub use crate::stack::StackConfig;
use crate::volume::VolumeManager;

impl Build for StackConfig {
    fn expand(settings: &mut Node, key: &str, ground: Option<&Node>) -> Result<(), ConfigError> {
        let Some(Node { kind: Kind::Array(devices), .. }) = settings.get_mut("devices") else {
            return Ok(());
        };
        for (index, device) in devices.iter_mut().enumerate() {
            DeviceKind::expand(device, &format!("{key}.devices.{index}"), ground)?;
        }
        Ok(())
    }

    fn check(&self) -> Result<Size, String> {
        if !self.tenants.is_empty() {
            return Err("tenants: only the experiment's own stack has some".into());
        }
        self.size()
    }

    fn within(&self) -> Vec<(String, &DeviceKind)> {
        self.devices.iter().enumerate().map(|(index, device)| (format!("devices.{index}"), device)).collect()
    }

    /// Within another device; its devices have seeds of their own.
    fn build(&self, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        let seed = Stream::new(maker.seed_for("stack"), "stack").word();
        self.assemble(seed, maker)
    }
}

/// Volumes over schedulers over devices.
pub type HostStack = Stack<VolumeManager, Stack<Scheduling, Box<dyn Device>>>;

impl StackConfig {
    /// Checks the stack as a whole, with all who share it; its sectors are those of each
    /// tenant's volume.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub fn validate(&self) -> Result<Size, String> {
        let size = self.size()?;
        self.suits(&self.claims())?;
        Ok(size)
    }

    fn size(&self) -> Result<Size, String> {
        self.validate_tenants()?;
        if self.depth == 0 {
            return Err("depth is 0; a device gets at least 1 request at a time".into());
        }
        if self.devices.is_empty() {
            return Err("devices: there are none".into());
        }
        if let Some(block) = self.block.filter(|block| ![512, 1024, 2048, 4096].contains(&block.0)) {
            return Err(format!("block is {block}; it must be 512B, 1KiB, 2KiB or 4KiB"));
        }
        let mut sizes = Vec::new();
        for (index, device) in self.devices.iter().enumerate() {
            let size = device.check().map_err(|message| format!("devices.{index}.{message}"))?;
            if let Some(depth) = size.queue_depth.filter(|&depth| self.depth > depth) {
                return Err(format!("depth is {}, but device {index} takes {depth} at most", self.depth));
            }
            if self.devices.len() > 1 {
                size.gets_all_reads(&format!("devices.{index}.{}", device.name()))?;
            }
            sizes.push(size);
        }
        let sectors: Vec<u64> = sizes.iter().map(|size| size.sectors).collect();
        self.urgency.policy().build(sectors.len())?;
        let takes_pages = sizes.iter().any(|size| size.takes_pages);
        let volumes = self.claims().len();
        let volume = self.volumes.policy().build(&sectors, volumes)?.sectors();
        Ok(Size {
            sectors: volume,
            left_sectors: sectors.iter().sum::<u64>() - volume * volumes as u64,
            takes_pages: takes_pages && self.block.is_none_or(|block| block.0 >= LOGICAL_PAGE_BYTES),
            ..Size::over(&sizes)
        })
    }

    /// Puts the stack together, without layers where it has no policies; its
    /// first device has the seed itself. It has been checked.
    ///
    /// # Errors
    /// As for [`Build::build`].
    pub fn assemble(&self, seed: u64, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        if !self.tenants.is_empty() {
            maker.share_among(self.claims());
        }
        let one = match (&self.devices[..], &self.tenants[..]) {
            ([device], [] | [_]) if self.scheduler.policy().keeps_order() => device,
            _ => return Ok(Box::new(self.layered(seed, maker)?)),
        };
        let is_whole = |sectors: u64| {
            let volume = self.volumes.policy().build(&[sectors], 1);
            volume.is_ok_and(|volume| volume.is_the_device(sectors))
        };
        if !is_whole(one.check()?.sectors) {
            return Ok(Box::new(self.layered(seed, maker)?));
        }
        let device = maker.apart(seed, |maker| self.build_device(one, maker))?;
        Ok(Box::new(Passing::new(device, self.depth as usize)))
    }

    /// One of the devices, for clients of smaller blocks if there are any.
    fn build_device(&self, device: &DeviceKind, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        let device = device.build(maker)?;
        let limits = device.limits();
        let is_small = |block: Bytes| block.0 < u64::from(limits.block_sectors) * SECTOR_BYTES;
        Ok(match self.block {
            Some(block) if is_small(block) => Box::new(Stack::new(WholeBlocks::new(limits), vec![device])),
            _ => device,
        })
    }

    /// The same with all its layers.
    ///
    /// # Errors
    /// As for [`Build::build`].
    pub fn layered(&self, seed: u64, maker: &mut Maker<'_>) -> Result<HostStack, Unmade> {
        // Within another device schedulers know who shares that.
        let claims = maker.claims().to_vec();
        let (mut limits, mut children) = (Vec::new(), Vec::new());
        for (index, device) in self.devices.iter().enumerate() {
            let seed = seed_of(seed, "device", index);
            let device = maker.apart(seed, |maker| self.build_device(device, maker))?;
            limits.push(device.limits());
            let depth = self.depth as usize;
            let scheduler = self.scheduler.policy();
            let asks = scheduler.needs_predictor();
            let predictor = asks.then(|| maker.predictor(&self.predictor, &*device, depth)).transpose()?;
            let order = scheduler.build(&claims, predictor);
            children.push(Stack::new(Scheduling::new(order, depth), vec![device]));
        }
        let sizes: Vec<u64> = limits.iter().map(|each| each.sectors).collect();
        let tenants = self.claims().len();
        let volumes = self.volumes.policy().build(&sizes, tenants)?;
        let urgency = self.urgency.policy().build(sizes.len())?;
        Ok(Stack::new(VolumeManager::new(volumes, urgency, &limits, tenants), children))
    }
}

impl Device for HostStack {
    fn parts<'a>(&'a self, parts: &mut Vec<&'a dyn Part>) {
        self.children().flat_map(Stack::children).for_each(|device| device.parts(parts));
    }

    fn keep_data(&mut self) {
        self.children_mut().flat_map(Stack::children_mut).for_each(|device| device.keep_data());
    }

    fn reset_counters(&mut self, now: Time) {
        self.children_mut().flat_map(Stack::children_mut).for_each(|device| device.reset_counters(now));
    }

    fn foresee(&mut self, foresight: &Foresight) {
        self.children_mut().flat_map(Stack::children_mut).for_each(|device| device.foresee(foresight));
    }

    fn watch(&mut self, from: Time, to: Time) {
        self.children_mut().flat_map(Stack::children_mut).for_each(|device| device.watch(from, to));
    }

    fn held(&self) -> Option<Held> {
        let scheduled = self.children().map(|scheduled| scheduled.stage().waiting()).sum::<usize>();
        let own = Held { requests: (self.stage().waiting() + scheduled) as u64, ..Held::default() };
        Some(own.over(self.children().flat_map(Stack::children)))
    }
}
