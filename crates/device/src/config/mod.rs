//! The device's configuration: what was written, and how it is resolved.

mod partition;
mod validate;

use flashkeel_engine::units::{Bytes, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::flash::{GeometryConfig, SuspensionConfig, TimingConfig, WearConfig};
use crate::front::{BufferConfig, PowerConfig, ThrottleConfig, WindowConfig};
use crate::ftl::settings::*;
use crate::ftl::{
    AllocationConfig, GcConfig, PreconditionConfig, ReadPathConfig, RedundancyConfig, RetirementConfig,
    Settings as _, SlcConfig, TaskLayouts,
};
use crate::machine::ControllerConfig;
use crate::sched::SchedulerConfig;
use crate::sched::tasks::tasks;

macro_rules! device_config {
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
        /// One SSD. Every key has a default; the defaults are the AutoSSD device.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct DeviceConfig {
            /// Shape of the flash array.
            pub geometry: GeometryConfig,
            /// Operation times and channel rate.
            pub timing: TimingConfig,
            /// What a cycle of programming and erasing costs a block.
            pub wear: WearConfig,
            /// What becomes of blocks that are worn out.
            pub retirement: RetirementConfig,
            /// Suspension of programs and erases for reads; absent if the flash cannot
            /// do that.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub suspension: Option<SuspensionConfig>,
            /// Capacity that the host can address, a size or a share of the flash, as
            /// `"87.5%"`; the rest is over-provisioning.
            pub logical_capacity: Bytes,
            /// Processing delays and queue limits of the controller.
            pub controller: ControllerConfig,
            /// Memory for map pages: `"all"`, or a size. Changed pages that leave it are
            /// programmed together as they fill a flash page, and are kept until then.
            pub map_cache: MapCacheSize,
            /// Where a logical page may be placed.
            pub allocation: AllocationConfig,
            /// How long a write is held at the front door.
            pub throttle: ThrottleConfig,
            /// When background work may run.
            pub window: WindowConfig,
            /// The write buffer.
            pub buffer: BufferConfig,
            /// Cells used with one bit each, as a cache for host writes.
            pub slc_cache: SlcConfig,
            /// What the device does when nobody asks anything of it.
            pub power: PowerConfig,
            /// Which flash pages protect each other.
            pub redundancy: RedundancyConfig,
            /// From where a page of the host is read.
            pub read_path: ReadPathConfig,
            /// Garbage collection.
            pub gc: GcConfig,
            $($($(#[$($doc)*])* pub $key: $Settings,)?)+
            /// What arbitrates the flash among tasks.
            pub scheduler: SchedulerConfig,
            /// Bandwidth of the host link, in each direction; unlimited if absent.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub host_link: Option<Rate>,
            /// LBA bits (of 512-byte sectors) that select a partition with chips, map,
            /// buffer and garbage collection of its own; empty for one partition.
            pub partition_bits: Vec<u32>,
            /// NVM sets: parts of consecutive addresses with chips, map, buffer, garbage
            /// collection and windows of their own. A flush command has no address: it
            /// flushes the buffers of all.
            #[serde(skip_serializing_if = "is_one")]
            pub sets: u32,
            /// The state the device starts in.
            pub precondition: PreconditionConfig,
        }

        impl Default for DeviceConfig {
            /// AutoSSD, Table 1 and §4.2.
            fn default() -> Self {
                DeviceConfig {
                    geometry: GeometryConfig::default(),
                    timing: TimingConfig::default(),
                    wear: WearConfig::default(),
                    retirement: RetirementConfig::default(),
                    suspension: None,
                    logical_capacity: Bytes(200 << 30),
                    controller: ControllerConfig::default(),
                    map_cache: MapCacheSize::Size(Bytes(128 << 20)),
                    allocation: AllocationConfig::default(),
                    throttle: ThrottleConfig::default(),
                    window: WindowConfig::default(),
                    buffer: BufferConfig::default(),
                    slc_cache: SlcConfig::default(),
                    power: PowerConfig::default(),
                    redundancy: RedundancyConfig::default(),
                    read_path: ReadPathConfig::default(),
                    gc: GcConfig::default(),
                    $($($key: $Settings::default(),)?)+
                    scheduler: SchedulerConfig::default(),
                    host_link: None,
                    partition_bits: Vec::new(),
                    sets: 1,
                    precondition: PreconditionConfig::default(),
                }
            }
        }

        impl DeviceConfig {
            /// Resolves the settings of tasks, for stripes of `stripe_width` chips.
            fn task_layouts(&self, stripe_width: u32) -> Result<TaskLayouts, String> {
                Ok(TaskLayouts { $($($key: self.$key.resolve(stripe_width)?,)?)+ })
            }
        }
    };
}

tasks!(device_config);

/// Whether there is one, as by default; what is not said leaves documents as they were.
fn is_one(sets: &u32) -> bool {
    *sets == 1
}

/// Memory for map pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MapCacheSize {
    /// The whole map is in memory and causes no traffic.
    All,
    /// Map pages are loaded on demand into a cache of this size.
    Size(Bytes),
}

impl Serialize for MapCacheSize {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            MapCacheSize::All => serializer.serialize_str("all"),
            MapCacheSize::Size(size) => size.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for MapCacheSize {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "all" {
            return Ok(MapCacheSize::All);
        }
        let size =
            Bytes::parse(&text).map_err(|why| serde::de::Error::custom(format!("{why}, or \"all\"")))?;
        Ok(MapCacheSize::Size(size))
    }
}

impl JsonSchema for MapCacheSize {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MapCacheSize".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let size = generator.subschema_for::<Bytes>();
        schemars::json_schema!({ "anyOf": [{ "const": "all" }, size] })
    }
}
