//! Copies in flash: which one is a page's home, and which one its parity
//! covers.
//!
//! The copy of a page is garbage as soon as it is written again, but in two
//! cases. With logical stripes it is part of its stripe until the parity is
//! computed anew. And where a power cut empties the buffer, the copy is what is
//! left of the page then. In both it stays valid behind the buffered page that
//! supersedes it.

use super::entries::EntryId;
use super::{Entry, Tables};
use crate::address::{Home, Lpn, Ppn};

impl Tables {
    /// The copy of `lpn` in flash: its home, or behind its buffered home.
    #[inline]
    pub fn flash_copy(&self, lpn: Lpn) -> Option<Ppn> {
        let home = self.map.home(lpn);
        let copy = match self.buffered(home) {
            Some(entry) => self.entries[entry].behind,
            None => home,
        };
        (copy.0 < self.map.ppns()).then_some(Ppn(copy.0))
    }

    /// The buffer entry that a home names, if it names one.
    #[inline]
    pub fn buffered(&self, home: Home) -> Option<u32> {
        (home != Home::UNMAPPED && home.0 >= self.map.ppns()).then(|| home.0 - self.map.ppns())
    }

    /// Makes a buffered page, without logical stripes, the home of `lpn`.
    #[inline]
    pub fn supersede(&mut self, lpn: Lpn, id: EntryId) {
        let home = Home(self.map.ppns() + id);
        if !self.shape.keeps_behind {
            self.move_home(lpn, home);
            return;
        }
        let former = self.map.set_home(lpn, home);
        let (behind, behind_sequence) = match self.buffered(former) {
            Some(older) => (self.entries[older].behind, self.entries[older].behind_sequence),
            // What is on its way still was written before the copy, or trimmed.
            None => (former, self.entries[id].sequence - 1),
        };
        let entry = &mut self.entries[id];
        (entry.behind, entry.behind_sequence) = (behind, behind_sequence);
    }

    /// Whether a page of the host that has been programmed is the newest copy in
    /// flash, without logical stripes.
    pub(in crate::ftl) fn is_newest_copy(&mut self, entry: &Entry) -> bool {
        let home = self.map.home(entry.lpn);
        if home == entry.from || !self.shape.keeps_behind {
            return home == entry.from;
        }
        let Some(newer) = self.buffered(home) else { return false };
        let behind_sequence = &mut self.entries[newer].behind_sequence;
        let is_newest = *behind_sequence < entry.sequence;
        *behind_sequence = entry.sequence.max(*behind_sequence);
        is_newest
    }

    /// Unmaps a page, without logical stripes.
    pub(in crate::ftl) fn unmap(&mut self, lpn: Lpn) {
        if self.shape.keeps_behind
            && let Some(entry) = self.buffered(self.map.home(lpn))
        {
            let behind = std::mem::replace(&mut self.entries[entry].behind, Home::UNMAPPED);
            self.discard(behind);
        }
        self.gives(lpn);
        self.move_home(lpn, Home::UNMAPPED);
    }

    /// Whether the copy at `from` is still that of `lpn`.
    #[inline]
    pub(in crate::ftl) fn is_current(&self, lpn: Lpn, from: Home) -> bool {
        let home = self.map.home(lpn);
        home == from
            || (self.shape.keeps_behind
                && self.buffered(home).is_some_and(|entry| self.entries[entry].behind == from))
    }

    /// [Installs](Self::install) the copy at `from` if it [is still](Self::is_current)
    /// that of `lpn`; whether it was.
    #[inline]
    pub(in crate::ftl) fn install_current(&mut self, lpn: Lpn, from: Home, ppn: Ppn) -> bool {
        let is_current = self.is_current(lpn, from);
        if is_current {
            self.install(lpn, from, ppn);
        }
        is_current
    }

    /// Makes `ppn` the copy of `lpn` in flash; the former one becomes garbage.
    /// It becomes the home unless a newer page is buffered before `from`.
    #[inline(always)]
    pub(in crate::ftl) fn install(&mut self, lpn: Lpn, from: Home, ppn: Ppn) {
        if !self.shape.keeps_behind {
            self.move_home(lpn, Home(ppn.0));
        } else if let home = self.map.home(lpn)
            && let Some(entry) = self.buffered(home)
        {
            let former = std::mem::replace(&mut self.entries[entry].behind, Home(ppn.0));
            self.discard(former);
            if home == from {
                self.map.set_home(lpn, Home(ppn.0));
            }
        } else {
            self.move_home(lpn, Home(ppn.0));
        }
        self.map.set_valid(ppn, lpn);
        self.blocks.gain(self.shape.block_of(ppn), 1);
        self.set_lost(ppn, false);
    }

    /// A copy in flash, if `home` names one, is garbage from now on.
    #[inline]
    pub(in crate::ftl) fn discard(&mut self, home: Home) {
        if home.0 < self.map.ppns() {
            self.map.set_invalid(Ppn(home.0));
            self.blocks.lose(self.shape.block_of(Ppn(home.0)), 1);
        }
    }

    /// Whether the host has trimmed a page that its stripe still holds.
    #[inline]
    pub fn is_trimmed(&self, lpn: Lpn) -> bool {
        self.trimmed.get(lpn.0)
    }

    /// Notes whether the host has trimmed a page that its stripe holds.
    #[inline]
    pub fn set_trimmed(&mut self, lpn: Lpn, trimmed: bool) {
        if trimmed {
            self.trimmed.grow(self.shape.lpns);
        }
        self.trimmed.set(lpn.0, trimmed);
    }
}
