//! A drive as a buyer knows it, and the device that stands for it.

use flashkeel_device::{
    BufferConfig, DeviceConfig, FillPattern, GeometryConfig, MapCacheSize, ThrottleConfig, Trigger,
    WearConfig, WearLevellingConfig,
};
use flashkeel_engine::Span;
use flashkeel_engine::units::Bytes;
use serde::{Deserialize, Serialize};

use super::DAYS_PER_YEAR;

/// A drive and its endurance, which is given in one of three ways.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    /// Capacity that the host can address.
    pub capacity: Bytes,
    /// Flash beyond the capacity, as a share of it.
    #[serde(default = "seven_percent")]
    pub over_provisioning: f64,
    /// Cycles that a block endures.
    #[serde(default)]
    pub rated_cycles: Option<u32>,
    /// Bytes that the host may write in all ("TBW").
    #[serde(default)]
    pub tbw: Option<Bytes>,
    /// Times its capacity that the host may write every day of the warranty
    /// ("DWPD").
    #[serde(default)]
    pub dwpd: Option<f64>,
    /// Erases by which blocks may be apart before static wear levelling lets
    /// them change places, 1 to 200; not levelled if not given.
    #[serde(default)]
    pub wear_levelling: Option<u32>,
    /// Warranty that `dwpd` refers to.
    #[serde(default = "super::five_years")]
    pub warranty: Span,
}

/// A gibibyte is 7 % more than a gigabyte: the spare area of a drive with as
/// many gibibytes of flash as it has gigabytes for the host.
fn seven_percent() -> f64 {
    0.07
}

/// Most flash that is simulated as it is; larger drives are scaled down. Write
/// amplification and the spread of wear depend on the spare share and the
/// traffic, not on the capacity, as long as there are many blocks.
const MODEL_BYTES: f64 = (256u64 << 20) as f64;
/// Most bytes that a plain run writes: minutes of computing.
const PLAIN_BYTES: f64 = 2e12;
const FLASH_PAGE: u64 = 8 << 10;
const CHANNELS: u32 = 4;
/// Flash of a real chip, 32 Gbit; ours.
const CHIP_BYTES: f64 = 4e9;
/// Chips of a real drive for each of the model's up to which its channels are as many as
/// the model's, and the most real channels that one of those stands for: 16 in all. Ours.
const CHIPS_ON_FEW_CHANNELS: f64 = 4.0;
const MOST_CHANNELS: f64 = 4.0;

/// Most flash beyond the capacity, in percent of it; ours.
const MOST_SPARE_PERCENT: u32 = 400;

/// Erases apart up to which levelling is watched; ours, for the time it takes.
const MOST_APART: u32 = 200;

/// How a drive is simulated.
pub(super) struct Model {
    /// Share of its flash.
    pub scale: f64,
    /// Chips of the model.
    pub chips: u32,
    /// Chips of the drive that each of them stands for.
    pub stands_for: f64,
    /// Blocks of a chip, unless they came out tiny or huge.
    pub blocks_per_chip: u32,
    /// Blocks of a chip besides: as many as are free on average, which count for
    /// nothing among the thousands of a real chip.
    pub more_blocks: u32,
}

impl Drive {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence naming the key and what is wrong.
    pub fn validate(&self) -> Result<(), String> {
        if self.capacity.0 == 0 {
            return Err("drive.capacity is zero; give the drive's size, such as \"128GB\"".into());
        }
        if self.capacity.0 < 32 << 20 {
            return Err(format!("drive.capacity is {}; at least 32MiB", self.capacity));
        }
        let most = f64::from(MOST_SPARE_PERCENT) / 100.0;
        if !(0.05..=most).contains(&self.over_provisioning) {
            let share = self.over_provisioning;
            return Err(format!("drive.over_provisioning is {share}; it must lie between 0.05 and {most}"));
        }
        if self.warranty == Span::ZERO {
            return Err("drive.warranty is zero; it is the time that dwpd refers to".into());
        }
        if let Some(apart) = self.wear_levelling.filter(|apart| !(1..=MOST_APART).contains(apart)) {
            return Err(format!("drive.wear_levelling is {apart}; it must lie between 1 and {MOST_APART}"));
        }
        let given = [self.rated_cycles.is_some(), self.tbw.is_some(), self.dwpd.is_some()];
        match given.iter().filter(|&&is_given| is_given).count() {
            0 => {
                return Err("the drive's endurance is missing; give one of rated_cycles, tbw and dwpd".into());
            }
            1 => {}
            _ => {
                return Err(
                    "the drive's endurance is given twice; give one of rated_cycles, tbw and dwpd".into()
                );
            }
        }
        let zero = [
            ("rated_cycles", self.rated_cycles == Some(0)),
            ("tbw", self.tbw == Some(Bytes(0))),
            ("dwpd", self.dwpd.is_some_and(|dwpd| dwpd.is_nan() || dwpd <= 0.0)),
        ];
        match zero.iter().find(|(_, is_zero)| *is_zero) {
            Some((key, _)) => Err(format!("drive.{key} is not above zero; the drive would last no time")),
            None => self.validate_room(),
        }
    }

    /// Refuses what leaves the model, whose blocks are few where the drive is small, no room to
    /// collect.
    fn validate_room(&self) -> Result<(), String> {
        let fits = |over_provisioning: f64| {
            let drive = Drive { over_provisioning, ..self.clone() };
            // What wears it out and who throttles it takes no room.
            let device = drive.device(&drive.model(), WearConfig::default(), ThrottleConfig::default())?;
            device.validate().map(drop)
        };
        let share = self.over_provisioning;
        let Err(why) = fits(share) else { return Ok(()) };
        let percent = (share * 100.0).floor() as u32 + 1..=MOST_SPARE_PERCENT;
        match percent.map(|percent| f64::from(percent) / 100.0).find(|&more| fits(more).is_ok()) {
            Some(enough) => Err(format!(
                "drive.over_provisioning is {share}, too little for a drive of {}, which has few blocks: at least \
                 {enough}, or more capacity",
                self.capacity
            )),
            None => Err(why),
        }
    }

