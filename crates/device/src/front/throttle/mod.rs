//! The throttle axis: how long a write is held at the device's front door.
//!
//! One file per policy. To add one: write the file, add its line to the list.

pub(crate) mod epochs;

use dyn_clone::DynClone;
use flashkeel_engine::units::Rate;
use flashkeel_engine::{Hint, Span, Time};

use crate::flash::Endurance;

flashkeel_config::axis! {
    /// How long a write is held before it is worked on.
    pub enum ThrottleConfig as "throttle": Build {
        /// Not at all.
        None(None) in none = "none",
        /// Until the next period once a period's share is used up.
        StaticCap(StaticCap) in static_cap = "static-cap",
        /// Evenly, so that the rated cycles last the required lifetime.
        Dynamic(Dynamic) in dynamic = "dynamic",
        /// Evenly, so that the rated cycles and what idle blocks recover last
        /// the required lifetime.
        Ready(Ready) in ready = "ready",
    }
}

impl Default for ThrottleConfig {
    fn default() -> Self {
        ThrottleConfig::None(none::None::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy, at rest; `None` where it never holds anything.
    fn build(&self) -> Option<Box<dyn Throttle>>;

    /// The same policy with the settings by which a device reaches `goal`.
    fn aimed_at(&self, goal: &Goal) -> ThrottleConfig;

    /// Whether [`aimed_at`](Self::aimed_at) looks at the goal's rate.
    fn is_aimed_by_rate(&self) -> bool {
        false
    }

    /// The longest epoch that the policy plans by, if it plans by epochs: no
    /// lifetime can be shorter.
    fn longest_epoch(&self) -> Option<Span> {
        Option::None
    }

    /// Whether the policy has to know what has been used of the endurance.
    fn needs_wear(&self) -> bool {
        false
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// What a throttle is there for.
#[derive(Clone, Debug)]
pub struct Goal {
    /// How long the device has to last.
    pub lifetime: Span,
    /// The throughput at which its rated cycles last as long.
    pub rate: Rate,
    /// Lengths of an epoch to choose from; the policy's own if not given.
    pub epochs: Option<Vec<Span>>,
    /// Shorter epochs would all be alike.
    pub shortest_epoch: Span,
}

/// A throttle.
pub trait Throttle: DynClone + Send {
    /// How long a write of `bytes` that arrives at `now` with `hint` is held. Called
    /// once per write, in order of arrival.
    fn delay(&mut self, now: Time, bytes: u64, hint: Hint) -> Span;

    /// When it wants to be told what has been used of the endurance.
    fn review_due(&self) -> Time {
        Time::MAX
    }

    /// Learns at `now`, not before [`review_due`](Self::review_due), what has
    /// been used of the endurance.
    fn review(&mut self, _now: Time, _endurance: &Endurance) {}

    /// What becomes of a long stretch of page writes that follow each other at
    /// equal gaps: the same as calling [`delay`](Self::delay) for each of them,
    /// up to rounding to whole periods.
    ///
    /// `tell` gets the numbers of pages that are held equally long, and for how
    /// long in nanoseconds.
    fn stretch(&mut self, stretch: &Stretch, tell: &mut dyn FnMut(f64, f64)) -> Passed;
}

/// Writes of one page each, every one begun `gap_ns` after the one before it
/// has left the throttle.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// When it begins.
    pub from: Time,
    /// When it ends, unless the pages end first.
    pub until: Time,
    /// Nanoseconds between the release of a page and the next one's arrival.
    pub gap_ns: f64,
    /// Number of pages.
    pub pages: f64,
}

/// What has passed a throttle in a stretch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passed {
    /// Number of pages written.
    pub pages: f64,
    /// When the stretch ended.
    pub until: Time,
}

/// Unit of throttling: the same delay applies to each page of a write (READY:
/// "a page write (page size is 8 KB)").
pub const THROTTLE_UNIT_BYTES: u64 = 8 << 10;

impl Stretch {
    /// What passes if a page takes `each_ns`.
    pub(crate) fn pass(&self, each_ns: f64) -> Passed {
        let fit = self.until.since(self.from).0 as f64 / each_ns;
        if fit <= self.pages {
            Passed { pages: fit, until: self.until }
        } else {
            Passed { pages: self.pages, until: self.from + Span((self.pages * each_ns) as u64) }
        }
    }
}

dyn_clone::clone_trait_object!(Throttle);
