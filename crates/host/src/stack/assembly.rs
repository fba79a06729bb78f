//! A stack put together: again a leaf, with instruments.

use flashkeel_device::{DeviceConfig, Report as SsdReport, Ssd};
use flashkeel_engine::{Arena, Completion, Leaf, Limits, Request, Stack, Stream, Submit, Time, Wake};
use flashkeel_nvm::{Nvm, Report as NvmReport};
use serde::Serialize;

use super::below::{Below, Device};
use super::{DeviceChoice, StackConfig, seed_of};
use crate::Measured;
use crate::scheduler::Scheduling;
use crate::tier::{Tier, TierReport};
use crate::volume::VolumeManager;

/// Volumes over schedulers over tiers over devices.
pub struct HostStack {
    stack: Stack<VolumeManager, Stack<Scheduling, Below>>,
    /// Size of each tenant's volume.
    volume_sectors: u64,
}

/// What the devices and tiers of a stack have done, in the order of the
/// devices.
#[derive(Clone, Debug, Serialize)]
pub struct StackReport {
    /// The SSDs.
    pub ssds: Vec<SsdReport>,
    /// The NVMs, those of tiers among them.
    pub nvms: Vec<NvmReport>,
    /// The tiers.
    pub tiers: Vec<TierReport>,
}

impl HostStack {
    /// Puts a validated stack together over the SSDs among its devices, given
    /// in their order and in the state they start in.
    pub fn new(
        config: &StackConfig,
        device: &DeviceConfig,
        ssds: Vec<Ssd>,
        seed: u64,
    ) -> Result<HostStack, String> {
        config.validate(device)?;
        let claims = config.claims();
        let mut ssds = ssds.into_iter();
        let mut sizes = Vec::new();
        let mut children = Vec::new();
        for (index, choice) in config.devices(device).iter().enumerate() {
            let seed = seed_of(seed, "device", index);
            let device = match choice {
                DeviceChoice { nvm: Some(nvm), .. } => {
                    Device::Nvm(Box::new(Nvm::new(&nvm.validate()?, seed)))
                }
                _ => Device::Ssd(Box::new(ssds.next().ok_or("an SSD of the stack is missing")?)),
            };
            sizes.push(device.sectors());
            // Tiers are not bound by the scheduler's depth.
            let has_tier = config.tier.policy().needs_nvm();
            let depth = if has_tier { usize::MAX } else { config.depth as usize };
            let predictor = match &device {
                Device::Ssd(ssd) => Some(ssd),
                Device::Nvm(_) => None,
            };
            let predictor_if = |is_asked: bool| {
                let ssd = predictor.filter(|_| is_asked);
                ssd.map(|ssd| config.predictor.policy().build(ssd, depth)).transpose()
            };
            let scheduler = config.scheduler.policy();
            let order = scheduler.build(&claims, predictor_if(scheduler.needs_predictor())?);
            let tier = config.tier.policy();
            let placement = tier.build(predictor_if(tier.needs_predictor())?, Stream::new(seed, "tier"));
            let below = match placement.zip(config.nvm.as_ref()) {
                Some((placement, nvm)) => {
                    let nvm = Nvm::new(&nvm.validate()?, seed);
                    let tier = Tier::new(placement, device.sectors(), nvm.sectors(), &config.drain);
                    Below::Tier(Box::new(Stack::new(tier, vec![device, Device::Nvm(Box::new(nvm))])))
                }
                None => Below::Device(device),
            };
            let stage = Scheduling::new(order, config.depth as usize);
            children.push(Stack::new(stage, vec![below]));
        }
        let volumes = config.volumes.policy().build(&sizes, claims.len())?;
        let volume_sectors = volumes.sectors();
        let manager = VolumeManager::new(volumes, children.len(), claims.len());
        Ok(HostStack { stack: Stack::new(manager, children), volume_sectors })
    }

    /// Size of each tenant's volume in 512-byte sectors.
    pub fn volume_sectors(&self) -> u64 {
        self.volume_sectors
    }

    /// What has been done since the start or the last reset.
    pub fn report(&self) -> StackReport {
        let mut report = StackReport { ssds: Vec::new(), nvms: Vec::new(), tiers: Vec::new() };
        for below in self.belows() {
            for device in below.devices() {
                match device {
                    Device::Ssd(ssd) => report.ssds.push(ssd.report()),
                    Device::Nvm(nvm) => report.nvms.push(nvm.report()),
                }
            }
            if let Below::Tier(tier) = below {
                report.tiers.push(tier.stage().report().clone());
            }
        }
        report
    }

    fn belows(&self) -> impl Iterator<Item = &Below> {
        self.stack.children().flat_map(|scheduled| scheduled.children())
    }

    fn ssds(&self) -> impl Iterator<Item = &Ssd> {
        self.belows().flat_map(Below::devices).filter_map(|device| match device {
            Device::Ssd(ssd) => Some(&**ssd),
            Device::Nvm(_) => None,
        })
    }
}

impl Leaf for HostStack {
    fn limits(&self) -> Limits {
        self.stack.limits()
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena) -> Submit {
        self.stack.submit(now, request, data)
    }

    fn next_event(&self) -> Wake {
        self.stack.next_event()
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        self.stack.advance(now, data, completions);
    }
}

impl Measured for HostStack {
    /// `waiting_on_host` and `nvm_pages`, then the gauges of each SSD; where
    /// there are several, after its number.
    fn gauge_names(&self) -> Vec<String> {
        let mut names = vec!["waiting_on_host".to_owned(), "nvm_pages".to_owned()];
        let several = self.ssds().count() > 1;
        for (index, _) in self.ssds().enumerate() {
            let prefix = if several { format!("ssd{index}_") } else { String::new() };
            names.extend(Ssd::gauge_names().into_iter().map(|name| prefix.clone() + &name));
        }
        names
    }

    fn gauges(&self, values: &mut Vec<u64>) {
        values.clear();
        let scheduled = self.stack.children().map(|scheduled| scheduled.stage().waiting());
        values.push((self.stack.stage().waiting() + scheduled.sum::<usize>()) as u64);
        let pages = |below: &Below| match below {
            Below::Tier(tier) => tier.stage().nvm_pages(),
            Below::Device(_) => 0,
        };
        values.push(self.belows().map(pages).sum());
        let mut each = Vec::new();
        for ssd in self.ssds() {
            ssd.gauges(&mut each);
            values.append(&mut each);
        }
    }

    fn start_measuring(&mut self) {
        let reset = |device: &mut Device| match device {
            Device::Ssd(ssd) => ssd.reset_counters(),
            Device::Nvm(nvm) => nvm.reset_counters(),
        };
        for below in self.stack.children_mut().flat_map(|scheduled| scheduled.children_mut()) {
            match below {
                Below::Device(device) => reset(device),
                Below::Tier(tier) => {
                    tier.stage_mut().reset_counters();
                    tier.children_mut().for_each(reset);
                }
            }
        }
    }

    fn final_counters(&self) -> Vec<u64> {
        let mut values: Vec<u64> = self.ssds().flat_map(Measured::final_counters).collect();
        let report = self.report();
        values.extend(report.nvms.iter().flat_map(|nvm| [nvm.bytes_read, nvm.bytes_written]));
        values.extend(report.tiers.iter().flat_map(|tier| [tier.host_bytes_to_nvm, tier.drained_bytes]));
        values
    }
}
