//! The translation layer of one partition in plain numbers.

use super::background::{Room, Settings};
use super::gc::{GcLayout, InvocationConfig, VictimConfig};
use super::slc::SlcLayout;
use super::{AllocationConfig, Reserves, SparesLayout, StaticStripes, UpdateConfig};
use crate::flash::{Geometry, WearConfig};
use crate::sched::tasks::tasks;

/// The translation layer of one partition in plain numbers, and the policies it
/// is built with.
#[derive(Clone, Debug)]
pub(crate) struct PartitionLayout {
    /// The whole device's flash array.
    pub geometry: Geometry,
    pub chips: u32,
    /// Logical pages of the host.
    pub lpns: u32,
    pub map_pages: u32,
    pub cached_map_pages: u32,
    /// Flash pages of a stripe; 1 without redundancy.
    pub stripe_width: u32,
    /// Logical stripes, if any.
    pub static_stripes: Option<StaticStripes>,
    /// Whether a power cut empties the write buffer.
    pub has_volatile_buffer: bool,
    /// Allocation domains.
    pub domains: u32,
    pub reserves: Reserves,
    pub gc: GcLayout,
    /// Of the tasks that it may do without.
    pub tasks: TaskLayouts,
    pub slc: SlcLayout,
    /// Blocks that may retire, where any do.
    pub spares: Option<SparesLayout>,
    pub policies: Policies,
}

impl PartitionLayout {
    /// Mapping units that a block can hold.
    pub fn data_units_per_block(&self) -> u32 {
        let rows = self.geometry.units_per_block();
        if self.stripe_width > 1 { rows * (self.stripe_width - 1) } else { rows }
    }

    /// Mapping units that a block can hold and still free space as a victim: all but
    /// a flash page of them.
    pub fn useful_units(&self) -> u32 {
        let units = self.data_units_per_block();
        units.saturating_sub(self.geometry.units_per_page).max(1)
    }

    /// Whether map pages have a place in flash.
    pub fn map_in_flash(&self) -> bool {
        self.cached_map_pages < self.map_pages || self.tasks.keeper_of_map().is_some()
    }
}

/// The policies of a translation layer.
#[derive(Clone, Debug)]
pub(crate) struct Policies {
    pub allocation: AllocationConfig,
    pub wear: WearConfig,
    pub victim: VictimConfig,
    pub invocation: InvocationConfig,
    /// How the parity of logical stripes is updated.
    pub update: UpdateConfig,
}

macro_rules! layouts {
    (
        tasks { $(
            $(#[$($task_doc:tt)*])* $Task:ident = $label:literal {
                operations { $($operations:tt)* }
                weight { $($weight:tt)* }
                share { $($share:tt)* }
                work { $($work:tt)* }
                settings { $($(#[$($doc:tt)*])* $key:ident: $Settings:ident)? }
            }
        )+ }
        others { $($others:tt)* }
    ) => {
        /// What the settings of tasks resolve to.
        #[derive(Clone, Debug)]
        pub(crate) struct TaskLayouts {
            $($($(#[$($doc)*])* pub $key: <super::$key::$Settings as Settings>::Layout,)?)+
        }

        impl TaskLayouts {
            /// Those of the defaults.
            #[cfg(test)]
            pub fn at_rest() -> TaskLayouts {
                TaskLayouts { $($($key: super::$key::$Settings::default().resolve(1).expect("valid"),)?)+ }
            }

            /// What each task needs of a domain of so many chips, or stripes, by its
            /// label.
            pub fn rooms(&self, chips: u32) -> Vec<(&'static str, Room)> {
                vec![$($(($label, super::$key::$Settings::room(&self.$key, chips)),)?)+]
            }

            /// The label of a task that gives map pages a place in flash.
            pub fn keeper_of_map(&self) -> Option<&'static str> {
                let keepers = [
                    $($(($label, super::$key::$Settings::keeps_map_in_flash(&self.$key)),)?)+
                ];
                keepers.into_iter().find(|(_, keeps)| *keeps).map(|(label, _)| label)
            }
        }
    };
}

tasks!(layouts);
