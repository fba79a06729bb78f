//! What keeps pages of whoever would lose them with the process.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::{LOGICAL_PAGE_BYTES, Time};

/// The bytes of a page.
pub type PageBytes = [u8; LOGICAL_PAGE_BYTES as usize];

/// Pages that were found.
#[derive(Clone, Debug, Default)]
pub struct FoundPages {
    /// Those that are whole.
    pub whole: Vec<(u32, Box<PageBytes>)>,
    /// Those that are damaged: nobody knows what they held. They stay so, and are found so
    /// again, until they are kept or cleared.
    pub damaged: BTreeSet<u32>,
}

/// Keeps pages, such as those of a memory, for whoever comes after this process.
///
/// All that it has been told is found again, also if the process is killed. A loss of the
/// host's power takes at most what has been told since everything was last made durable: of
/// each page something is found that it has held since then, or what it held then. What fails
/// in it is reported by itself, not to the owner.
pub trait Keeper: Send {
    /// A page holds these bytes from now on, or else zeros.
    fn keep(&mut self, page: u32, bytes: Option<&PageBytes>);

    /// A page holds nothing from now on.
    fn clear(&mut self, page: u32);

    /// Somebody else, who is kept in the same place, has what a page holds: it is given up
    /// here once all that has been told up to now is durable.
    fn hand_over(&mut self, page: u32);

    /// Pages of the owner have been made the same in all of their places, which are kept in the same
    /// place as this: that is durable once all that has been told up to now is.
    fn agreed(&mut self, pages: Range<u32>);

    /// Pages of the owner have been read. Where they [agree](Self::agreed) but for a loss of power,
    /// nobody is to hear of it before that is durable.
    fn shown(&mut self, pages: Range<u32>);

    /// Whether a page holds anything, or has been handed over and is not given up yet.
    fn has(&self, page: u32) -> bool;
}

/// Who keeps pages, what it has found, and when.
pub struct Keeping {
    /// Who keeps them.
    pub keeper: Box<dyn Keeper>,
    /// What there is of them.
    pub found: FoundPages,
    /// How far the time of the owner has come.
    pub now: Time,
}

/// Where pages are kept, if they are. A copy of whoever has it, made to ask what would happen
/// if, keeps nothing.
#[derive(Default)]
pub struct Kept(Option<Box<dyn Keeper>>);

impl Kept {
    /// In this keeper.
    pub fn by(keeper: Box<dyn Keeper>) -> Kept {
        Kept(Some(keeper))
    }

    /// Who keeps them.
    pub fn keeper(&mut self) -> Option<&mut dyn Keeper> {
        match &mut self.0 {
            Some(keeper) => Some(&mut **keeper),
            None => None,
        }
    }
}

impl Clone for Kept {
    fn clone(&self) -> Kept {
        Kept(None)
    }
}
