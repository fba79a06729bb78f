//! How long each flash operation takes.

use flashkeel_engine::units::Rate;
use flashkeel_engine::{LOGICAL_PAGE_BYTES, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Geometry;
use crate::limits::{LONGEST, SLOWEST};

/// Operation times and the channel's rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TimingConfig {
    /// Array read times (tR), one per page type; page n of a block has type
    /// n modulo their number.
    pub read: Vec<Span>,
    /// Program times (tPROG), one per page type.
    pub program: Vec<Span>,
    /// Block erase time (tBERS).
    pub erase: Span,
    /// Transfer rate of a channel.
    pub channel_rate: Rate,
}

impl Default for TimingConfig {
    /// AutoSSD, Table 1.
    fn default() -> Self {
        TimingConfig {
            read: vec![Span::from_us(50)],
            program: vec![Span::from_us(500)],
            erase: Span::from_ms(5),
            channel_rate: Rate(400_000_000),
        }
    }
}

/// Times by page and by number of units moved, ready to look up.
#[derive(Clone, Debug)]
pub struct Timing {
    read: Vec<Span>,
    program: Vec<Span>,
    slc_program: Span,
    erase: Span,
    transfer: Vec<Span>,
}

impl Timing {
    /// Resolves a configuration for a geometry, with the program time of the
    /// SLC cache if there is one.
    ///
    /// # Errors
    /// A sentence naming the key when a list is empty or a time out of range.
    pub fn resolve(
        config: &TimingConfig,
        slc_program: Option<Span>,
        geometry: &Geometry,
    ) -> Result<Timing, String> {
        let per_page = |key: &str, times: &[Span]| {
            if times.is_empty() {
                return Err(format!("timing.{key} is empty; give one time per page type"));
            }
            Ok((0..geometry.pages_per_block as usize)
                .map(|page| times[page % times.len()])
                .collect::<Vec<_>>())
        };
        let longest = config.read.iter().chain(&config.program).chain([&config.erase]).max();
        if let Some(span) = longest.filter(|&&span| span > LONGEST) {
            return Err(format!("timing: an operation of {span}; at most {LONGEST}"));
        }
        if config.channel_rate < SLOWEST {
            return Err(format!("timing.channel_rate is {}; at least {SLOWEST}", config.channel_rate));
        }
        let transfer = |units| config.channel_rate.time_for(units * LOGICAL_PAGE_BYTES);
        Ok(Timing {
            read: per_page("read", &config.read)?,
            program: per_page("program", &config.program)?,
            slc_program: slc_program.unwrap_or(Span::ZERO),
            erase: config.erase,
            transfer: (0..=u64::from(geometry.units_per_page)).map(transfer).collect(),
        })
    }

    /// Array read time of page number `page` in its block.
    #[inline]
    pub fn read(&self, page: u32) -> Span {
        self.read[page as usize]
    }

    /// Program time of page number `page` in its block, or of any page of the
    /// SLC cache.
    #[inline]
    pub fn program(&self, page: u32, slc: bool) -> Span {
        if slc { self.slc_program } else { self.program[page as usize] }
    }

    /// Erase time of a block.
    #[inline]
    pub fn erase(&self) -> Span {
        self.erase
    }

    /// Channel time to move `units` mapping units.
    #[inline]
    pub fn transfer(&self, units: u32) -> Span {
        self.transfer[units as usize]
    }
}
