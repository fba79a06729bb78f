//! Tenants, volumes and schedulers over devices: the `[stack]` table of an
//! experiment.

mod passing;
mod short;

use flashkeel_engine::units::Bytes;
use flashkeel_workload::WorkloadConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use passing::Passing;
pub use short::TierShort;

use crate::claim::{Claim, Priority, TenantClass};
use crate::device::DeviceKind;
use crate::predictor::PredictorConfig;
use crate::scheduler::IoSchedulerConfig;
use crate::urgency::UrgencyConfig;
use crate::volume::VolumeConfig;

/// What the host puts between those who ask and the devices. A request passes
/// its tenant's volume, then the I/O scheduler of the device it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StackConfig {
    /// Who shares the devices, each with a workload of its own; empty for one
    /// tenant, who has the experiment's, and in a stack that is a device.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<TenantConfig>,
    /// The devices; empty for the experiment's `device` alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceKind>,
    /// Where each tenant's volume lies on the devices.
    pub volumes: VolumeConfig,
    /// Which parts of a request that goes to several devices need not hurry.
    pub urgency: UrgencyConfig,
    /// In which order requests that wait on the host go to a device.
    pub scheduler: IoSchedulerConfig,
    /// Requests at each device at most; the others wait in its scheduler.
    pub depth: u32,
    /// Who predicts a device, for the policies that ask.
    pub predictor: PredictorConfig,
    /// Logical block that clients see, from 512B to 4KiB: of a device with larger
    /// ones, blocks that a request covers in part are read, changed and written
    /// back. Those of the devices if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Bytes>,
}

impl Default for StackConfig {
    /// The depth is that of a SATA drive's queue (32 commands).
    fn default() -> Self {
        StackConfig {
            tenants: Vec::new(),
            devices: Vec::new(),
            volumes: VolumeConfig::default(),
            urgency: UrgencyConfig::default(),
            scheduler: IoSchedulerConfig::default(),
            depth: 32,
            predictor: PredictorConfig::default(),
            block: None,
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
    /// The priority of its queue under the scheduler `weighted-round-robin`, and its class
    /// under a coordinator.
    #[serde(default)]
    pub priority: Priority,
    /// Whether it reads on where its count of a coordinator is used up, as a host that is not
    /// to be trusted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overtakes: bool,
    /// What it asks; addresses begin at 0 in its own volume.
    pub workload: WorkloadConfig,
}

fn weight() -> u32 {
    Claim::default().weight
}

impl StackConfig {
    /// The tenants' claims.
    pub fn claims(&self) -> Vec<Claim> {
        match &self.tenants[..] {
            [] => vec![Claim::default()],
            tenants => tenants
                .iter()
                .map(|&TenantConfig { weight, class, priority, overtakes, .. }| Claim {
                    weight,
                    class,
                    priority,
                    overtakes,
                })
                .collect(),
        }
    }

    /// Checks the tenants.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub(crate) fn validate_tenants(&self) -> Result<(), String> {
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
