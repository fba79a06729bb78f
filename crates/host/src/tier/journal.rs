//! The journal of an upper device: which frame holds which page, so that after a power
//! cut it is known again.
//!
//! A ring of units of 512 bytes, which are written one after the other, each as a
//! whole. A unit holds new entries, and repeats those of the next frames in turn, so
//! that a ring that is a little longer than it takes to come round holds all that is
//! true. Nothing has to be copied, and nothing read but after a power cut.

use std::collections::{BTreeMap, VecDeque};

use flashkeel_engine::{Completion, LOGICAL_PAGE_SECTORS, RequestId, SECTOR_BYTES, Status};

use super::table::{NONE, Table};

/// Frames whose entries a unit repeats.
const REPEATED: u64 = 24;
/// New entries of a unit: writes of up to 144 KiB are one.
const NEW: usize = 36;
/// Units beyond those that it takes to come round.
const SPARE: u64 = 4;
/// Sectors of a unit.
const UNIT_SECTORS: u64 = 1;
/// How a unit begins, and where its entries do.
const MAGIC: u32 = 0x464b_544a;
const HEADER: usize = 24;

/// How an upper device is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub frames: u64,
    /// Units of the journal, behind the frames.
    pub units: u64,
}

impl Room {
    /// In so many sectors.
    pub fn within(sectors: u64) -> Room {
        let frames = sectors.saturating_sub((SPARE + 1) * UNIT_SECTORS) * REPEATED
            / (LOGICAL_PAGE_SECTORS * REPEATED + UNIT_SECTORS);
        Room { frames, units: frames.div_ceil(REPEATED) + SPARE }
    }
}

/// Which page a frame holds, or that it holds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    frame: u32,
    page: u32,
    /// Whether it is the last of those that are true together.
    is_last: bool,
}

/// Who waits until entries are durable.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waiter {
    /// Frames that were written, one after the other.
    Written { frame: u32, pages: u32, sequence: u64, part: RequestId, completion: Completion },
    /// The end of a part.
    Ended { part: RequestId, completion: Completion },
}

/// What is to be written, and what is being written.
#[derive(Clone)]
pub(super) struct Journal {
    room: Room,
    /// Number of the next unit, from 1.
    next: u64,
    /// The frame whose entry is repeated next.
    cursor: u32,
    entries: VecDeque<Entry>,
    /// How many have been added, and how many of these are durable or given up, in order.
    added: u64,
    ended: u64,
    /// Those of the unit that is being written.
    writing: Vec<Entry>,
    /// Those written that are true only together with some that are not written yet.
    open: Vec<Entry>,
    is_writing: bool,
    /// Whether those before the next unit that wait for others have waited in vain.
    breaks: bool,
    releasing: u64,
    /// With how many entries have to have ended for each, in order.
    waiters: VecDeque<(u64, Waiter)>,
}

impl Journal {
    pub fn new(room: Room) -> Journal {
        Journal {
            room,
            next: 1,
            cursor: 0,
            entries: VecDeque::new(),
            added: 0,
            ended: 0,
            writing: Vec::new(),
            open: Vec::new(),
            is_writing: false,
            breaks: false,
            releasing: 0,
            waiters: VecDeque::new(),
        }
    }

    /// Its first sector, and its sectors.
    pub fn sectors(&self) -> (u64, u64) {
        (self.room.frames * LOGICAL_PAGE_SECTORS, self.room.units * UNIT_SECTORS)
    }

    fn push(&mut self, entry: Entry) {
        self.entries.push_back(entry);
        self.added += 1;
    }

    /// That the frame holds its page; `is_last` of those that are true together.
    pub fn add(&mut self, frame: u32, page: u64, is_last: bool) {
        self.push(Entry { frame, page: page as u32, is_last });
    }

    /// That the frame holds nothing.
    pub fn release(&mut self, frame: u32) {
        self.releasing += 1;
        self.push(Entry { frame, page: NONE, is_last: true });
    }

    /// Somebody waits for all that has been added.
    pub fn wait(&mut self, waiter: Waiter) {
        self.waiters.push_back((self.added, waiter));
    }

    /// Frames whose release is not durable yet.
    pub fn releasing(&self) -> u64 {
        self.releasing
    }

