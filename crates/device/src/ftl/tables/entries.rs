//! Entries: mapping units on their way into flash.

use flashkeel_engine::Time;

use crate::address::{Home, Lpn, NONE};

/// Index of an entry in its partition's pool.
pub type EntryId = u32;

/// One 4 KiB unit waiting to be programmed, or being programmed.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The logical page it holds.
    pub lpn: Lpn,
    /// The page's home when the entry was made. If it has another home by the
    /// time the program is done, the programmed copy is out of date.
    pub from: Home,
    /// The page's copy in flash, as long as the parity of its stripe covers it.
    pub behind: Home,
    /// Its place in the order in which entries are made.
    pub sequence: u64,
    /// Where `behind` is kept without stripes: no older entry than of this place
    /// may still come there.
    pub behind_sequence: u64,
    /// The request to tell, or the garbage collection job it belongs to.
    pub owner: u32,
    /// Which flush of the host covers it.
    pub epoch: u32,
    /// When it was made.
    pub entered: Time,
    next: EntryId,
    /// Still in its lane, not yet part of a program.
    is_pending: bool,
}

/// A first-in first-out list of entries.
#[derive(Clone, Copy, Debug)]
pub struct Lane {
    head: EntryId,
    tail: EntryId,
    /// Entries in the list.
    pub len: u32,
}

impl Lane {
    /// An empty list.
    pub const EMPTY: Lane = Lane { head: NONE, tail: NONE, len: 0 };

    /// The first entry.
    #[inline]
    pub fn head(&self) -> Option<EntryId> {
        (self.len > 0).then_some(self.head)
    }
}

/// The pool of a partition's entries.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    list: Vec<Entry>,
    free: Vec<EntryId>,
    /// Entries made so far.
    made: u64,
}

impl Entries {
    /// An empty pool that goes on counting where `former` ends.
    pub fn after(former: &Entries) -> Entries {
        Entries { made: former.made, ..Entries::default() }
    }

    /// Goes on counting after a place in the order of entries.
    pub fn resume(&mut self, made: u64) {
        self.made = made;
    }

    /// The last place in the order of entries.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// A place in the order of entries for something that makes none.
    pub fn next_sequence(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    /// Gives an entry a new place in the order of entries.
    pub fn renew(&mut self, entry: EntryId) {
        self.list[entry as usize].sequence = self.next_sequence();
    }

    /// Makes an entry at the end of `lane`. Its `from` is `None` where it is
    /// to be its own home among `first_home` and up (see [`Home`]).
    #[inline]
    pub fn push(&mut self, lane: &mut Lane, entry: Entry, own_home: Option<u32>) -> EntryId {
        let id = self.add(entry, own_home);
        self.append(lane, id);
        id
    }

    /// Makes an entry in no list.
    #[inline]
    pub fn add(&mut self, mut entry: Entry, own_home: Option<u32>) -> EntryId {
        entry.sequence = self.next_sequence();
        let Some(id) = self.free.pop() else {
            let id = self.list.len() as u32;
            entry.from = own_home.map_or(entry.from, |first| Home(first + id));
            self.list.push(entry);
            return id;
        };
        entry.from = own_home.map_or(entry.from, |first| Home(first + id));
        self.list[id as usize] = entry;
        id
    }

    /// Puts an entry that is in no list at the end of `lane`.
    #[inline]
    pub fn append(&mut self, lane: &mut Lane, id: EntryId) {
        if lane.len == 0 {
            lane.head = id;
        } else {
            self.list[lane.tail as usize].next = id;
        }
        lane.tail = id;
        lane.len += 1;
    }

    /// Cuts the first `count` entries off `lane`; returns the first of them,
    /// linked to the others.
    #[inline]
    pub fn take(&mut self, lane: &mut Lane, count: u32) -> EntryId {
        debug_assert!(count > 0 && count <= lane.len);
        let first = lane.head;
        let mut last = first;
        self.list[last as usize].is_pending = false;
        for _ in 1..count {
            last = self.list[last as usize].next;
            self.list[last as usize].is_pending = false;
        }
        lane.head = self.list[last as usize].next;
        self.list[last as usize].next = NONE;
        lane.len -= count;
        if lane.len == 0 {
            *lane = Lane::EMPTY;
        }
        first
    }

    /// Takes an entry out of the pool; returns it and its successor.
    #[inline]
    pub fn release(&mut self, id: EntryId) -> (Entry, EntryId) {
        let entry = self.list[id as usize];
        self.free.push(id);
        (entry, entry.next)
    }

    /// Whether an entry still waits in its lane.
    #[inline]
    pub fn is_pending(&self, id: EntryId) -> bool {
        self.list[id as usize].is_pending
    }

    /// The entry after `id` in its list, or [`NONE`].
    #[inline]
    pub fn next(&self, id: EntryId) -> EntryId {
        self.list[id as usize].next
    }
}

impl Entry {
    /// An entry of `lpn` made at `now`, in no list yet.
    pub fn new(lpn: Lpn, from: Home, owner: u32, epoch: u32, now: Time) -> Entry {
        let (sequence, behind_sequence) = (0, 0);
        Entry {
            lpn,
            from,
            behind: Home::UNMAPPED,
            sequence,
            behind_sequence,
            owner,
            epoch,
            entered: now,
            next: NONE,
            is_pending: true,
        }
    }
}

impl std::ops::Index<EntryId> for Entries {
    type Output = Entry;
    #[inline]
    fn index(&self, id: EntryId) -> &Entry {
        &self.list[id as usize]
    }
}

impl std::ops::IndexMut<EntryId> for Entries {
    #[inline]
    fn index_mut(&mut self, id: EntryId) -> &mut Entry {
        &mut self.list[id as usize]
    }
}
