//! The write-buffer axis: when a write is acknowledged, and when buffered
//! pages go to flash.
//!
//! One file per policy. To add one: write the file, add its line to the list.

mod fullest;
mod state;
mod stripe_queue;

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{LOGICAL_PAGE_BYTES, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use state::{Buffer, BufferLayout, Pending, Triggers};
pub(crate) use stripe_queue::StripeQueue;

use crate::flash::Geometry;
use crate::limits::LONGEST;

flashkeel_config::axis! {
    /// When a write is acknowledged.
    pub enum BufferKind as "buffer kind": BufferPolicy {
        /// When it is in flash: it waits for others to fill its flash page, for up to `timeout`.
        None(None) in none = "none",
        /// When it is in the buffer, which is flushed in the background.
        Back(Back) in back = "back",
        /// When it is in the buffer; the write that fills it waits for the flush.
        Fore(Fore) in fore = "fore",
        /// When it is in the buffer, which is flushed in groups of pages.
        Stripe(Stripe) in stripe = "stripe",
    }
}

/// What becomes of a page that is written again while it is buffered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rewrite {
    /// The new data takes another place; the old is programmed in vain.
    #[default]
    Append,
    /// The new data replaces the old.
    Coalesce,
}

/// What starts a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// Enough pages to fill a flash page: they are programmed at once.
    Page,
    /// The buffer is full: all of it is flushed.
    Full,
    /// The buffer is filled above `watermark`: flushed until it is below.
    Watermark,
    /// A read arrives: all that its first page's partition buffers is flushed, and the read
    /// waits for that.
    Read,
    /// A page has been buffered for `timeout`: it is padded and programmed.
    Timeout,
}

/// The write buffer, in controller memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BufferConfig {
    /// When a write is acknowledged.
    pub kind: BufferKind,
    /// Data that can wait for a flush; as much again may be being flushed.
    /// Divided evenly among partitions.
    pub size: Bytes,
    /// Whether a power cut empties it, as in a drive without capacitors: a write
    /// is then durable once a flush behind it is acknowledged, or the write itself
    /// where it forces unit access or the kind is `none`.
    pub volatile: bool,
    /// What becomes of a page that is written again while it is buffered.
    pub rewrite: Rewrite,
    /// What starts a flush.
    pub flush: Vec<Trigger>,
    /// How long a page may be buffered, for the trigger `timeout`. If absent 100 ms, and
    /// 100 us where the kind is `none`: there a write waits for so long for others to fill
    /// its flash page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Fraction of `size`, for the trigger `watermark`.
    pub watermark: f64,
}

impl Default for BufferConfig {
    /// AutoSSD, §4.2: aggregated to flash pages, acknowledged in controller
    /// memory. The paper gives no size; this is ours.
    fn default() -> Self {
        BufferConfig {
            kind: BufferKind::Back(back::Back::default()),
            size: Bytes(4 << 20),
            volatile: false,
            rewrite: Rewrite::Append,
            flush: vec![Trigger::Page, Trigger::Timeout],
            timeout: None,
            watermark: 0.8,
        }
    }
}

impl BufferConfig {
    /// Checks the configuration; returns the buffer of each of so many `partitions`.
    ///
    /// # Errors
    /// A sentence naming the key and its remedy.
    pub(crate) fn resolve(&self, geometry: &Geometry, partitions: u64) -> Result<BufferLayout, String> {
        let pages = self.size.0 / LOGICAL_PAGE_BYTES / partitions;
        let least = u64::from(geometry.units_per_page) * u64::from(self.kind.policy().pages_per_flush());
        if pages < least || pages > 1 << 22 {
            return Err(format!(
                "buffer.size is {}; each of {partitions} partition(s) needs at least {} and at most 16GiB",
                self.size,
                Bytes(least * LOGICAL_PAGE_BYTES)
            ));
        }
        let has = |trigger| self.flush.contains(&trigger);
        if !(has(Trigger::Page) || has(Trigger::Full) || has(Trigger::Watermark)) {
            return Err("buffer.flush names none of \"page\", \"full\" and \"watermark\"; \
                        nothing would flush a stream of writes"
                .into());
        }
        if self.kind.policy().waits_for_own_flush() && has(Trigger::Page) {
            return Err(
                "buffer.flush has \"page\" with kind \"fore\": every write that fills a flash page would \
                        wait for a flush; use [\"full\"]"
                    .into(),
            );
        }
        if self.kind.policy().acknowledges_in_flash() {
            if self.rewrite == Rewrite::Coalesce {
                return Err(
                    "buffer.rewrite is \"coalesce\", but kind \"none\" keeps nothing to coalesce with".into(),
                );
            }
            if !(has(Trigger::Page) && has(Trigger::Timeout)) {
                return Err("buffer.flush needs \"page\" and \"timeout\" with kind \"none\"; \
                            writes would never be acknowledged"
                    .into());
            }
        }
        let timeout = self.timeout.unwrap_or_else(|| self.kind.policy().timeout());
        if has(Trigger::Timeout) && !(Span(1)..=LONGEST).contains(&timeout) {
            return Err(format!(
                "buffer.timeout is {timeout}; give the time a page may be buffered, at most {LONGEST}"
            ));
        }
        if !(self.watermark > 0.0 && self.watermark < 1.0) {
            return Err(format!("buffer.watermark is {}; it must lie above 0 and below 1", self.watermark));
        }
        let group = geometry.units_per_page * self.kind.policy().pages_per_flush();
        let watermark = (pages as f64 * self.watermark) as u32;
        Ok(BufferLayout {
            size: pages as u32,
            triggers: Triggers {
                page: has(Trigger::Page).then_some(group),
                full: has(Trigger::Full),
                watermark: has(Trigger::Watermark).then_some(watermark),
                read: has(Trigger::Read),
                timeout: has(Trigger::Timeout).then_some(timeout),
            },
            coalesces: self.rewrite == Rewrite::Coalesce,
            is_volatile: self.volatile,
            kind: self.kind.clone(),
        })
    }
}

/// How full the buffer is, in 4 KiB pages.
#[derive(Clone, Copy, Debug)]
pub struct Occupancy {
    /// Pages waiting for a flush.
    pub pending: u32,
    /// Pages being flushed.
    pub flushing: u32,
    /// Pages that may wait.
    pub size: u32,
}

impl Occupancy {
    /// Pages that may enter before a flush.
    pub fn room(&self) -> u32 {
        self.size.saturating_sub(self.pending)
    }
}

/// A buffer policy.
pub trait BufferPolicy {
    /// Whether another page may enter.
    fn admits(&self, occupancy: Occupancy) -> bool;

    /// Whether a write is acknowledged only when its pages are in flash.
    fn acknowledges_in_flash(&self) -> bool {
        false
    }

    /// Whether the write that causes a flush is acknowledged only when the
    /// flush is over.
    fn waits_for_own_flush(&self) -> bool {
        false
    }

    /// How long a page is buffered before it is programmed with others or without, where the
    /// configuration does not say. (Ours.)
    fn timeout(&self) -> Span {
        Span::from_ms(100)
    }

    /// Flash pages that go to flash together under the trigger `page`.
    fn pages_per_flush(&self) -> u32 {
        1
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}