    /// Bytes of flash.
    pub fn flash_bytes(&self) -> f64 {
        self.capacity.0 as f64 * (1.0 + self.over_provisioning)
    }

    /// Cycles that a block endures, if every byte the host writes is
    /// `write_amplification` bytes programmed.
    ///
    /// # Errors
    /// A sentence, where the endurance is not even a cycle or too large.
    pub fn cycles(&self, write_amplification: f64) -> Result<u32, String> {
        let days = self.warranty.as_secs_f64() / 86_400.0;
        let host_bytes = match (self.tbw, self.dwpd) {
            (Some(tbw), _) => tbw.0 as f64,
            (_, Some(dwpd)) => dwpd * self.capacity.0 as f64 * days,
            _ => return Ok(self.rated_cycles.unwrap_or(0)),
        };
        let cycles = (host_bytes * write_amplification / self.flash_bytes()).round();
        if !(1.0..=1e7).contains(&cycles) {
            return Err(format!(
                "the drive's endurance comes to {cycles} cycles of a block; between 1 and 10000000 make sense"
            ));
        }
        Ok(cycles as u32)
    }

    /// Times its capacity that is written every day.
    pub fn writes_per_day(&self, bytes_per_day: f64) -> f64 {
        bytes_per_day / self.capacity.0 as f64
    }

    /// A model small enough to be watched for as long as it takes, with the same
    /// spare share.
    pub(super) fn model(&self) -> Model {
        let (chips, scale) = (8, (MODEL_BYTES / self.flash_bytes()).min(1.0));
        let stands_for = (self.flash_bytes() / CHIP_BYTES / f64::from(chips)).max(1.0);
        Model { scale, chips, stands_for, blocks_per_chip: 128, more_blocks: if scale < 1.0 { 2 } else { 0 } }
    }

    /// The drive as it is, for a plain run.
    pub(super) fn whole(&self, wear: WearConfig, throttle: ThrottleConfig) -> Result<DeviceConfig, String> {
        let bytes = self.flash_bytes() * f64::from(wear.policy().rated_cycles().unwrap_or(0));
        if self.flash_bytes() > 8.0 * MODEL_BYTES || bytes > PLAIN_BYTES {
            return Err(format!(
                "method is \"plain\", but the drive takes {:.0} GB before it is worn out; at most {:.0} GB, and \
                 {:.0} GB of flash; use \"fast-forward\"",
                bytes / 1e9,
                PLAIN_BYTES / 1e9,
                8.0 * MODEL_BYTES / 1e9
            ));
        }
        self.device(&Model { scale: 1.0, ..self.model() }, wear, throttle)
    }

    /// The device of READY's setting: MLC with pages of 8 KiB, the times of
    /// AutoSSD's, its map in memory and nothing padded.
    pub(super) fn device(
        &self,
        model: &Model,
        wear: WearConfig,
        throttle: ThrottleConfig,
    ) -> Result<DeviceConfig, String> {
        let &Model { scale, chips, stands_for, blocks_per_chip, more_blocks } = model;
        let pages_per_chip = self.flash_bytes() * scale / FLASH_PAGE as f64 / f64::from(chips);
        let pages_per_block = (pages_per_chip / f64::from(blocks_per_chip)).clamp(8.0, 256.0) as u32;
        let blocks = (pages_per_chip / f64::from(pages_per_block)).round().max(1.0) as u32;
        let geometry = GeometryConfig {
            channels: CHANNELS,
            chips_per_channel: chips / CHANNELS,
            planes_per_chip: 1,
            blocks_per_plane: blocks + more_blocks,
            pages_per_block,
            page_size: Bytes(FLASH_PAGE),
            multi_plane: false,
        };
        let flash = f64::from(blocks * pages_per_block * chips);
        let logical = (flash / (1.0 + self.over_provisioning)) as u64 * FLASH_PAGE;
        let mut config = DeviceConfig {
            geometry,
            logical_capacity: Bytes(logical),
            map_cache: MapCacheSize::All,
            buffer: BufferConfig { flush: vec![Trigger::Page], size: Bytes(1 << 20), ..Default::default() },
            wear,
            throttle,
            ..DeviceConfig::default()
        };
        // So many chips work at once as one would that is as much faster.
        let timing = &mut config.timing;
        let times = timing.read.iter_mut().chain(&mut timing.program).chain([&mut timing.erase]);
        times.for_each(|time| time.0 = ((time.0 as f64 / stands_for) as u64).max(1));
        let channels = (stands_for / CHIPS_ON_FEW_CHANNELS).clamp(1.0, MOST_CHANNELS);
        timing.channel_rate.0 = (timing.channel_rate.0 as f64 * channels) as u64;
        if let Some(threshold) = self.wear_levelling {
            config.wear_levelling = WearLevellingConfig { enabled: true, threshold, ..Default::default() };
        }
        config.gc.start_below = chips + chips / 2;
        config.gc.stop_above = 2 * chips;
        config.gc.concurrent_victims = 2;
        config.precondition.pattern = FillPattern::Random;
        config.precondition.read_counts_below = Some(0);
        Ok(config)
    }

    /// Years that `days` are.
    pub(super) fn years(days: f64) -> f64 {
        days / DAYS_PER_YEAR
    }
}
