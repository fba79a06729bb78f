//! How many of everything there are.

use flashkeel_engine::LOGICAL_PAGE_BYTES;
use flashkeel_engine::units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The flash array's shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GeometryConfig {
    /// Channels between controller and flash.
    pub channels: u32,
    /// Chips (dies) on each channel.
    pub chips_per_channel: u32,
    /// Planes in each chip.
    pub planes_per_chip: u32,
    /// Blocks in each plane. The whole flash is at most 15.7 TiB: of a larger drive take a
    /// part, with as much less load.
    pub blocks_per_plane: u32,
    /// Pages in each block.
    pub pages_per_block: u32,
    /// Bytes in each page: 4, 8, 16, 32, 64 or 128 KiB.
    pub page_size: Bytes,
    /// Whether all planes of a chip are programmed and erased together. Then
    /// one block of each plane forms the unit of erasing, and a flash page is
    /// as many times larger; at most 256 KiB, and a power of two, so that three or six
    /// planes cannot be together.
    pub multi_plane: bool,
}

impl Default for GeometryConfig {
    /// AutoSSD, Table 1.
    fn default() -> Self {
        GeometryConfig {
            channels: 4,
            chips_per_channel: 4,
            planes_per_chip: 2,
            blocks_per_plane: 1024,
            pages_per_block: 512,
            page_size: Bytes(16 << 10),
            multi_plane: false,
        }
    }
}

/// The array in the units the rest of the device works with: planes are
/// folded into blocks or pages, and pages are counted in 4 KiB units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Channels.
    pub channels: u32,
    /// Chips on each channel.
    pub chips_per_channel: u32,
    /// Units of erasing in each chip.
    pub blocks_per_chip: u32,
    /// Units of programming in each block.
    pub pages_per_block: u32,
    /// 4 KiB mapping units in each unit of programming.
    pub units_per_page: u32,
}

impl Geometry {
    /// Resolves a configuration.
    ///
    /// # Errors
    /// A sentence naming the key when a number is zero or too large.
    pub fn resolve(config: &GeometryConfig) -> Result<Geometry, String> {
        let counts = [
            ("channels", config.channels, 256),
            ("chips_per_channel", config.chips_per_channel, 256),
            ("planes_per_chip", config.planes_per_chip, 16),
            ("blocks_per_plane", config.blocks_per_plane, 1 << 20),
            ("pages_per_block", config.pages_per_block, 1 << 14),
        ];
        for (key, count, most) in counts {
            if count == 0 || count > most {
                return Err(format!("geometry.{key} is {count}; it must lie between 1 and {most}"));
            }
        }
        let size = config.page_size.0;
        if size == 0 || !size.is_multiple_of(LOGICAL_PAGE_BYTES) || size > 128 << 10 {
            return Err(format!(
                "geometry.page_size is {}; it must be 4, 8, 16, 32, 64 or 128 KiB",
                config.page_size
            ));
        }
        let units = (size / LOGICAL_PAGE_BYTES) as u32;
        let planes = config.planes_per_chip;
        let (blocks_per_chip, units_per_page) = if config.multi_plane {
            (config.blocks_per_plane, units * planes)
        } else {
            (config.blocks_per_plane * planes, units)
        };
        if units_per_page > 64 || !units_per_page.is_power_of_two() {
            let key = if units.is_power_of_two() { "planes_per_chip" } else { "page_size" };
            return Err(format!(
                "geometry.{key}: a flash page of {units_per_page} mapping units of 4KiB \
                 (page_size x planes programmed together); \
                 it must be a power of two, at most 64"
            ));
        }
        let geometry = Geometry {
            channels: config.channels,
            chips_per_channel: config.chips_per_channel,
            blocks_per_chip,
            pages_per_block: config.pages_per_block,
            units_per_page,
        };
        let units =
            u64::from(geometry.chips()) * u64::from(blocks_per_chip) * u64::from(geometry.units_per_block());
        // The top of the 32-bit address space names write-buffer entries.
        if units > u64::from(u32::MAX) - (1 << 26) {
            return Err(format!(
                "geometry: {units} mapping units of 4KiB; at most 15.7 TiB are \
                 supported: of a larger drive take a part, with as much less load"
            ));
        }
        Ok(geometry)
    }

    /// Chips of the device.
    pub fn chips(&self) -> u32 {
        self.channels * self.chips_per_channel
    }

    /// 4 KiB mapping units in each block.
    pub fn units_per_block(&self) -> u32 {
        self.pages_per_block * self.units_per_page
    }

    /// Bytes programmed by one program operation.
    pub fn page_bytes(&self) -> u64 {
        u64::from(self.units_per_page) * LOGICAL_PAGE_BYTES
    }

    /// 4 KiB mapping units of the whole array.
    pub fn units(&self) -> u64 {
        u64::from(self.chips()) * u64::from(self.blocks_per_chip) * u64::from(self.units_per_block())
    }
}
