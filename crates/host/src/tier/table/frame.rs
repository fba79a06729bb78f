//! What is known of a frame, in two bytes.

use super::List;

/// How a frame stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// Nobody's.
    #[default]
    Free,
    /// A page's, whose copy is on its way here.
    Pending,
    /// Readable; the lower has the same.
    Clean,
    /// Readable; the lower has not got it.
    Modified,
    /// As before, and in no list: on its way to the lower.
    Draining,
    /// Readable, clean, and in no list: offered to the lower.
    Leaving,
    /// Nobody's, but not free yet.
    Orphan,
}

/// By their bits; one number is nobody's.
const STATES: [State; 8] = [
    State::Free,
    State::Pending,
    State::Clean,
    State::Modified,
    State::Draining,
    State::Leaving,
    State::Orphan,
    State::Free,
];

impl State {
    pub fn is_modified(self) -> bool {
        matches!(self, State::Modified | State::Draining)
    }
}

const STATE: u8 = 0x07;
const JOURNALED: u8 = 0x40;
const PINNED: u8 = 0x80;
const SHARED: u8 = 0x20;

/// A page's worth of the upper device.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame {
    bits: u8,
    /// How often it was used, up to 255.
    pub uses: u8,
}

impl Frame {
    pub fn new(state: State) -> Frame {
        Frame { bits: state as u8, uses: 0 }
    }

    pub fn state(self) -> State {
        STATES[usize::from(self.bits & STATE)]
    }

    pub fn set_state(&mut self, state: State) {
        self.bits = self.bits & !STATE | state as u8;
    }

    /// The list that it stands in.
    pub fn list(self) -> Option<List> {
        match self.state() {
            State::Clean => Some(List::Clean),
            State::Modified => Some(List::Modified),
            _ => None,
        }
    }

    /// Whether somebody stands on it.
    pub fn is_pinned(self) -> bool {
        self.bits & PINNED != 0
    }

    /// Somebody stands on it, or nobody does.
    pub fn set_pinned(&mut self, is_pinned: bool) {
        self.bits = self.bits & !PINNED | if is_pinned { PINNED } else { 0 };
    }

    /// Whether others stand on it beside the one.
    pub fn is_shared(self) -> bool {
        self.bits & SHARED != 0
    }

    pub fn set_shared(&mut self, is_shared: bool) {
        self.bits = self.bits & !SHARED | if is_shared { SHARED } else { 0 };
    }

    /// The journal names its page.
    pub fn is_journaled(self) -> bool {
        self.bits & JOURNALED != 0
    }

    pub fn set_journaled(&mut self, is_journaled: bool) {
        self.bits = self.bits & !JOURNALED | if is_journaled { JOURNALED } else { 0 };
    }

    /// Whether it can be given away.
    pub fn is_idle_orphan(self) -> bool {
        self.bits == State::Orphan as u8
    }
}
