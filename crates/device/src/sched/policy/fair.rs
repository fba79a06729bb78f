//! `fair`: weighted fair queueing with a virtual time per task per chip
//! (AutoSSD's "qosfc"). Work-conserving: nothing is reserved.

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arbiter, Build, Pending};
use crate::address::ChipId;
use crate::sched::Task;
use crate::sched::tasks::tasks;

macro_rules! settings {
    (
        tasks { $(
            $(#[$($task_doc:tt)*])* $Task:ident = $label:literal {
                operations { $($operations:tt)* }
                weight { $(#[$($doc:tt)*])* $weight:ident }
                share { $($share:tt)* }
                work { $($work:tt)* }
                settings { $($settings:tt)* }
            }
        )+ }
        others { $($others:tt)* }
    ) => {
        /// Settings of `fair`: the tasks' weights.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Fair { $($(#[$($doc)*])* pub $weight: u32),+ }

        impl Default for Fair {
            fn default() -> Self {
                Fair { $($weight: 1),+ }
            }
        }

        impl Fair {
            /// Each task's weight, in the order of tasks.
            fn weights(&self) -> [(Task, u32); Task::COUNT] {
                [$((Task::$Task, self.$weight)),+]
            }
        }
    };
}

tasks!(settings);

impl Build for Fair {
    fn build(&self, chips: u32, _depth: u32, _partitions: u32, _random: Stream) -> Box<dyn Arbiter> {
        let weights = self.weights().map(|(_, weight)| weight);
        Box::new(FairArbiter { weights, chips: vec![Progress::default(); chips as usize] })
    }

    fn validate(&self) -> Result<(), String> {
        for (task, weight) in self.weights() {
            if weight == 0 || weight > 1000 {
                let key = task.label();
                return Err(format!("{key} is {weight}; a weight lies between 1 and 1000"));
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
struct Progress {
    /// Finish tag of each task's last operation.
    finish: [u64; Task::COUNT],
    /// Start tag of the operation issued last: the chip's virtual time.
    now: u64,
}

#[derive(Clone)]
struct FairArbiter {
    weights: [u32; Task::COUNT],
    chips: Vec<Progress>,
}

impl Arbiter for FairArbiter {
    #[inline]
    fn pick(&mut self, chip: ChipId, pending: &Pending<'_>) -> Task {
        let progress = &mut self.chips[chip.0 as usize];
        // A task that was away does not save up time: start-time fair queueing.
        let start = |progress: &Progress, task: Task| progress.finish[task as usize].max(progress.now);
        let task = pending.tasks().min_by_key(|&task| start(progress, task)).expect("something is pending");
        let begin = start(progress, task);
        progress.now = begin;
        // Virtual nanoseconds are scaled so that weights up to 1000 divide finely.
        progress.finish[task as usize] =
            begin + pending.service(task).as_ns() * 1000 / u64::from(self.weights[task as usize]);
        task
    }
}
