//! The writeback axis: when what is modified in the upper device is written to the
//! lower.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;
use flashkeel_engine::{Span, Time};

flashkeel_config::axis! {
    /// When what is modified in the upper device is written to the lower.
    pub enum WritebackConfig as "writeback": Build {
        /// Only when it is evicted.
        None(None) in none = "none",
        /// A batch each period, oldest first.
        Periodic(Periodic) in periodic = "periodic",
        /// While no read is inside, as much as fits the gap that is expected until the
        /// next request (Roy, eq. 3.3 and 3.4).
        Opportunistic(Opportunistic) in opportunistic = "opportunistic",
        /// As soon as too much of the upper is modified (Roy, eq. 3.5).
        Conditional(Conditional) in conditional = "conditional",
        /// In gaps, and as soon as too much is modified.
        Both(Both) in both = "both",
    }
}

impl Default for WritebackConfig {
    fn default() -> Self {
        WritebackConfig::Periodic(periodic::Periodic::default())
    }
}

/// How a tier stands when it asks what to write back.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// Frames of the upper.
    pub frames: u64,
    /// Frames in use.
    pub used: u64,
    /// Frames that are modified.
    pub modified: u64,
    /// Pages being written back.
    pub on_their_way: u64,
    /// Reads inside.
    pub reads: u64,
    /// Whether the policy's own time has come.
    pub is_timer: bool,
}

/// What a tier tells of what happens.
#[derive(Clone, Copy, Debug)]
pub enum Happened {
    /// A read or a write has come.
    Arrived,
    /// The lower has served a read or a write, which took so long.
    Served(Span),
    /// A write has come with pages that the upper does not hold.
    WriteMissed {
        /// How many.
        pages: u64,
    },
    /// A tier above has given up a page that the upper does not hold, and it was admitted or
    /// not.
    EvictMissed {
        /// Whether the upper takes it.
        is_admitted: bool,
    },
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy.
    fn build(&self) -> Box<dyn Writeback>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Decides when to write back.
pub trait Writeback: DynClone + Send {
    /// Something has happened.
    fn hear(&mut self, _now: Time, _happened: Happened) {}

    /// Whether it ever wants anything written back.
    fn wants_any(&self) -> bool {
        true
    }

    /// How many pages more are written back now, oldest first.
    fn wants(&mut self, now: Time, view: View) -> u64;

    /// When it wants to be asked again by itself, while anything is modified, until it is
    /// asked the next time; [`Time::MAX`] if not before. One that has none at the beginning never
    /// has.
    fn next_event(&self) -> Option<Time> {
        Option::None
    }
}

dyn_clone::clone_trait_object!(Writeback);
