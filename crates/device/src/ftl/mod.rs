//! The flash translation layer of one partition: what is constant of it, its
//! tables, and the tasks that keep them.

mod aging;
pub(crate) mod allocation;
mod background;
mod divisor;
mod fill;
mod layout;
mod mapping;
mod power_cut;
mod programs;
pub(crate) mod read_path;
pub(crate) mod redundancy;
mod relocation;
pub(crate) mod retirement;
mod shape;
mod stalled;
mod tables;
mod updates;

macro_rules! modules {
    (
        tasks { $(
            $(#[$($task_doc:tt)*])* $Task:ident = $label:literal {
                operations { $($operations:tt)* }
                weight { $($weight:tt)* }
                share { $($share:tt)* }
                work { $($Work:ident in $module:ident)? }
                settings { $($(#[$($doc:tt)*])* $key:ident: $Settings:ident)? }
            }
        )+ }
        others { $(
            $(#[$($other_doc:tt)*])* $Other:ident through $Queue:ident {
                operations { $($other_operations:tt)* }
                work { $($OtherWork:ident in $other_module:ident)? }
            }
        )+ }
    ) => {
        $($(pub(crate) mod $module;)?)+
        $($(pub(crate) mod $other_module;)?)+

        /// The settings of tasks that a device may do without.
        pub mod settings {
            $($(pub use super::$key::$Settings;)?)+
        }
    };
}

tasks!(modules);

pub(crate) use aging::Aging;
pub use allocation::AllocationConfig;
use background::{Background as _, Tasks};
pub(crate) use background::{Gauge, Settings};
pub(crate) use fill::Precondition;
pub use fill::{FillPattern, PreconditionConfig, SteadyState};
pub(crate) use gc::Gc;
pub use gc::GcConfig;
pub(crate) use layout::{PartitionLayout, Policies, TaskLayouts};
pub(crate) use programs::Finished;
pub use read_path::ReadPathConfig;
pub use redundancy::{RedundancyConfig, UpdateConfig};
pub(crate) use redundancy::{StaticStripes, Stripes};
pub(crate) use restoring::Part;
pub use retirement::RetirementConfig;
pub(crate) use shape::Shape;
pub use slc::SlcConfig;
pub(crate) use tables::{
    Bits, BlockState, Entries, Entry, Erased, Kept, Known, LPNS_PER_MAP_PAGE, Lane, Map, MapCache, Reserves,
    SparesLayout, Tables, Unsaved, Waiter,
};
pub use tables::{Cycle, Found, Medium, MediumShape, Page, Place};

use std::io::{self, Read};

use crate::sched::tasks::tasks;

/// The translation layer of one partition.
#[derive(Clone)]
pub(crate) struct Ftl {
    /// What never changes.
    pub shape: Shape,
    /// Where everything is.
    pub tables: Tables,
    /// What is being done about it.
    tasks: Tasks,
    /// Pages of the host's program that finished last.
    pub finished: Vec<Finished>,
    /// Whether background work may run in the present window.
    pub background_allowed: bool,
    /// Whether what is queued for chips in the background then waits too, while the host
    /// does not need collection.
    pub holds_queued: bool,
    /// Whether the host has needed collection in the present window nevertheless.
    pub window_broken: bool,
    /// Flash pages that were read after the last power cut, to find the newest copies.
    pub pages_scanned: u32,
}

impl Ftl {
    /// An empty partition number `index` of a validated device.
    pub fn new(layout: &PartitionLayout, index: u16, seed: u64) -> Self {
        let shape = Shape::new(layout, index);
        Ftl {
            tables: Tables::new(layout, &shape),
            shape,
            tasks: Tasks::new(layout, index, seed),
            finished: Vec::new(),
            background_allowed: true,
            holds_queued: false,
            window_broken: false,
            pages_scanned: 0,
        }
    }

    /// Forgets what a restored partition would not know either (rotations,
    /// random numbers drawn), so that a run is the same from a saved state.
    pub fn rest(&mut self, layout: &PartitionLayout, seed: u64) {
        self.tasks.gc = gc::Gc::new(layout, self.shape.index, seed);
        self.tables.points.rest();
        self.note_rest();
    }

    /// Restores what the tables of another partition of the same configuration
    /// saved into this one, which is empty.
    ///
    /// # Errors
    /// If the input ends early or contradicts itself.
    pub fn restore(&mut self, input: &mut dyn Read) -> io::Result<()> {
        self.tables.restore(input)?;
        self.note_rest();
        Ok(())
    }

    /// Checks every conservation law. Slow; for tests.
    ///
    /// # Panics
    /// If one is broken.
    pub fn check(&self) {
        self.tables.check();
        ecc_check::EccCheck::verify(self);
    }
}