    /// Begins the next unit if there is anything to write and none on its way; returns
    /// its sector, and its bytes if they are wanted.
    pub fn begin(&mut self, table: &Table, bytes: Option<&mut [u8]>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.is_writing = true;
        self.writing.clear();
        let count = self.entries.len().min(NEW);
        for mut entry in self.entries.drain(..count) {
            // What was given up meanwhile must not come back.
            if entry.page != NONE && table.is_orphan(entry.frame) {
                entry.page = NONE;
            }
            self.writing.push(entry);
        }
        let cursor = self.cursor;
        self.cursor = (u64::from(cursor) + REPEATED).min(self.room.frames) as u32;
        if u64::from(self.cursor) == self.room.frames {
            self.cursor = 0;
        }
        if let Some(bytes) = bytes {
            let repeated =
                (cursor..).take(REPEATED as usize).take_while(|&frame| u64::from(frame) < self.room.frames);
            let repeated = repeated.filter(|&frame| table.is_journaled(frame));
            let repeated = repeated.map(|frame| (frame, table.page(frame) as u32));
            self.encode(number, repeated, bytes);
        }
        self.sector(number)
    }

    /// Whether anybody waits for what is to be written.
    pub fn is_awaited(&self) -> bool {
        !self.waiters.is_empty()
    }

    /// Whether [`begin`](Self::begin) has something to do.
    pub fn is_due(&self) -> bool {
        !self.is_writing && !self.entries.is_empty()
    }

    fn sector(&self, number: u64) -> u64 {
        self.room.frames * LOGICAL_PAGE_SECTORS + number % self.room.units * UNIT_SECTORS
    }

    fn encode(&self, number: u64, repeated: impl Iterator<Item = (u32, u32)>, bytes: &mut [u8]) {
        bytes.fill(0);
        let mut at = HEADER;
        let mut put = |frame: u32, page: u32| {
            bytes[at..at + 4].copy_from_slice(&frame.to_le_bytes());
            bytes[at + 4..at + 8].copy_from_slice(&page.to_le_bytes());
            at += 8;
        };
        let mut old = 0u16;
        for (frame, page) in repeated {
            put(frame, page);
            old += 1;
        }
        self.writing.iter().for_each(|entry| put(entry.frame, entry.page));
        let closed = self.writing.iter().rposition(|entry| entry.is_last).map_or(0, |last| last + 1);
        bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.cursor.to_le_bytes());
        bytes[8..16].copy_from_slice(&number.to_le_bytes());
        bytes[16..18].copy_from_slice(&old.to_le_bytes());
        bytes[18..20].copy_from_slice(&(self.writing.len() as u16).to_le_bytes());
        bytes[20..22].copy_from_slice(&(closed as u16).to_le_bytes());
        bytes[22] = u8::from(self.breaks);
    }

    /// The unit is durable: so is what it says of frames.
    pub fn end(&mut self, table: &mut Table) {
        (self.is_writing, self.breaks) = (false, false);
        self.ended += self.writing.len() as u64;
        for entry in self.writing.drain(..) {
            self.open.push(entry);
            if !entry.is_last {
                continue;
            }
            for Entry { frame, page, .. } in self.open.drain(..) {
                if page == NONE {
                    // Also of a frame that was given up before its page was durable.
                    self.releasing = self.releasing.saturating_sub(1);
                    table.released(frame);
                } else {
                    table.journaled(frame);
                }
            }
        }
    }

    /// The unit could not be written, as `status` says; what was to be released still is.
    pub fn fail(&mut self, status: Status) {
        (self.is_writing, self.breaks) = (false, true);
        self.open.clear();
        // What is true only together with what is lost is never said.
        let mut is_cut = self.writing.last().is_some_and(|entry| !entry.is_last);
        self.ended += self.writing.len() as u64;
        while is_cut && let Some(entry) = self.entries.pop_front() {
            self.ended += 1;
            is_cut = !entry.is_last;
        }
        let mut writing = std::mem::take(&mut self.writing);
        let mut is_releasing = false;
        for entry in writing.drain(..).filter(|entry| entry.page == NONE) {
            self.push(Entry { is_last: true, ..entry });
            is_releasing = true;
        }
        self.writing = writing;
        // Who waits for what is released may wait for one of these, which comes behind.
        for (_, waiter) in self.waiters.iter_mut().filter(|_| is_releasing) {
            if let Waiter::Ended { completion, .. } = waiter {
                completion.status = completion.status.max(status);
            }
        }
    }

    /// The next one who waits for nothing that is not written.
    pub fn served(&mut self) -> Option<Waiter> {
        let is_served = self.waiters.front().is_some_and(|(entries, _)| *entries <= self.ended);
        if is_served { self.waiters.pop_front().map(|(_, waiter)| waiter) } else { None }
    }

    /// Power is cut: what was not written is forgotten.
    pub fn cut_power(&mut self) {
        if std::mem::take(&mut self.is_writing) {
            self.next -= 1;
        }
        (self.releasing, self.breaks) = (0, true);
        self.entries.clear();
        self.ended = self.added;
        self.writing.clear();
        self.open.clear();
        self.waiters.clear();
    }

    /// Goes on behind the units that were found; returns the page of each frame.
    pub fn resume(&mut self, mut units: Vec<Unit>) -> Vec<u32> {
        units.sort_unstable_by_key(|unit| unit.number);
        let last = units.last().map_or((0, 0), |unit| (unit.number, unit.cursor));
        (self.next, self.cursor) = (last.0 + 1, last.1);
        let mut found = Found { frames: vec![NONE; self.room.frames as usize], pages: BTreeMap::new() };
        let mut open = Vec::new();
        for unit in units.iter().filter(|unit| unit.number + self.room.units > last.0) {
            unit.repeated.iter().for_each(|&entry| found.apply(entry));
            if unit.breaks {
                open.clear();
            }
            let (closed, rest) = unit.new.split_at(unit.closed);
            if !closed.is_empty() {
                open.drain(..).for_each(|entry| found.apply(entry));
            }
            closed.iter().for_each(|&entry| found.apply(entry));
            open.extend_from_slice(rest);
        }
        found.frames
    }
}

