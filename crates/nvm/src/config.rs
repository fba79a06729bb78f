//! The configuration of an NVM device, and what it resolves to.

use flashkeel_engine::{
    Cause, Durable, LOGICAL_PAGE_BYTES, SECTOR_BYTES, Span,
    units::{Bytes, Rate},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::latency::{Latency, LatencyConfig};

/// A non-volatile memory device: latencies, bandwidth, parallelism, endurance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NvmConfig {
    /// What the host can address: blocks of 4 KiB, or whole megabytes, which are rounded
    /// down to such.
    pub capacity: Bytes,
    /// Latency of a 4 KiB read.
    pub read_latency: LatencyConfig,
    /// Latency of a 4 KiB write.
    pub write_latency: LatencyConfig,
    /// Bandwidth, which reads and writes share.
    pub bandwidth: Bandwidth,
    /// Requests worked on at the same time; others wait in order.
    #[serde(default = "units")]
    pub units: u32,
    /// Requests that the device takes at most.
    #[serde(default = "queue_depth")]
    pub queue_depth: u32,
    /// What a power cut leaves whole: it comes between any two such units of a write,
    /// and tears it there. A multiple of 512 bytes; 4 KiB unless it is said otherwise, but
    /// 512 bytes below a tier's journal, which does without more.
    #[serde(default = "atomic_unit")]
    pub atomic_unit: Bytes,
    /// What may be written in all.
    pub endurance: Endurance,
}

/// How fast data move when nothing else limits them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bandwidth {
    /// Of reads alone.
    pub read: Rate,
    /// Of writes alone.
    pub write: Rate,
}

/// What may be written before the device is worn out; wear is taken to be even.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Endurance {
    /// Times the capacity may be written each day.
    pub drive_writes_per_day: f64,
    /// For how many years.
    pub years: f64,
}

/// The P4800X has seven channels (AnandTech's review, 2017); that a channel
/// works on one request at a time is our assumption.
fn units() -> u32 {
    7
}

fn queue_depth() -> u32 {
    1024
}

/// Ours: a block is written as a whole, or not.
fn atomic_unit() -> Bytes {
    Bytes(LOGICAL_PAGE_BYTES)
}

/// The blocks of a capacity. Capacities that are sold are decimal, and no multiple of a
/// block; anything finer is a slip.
pub(crate) fn blocks(capacity: Bytes) -> Result<u64, String> {
    let is_whole = capacity.0.is_multiple_of(LOGICAL_PAGE_BYTES) || capacity.0.is_multiple_of(1_000_000);
    match capacity.0 / LOGICAL_PAGE_BYTES {
        0 => Err(format!("capacity is {capacity}; at least 4KiB")),
        blocks if is_whole => Ok(blocks),
        blocks => Err(format!(
            "capacity is {capacity}, no multiple of a block of 4KiB; the next below is {}",
            Bytes(blocks * LOGICAL_PAGE_BYTES)
        )),
    }
}

/// A validated device in plain numbers.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) sectors: u64,
    pub(crate) read_latency: Latency,
    pub(crate) write_latency: Latency,
    pub(crate) bandwidth: Bandwidth,
    pub(crate) units: usize,
    pub(crate) queue_depth: usize,
    pub(crate) atomic_sectors: u64,
    pub(crate) endurance_bytes: f64,
    pub(crate) medium: Medium,
}

/// What the memory is, beyond its speed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Medium {
    /// Owns the time that it works for a request.
    pub work: Cause,
    /// Owns the time that it is busy with others.
    pub wait: Cause,
    pub durable: Durable,
}

/// Keeps what is written.
const NON_VOLATILE: Medium =
    Medium { work: Cause::Nvm, wait: Cause::BehindNvm, durable: Durable::Acknowledged };

impl Layout {
    /// Capacity that the host can address, in 512-byte sectors.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }
}

impl NvmConfig {
    /// Checks the configuration as a whole and resolves it.
    ///
    /// # Errors
    /// A sentence naming the key (relative to the device) and its remedy.
    pub fn validate(&self) -> Result<Layout, String> {
        let pages = blocks(self.capacity)?;
        if !(1..=1024).contains(&self.units) {
            return Err(format!("units is {}; it must lie between 1 and 1024", self.units));
        }
        if !(1..=1 << 20).contains(&self.queue_depth) {
            return Err(format!(
                "queue_depth is {}; it must lie between 1 and {}",
                self.queue_depth,
                1 << 20
            ));
        }
        for (key, rate) in [("read", self.bandwidth.read), ("write", self.bandwidth.write)] {
            if rate < Rate(1_000_000) {
                return Err(format!("bandwidth.{key} is {rate}; at least 1MB/s"));
            }
        }
        let Endurance { drive_writes_per_day, years } = self.endurance;
        for (key, value) in [("drive_writes_per_day", drive_writes_per_day), ("years", years)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(format!("endurance.{key} is {value}; it must be above 0"));
            }
        }
        if self.atomic_unit.0 == 0 || !self.atomic_unit.0.is_multiple_of(SECTOR_BYTES) {
            return Err(format!("atomic_unit is {}; it must be a multiple of 512B", self.atomic_unit));
        }
        let transfer = |rate: Rate| -> Span { rate.time_for(LOGICAL_PAGE_BYTES) };
        Ok(Layout {
            sectors: pages * LOGICAL_PAGE_BYTES / SECTOR_BYTES,
            read_latency: Latency::resolve(
                &self.read_latency,
                transfer(self.bandwidth.read),
                "read_latency",
            )?,
            write_latency: Latency::resolve(
                &self.write_latency,
                transfer(self.bandwidth.write),
                "write_latency",
            )?,
            bandwidth: self.bandwidth.clone(),
            units: self.units as usize,
            queue_depth: self.queue_depth as usize,
            atomic_sectors: self.atomic_unit.0 / SECTOR_BYTES,
            endurance_bytes: self.capacity.0 as f64 * drive_writes_per_day * 365.0 * years,
            medium: NON_VOLATILE,
        })
    }
}
