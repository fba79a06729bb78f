//! Random operations, which shrink to a short case.

use flashkeel_engine::{Command, Operation, Window};
use proptest::prelude::*;

/// Half of all requests meet in so many blocks.
pub const NEAR: u16 = 128;

/// What a host does in one case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Requests inside at most.
    pub depth: usize,
    /// The step before which the device is copied.
    pub copied_at: usize,
    /// One after the other.
    pub steps: Vec<Step>,
}

impl std::fmt::Display for Case {
    /// A step a line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{} steps, {} requests inside at most, copied before step {}:",
            self.steps.len(),
            self.depth,
            self.copied_at
        )?;
        self.steps.iter().try_for_each(|step| writeln!(f, "  {step:?}"))
    }
}

/// One request, word or power cut, and the pause before it.
#[derive(Clone, Debug)]
pub struct Step {
    /// How long the host waits first.
    pub pause_ns: u64,
    /// What it does.
    pub act: Act,
    /// Where: below [`NEAR`] a block of the first, else anywhere.
    pub place: u16,
    /// How many logical blocks; those that begin inside count.
    pub blocks: u32,
    /// Whose request it is, in turn.
    pub tenant: u16,
    /// Whether a write has to be durable before it is acknowledged.
    pub fua: bool,
    /// Travels along; of a demotion, how often the copy was used.
    pub hint: u16,
}

/// What a host does.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// A request within the limits.
    Ask(Operation),
    /// A request that no device may take.
    Slip(Operation, Slip),
    /// A word for whatever is at one of its places, and one for something that is
    /// not there.
    Tell(Word),
    /// A power cut, so many events later.
    Cut(u32),
}

/// A command.
#[derive(Clone, Copy, Debug)]
pub enum Word {
    State,
    ReadOnly(bool),
    Window(Window),
    Remove,
}

impl Word {
    pub fn command(self) -> Command {
        match self {
            Word::State => Command::State,
            Word::ReadOnly(is_read_only) => Command::ReadOnly(is_read_only),
            Word::Window(window) => Command::Window(0, window),
            Word::Remove => Command::Remove,
        }
    }
}

/// How a request is wrong.
#[derive(Clone, Copy, Debug)]
pub enum Slip {
    /// It begins inside and ends outside.
    Outside,
    /// Its end is beyond the last number.
    Overflow,
    /// It asks for nothing.
    Empty,
    /// It ends within a logical block.
    Unaligned,
}

/// Cases of `most` steps at most.
pub fn cases(most: usize) -> impl Strategy<Value = Case> {
    let steps = prop::collection::vec(step(), 0..most);
    let kind = prop_oneof![
        2 => Just((false, false)),
        1 => Just((true, false)),
        1 => Just((false, true)),
        1 => Just((true, true))
    ];
    (1..24usize, 0..most, steps, kind).prop_map(|(depth, copied_at, mut steps, (is_cut, is_told))| {
        steps.retain(|step| match step.act {
            Act::Cut(_) => is_cut,
            Act::Tell(Word::State) | Act::Ask(_) | Act::Slip(..) => true,
            Act::Tell(_) => is_told,
        });
        Case { depth, copied_at, steps }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let operation = || {
        prop_oneof![
            6 => Just(Operation::Write),
            6 => Just(Operation::Read),
            1 => Just(Operation::Trim),
            1 => Just(Operation::WriteZeroes),
        ]
    };
    let slip =
        prop_oneof![Just(Slip::Outside), Just(Slip::Overflow), Just(Slip::Empty), Just(Slip::Unaligned)];
    let act = prop_oneof![
        112 => operation().prop_map(Act::Ask),
        8 => Just(Act::Ask(Operation::Flush)),
        8 => Just(Act::Ask(Operation::Demote)),
        4 => (operation(), slip).prop_map(|(operation, slip)| Act::Slip(operation, slip)),
        6 => word().prop_map(Act::Tell),
        2 => (0..200u32).prop_map(Act::Cut),
    ];
    let pause = prop_oneof![6 => Just(0u64), 3 => 0..200_000u64, 1 => 0..40_000_000u64];
    let place = prop_oneof![0..NEAR, 0..=u16::MAX];
    let blocks = prop_oneof![6 => 1..6u32, 1 => 1..70u32];
    (pause, act, place, blocks, 0..4u16, prop::bool::weighted(0.1), 0..3u16).prop_map(
        |(pause_ns, act, place, blocks, tenant, fua, hint)| Step {
            pause_ns,
            act,
            place,
            blocks,
            tenant,
            fua,
            hint,
        },
    )
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![
        12 => Just(Word::State),
        4 => prop::bool::weighted(0.4).prop_map(Word::ReadOnly),
        4 => prop::bool::weighted(0.5).prop_map(|is_deterministic| {
            Word::Window(if is_deterministic { Window::Deterministic } else { Window::NonDeterministic })
        }),
        1 => Just(Word::Remove),
    ]
}
