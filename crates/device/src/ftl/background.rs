//! What the FTL asks of those who have flash operations done in the background,
//! and how it gets from an entry of the table of tasks to the code behind it.

use flashkeel_engine::Time;

use super::ecc_check::EccCheck;
use super::faults::Restoring;
use super::gc::Gc;
use super::slc::Slc;
use super::{Ftl, PartitionLayout};
use crate::address::BlockId;
use crate::flash::Command;
use crate::machine::Machine;
use crate::sched::tasks::tasks;
use crate::sched::{Activity, FlashOp, Signals, Task};

/// A background activity. One that empties blocks says when and which, and
/// `relocation` does the rest; one that does something else has its own
/// [`generate`](Self::generate) and [`done`](Self::done).
pub(in crate::ftl) trait Background {
    /// Its entry in the table.
    const ACTIVITY: Activity;
    /// Whether it empties blocks.
    const EMPTIES_BLOCKS: bool = false;
    /// What the time series shows of it, beside whether it is at work.
    const GAUGES: &'static [Gauge] = &[];

    /// Whether it is at work.
    fn is_active(ftl: &Ftl) -> bool {
        ftl.relocation[Self::ACTIVITY.task()].is_at_work()
    }

    /// How far it is from its target, as in [`Signals`].
    fn error(_ftl: &Ftl) -> u32 {
        0
    }

    /// Flash pages it may hold in the controller while they are moved.
    fn pages_in_flight(_layout: &PartitionLayout) -> u32 {
        0
    }

    /// Whether it would choose another block to empty.
    fn wants_victim(_ftl: &Ftl) -> bool {
        false
    }

    /// Chooses blocks to empty, as far as there is room for their pages.
    fn start_jobs(_ftl: &mut Ftl, _now: Time, _machine: &mut Machine) {}

    /// The block of a domain to empty next where nothing takes time.
    fn next_untimed(_ftl: &mut Ftl, _domain: u32) -> Option<BlockId> {
        None
    }

    /// Makes sure that a block of its choice is open in a domain, if there is
    /// one; whether it opened one. `None` where any block will do.
    fn choose_block(_ftl: &mut Ftl, _domain: u32) -> Option<bool> {
        None
    }

    /// A block of a domain has been erased, whoever emptied it.
    fn erased(_ftl: &mut Ftl, _domain: u32, _block: BlockId) {}

    /// A map page has changed.
    fn map_changed(_ftl: &mut Ftl, _now: Time, _page: u32, _machine: &mut Machine) {}

    /// A map page has been loaded.
    fn map_loaded(_ftl: &mut Ftl, _now: Time, _machine: &mut Machine) {}

    /// Nothing is under way: the partition is about to begin a run.
    fn rest(_ftl: &mut Ftl) {}

    /// A window has begun, or a block has become free: it may go on.
    fn wake(ftl: &mut Ftl, now: Time, machine: &mut Machine) {
        if Self::EMPTIES_BLOCKS {
            ftl.wake(now, Self::ACTIVITY.task(), machine);
        }
    }

    /// A channel has no more work of the host: what has given way may go on.
    fn go_on(_ftl: &mut Ftl, _now: Time, _machine: &mut Machine) {}

    /// Its delay is over: generates its next operation, if there is one. The
    /// device has had no request since `quiet_since`.
    fn generate(_ftl: &mut Ftl, _now: Time, _quiet_since: Time, _machine: &mut Machine) {}

    /// One of its operations is done. The device has had no request since
    /// `quiet_since`.
    fn done(_ftl: &mut Ftl, _now: Time, _operation: &FlashOp, _quiet_since: Time, _machine: &mut Machine) {}
}

/// A number in the time series.
#[derive(Clone, Copy)]
pub(crate) struct Gauge {
    /// Its name in results.
    pub name: &'static str,
    /// Its value in one partition.
    pub read: fn(&Ftl) -> u32,
    /// Whether the largest value of a partition counts, instead of their sum.
    pub is_largest: bool,
}

