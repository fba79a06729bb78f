//! Tenants, volumes, schedulers and tiers over devices: the `[stack]` table of
//! an experiment, and what it is put together to.

mod assembly;
mod below;

use flashkeel_device::DeviceConfig;
use flashkeel_engine::Stream;
use flashkeel_nvm::NvmConfig;
use flashkeel_workload::WorkloadConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use assembly::{HostStack, StackReport};
pub use below::Device;

use crate::predictor::PredictorConfig;
use crate::scheduler::IoSchedulerConfig;
use crate::tier::{DrainConfig, TierConfig};
use crate::volume::VolumeConfig;

/// What the host puts between those who ask and the devices. A request passes
/// its tenant's volume, then the I/O scheduler of the device it belongs to,
/// then that device's tier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StackConfig {
    /// Who shares the devices, each with a workload of its own; empty for one
    /// tenant, who has the experiment's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<TenantConfig>,
    /// The devices; empty for the experiment's `device` alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceChoice>,
    /// Where each tenant's volume lies on the devices.
    pub volumes: VolumeConfig,
    /// In which order requests that wait on the host go to a device.
    pub scheduler: IoSchedulerConfig,
    /// Requests at each device at most; the others wait in its scheduler.
    pub depth: u32,
    /// Which writes go to an NVM in front of each SSD.
    pub tier: TierConfig,
    /// That NVM, where there is a tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvm: Option<NvmConfig>,
    /// How the background moves data from it to the SSD.
    pub drain: DrainConfig,
    /// Who predicts an SSD, for the policies that ask.
    pub predictor: PredictorConfig,
}

impl Default for StackConfig {
    /// The depth is that of a SATA drive's queue (32 commands).
    fn default() -> Self {
        StackConfig {
            tenants: Vec::new(),
            devices: Vec::new(),
            volumes: VolumeConfig::default(),
            scheduler: IoSchedulerConfig::default(),
            depth: 32,
            tier: TierConfig::default(),
            nvm: None,
            drain: DrainConfig::default(),
            predictor: PredictorConfig::default(),
        }
    }
}

/// One of those who share the devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantConfig {
    /// Names the tenant in results.
    pub name: String,
    /// Its share beside the others' under the scheduler `fair`, 1 to 1000.
    #[serde(default = "weight")]
    pub weight: u32,
    /// Who goes first under the schedulers `deadline` and `fair`.
    #[serde(default)]
    pub class: TenantClass,
    /// What it asks; addresses begin at 0 in its own volume.
    pub workload: WorkloadConfig,
}

/// As Linux has it.
fn weight() -> u32 {
    100
}

/// How urgent a tenant's requests are. A class is served only while none of a
/// higher one waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TenantClass {
    /// Before all others.
    RealTime,
    /// What is not said to be anything else.
    #[default]
    BestEffort,
    /// After all others.
    Idle,
}

/// One device: an SSD or an NVM.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceChoice {
    /// An SSD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssd: Option<DeviceConfig>,
    /// An NVM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvm: Option<NvmConfig>,
}

/// What a tenant may claim of the devices' time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its share beside others of its class.
    pub weight: u32,
    /// Its class.
    pub class: TenantClass,
}

/// The seed of one of several of a kind, such as `device`; the first has the
/// run's.
pub fn seed_of(seed: u64, kind: &str, index: usize) -> u64 {
    match index {
        0 => seed,
        _ => Stream::new(seed, &format!("{kind} {index}")).word(),
    }
}

impl StackConfig {
    /// The tenants' claims.
    pub fn claims(&self) -> Vec<Claim> {
        let only = Claim { weight: weight(), class: TenantClass::default() };
        match &self.tenants[..] {
            [] => vec![only],
            tenants => tenants.iter().map(|t| Claim { weight: t.weight, class: t.class }).collect(),
        }
    }

    /// The devices: its own, or else `device`.
    pub fn devices(&self, device: &DeviceConfig) -> Vec<DeviceChoice> {
        match &self.devices[..] {
            [] => vec![DeviceChoice { ssd: Some(device.clone()), nvm: None }],
            devices => devices.to_vec(),
        }
    }

    /// Checks the stack as a whole over the experiment's `device` and returns
    /// the size of each tenant's volume in sectors.
    ///
    /// # Errors
    /// A sentence that begins with the key, relative to the stack.
    pub fn validate(&self, device: &DeviceConfig) -> Result<u64, String> {
        self.validate_tenants()?;
        self.drain.validate()?;
        if self.depth == 0 {
            return Err("depth is 0; a device gets at least 1 request at a time".into());
        }
        let has_tier = self.tier.policy().needs_nvm();
        let asks = [
            (self.scheduler.policy().needs_predictor(), "scheduler", self.scheduler.name()),
            (self.tier.policy().needs_predictor(), "tier", self.tier.name()),
        ];
        let asks = asks.iter().find(|(needs, ..)| *needs);
        if has_tier && self.scheduler.policy().needs_predictor() {
            return Err(format!(
                "scheduler is {:?}, which predicts an SSD alone; with a tier choose another",
                self.scheduler.name()
            ));
        }
        match &self.nvm {
            None if has_tier => {
                return Err(format!("tier is {:?}, which needs an NVM; name it in nvm", self.tier.name()));
            }
            Some(nvm) => {
                nvm.validate().map_err(|message| format!("nvm.{message}"))?;
            }
            None => {}
        }
        let mut sizes = Vec::new();
        for (index, choice) in self.devices(device).iter().enumerate() {
            // The experiment's own device is checked with the experiment.
            let here = |message| format!("devices.{index}.{message}");
            let (sectors, depth) = match choice {
                DeviceChoice { ssd: Some(ssd), nvm: None } => {
                    let layout = ssd.validate().map_err(|message| here(format!("ssd.{message}")))?;
                    (layout.sectors(), ssd.controller.queue_depth)
                }
                DeviceChoice { ssd: None, nvm: Some(nvm) } => {
                    let layout = nvm.validate().map_err(|message| here(format!("nvm.{message}")))?;
                    if let Some((_, key, name)) = asks {
                        return Err(format!(
                            "{key} is {name:?}, which predicts SSDs, but devices.{index} is an NVM"
                        ));
                    }
                    if has_tier {
                        return Err(format!("tier is for SSDs, but devices.{index} is an NVM"));
                    }
                    (layout.sectors(), nvm.queue_depth)
                }
                _ => return Err(format!("devices.{index}: name one of ssd and nvm")),
            };
            if self.depth > depth {
                return Err(format!("depth is {}, but device {index} takes {depth} at most", self.depth));
            }
            sizes.push(sectors);
        }
        Ok(self.volumes.policy().build(&sizes, self.tenants.len().max(1))?.sectors())
    }

    fn validate_tenants(&self) -> Result<(), String> {
        if self.tenants.len() > 1024 {
            return Err(format!("tenants: {} of them; at most 1024", self.tenants.len()));
        }
        for (index, tenant) in self.tenants.iter().enumerate() {
            if tenant.name.is_empty() {
                return Err(format!("tenants.{index}.name: a tenant needs a name"));
            }
            if self.tenants[..index].iter().any(|earlier| earlier.name == tenant.name) {
                return Err(format!("tenants.{index}.name: two tenants are named {:?}", tenant.name));
            }
            if !(1..=1000).contains(&tenant.weight) {
                return Err(format!(
                    "tenants.{index}.weight: is {}; it must lie between 1 and 1000",
                    tenant.weight
                ));
            }
        }
        Ok(())
    }
}
