//! The host's memory as a device: one latency, a bandwidth, and nothing left
//! after a power cut.

use flashkeel_engine::{
    Cause, Durable, LOGICAL_PAGE_SECTORS, Span,
    units::{Bytes, Rate},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::{Bandwidth, Layout, Medium, blocks};
use crate::latency::Latency;

/// Memory of the host that serves as a device, such as a cache. It is volatile
/// and does not wear.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DramConfig {
    /// What the host can address: blocks of 4 KiB, or whole megabytes, which are rounded
    /// down to such.
    pub capacity: Bytes,
    /// Time from a request until its data begin to move.
    pub latency: Span,
    /// Rate at which data are copied, one request after the other.
    pub bandwidth: Rate,
    /// Requests that the device takes at most.
    pub queue_depth: u32,
}

impl Default for DramConfig {
    /// Ours: a copy by one core of a server, and the software in front of it.
    fn default() -> Self {
        DramConfig {
            capacity: Bytes(1 << 30),
            latency: Span::from_us(1),
            bandwidth: Rate(10_000_000_000),
            queue_depth: 1024,
        }
    }
}

impl DramConfig {
    /// Checks the configuration and resolves it.
    ///
    /// # Errors
    /// A sentence naming the key (relative to the device) and its remedy.
    pub fn validate(&self) -> Result<Layout, String> {
        let sectors = blocks(self.capacity)? * LOGICAL_PAGE_SECTORS;
        if self.latency > Span::from_secs(1) {
            return Err(format!("latency is {}; at most 1s", self.latency));
        }
        if self.bandwidth < Rate(1_000_000) {
            return Err(format!("bandwidth is {}; at least 1MB/s", self.bandwidth));
        }
        if !(1..=1 << 20).contains(&self.queue_depth) {
            return Err(format!(
                "queue_depth is {}; it must lie between 1 and {}",
                self.queue_depth,
                1 << 20
            ));
        }
        Ok(Layout {
            sectors,
            read_latency: Latency::fixed(self.latency),
            write_latency: Latency::fixed(self.latency),
            bandwidth: Bandwidth { read: self.bandwidth, write: self.bandwidth },
            // Only the bandwidth is shared.
            units: self.queue_depth as usize,
            queue_depth: self.queue_depth as usize,
            // A power cut leaves nothing anyway.
            atomic_sectors: 1,
            endurance_bytes: f64::INFINITY,
            // The controller's service from memory; the way there is a link.
            medium: Medium { work: Cause::Controller, wait: Cause::HostLink, durable: Durable::Never },
        })
    }
}
