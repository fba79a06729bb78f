//! The model of one internal volume: buffer counter, flush detector, and
//! interval counter of garbage collection (§III-C1).

use flashkeel_engine::{Operation, Time};

use super::circumstances::{LEVEL, SEEN};
use super::intervals::Recurring;
use super::scale::Scale;

/// Octaves of the time since a slow request ended.
pub(super) const SLOW: Scale = Scale::new(0, 16, 6);
/// Steps of how full a buffer is.
const PHASES: u64 = 64;

/// What the model of every volume knows of the drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drive {
    /// Pages of a buffer; 0 where that is not known, and nothing is predicted
    /// of flushes.
    pub buffer_pages: u32,
    /// So many pages fill it; more than there are where that is not known.
    pub room_pages: u32,
    /// Steps of [`Drive::phase`] to a page, in parts of 65,536.
    page_steps: u64,
    /// Whether a write waits for its own flush.
    pub is_fore: bool,
    /// Whether a read starts a flush.
    pub is_flushed_by_reads: bool,
    /// Mean time of a flush of the whole buffer, of one that a read starts, and
    /// of one with garbage collection.
    pub flush_ns: u64,
    pub read_flush_ns: u64,
    pub collection_ns: u64,
}

impl Drive {
    /// A drive of which the buffer is known, but for `buffer_pages` of 0, and how long it takes.
    pub fn new(
        buffer_pages: u32,
        is_fore: bool,
        is_flushed_by_reads: bool,
        flush_ns: u64,
        collection_ns: u64,
    ) -> Drive {
        Drive {
            buffer_pages,
            room_pages: if buffer_pages > 0 { buffer_pages } else { u32::MAX },
            page_steps: (PHASES << 16) / u64::from(buffer_pages.max(1)),
            is_fore,
            is_flushed_by_reads,
            flush_ns,
            read_flush_ns: flush_ns,
            collection_ns,
        }
    }

    /// How full a buffer with so many pages in it is, in steps below [`PHASES`].
    #[inline]
    pub fn phase(&self, pending: u32) -> u32 {
        ((u64::from(pending) * self.page_steps) >> 16) as u32
    }

    /// How long after a write a read is sure to meet the flush that it started.
    #[inline]
    pub fn fresh_ns(&self) -> u64 {
        self.flush_ns / 4
    }
}

/// One internal volume. A copy of it can be led through requests to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Volume {
    /// Pages in the buffer: the buffer counter.
    pub pending: u32,
    /// Pages written.
    pub count: u64,
    /// When the last of them were in the buffer.
    pub written: Time,
    /// Counts, and when they were reached: what has been written since lately,
    /// with no read after it. The first is one or two of [`Drive::fresh_ns`] ago.
    pub unread: [(u64, Time); 2],
    /// When the last flush started, or will.
    pub flush_start: Time,
    /// When it will have ended: the estimated block time.
    pub flush_end: Time,
    /// When the buffer takes writes again.
    pub room_from: Time,
    /// Flushes since the last garbage collection: the interval counter.
    pub since_collection: u32,
    /// Flushes since a request was last slow for longer than a flush takes.
    pub since_late: u32,
    /// How likely the last flush is to bring the next such request, in steps of [`LEVEL`].
    level: u32,
    /// Whether any read has been seen since the flush started, and the last one
    /// was slow.
    seen: Seen,
    /// Both of these, as part of a place.
    pub standing: u32,
    /// When a slow request ended last, and from when on that is as long ago as is told.
    pub slow_end: Time,
    pub calm_from: Time,
}

/// The latest outcome of a read since the last flush started, in steps of [`SEEN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Seen {
    Nothing,
    Normal = 1 << SEEN,
    Slow = 2 << SEEN,
}

impl Volume {
    /// Empty and at rest.
    pub const NEW: Volume = Volume {
        pending: 0,
        count: 0,
        written: Time::ZERO,
        unread: [(0, Time::ZERO); 2],
        flush_start: Time::ZERO,
        flush_end: Time::ZERO,
        room_from: Time::ZERO,
        since_collection: 0,
        since_late: 0,
        level: 0,
        seen: Seen::Nothing,
        standing: 0,
        slow_end: Time::ZERO,
        calm_from: Time(SLOW.end()),
    };

    /// `pages` pages will be in the drive at `now`; returns when the buffer has
    /// taken all of them. `recurring` tells which flushes are expected to collect
    /// garbage.
    #[inline]
    pub fn write(&mut self, now: Time, pages: u32, drive: &Drive, recurring: &Recurring) -> Time {
        if drive.buffer_pages == 0 {
            return now;
        }
        let (step_ns, here) = (drive.fresh_ns(), (self.count, now));
        if now.0 > self.unread[1].1.0 + step_ns {
            self.unread[0] = if now.0 > self.unread[1].1.0 + 2 * step_ns { here } else { self.unread[1] };
            self.unread[1] = here;
        }
        self.count += u64::from(pages);
        self.written = now;
        self.pending += pages;
        let taken = now.max(self.room_from);
        if self.pending < drive.buffer_pages { taken } else { self.fill(taken, drive, recurring) }
    }

    /// Flushes what is more than the buffer holds.
    #[inline(never)]
    fn fill(&mut self, mut taken: Time, drive: &Drive, recurring: &Recurring) -> Time {
        while self.pending >= drive.buffer_pages {
            self.pending -= drive.buffer_pages;
            self.flush(taken, drive.flush_ns, drive, recurring);
            if drive.is_fore || self.pending > 0 {
                taken = self.room_from;
            }
        }
        taken
    }

