//! The page map: where each logical page lives, and what each physical page
//! holds.

use std::io::{self, Read, Write};

use super::image::{read_words, write_words};
use crate::address::{Home, Lpn, Ppn};
use crate::prefetch::table;

/// Logical-to-physical and physical-to-logical tables of one partition, with
/// one validity bit per physical page.
///
/// A physical page is valid exactly if it is the home of the logical page it
/// holds. Memory: 4 B per logical, 4 1/8 B per physical page.
#[derive(Clone, Debug)]
pub struct Map {
    /// Of each home its complement, so that what has none is a zero and fresh memory
    /// needs no filling.
    home: Vec<u32>,
    holds: Vec<u32>,
    valid: Vec<u64>,
    ppns: u32,
}

impl Map {
    /// A map of `lpns` unmapped logical pages over `ppns` empty physical ones.
    pub fn new(lpns: u32, ppns: u32) -> Self {
        Map {
            home: table(lpns as usize),
            holds: table(ppns as usize),
            valid: table((ppns as usize).div_ceil(64)),
            ppns,
        }
    }

    /// Logical pages, map pages included.
    pub fn lpns(&self) -> u32 {
        self.home.len() as u32
    }

    /// Physical pages; homes from this number on are buffer entries.
    #[inline]
    pub fn ppns(&self) -> u32 {
        self.ppns
    }

    /// Where `lpn` lives.
    #[inline]
    pub fn home(&self, lpn: Lpn) -> Home {
        Home(!self.home[lpn.0 as usize])
    }

    /// Where `lpn` lives in flash, if it lives there.
    #[inline]
    pub fn flash_home(&self, lpn: Lpn) -> Option<Ppn> {
        let home = !self.home[lpn.0 as usize];
        (home < self.ppns).then_some(Ppn(home))
    }

    /// Sets the home of `lpn` and returns the former one, whose validity bit
    /// the caller clears.
    #[inline]
    pub fn set_home(&mut self, lpn: Lpn, home: Home) -> Home {
        Home(!std::mem::replace(&mut self.home[lpn.0 as usize], !home.0))
    }

    /// What `ppn` was programmed with last, if it ever was.
    #[inline]
    pub fn holds(&self, ppn: Ppn) -> Lpn {
        Lpn(self.holds[ppn.0 as usize])
    }

    /// Records that `ppn` now holds `lpn`, valid.
    #[inline]
    pub fn set_valid(&mut self, ppn: Ppn, lpn: Lpn) {
        self.holds[ppn.0 as usize] = lpn.0;
        debug_assert!(!self.is_valid(ppn));
        self.valid[ppn.0 as usize / 64] |= 1 << (ppn.0 % 64);
    }

    /// Records that `lpn` lives in `ppn` and that `ppn` holds it. Validity
    /// bits are the caller's, by the run.
    #[inline]
    pub fn settle(&mut self, lpn: Lpn, ppn: Ppn) {
        self.home[lpn.0 as usize] = !ppn.0;
        self.holds[ppn.0 as usize] = lpn.0;
    }

    /// Sets the validity bits in `valid`, lowest for `first`, of a run as in
    /// [`valid_run`](Self::valid_run).
    #[inline]
    pub fn set_valid_run(&mut self, first: Ppn, valid: u64) {
        self.valid[first.0 as usize / 64] |= valid << (first.0 % 64);
    }

    /// Clears the validity bits of a run as in [`valid_run`](Self::valid_run);
    /// returns what they were.
    #[inline]
    pub fn take_valid_run(&mut self, first: Ppn, count: u32) -> u64 {
        let valid = self.valid_run(first, count);
        self.valid[first.0 as usize / 64] &= !(valid << (first.0 % 64));
        valid
    }

    /// Records that `ppn` is out of date.
    #[inline]
    pub fn set_invalid(&mut self, ppn: Ppn) {
        debug_assert!(self.is_valid(ppn));
        self.valid[ppn.0 as usize / 64] &= !(1 << (ppn.0 % 64));
    }

    /// Whether `ppn` holds current data.
    #[inline]
    pub fn is_valid(&self, ppn: Ppn) -> bool {
        self.valid[ppn.0 as usize / 64] >> (ppn.0 % 64) & 1 == 1
    }

    /// Validity bits of `count` pages from `first` on, lowest first. The run
    /// does not cross a multiple of `count`, a power of two up to 64.
    #[inline]
    pub fn valid_run(&self, first: Ppn, count: u32) -> u64 {
        debug_assert!(count.is_power_of_two() && count <= 64 && first.0.is_multiple_of(count));
        let word = self.valid[first.0 as usize / 64] >> (first.0 % 64);
        word & (u64::MAX >> (64 - count))
    }

    /// Asks the processor to fetch the entry of `lpn`.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        crate::prefetch::read(&self.home, lpn.0 as usize);
    }

    /// Asks the processor to fetch what the pages from `first` on hold.
    #[inline]
    pub fn prefetch_held(&self, first: Ppn) {
        crate::prefetch::read(&self.holds, first.0 as usize);
    }

    /// Asks the processor to fetch the validity bit of `ppn`.
    #[inline]
    pub fn prefetch_valid(&self, ppn: Ppn) {
        crate::prefetch::read(&self.valid, ppn.0 as usize / 64);
    }

    /// Asks the processor to fetch the validity bit of `lpn`'s home.
    #[inline]
    pub fn prefetch_validity(&self, lpn: Lpn) {
        crate::prefetch::read(&self.valid, !self.home[lpn.0 as usize] as usize / 64);
    }

    /// Asks the processor to fetch the map entries of what the valid ones of
    /// `count` pages from `first` on hold; `count` as in `valid_run`.
    #[inline]
    pub fn prefetch_holders(&self, first: Ppn, count: u32) {
        let mut valid = self.valid_run(first, count);
        while valid != 0 {
            let holder = self.holds[(first.0 + valid.trailing_zeros()) as usize];
            crate::prefetch::read(&self.home, holder as usize);
            valid &= valid - 1;
        }
    }

    /// Bytes of the tables.
    pub fn table_bytes(&self) -> usize {
        (self.home.len() + self.holds.len()) * 4 + self.valid.len() * 8
    }

    /// Valid pages of each `count` pages in turn, the block's.
    pub fn valid_of_each(&self, count: u32) -> Vec<u32> {
        let ones = |from: u32, to: u32| {
            let word = self.valid[from as usize / 64] >> (from % 64);
            (word & (u64::MAX >> (64 - (to - from)))).count_ones()
        };
        let next = |from: u32, end: u32| end.min((from / 64 + 1) * 64);
        let of_run = |first: u32| {
            let (mut from, end, mut sum) = (first, first + count, 0);
            while from < end {
                let to = next(from, end);
                (sum, from) = (sum + ones(from, to), to);
            }
            sum
        };
        (0..self.ppns / count).map(|run| of_run(run * count)).collect()
    }

    /// Writes the tables.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        write_words(out, &self.home)?;
        write_words(out, &self.holds)?;
        write_words(out, &self.valid)
    }

    /// Reads what [`save`](Self::save) wrote, straight into the tables.
    pub fn restore(&mut self, input: &mut dyn Read) -> io::Result<()> {
        read_words(input, &mut self.home)?;
        read_words(input, &mut self.holds)?;
        read_words(input, &mut self.valid)
    }
}
