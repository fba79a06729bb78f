//! Tasks, activities, and what their flash operations are for.

use flashkeel_engine::Cause;

use super::tasks::tasks;
use crate::flash::FlashCommand;

macro_rules! define {
    (
        tasks { $(
            $(#[$($task_doc:tt)*])* $Task:ident = $label:literal {
                operations { $($number:literal $Command:ident $name:literal behind $Cause:ident,)+ }
                weight { $($weight:tt)* }
                share { $($share:tt)* }
                work { $($work:tt)* }
                settings { $($settings:tt)* }
            }
        )+ }
        others { $(
            $(#[$($other_doc:tt)*])* $Other:ident through $Queue:ident {
                operations {
                    $($other_number:literal $OtherCommand:ident $other_name:literal behind $OtherCause:ident,)+
                }
                work { $($other_work:tt)* }
            }
        )+ }
    ) => {
        /// An activity of the FTL with a request queue of its own. What it
        /// programs goes to blocks of its own, so that data of different
        /// lifetimes do not mix and pages of a block are programmed in order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Task { $($(#[$($task_doc)*])* $Task),+ }

        impl Task {
            /// Every task.
            pub const ALL: &'static [Task] = &[$(Task::$Task),+];
            /// Number of tasks.
            pub const COUNT: usize = Task::ALL.len();

            /// The name used in configuration and results.
            pub const fn label(self) -> &'static str {
                match self { $(Task::$Task => $label),+ }
            }

            /// The task as an activity.
            #[inline]
            pub const fn activity(self) -> Activity {
                match self { $(Task::$Task => Activity::$Task),+ }
            }
        }

        /// Whatever has flash operations done: the tasks, and what goes through
        /// the request queues of a task.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Activity {
            $($(#[$($task_doc)*])* $Task,)+
            $($(#[$($other_doc)*])* $Other,)+
        }

        impl Activity {
            /// Every activity, the tasks first, in their order.
            pub const ALL: &'static [Activity] = &[$(Activity::$Task,)+ $(Activity::$Other,)+];

            /// The task through whose request queues it goes.
            #[inline]
            pub const fn task(self) -> Task {
                match self {
                    $(Activity::$Task => Task::$Task,)+
                    $(Activity::$Other => Task::$Queue,)+
                }
            }

            /// The task to whose blocks it programs.
            #[inline]
            pub const fn writer(self) -> Task {
                match self {
                    $(Activity::$Task => Task::$Task,)+
                    $(Activity::$Other => Task::Host,)+
                }
            }
        }

        /// Every operation of the table: its number, and what is said of it.
        const TABLE: &[(usize, Purpose, &str, Cause)] = &[
            $($(($number, Purpose::new(Activity::$Task, FlashCommand::$Command), $name, Cause::$Cause),)+)+
            $($((
                $other_number,
                Purpose::new(Activity::$Other, FlashCommand::$OtherCommand),
                $other_name,
                Cause::$OtherCause,
            ),)+)+
        ];
    };
}

tasks!(define);

impl Task {
    /// Whether nobody waits for its operations at once.
    #[inline]
    pub const fn is_background(self) -> bool {
        !matches!(self, Task::Host | Task::Map)
    }
}

/// Bit set of the activities that empty blocks: those that erase what they have emptied.
const EMPTYING: u32 = {
    let (mut activities, mut at) = (0, 0);
    while at < TABLE.len() {
        if TABLE[at].1.is_erase() {
            activities |= 1 << TABLE[at].1.activity as u32;
        }
        at += 1;
    }
    activities
};

impl Activity {
    /// Whether it empties blocks.
    #[inline]
    pub const fn empties_blocks(self) -> bool {
        EMPTYING >> self as u32 & 1 == 1
    }

    /// Its reads.
    #[inline]
    pub const fn read(self) -> Purpose {
        Purpose::new(self, FlashCommand::Read)
    }

    /// Its programs.
    #[inline]
    pub const fn program(self) -> Purpose {
        Purpose::new(self, FlashCommand::Program)
    }

    /// Its erases.
    #[inline]
    pub const fn erase(self) -> Purpose {
        Purpose::new(self, FlashCommand::Erase)
    }

    /// Its moves of pages within a chip, through the controller.
    #[inline]
    pub const fn through_controller(self) -> Purpose {
        Purpose::new(self, FlashCommand::Move)
    }

    /// Its moves of pages within a chip by copyback.
    #[inline]
    pub const fn copyback(self) -> Purpose {
        Purpose::new(self, FlashCommand::Copyback)
    }
}

/// What a flash operation is for: whose it is, and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purpose {
    activity: Activity,
    command: FlashCommand,
}

/// Bits of a purpose's index that tell the command.
const COMMAND_BITS: u32 = 3;

/// What those who wait are told, by purpose.
static CAUSES: [Cause; Purpose::END] = {
    let mut causes = [Cause::OwnFlash; Purpose::END];
    let mut at = 0;
    while at < TABLE.len() {
        causes[TABLE[at].1.index()] = TABLE[at].3;
        at += 1;
    }
    causes
};

impl Purpose {
    /// Every index is smaller; not each belongs to a purpose.
    pub const END: usize = Activity::ALL.len() << COMMAND_BITS;

    /// Every purpose, in the order of counters.
    pub const ALL: [Purpose; TABLE.len()] = {
        let mut all = [None; TABLE.len()];
        let mut at = 0;
        while at < TABLE.len() {
            let (number, purpose, ..) = TABLE[at];
            assert!(all[number].is_none(), "two operations have the same number");
            all[number] = Some(purpose);
            at += 1;
        }
        let mut purposes = [TABLE[0].1; TABLE.len()];
        let mut at = 0;
        while at < TABLE.len() {
            purposes[at] = all[at].expect("as many numbers as operations");
            at += 1;
        }
        purposes
    };

    const fn new(activity: Activity, command: FlashCommand) -> Purpose {
        Purpose { activity, command }
    }

    /// Its place in tables that go by purpose.
    #[inline]
    pub const fn index(self) -> usize {
        (self.activity as usize) << COMMAND_BITS | self.command as usize
    }

    /// Whose it is.
    #[inline]
    pub const fn activity(self) -> Activity {
        self.activity
    }

    /// The flash command that does it.
    #[inline]
    pub const fn command(self) -> FlashCommand {
        self.command
    }

    /// What those who wait behind it are told.
    #[inline]
    pub fn cause(self) -> Cause {
        CAUSES[self.index()]
    }

    /// The name used in results.
    pub const fn label(self) -> &'static str {
        let mut at = 0;
        while TABLE[at].1.index() != self.index() {
            at += 1;
        }
        TABLE[at].2
    }

    /// Whether it programs flash.
    pub fn is_program(self) -> bool {
        self.command() == FlashCommand::Program
    }

    /// Whether it erases flash.
    pub const fn is_erase(self) -> bool {
        matches!(self.command, FlashCommand::Erase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_are_numbered_as_digests_count_them() {
        assert_eq!(
            Purpose::ALL.map(Purpose::label)[..22],
            [
                "host_read",
                "host_write",
                "map_read",
                "map_write",
                "gc_read",
                "gc_program",
                "gc_move",
                "gc_copyback",
                "check_read",
                "restore_read",
                "restore_program",
                "erase",
                "parity_read",
                "parity_write",
                "rebuild",
                "fold",
                "scrub_read",
                "scrub_program",
                "scrub_erase",
                "wear_levelling_read",
                "wear_levelling_program",
                "wear_levelling_erase",
            ]
        );
    }

    #[test]
    fn each_purpose_has_a_place_of_its_own_and_each_task_its_queue_and_blocks() {
        for purpose in Purpose::ALL {
            assert!(purpose.index() < Purpose::END);
            let same = Purpose::ALL.iter().filter(|other| other.index() == purpose.index());
            assert_eq!(same.count(), 1);
        }
        for &task in Task::ALL {
            assert_eq!((task.activity().task(), task.activity().writer()), (task, task));
        }
    }
}
