//! `fixed-ratio`: each class in proportion, twice as much as the next lower one (the
//! dissertation on PLMC, section 4.3.3, policy II: 4 : 2 : 1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Allocation, Build, Share, by_weight};
use crate::claim::Priority;

/// Settings of `fixed-ratio`: weights of a host by its class, 1 to 1000.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FixedRatio {
    /// Weight of a host of urgent priority, 1 to 1000.
    pub urgent: u32,
    /// Weight of a host of high priority, 1 to 1000.
    pub high: u32,
    /// Weight of a host of medium priority, 1 to 1000.
    pub medium: u32,
    /// Weight of a host of low priority, 1 to 1000.
    pub low: u32,
}

impl Default for FixedRatio {
    /// 4 : 2 : 1; the urgent class, which the dissertation has not, goes on as it does.
    fn default() -> Self {
        FixedRatio { urgent: 8, high: 4, medium: 2, low: 1 }
    }
}

impl Build for FixedRatio {
    fn build(&self) -> Box<dyn Allocation> {
        Box::new(self.clone())
    }

    fn validate(&self) -> Result<(), String> {
        let FixedRatio { urgent, high, medium, low } = *self;
        let named = [("urgent", urgent), ("high", high), ("medium", medium), ("low", low)];
        match named.iter().find(|(_, weight)| !(1..=1000).contains(weight)) {
            Some((key, weight)) => Err(format!("{key} is {weight}; it must lie between 1 and 1000")),
            None => Ok(()),
        }
    }
}

impl Allocation for FixedRatio {
    fn share_out(&self, left: u64, hosts: &mut [Share]) {
        by_weight(left, hosts, |host| {
            u64::from(match host.class {
                Priority::Urgent => self.urgent,
                Priority::High => self.high,
                Priority::Medium => self.medium,
                Priority::Low => self.low,
            })
        });
    }
}
