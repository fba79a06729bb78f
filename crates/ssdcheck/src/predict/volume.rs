//! The model of one internal volume: buffer counter, flush detector, and
//! interval counter of garbage collection (§III-C1).

use flashkeel_engine::Time;

/// What the model of every volume knows of the drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drive {
    /// Pages of a buffer; 0 where that is not known, and nothing is predicted
    /// of flushes.
    pub buffer_pages: u32,
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

/// One internal volume. A copy of it can be led through requests to come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Volume {
    /// Pages in the buffer: the buffer counter.
    pub pending: u32,
    /// Pages written, modulo those of the buffer.
    pub count: u32,
    /// When the last flush started, or will.
    pub flush_start: Time,
    /// When it will have ended: the estimated block time.
    pub flush_end: Time,
    /// When the buffer takes writes again.
    pub room_from: Time,
    /// Flushes since the last garbage collection: the interval counter.
    pub since_collection: u32,
    /// Whether any read has been seen since the flush started, and the last one
    /// was slow.
    pub seen: Seen,
    /// When a slow request ended last.
    pub slow_end: Time,
}

/// The latest outcome of a read since the last flush started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Seen {
    Nothing,
    Normal,
    Slow,
}

impl Volume {
    /// Empty and at rest.
    pub const NEW: Volume = Volume {
        pending: 0,
        count: 0,
        flush_start: Time::ZERO,
        flush_end: Time::ZERO,
        room_from: Time::ZERO,
        since_collection: 0,
        seen: Seen::Nothing,
        slow_end: Time::ZERO,
    };

    /// `pages` pages are written at `now`. `collects` tells whether a flush is
    /// expected to collect garbage, by the number of flushes since the last.
    #[inline]
    pub fn write(&mut self, now: Time, pages: u32, drive: &Drive, collects: impl Fn(u32) -> bool) {
        if drive.buffer_pages == 0 {
            return;
        }
        self.count = (self.count + pages) % drive.buffer_pages;
        self.pending += pages;
        while self.pending >= drive.buffer_pages {
            self.pending -= drive.buffer_pages;
            self.flush(now, drive.flush_ns, drive, &collects);
        }
    }

    /// A read arrives at `now`.
    #[inline]
    pub fn read(&mut self, now: Time, drive: &Drive, collects: impl Fn(u32) -> bool) {
        if drive.is_flushed_by_reads && self.pending > 0 {
            self.pending = 0;
            self.flush(now, drive.read_flush_ns, drive, &collects);
        }
    }

    #[inline]
    fn flush(&mut self, now: Time, flush_ns: u64, drive: &Drive, collects: impl Fn(u32) -> bool) {
        self.since_collection += 1;
        let duration = if collects(self.since_collection) { drive.collection_ns } else { flush_ns };
        self.flush_start = now.max(self.flush_end);
        self.flush_end = Time(self.flush_start.0 + duration);
        // A fore buffer takes nothing while it is flushed; of a back one, the
        // second half is free once the first is on its way.
        self.room_from = if drive.is_fore { self.flush_end } else { self.flush_start };
        self.seen = Seen::Nothing;
    }

    /// A flush was found to have begun at `start`.
    pub fn began(&mut self, start: Time, drive: &Drive) {
        self.flush_start = start;
        self.flush_end = Time(start.0 + drive.flush_ns);
        self.room_from = start;
        self.seen = Seen::Nothing;
    }
}
