//! What tenants may claim of what they share.

use flashkeel_engine::TenantId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose claim of so many is a tenant's: within another device all tenants share the only one.
#[inline]
pub(crate) fn index_of(tenant: TenantId, claims: usize) -> usize {
    if claims == 1 { 0 } else { usize::from(tenant.0) }
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

/// The priority of a tenant's queue at a device, as in NVMe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Before all others.
    Urgent,
    /// By the weight of high ones.
    High,
    /// By that of medium ones: what is not said to be anything else.
    #[default]
    Medium,
    /// By that of low ones.
    Low,
}

impl Priority {
    /// All, from the most urgent on.
    pub const ALL: [Priority; 4] = [Priority::Urgent, Priority::High, Priority::Medium, Priority::Low];

    /// As it is written.
    pub fn label(self) -> &'static str {
        ["urgent", "high", "medium", "low"][self as usize]
    }
}

/// What a tenant may claim of the devices' time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its share beside others of its class.
    pub weight: u32,
    /// Its class.
    pub class: TenantClass,
    /// The priority of its queue, and its class under a coordinator.
    pub priority: Priority,
    /// Whether it reads on where a coordinator's count is used up.
    pub overtakes: bool,
}

impl Default for Claim {
    /// The weight is Linux's.
    fn default() -> Self {
        Claim { weight: 100, class: TenantClass::default(), priority: Priority::default(), overtakes: false }
    }
}
