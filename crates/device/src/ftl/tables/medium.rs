//! Where the bytes of physical pages lie: in memory, or in a medium of somebody else's,
//! such as a file, from which they are found again after a restart.

use std::sync::Arc;

use flashkeel_engine::{LOGICAL_PAGE_BYTES, Time};

use crate::address::{BlockId, Lpn, Ppn};

/// The bytes of a mapping unit.
pub type Page = [u8; LOGICAL_PAGE_BYTES as usize];

/// What lies out of band beside the bytes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which logical page it is.
    pub lpn: Lpn,
    /// Its place in the order of writes.
    pub sequence: u64,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cycle {
    /// How often it has been erased.
    pub erases: u32,
    /// Its effective cycles, where wear is accounted.
    pub worn: f64,
    /// When it was last erased, as far as wear goes by that.
    pub erased_at: Time,
    /// Whether it is used no more.
    pub is_retired: bool,
}

/// Where the pages of one partition lie, and what its write buffer holds.
///
/// A medium keeps everything it is told, in the order in which it is told: whatever ends
/// its owner, all of it up to some moment is found again. What fails in it is reported by
/// itself, not to the device.
pub trait Medium: Send {
    /// What a physical page holds, zeros if it has been given no bytes; `None` if it is
    /// damaged.
    fn read(&self, ppn: Ppn) -> Option<Page>;

    /// Whether a physical page was given these bytes, damaged or not as it is now.
    fn matches(&self, ppn: Ppn, page: &Page) -> bool;

    /// A page is programmed; without bytes it holds zeros.
    fn program(&mut self, ppn: Ppn, place: Place, page: Option<&Page>);

    /// A page is programmed with what another one holds, damaged or not.
    fn copy(&mut self, from: Ppn, to: Ppn, place: Place);

    /// A page has come into the write buffer, or has changed in it. Without bytes it is enough
    /// to know that it was on its way.
    fn hold(&mut self, entry: u32, place: Place, page: Option<&Page>);

    /// A buffered page is in flash.
    fn release(&mut self, entry: u32);

    /// A page holds nothing any more that was written before a place in the order of
    /// writes.
    fn trim(&mut self, lpn: Lpn, sequence: u64);

    /// A block has been erased.
    fn erase(&mut self, block: BlockId, cycle: Cycle);
}

/// How large the medium of a partition has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumShape {
    /// Logical pages, those of the map included.
    pub lpns: u32,
    /// Physical pages.
    pub ppns: u32,
    /// Physical pages of a block.
    pub units_per_block: u32,
    /// Pages that the write buffer holds at most, parity on its way included.
    pub held: u32,
}

/// What is found in a medium.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// By physical page; `None` where nothing has been programmed since the last erase.
    pub places: Vec<Option<Place>>,
    /// The last trims of pages.
    pub trims: Vec<(Lpn, u64)>,
    /// Pages that came into the write buffer, the newest last; those that are in flash
    /// by now may be among them. Without bytes those that are damaged: they stay where they
    /// are, and are found again until something newer is, or a trim.
    pub held: Vec<(Place, Option<Box<Page>>)>,
    /// Pages that were on their way, or may have been: of what was written together with
    /// them not all need be there. Some more than once.
    pub unsettled: Vec<Lpn>,
    /// By block.
    pub cycles: Vec<Cycle>,
}

/// The bytes of a partition's physical pages.
pub(super) enum Flash {
    /// By physical page; zeros where there are none.
    Memory(Vec<Option<Arc<Page>>>),
    /// Somewhere else.
    Elsewhere(Box<dyn Medium>),
}

impl Default for Flash {
    fn default() -> Flash {
        Flash::Memory(Vec::new())
    }
}

impl Clone for Flash {
    /// A copy of a device, made to ask what would happen if, has nothing to do with a
    /// medium: its pages hold zeros then.
    fn clone(&self) -> Flash {
        match self {
            Flash::Memory(pages) => Flash::Memory(pages.clone()),
            Flash::Elsewhere(_) => Flash::default(),
        }
    }
}

impl Flash {
    /// The medium, if there is one.
    pub fn medium(&mut self) -> Option<&mut dyn Medium> {
        match self {
            Flash::Memory(_) => None,
            Flash::Elsewhere(medium) => Some(&mut **medium),
        }
    }

    /// What a page holds; `None` if it is damaged.
    pub fn read(&self, ppn: Ppn) -> Option<Page> {
        match self {
            Flash::Memory(pages) => {
                Some(pages.get(ppn.0 as usize).and_then(Option::as_deref).copied().unwrap_or([0; _]))
            }
            Flash::Elsewhere(medium) => medium.read(ppn),
        }
    }

    /// Whether these bytes, which were not read here, can be those that a page was given.
    pub fn matches(&self, ppn: Ppn, page: &Page) -> bool {
        match self {
            Flash::Memory(_) => true,
            Flash::Elsewhere(medium) => medium.matches(ppn, page),
        }
    }

    /// Takes away what a page in memory holds.
    pub fn take(&mut self, ppn: Ppn) -> Option<Arc<Page>> {
        match self {
            Flash::Memory(pages) => pages.get_mut(ppn.0 as usize).and_then(Option::take),
            Flash::Elsewhere(_) => None,
        }
    }

    /// Programs a page.
    pub fn program(&mut self, ppn: Ppn, place: Option<Place>, page: Option<Arc<Page>>) {
        match self {
            Flash::Memory(pages) => drop(super::pages::set(pages, ppn.0, page)),
            Flash::Elsewhere(medium) => {
                if let Some(place) = place {
                    medium.program(ppn, place, page.as_deref());
                }
            }
        }
    }

    /// Programs a page with what another one holds.
    pub fn copy(&mut self, from: Ppn, to: Ppn, place: Option<Place>) {
        match self {
            Flash::Memory(pages) => {
                let page = pages.get(from.0 as usize).cloned().flatten();
                super::pages::set(pages, to.0, page);
            }
            Flash::Elsewhere(medium) => {
                if let Some(place) = place {
                    medium.copy(from, to, place);
                }
            }
        }
    }
}
