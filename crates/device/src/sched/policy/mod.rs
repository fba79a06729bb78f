//! The scheduler axis: whose operation takes a chip's free slot.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;
use flashkeel_engine::{Span, Stream};

use super::Task;
pub use super::queue::Pending;
use crate::address::ChipId;

flashkeel_config::axis! {
    /// What arbitrates the flash among tasks.
    pub enum SchedulerConfig as "scheduler": Build {
        /// One queue for all tasks, in order of arrival.
        Fifo(Fifo) in fifo = "fifo",
        /// Fixed priority: map, host, garbage collection, then the tasks that can wait.
        Priority(Priority) in priority = "priority",
        /// On a chip the reads that the host waits for before anything else, then as `priority`.
        ReadsFirst(ReadsFirst) in reads_first = "reads-first",
        /// Weighted fair queueing: virtual time per task per chip.
        Fair(Fair) in fair = "fair",
        /// Debit scheduling with shares set by feedback, of each partition by itself.
        Debit(Debit) in debit = "debit",
    }
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        SchedulerConfig::Debit(debit::Debit::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// A policy for a device of `chips` chips with `depth` slots each, of which each of
    /// `partitions` has as many.
    fn build(&self, chips: u32, depth: u32, partitions: u32, random: Stream) -> Box<dyn Arbiter>;

    /// For how long the policy wants to know whether the host will be idle; `None` where it
    /// does not.
    fn foresees(&self) -> Option<Span> {
        None
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The state of a partition's FTL that a share controller reacts to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Signals {
    /// Bit set of the background tasks at work.
    pub active: u32,
    /// How far each background task is from its target (AutoSSD, eq. 2): free
    /// blocks missing to the threshold that starts garbage collection; reads of
    /// the most read block above the one that starts scrubbing; erases by which
    /// the spread of wear is above the one that starts wear levelling; map pages
    /// that a checkpoint has yet to write.
    pub error: [u32; Task::COUNT],
    /// Whether writes of the host wait for a free block.
    pub host_stalled: bool,
    /// Whether the host is expected to be idle for as long as the policy
    /// [foresees](Build::foresees).
    pub idle_expected: bool,
}

impl Signals {
    /// Says whether `task` is at work, and how far it is from its target: a task
    /// that cannot go on has no error that a share would correct.
    pub fn set(&mut self, task: Task, active: bool, error: u32) {
        self.active |= u32::from(active) << task as u32;
        self.error[task as usize] = if active { error } else { 0 };
    }

    /// Whether `task` is at work.
    pub fn is_active(&self, task: Task) -> bool {
        self.active >> task as u32 & 1 == 1
    }
}

/// Every task's bit.
pub const ALL_TASKS: u32 = (1 << Task::COUNT) - 1;

/// A scheduling policy.
pub trait Arbiter: DynClone + Send {
    /// Bit set of the tasks of a partition that may issue at all now. A policy that
    /// closes a task on purpose is not work-conserving.
    fn open_tasks(&self, _partition: u32) -> u32 {
        ALL_TASKS
    }

    /// Chooses one of the pending tasks, all of them open, for a free slot of
    /// `chip`, and counts its first operation as issued.
    fn pick(&mut self, chip: ChipId, pending: &Pending<'_>) -> Task;

    /// Whether a read that the host waits for goes before all that waits for its chip,
    /// what is in its slots too.
    fn reads_pass_slots(&self) -> bool {
        false
    }

    /// An operation of a partition's `task` has completed. Returns the bit set of its
    /// tasks that may have more in slots by it, and could not before.
    fn completed(&mut self, _partition: u32, _task: Task) -> u32 {
        0
    }

    /// How often [`control`](Self::control) wants to be called while
    /// something is active; never, by default.
    fn control_period(&self) -> Option<Span> {
        None
    }

    /// Adjusts a partition's limits to the state of its FTL.
    fn control(&mut self, _partition: u32, _signals: &Signals) {}

    /// Whether another call of `control` would change nothing while `signals`
    /// stay as they are at rest.
    fn is_settled(&self) -> bool {
        true
    }

    /// Each task's present share of the whole flash in parts per million, where the
    /// policy has such a notion.
    fn shares_ppm(&self) -> [u64; Task::COUNT] {
        [0; Task::COUNT]
    }
}

dyn_clone::clone_trait_object!(Arbiter);
