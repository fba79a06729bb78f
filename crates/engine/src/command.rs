//! What is said to devices and stages beside requests, and what they say.

use crate::{Operation, Status};

/// Where in a stack a device or stage stands: from the top, the index of each
/// child on the way down. Empty for the top itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub Vec<usize>);

impl Place {
    /// The place below child number `child` of what `self` was seen from.
    pub fn below(&self, child: usize) -> Place {
        Place(std::iter::once(child).chain(self.0.iter().copied()).collect())
    }
}

impl std::fmt::Display for Place {
    /// As `0.1`; `top` for the top.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("top");
        }
        let steps: Vec<String> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&steps.join("."))
    }
}

/// Something a device or a stage is told or asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Begin a window in the set of that number; a deterministic one begins when nothing
    /// is under way any more, with [`Event::WindowBegan`].
    Window(usize, Window),
    /// Take no more writes, or take them again.
    ReadOnly(bool),
    /// Be taken out, as a drive that is pulled: requests inside end with
    /// [`Status::Gone`](crate::Status::Gone), and so does every later one.
    Remove,
    /// Tell the state.
    State,
}

/// A window of predictable latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Without background work.
    Deterministic,
    /// With it.
    NonDeterministic,
}

/// What a device still does for those who ask, by the [`Command`]s it has got and by
/// itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Everything.
    #[default]
    Full,
    /// What changes nothing.
    ReadOnly,
    /// Nothing: it has been taken out.
    Removed,
}

impl Access {
    /// How a request ends that is refused for it, if it is.
    #[inline]
    pub fn refuses(self, operation: Operation) -> Option<Status> {
        match (self, operation) {
            (Access::Removed, _) => Some(Status::Gone),
            (Access::ReadOnly, Operation::Write | Operation::Trim | Operation::WriteZeroes) => {
                Some(Status::ReadOnly)
            }
            _ => None,
        }
    }
}

/// The answer to a [`Command`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done.
    Done,
    /// The state: readings by name.
    State(Vec<(String, u64)>),
}

impl Answer {
    /// The state, from readings by name.
    pub fn state<const N: usize>(readings: [(&str, u64); N]) -> Answer {
        Answer::State(readings.map(|(name, value)| (name.to_owned(), value)).into())
    }
}

/// Why a command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is nothing at that place.
    NoSuchPlace,
    /// Whatever is there knows no such command.
    Unknown,
    /// It cannot be done now, for the reason given.
    NotNow(String),
}

/// Something that has happened without being asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The set of that number has begun the deterministic window that was commanded.
    WindowBegan(usize),
    /// It has left that by itself, or could not begin it after all.
    WindowEnded(usize, WindowEnd),
    /// Of what its deterministic window may last there is as little left as a warning
    /// was set for.
    WindowWarning(usize, WindowLimit),
    /// Of copies that take turns, the one of that number has begun a deterministic window.
    TurnBegan(usize),
    /// Worn-out flash can be replaced no more: from now on it is read-only.
    WornOut,
}

/// Why a deterministic window ended without a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowEnd {
    /// Background work could wait no longer.
    Urgent,
    /// More was read or written than it promised to serve.
    TypicalExceeded,
    /// It has lasted as long as it may.
    TimeExceeded,
}

/// What a deterministic window lasts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowLimit {
    /// A number of reads.
    Reads,
    /// A number of pages written.
    Writes,
    /// A time.
    Time,
}

/// An [`Event`] and who raised it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Seen from whoever is told.
    pub place: Place,
    /// What has happened.
    pub event: Event,
}