macro_rules! dispatch {
    (
        tasks { $(
            $(#[$($task_doc:tt)*])* $Task:ident = $label:literal {
                operations { $($operations:tt)* }
                weight { $($weight:tt)* }
                share { $($share:tt)* }
                work { $($Work:ident $(in $module:ident)?)? }
            }
        )+ }
        others { $(
            $(#[$($other_doc:tt)*])* $Other:ident through $Queue:ident {
                operations { $($other_operations:tt)* }
                work { $($OtherWork:ident in $other_module:ident)? }
            }
        )+ }
    ) => {
        /// The state of the tasks in modules of their own.
        #[derive(Clone)]
        pub(in crate::ftl) struct Tasks {
            $($($(pub $module: super::$module::$Work,)?)?)+
        }

        impl Tasks {
            /// At rest.
            pub fn new(layout: &PartitionLayout) -> Self {
                Tasks { $($($($module: super::$module::$Work::new(layout),)?)?)+ }
            }
        }

        impl Ftl {
            /// What the share controller wants to know.
            pub fn signals(&self) -> Signals {
                let mut signals = Signals {
                    host_stalled: self.stalled_host.iter().any(|stalled| !stalled.is_empty()),
                    ..Signals::default()
                };
                $($({
                    type Work = $(super::$module::)? $Work;
                    signals.set(Task::$Task, Work::is_active(self), Work::error(self));
                })?)+
                signals
            }

            /// What the time series shows of a task.
            pub fn gauges_of(task: Task) -> &'static [Gauge] {
                match task {
                    $($(Task::$Task => <$(super::$module::)? $Work as Background>::GAUGES,)?)+
                    Task::Host | Task::Map => &[],
                }
            }

            /// Flash pages that a task may hold in the controller.
            pub(in crate::ftl) fn pages_in_flight(layout: &PartitionLayout, task: Task) -> u32 {
                match task {
                    $($(Task::$Task => <$(super::$module::)? $Work>::pages_in_flight(layout),)?)+
                    Task::Host | Task::Map => 0,
                }
            }

            /// Whether a task would choose another block to empty.
            #[inline]
            pub(in crate::ftl) fn wants_victim(&self, task: Task) -> bool {
                match task {
                    $($(Task::$Task => <$(super::$module::)? $Work>::wants_victim(self),)?)+
                    Task::Host | Task::Map => false,
                }
            }

            /// Lets a task choose blocks to empty.
            pub(in crate::ftl) fn start_jobs(&mut self, now: Time, task: Task, machine: &mut Machine) {
                match task {
                    $($(Task::$Task => <$(super::$module::)? $Work>::start_jobs(self, now, machine),)?)+
                    Task::Host | Task::Map => {}
                }
            }

            /// See [`Background::next_untimed`].
            pub(in crate::ftl) fn next_untimed(&mut self, domain: u32, task: Task) -> Option<BlockId> {
                match task {
                    $($(Task::$Task => <$(super::$module::)? $Work>::next_untimed(self, domain),)?)+
                    Task::Host | Task::Map => None,
                }
            }

            /// See [`Background::choose_block`].
            #[inline]
            pub(in crate::ftl) fn choose_block(&mut self, domain: u32, task: Task) -> Option<bool> {
                match task {
                    $($(Task::$Task => <$(super::$module::)? $Work>::choose_block(self, domain),)?)+
                    Task::Host | Task::Map => None,
                }
            }

            /// Tells every task that a block has been erased.
            #[inline]
            pub(in crate::ftl) fn note_erased(&mut self, domain: u32, block: BlockId) {
                $($(<$(super::$module::)? $Work>::erased(self, domain, block);)?)+
            }

            /// Tells every task that a map page has changed.
            #[inline]
            pub(in crate::ftl) fn note_map_changed(&mut self, now: Time, page: u32, machine: &mut Machine) {
                $($(<$(super::$module::)? $Work>::map_changed(self, now, page, machine);)?)+
            }

            /// Tells every task that a map page has been loaded.
            pub(in crate::ftl) fn note_map_loaded(&mut self, now: Time, machine: &mut Machine) {
                $($(<$(super::$module::)? $Work>::map_loaded(self, now, machine);)?)+
            }

            /// Tells every task that nothing is under way.
            pub(in crate::ftl) fn note_rest(&mut self) {
                $($(<$(super::$module::)? $Work>::rest(self);)?)+
            }

            /// Lets everything in the background go on, as after a block has
            /// become free.
            pub fn wake_all(&mut self, now: Time, machine: &mut Machine) {
                $($(<$(super::$module::)? $Work>::wake(self, now, machine);)?)+
                $($($OtherWork::wake(self, now, machine);)?)+
            }

            /// A channel has no more work of the host: what has given way goes on.
            #[inline]
            pub fn go_on(&mut self, now: Time, machine: &mut Machine) {
                $($($OtherWork::go_on(self, now, machine);)?)+
                $($(<$(super::$module::)? $Work>::go_on(self, now, machine);)?)+
            }

            /// The delay of an activity is over.
            #[inline]
            pub fn generate(
                &mut self,
                now: Time,
                activity: Activity,
                quiet_since: Time,
                machine: &mut Machine,
            ) {
                match activity {
                    $($(Activity::$Task if !<$(super::$module::)? $Work>::EMPTIES_BLOCKS => {
                        <$(super::$module::)? $Work>::generate(self, now, quiet_since, machine)
                    })?)+
                    $($(Activity::$Other => $OtherWork::generate(self, now, quiet_since, machine),)?)+
                    _ => self.relocate(now, activity.task(), machine),
                }
            }

            /// An operation of a background activity is done.
            #[inline]
            pub fn done(
                &mut self,
                now: Time,
                operation: &FlashOp,
                quiet_since: Time,
                machine: &mut Machine,
            ) {
                match operation.purpose.activity() {
                    $($(Activity::$Task if !<$(super::$module::)? $Work>::EMPTIES_BLOCKS => {
                        <$(super::$module::)? $Work>::done(self, now, operation, quiet_since, machine)
                    })?)+
                    $($(Activity::$Other => $OtherWork::done(self, now, operation, quiet_since, machine),)?)+
                    _ => match operation.purpose.command() {
                        Command::Read => self.relocation_read_done(now, operation, machine),
                        Command::Program => self.program_done(now, operation, machine),
                        Command::Erase => self.erase_done(now, operation, machine),
                        Command::Move | Command::Copyback => self.move_done(now, operation, machine),
                    },
                }
            }
        }
    };
}

tasks!(dispatch);
