//! What the FTL asks of those who have flash operations done in the background,
//! and how it gets from an entry of the table of tasks to the code behind it.

use std::ops::ControlFlow;

use flashkeel_engine::Time;

use super::relocation::Relocation;
use super::stalled::Stalled;
use super::updates::Updates;
use super::{Ftl, Known, PartitionLayout, Shape, Tables};
use crate::address::BlockId;
use crate::flash::FlashCommand;
use crate::machine::Machine;
use crate::sched::tasks::tasks;
use crate::sched::{Activity, FlashOp, Signals, Task};

/// A background activity. One that empties blocks says when and which, and
/// `relocation` does the rest; one that does something else has its own
/// [`generate`](Self::generate) and [`done`](Self::done).
pub(in crate::ftl) trait Background: Sized {
    /// Its entry in the table.
    const ACTIVITY: Activity;
    /// Whether it empties blocks.
    const EMPTIES_BLOCKS: bool = false;
    /// What the time series shows of it, beside whether it is at work.
    const GAUGES: &'static [Gauge] = &[];

    /// At rest, in partition number `index`.
    fn new(layout: &PartitionLayout, index: u16, seed: u64) -> Self;

    /// Whether it is at work.
    fn is_active(ftl: &Ftl) -> bool {
        ftl.tasks.relocation[Self::ACTIVITY.task()].is_at_work()
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

    /// From now on pages hold bytes.
    fn data_kept(_ftl: &mut Ftl) {}

    /// What a power cut now would leave to go by, if this task sees to that.
    fn known(&self, _tables: &Tables) -> Option<Known> {
        None
    }

    /// Power has been cut, and this is the task anew: takes over what survives of
    /// the `former`. `broken_off` has the operations that were on their way.
    fn survive(&mut self, _former: Self, _shape: &Shape, _broken_off: &[FlashOp]) {}

    /// Power is back: begins with what is due.
    fn start_again(_ftl: &mut Ftl, _now: Time, _machine: &mut Machine) {}

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

/// The settings of a task that a device may do without: a table of its configuration.
pub(crate) trait Settings {
    /// What they resolve to: plain numbers.
    type Layout: Clone + std::fmt::Debug;

    /// Resolves them, for stripes of `stripe_width` chips.
    ///
    /// # Errors
    /// A sentence naming the key and its range.
    fn resolve(&self, stripe_width: u32) -> Result<Self::Layout, String>;

    /// The blocks it keeps from the host in a domain of so many chips, or stripes.
    fn room(_layout: &Self::Layout, _chips: u32) -> Room {
        Room::default()
    }

    /// Whether it gives map pages a place in flash.
    fn keeps_map_in_flash(_layout: &Self::Layout) -> bool {
        false
    }
}

/// Blocks that a task needs of a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Room {
    /// Those it keeps open for writing.
    pub open: u32,
    /// Those it is emptying, which are of no use to garbage collection.
    pub moved: u32,
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
                work { $($Work:ident in $module:ident)? }
                settings { $($settings:tt)* }
            }
        )+ }
        others { $(
            $(#[$($other_doc:tt)*])* $Other:ident through $Queue:ident {
                operations { $($other_operations:tt)* }
                work { $($OtherWork:ident in $other_module:ident)? }
            }
        )+ }
    ) => {
        /// What is being done in one partition.
        #[derive(Clone)]
        pub(in crate::ftl) struct Tasks {
            $($(pub $module: super::$module::$Work,)?)+
            $($(pub $other_module: super::$other_module::$OtherWork,)?)+
            /// The emptying of blocks, for the tasks that do that.
            pub relocation: Relocation,
            /// Stripes whose parity is being written.
            pub updates: Updates,
            /// Programs without a free block.
            pub stalled: Stalled,
        }

        impl Tasks {
            /// At rest, in partition number `index`.
            pub fn new(layout: &PartitionLayout, index: u16, seed: u64) -> Self {
                Tasks {
                    $($($module: super::$module::$Work::new(layout, index, seed),)?)+
                    $($($other_module: super::$other_module::$OtherWork::new(layout, index, seed),)?)+
                    relocation: Relocation::new(layout, |task| Ftl::pages_in_flight(layout, task)),
                    updates: Updates::new(&layout.policies.update),
                    stalled: Stalled::new(layout.domains),
                }
            }

            /// See [`Background::known`].
            pub fn known(&self, tables: &Tables) -> Known {
                let known = [$($(super::$module::$Work::known(&self.$module, tables),)?)+];
                known.into_iter().flatten().next().expect("a task sees to that")
            }

            /// See [`Background::survive`].
            pub fn survive(&mut self, former: Tasks, shape: &Shape, broken_off: &[FlashOp]) {
                $($(self.$module.survive(former.$module, shape, broken_off);)?)+
                $($(self.$other_module.survive(former.$other_module, shape, broken_off);)?)+
            }
        }

        impl Ftl {
            /// What the share controller wants to know.
            pub fn signals(&self) -> Signals {
                let mut signals = Signals {
                    host_stalled: self.tasks.stalled.holds_host_somewhere(),
                    ..Signals::default()
                };
                $($({
                    type Work = super::$module::$Work;
                    signals.set(Task::$Task, Work::is_active(self), Work::error(self));
                })?)+
                signals
            }

            /// What the time series shows of a task.
            pub fn gauges_of(task: Task) -> &'static [Gauge] {
                match task {
                    $($(Task::$Task => <super::$module::$Work as Background>::GAUGES,)?)+
                    Task::Host | Task::Map => &[],
                }
            }

            /// Flash pages that a task may hold in the controller.
            pub(in crate::ftl) fn pages_in_flight(layout: &PartitionLayout, task: Task) -> u32 {
                match task {
                    $($(Task::$Task => <super::$module::$Work>::pages_in_flight(layout),)?)+
                    Task::Host | Task::Map => 0,
                }
            }

            /// Whether a task would choose another block to empty.
            #[inline]
            pub(in crate::ftl) fn wants_victim(&self, task: Task) -> bool {
                match task {
                    $($(Task::$Task => <super::$module::$Work>::wants_victim(self),)?)+
                    Task::Host | Task::Map => false,
                }
            }

            /// Lets a task choose blocks to empty.
            pub(in crate::ftl) fn start_jobs(&mut self, now: Time, task: Task, machine: &mut Machine) {
                match task {
                    $($(Task::$Task => <super::$module::$Work>::start_jobs(self, now, machine),)?)+
                    Task::Host | Task::Map => {}
                }
            }

            /// See [`Background::next_untimed`].
            pub(in crate::ftl) fn next_untimed(&mut self, domain: u32, task: Task) -> Option<BlockId> {
                match task {
                    $($(Task::$Task => <super::$module::$Work>::next_untimed(self, domain),)?)+
                    Task::Host | Task::Map => None,
                }
            }

            /// See [`Background::choose_block`].
            #[inline]
            pub(in crate::ftl) fn choose_block(&mut self, domain: u32, task: Task) -> Option<bool> {
                match task {
                    $($(Task::$Task => <super::$module::$Work>::choose_block(self, domain),)?)+
                    Task::Host | Task::Map => None,
                }
            }

            /// Tells every task that a block has been erased.
            #[inline]
            pub(in crate::ftl) fn note_erased(&mut self, domain: u32, block: BlockId) {
                $($(<super::$module::$Work>::erased(self, domain, block);)?)+
            }

            /// Tells every task that a map page has changed.
            #[inline]
            pub(in crate::ftl) fn note_map_changed(&mut self, now: Time, page: u32, machine: &mut Machine) {
                $($(<super::$module::$Work>::map_changed(self, now, page, machine);)?)+
            }

            /// Tells every task that a map page has been loaded.
            pub(in crate::ftl) fn note_map_loaded(&mut self, now: Time, machine: &mut Machine) {
                $($(<super::$module::$Work>::map_loaded(self, now, machine);)?)+
            }

            /// Tells every task that nothing is under way.
            pub(in crate::ftl) fn note_rest(&mut self) {
                $($(<super::$module::$Work>::rest(self);)?)+
            }

            /// From now on pages hold bytes: zeros, until others are written.
            pub fn keep_data(&mut self) {
                self.tables.keep_data();
                $($(<super::$module::$Work>::data_kept(self);)?)+
            }

            /// The same, in a `medium`, which is told what there is, as far as `watch` lets it.
            pub fn keep_data_in(
                &mut self,
                medium: Box<dyn super::Medium>,
                watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
            ) -> ControlFlow<()> {
                self.tables.keep_data_in(medium, watch)?;
                $($(<super::$module::$Work>::data_kept(self);)?)+
                ControlFlow::Continue(())
            }

            /// Makes an empty partition that of what has been found in a `medium`. Returns
            /// the pages that were in the buffer, in the order of their writes.
            pub fn recover(
                &mut self,
                medium: Box<dyn super::Medium>,
                found: super::Found,
            ) -> Vec<super::Kept> {
                let kept = self.tables.recover(medium, found);
                self.note_rest();
                $($(<super::$module::$Work>::data_kept(self);)?)+
                kept
            }

            /// Power is back: every task begins with what is due.
            pub fn start_again(&mut self, now: Time, machine: &mut Machine) {
                $($(<super::$module::$Work>::start_again(self, now, machine);)?)+
                $($(<super::$other_module::$OtherWork>::start_again(self, now, machine);)?)+
            }

            /// Lets everything in the background go on, as after a block has
            /// become free.
            pub fn wake_all(&mut self, now: Time, machine: &mut Machine) {
                if !self.background_allowed {
                    // For nobody who may not go on has the host to leave a block.
                    self.tables.points.waits.end_all();
                }
                self.heed_window(now, machine);
                $($(<super::$module::$Work>::wake(self, now, machine);)?)+
                $($(super::$other_module::$OtherWork::wake(self, now, machine);)?)+
            }

            /// A channel has no more work of the host: what has given way goes on.
            #[inline]
            pub fn go_on(&mut self, now: Time, machine: &mut Machine) {
                $($(super::$other_module::$OtherWork::go_on(self, now, machine);)?)+
                $($(<super::$module::$Work>::go_on(self, now, machine);)?)+
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
                    $($(Activity::$Task if !<super::$module::$Work>::EMPTIES_BLOCKS => {
                        <super::$module::$Work>::generate(self, now, quiet_since, machine)
                    })?)+
                    $($(Activity::$Other => super::$other_module::$OtherWork::generate(self, now, quiet_since, machine),)?)+
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
                    $($(Activity::$Task if !<super::$module::$Work>::EMPTIES_BLOCKS => {
                        <super::$module::$Work>::done(self, now, operation, quiet_since, machine)
                    })?)+
                    $($(Activity::$Other => super::$other_module::$OtherWork::done(self, now, operation, quiet_since, machine),)?)+
                    _ => match operation.purpose.command() {
                        FlashCommand::Read => self.victim_read(now, operation, machine),
                        FlashCommand::Program => self.program_done(now, operation, machine),
                        FlashCommand::Erase => self.erase_done(now, operation, machine),
                        FlashCommand::Move | FlashCommand::Copyback => self.move_done(now, operation, machine),
                    },
                }
            }
        }
    };
}

tasks!(dispatch);