    /// When the buffer would have taken all of `pages` pages that are in the drive at `now`.
    #[inline]
    pub fn takes(&self, now: Time, pages: u32, drive: &Drive, recurring: &Recurring) -> Time {
        if drive.buffer_pages == 0 {
            return now;
        }
        if self.pending + pages < drive.buffer_pages {
            return now.max(self.room_from);
        }
        { *self }.write(now, pages, drive, recurring)
    }

    /// A read arrives at `now`.
    #[inline]
    pub fn read(&mut self, now: Time, drive: &Drive, recurring: &Recurring) {
        if drive.is_flushed_by_reads && self.pending > 0 {
            self.pending = 0;
            self.flush(now, drive.read_flush_ns, drive, recurring);
        }
    }

    /// All of it is written out at `now`: as if the rest of the buffer had been written, so that the
    /// count at which it is full stays what it was.
    pub fn empty(&mut self, now: Time, drive: &Drive, recurring: &Recurring) {
        if self.pending > 0 {
            self.count += u64::from(drive.buffer_pages - self.pending);
            self.unread = [(self.count, now); 2];
            self.pending = 0;
            self.flush(now, drive.flush_ns, drive, recurring);
        }
    }

    /// Leads it through a request, `pages` pages of which lie in it and which takes `base_ns` if
    /// nothing interferes.
    #[inline]
    pub fn lead(
        &mut self,
        now: Time,
        operation: Operation,
        pages: u32,
        base_ns: u64,
        drive: &Drive,
        recurring: &Recurring,
    ) {
        match operation {
            Operation::Read => self.read(now, drive, recurring),
            Operation::Write => {
                // None of a write is in the buffer before all of it is in the drive.
                let _ = self.write(Time(now.0 + base_ns), pages, drive, recurring);
            }
            Operation::Flush => self.empty(now, drive, recurring),
            Operation::Trim | Operation::WriteZeroes | Operation::Demote => {}
        }
    }

    fn flush(&mut self, now: Time, flush_ns: u64, drive: &Drive, recurring: &Recurring) {
        self.since_collection += 1;
        self.since_late += 1;
        self.level = (recurring.wakes.level(self.since_late) as u32) << LEVEL;
        let collects = recurring.collections.expects(self.since_collection);
        let duration = if collects { drive.collection_ns } else { flush_ns };
        self.flush_start = now.max(self.flush_end);
        self.flush_end = Time(self.flush_start.0 + duration);
        // A fore buffer takes nothing while it is flushed; of a back one, the
        // second half is free once the first is on its way.
        self.room_from = if drive.is_fore { self.flush_end } else { self.flush_start };
        self.has_seen(Seen::Nothing);
    }

    /// Finds how likely the last flush is to bring a request that is slow for longer than it takes.
    pub fn find_level(&mut self, recurring: &Recurring) {
        self.level = (recurring.wakes.level(self.since_late) as u32) << LEVEL;
        self.has_seen(self.seen);
    }

    /// This is what has been seen of reads since the last flush started.
    #[inline]
    pub fn has_seen(&mut self, seen: Seen) {
        self.seen = seen;
        self.standing = self.level + seen as u32;
    }

    /// A slow request ended `now`.
    pub fn was_slow(&mut self, now: Time) {
        (self.slow_end, self.calm_from) = (now, Time(now.0 + SLOW.end()));
    }

    /// The last flush began at `start`, not when it was thought to.
    pub fn move_flush(&mut self, start: Time) {
        let moved = |time: Time| Time(start.0 + time.0.saturating_sub(self.flush_start.0));
        (self.flush_end, self.room_from) = (moved(self.flush_end), moved(self.room_from));
        self.flush_start = start;
    }

    /// Pages written so lately that a read at `now` tells whether one of them
    /// started a flush; 0 where something else may have made it slow.
    #[inline]
    pub fn fresh(&self, now: Time, drive: &Drive) -> u32 {
        let (count, since) = self.unread[0];
        let is_fresh = now.0 < self.written.0 + drive.fresh_ns();
        let is_in_wake = since.0 < self.slow_end.0 + drive.flush_ns;
        if is_fresh && !is_in_wake { (self.count - count) as u32 } else { 0 }
    }

    /// A flush was found to have begun at `start`.
    pub fn began(&mut self, start: Time, drive: &Drive) {
        self.flush_start = start;
        self.flush_end = Time(start.0 + drive.flush_ns);
        self.room_from = start;
        self.has_seen(Seen::Nothing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_takes_as_long_as_was_foreseen() {
        for (buffer_pages, is_fore) in [(0, false), (16, false), (16, true)] {
            let drive = Drive::new(buffer_pages, is_fore, false, 1_000, 5_000);
            let mut recurring = Recurring::default();
            (0..40).for_each(|_| recurring.collections.note(3));
            let mut volume = Volume::NEW;
            for number in 0..500 {
                let (now, pages) = (Time(number * 90), 1 + (number * 7 % 40) as u32);
                let foreseen = volume.takes(now, pages, &drive, &recurring);
                assert_eq!(foreseen, volume.write(now, pages, &drive, &recurring), "{number} {drive:?}");
            }
        }
    }
}
