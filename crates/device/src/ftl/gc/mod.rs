//! Garbage collection.

pub mod invocation;
mod task;
pub mod victim;

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use invocation::InvocationConfig;
pub use victim::VictimConfig;

use crate::config::Layout;
use victim::Victim;

/// When, how fast and whereby garbage is collected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GcConfig {
    /// Free blocks of a partition below which collection starts; at least what
    /// moving data needs.
    pub start_below: u32,
    /// Free blocks of a partition above which collection stops.
    pub stop_above: u32,
    /// Which block is emptied next.
    pub victim: VictimConfig,
    /// When collection runs.
    pub invocation: InvocationConfig,
    /// Blocks emptied at the same time.
    pub concurrent_victims: u32,
    /// Flash pages held in the controller while they are moved.
    pub pages_in_flight: u32,
}

impl Default for GcConfig {
    /// AutoSSD, §4.2; the paper gives no figure for the last two.
    fn default() -> Self {
        GcConfig {
            start_below: 128,
            stop_above: 256,
            victim: VictimConfig::default(),
            invocation: InvocationConfig::default(),
            concurrent_victims: 16,
            pages_in_flight: 64,
        }
    }
}

/// Collection within one allocation domain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Domain {
    /// Between the start and the stop threshold.
    pub active: bool,
    /// Where the next search for a victim begins, so that ties spread.
    pub cursor: usize,
    /// Victims since the host could last write.
    pub fruitless: u32,
    /// No victim was found or none had room; not tried again before a block
    /// is erased or becomes full.
    pub starved: bool,
}

/// The garbage collection task of one partition: when it collects what.
#[derive(Clone)]
pub(crate) struct Gc {
    /// Thresholds of each domain.
    pub start_below: u32,
    pub stop_above: u32,
    pub invocation: InvocationConfig,
    pub victim: Box<dyn Victim>,
    /// Takes over when free blocks run out, or when every block has been
    /// emptied in vain, so that space is always gained.
    pub last_resort: Box<dyn Victim>,
    pub domains: Vec<Domain>,
    /// Most blocks of one domain emptied at the same time.
    max_jobs: u32,
}

impl Gc {
    /// At rest, in partition number `index`.
    pub fn new(layout: &Layout, index: u16, seed: u64) -> Self {
        let random = Stream::new(seed, &format!("gc/{index}"));
        let config = &layout.gc;
        Gc {
            start_below: layout.partition.gc_start_below,
            stop_above: layout.partition.gc_stop_above,
            invocation: config.invocation.clone(),
            victim: config.victim.policy().build(random.clone()),
            last_resort: VictimConfig::Greedy(Default::default()).policy().build(random),
            domains: vec![Domain::default(); layout.partition.domains as usize],
            max_jobs: layout.partition.gc_jobs,
        }
    }
}