/// A unit as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    number: u64,
    cursor: u32,
    repeated: Vec<(u32, u32)>,
    new: Vec<(u32, u32)>,
    /// How many of the new ones are true; the others wait for the next unit.
    closed: usize,
    /// Whether those that wait are given up.
    breaks: bool,
}

/// Reads units.
pub(super) fn decode(bytes: &[u8]) -> impl Iterator<Item = Unit> {
    bytes.chunks_exact(SECTOR_BYTES as usize).filter_map(|bytes| {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let half = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        if word(0) != MAGIC {
            return None;
        }
        let number = u64::from(word(8)) | u64::from(word(12)) << 32;
        let (repeated, new, closed) = (half(16), half(18), half(20));
        let entry = |index: usize| (word(HEADER + index * 8), word(HEADER + index * 8 + 4));
        Some(Unit {
            number,
            cursor: word(4),
            repeated: (0..repeated).map(entry).collect(),
            new: (repeated..repeated + new).map(entry).collect(),
            closed,
            breaks: bytes[22] != 0,
        })
    })
}

/// What the journal says, as far as it has been read.
struct Found {
    frames: Vec<u32>,
    pages: BTreeMap<u32, u32>,
}

impl Found {
    fn apply(&mut self, (frame, page): (u32, u32)) {
        let former = std::mem::replace(&mut self.frames[frame as usize], page);
        if former != NONE && self.pages.get(&former) == Some(&frame) {
            self.pages.remove(&former);
        }
        if page != NONE
            && let Some(other) = self.pages.insert(page, frame).filter(|&other| other != frame)
        {
            self.frames[other as usize] = NONE;
        }
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::{Ledger, Stream, Time};

    use super::*;

    #[test]
    fn the_journal_fits_behind_the_frames() {
        for sectors in [48, 49, 1000, 65_536, 1 << 26] {
            let Room { frames, units } = Room::within(sectors);
            assert!(
                frames * LOGICAL_PAGE_SECTORS + units * UNIT_SECTORS <= sectors,
                "{sectors}: {frames} {units}"
            );
            assert!(frames == 0 || (frames + 2) * LOGICAL_PAGE_SECTORS + units >= sectors - 8);
        }
        // The share of the medium that it takes.
        let Room { frames, units } = Room::within(1 << 26);
        assert!((units as f64 / (frames * LOGICAL_PAGE_SECTORS) as f64) < 0.006);
    }

    /// Moves pages between frames for long, and reads the ring at some point.
    #[test]
    fn what_is_durable_is_found_again_however_often_the_ring_came_round() {
        let mut random = Stream::new(3, "journal");
        let room = Room::within(200 * LOGICAL_PAGE_SECTORS);
        let mut table = Table::new(1000, room.frames, true);
        let mut journal = Journal::new(room);
        let mut ring = vec![0u8; (room.units * SECTOR_BYTES) as usize];
        let mut held: BTreeMap<u64, u32> = BTreeMap::new();
        for sequence in 1..=20_000 {
            let page = random.below(150);
            if table.free() > 4 && random.chance(0.7) {
                let frame = table.begin_write(page, sequence);
                journal.add(frame, page, true);
                write(&mut journal, &mut table, &mut ring);
                table.end_write(frame, sequence);
                held.insert(page, frame);
            } else {
                table.begin_lower(page, sequence);
                table.end_lower(page, sequence);
                held.remove(&page);
                for frame in std::mem::take(table.releases()) {
                    journal.release(frame);
                }
                write(&mut journal, &mut table, &mut ring);
            }
            if random.chance(0.01) {
                let frames = journal.clone().resume(decode(&ring).collect());
                let found: BTreeMap<u64, u32> = (0..)
                    .zip(&frames)
                    .filter(|(_, page)| **page != NONE)
                    .map(|(frame, &page)| (u64::from(page), frame))
                    .collect();
                assert_eq!(found, held, "after change {sequence}");
            }
        }
        assert!(journal.next > 20 * room.units, "the ring came round");
    }

    fn write(journal: &mut Journal, table: &mut Table, ring: &mut [u8]) {
        while journal.is_due() {
            let mut bytes = [0; SECTOR_BYTES as usize];
            let sector = journal.begin(table, Some(&mut bytes));
            let at = ((sector - journal.sectors().0) * SECTOR_BYTES) as usize;
            ring[at..at + bytes.len()].copy_from_slice(&bytes);
            journal.end(table);
        }
    }

    #[test]
    fn what_was_written_together_is_found_together_or_not_at_all() {
        let room = Room::within(300 * LOGICAL_PAGE_SECTORS);
        let mut table = Table::new(1000, room.frames, true);
        let mut journal = Journal::new(room);
        let mut ring = vec![0u8; (room.units * SECTOR_BYTES) as usize];
        let frames: Vec<u32> = (0..100).map(|page| table.begin_write(page, 1)).collect();
        for (page, &frame) in (0..).zip(&frames) {
            journal.add(frame, page, page == 99);
        }
        for units in 1..=3 {
            let mut bytes = [0; SECTOR_BYTES as usize];
            let sector = journal.begin(&table, Some(&mut bytes));
            let at = ((sector - journal.sectors().0) * SECTOR_BYTES) as usize;
            ring[at..at + bytes.len()].copy_from_slice(&bytes);
            journal.end(&mut table);
            let found = journal.clone().resume(decode(&ring).collect());
            let pages = found.iter().filter(|&&page| page != NONE).count();
            assert_eq!(pages, if units == 3 { 100 } else { 0 });
        }
    }

    #[test]
    fn who_waits_for_a_release_hears_of_a_unit_that_failed() {
        let room = Room::within(300 * LOGICAL_PAGE_SECTORS);
        let mut table = Table::new(1000, room.frames, true);
        let mut journal = Journal::new(room);
        (0..NEW as u32 + 4).for_each(|frame| journal.release(frame));
        let id = RequestId(1);
        let completion = Completion { id, time: Time::ZERO, status: Status::Ok, ledger: Ledger::ZERO };
        journal.wait(Waiter::Ended { part: id, completion });
        journal.begin(&table, None);
        journal.fail(Status::MediaError);
        assert!(journal.served().is_none(), "some of it is to be written yet");
        journal.begin(&table, None);
        journal.end(&mut table);
        let Some(Waiter::Ended { completion, .. }) = journal.served() else { panic!("it waits no longer") };
        assert_eq!(completion.status, Status::MediaError);
        assert_eq!(journal.releasing(), 4, "what failed is tried again");
    }
}
