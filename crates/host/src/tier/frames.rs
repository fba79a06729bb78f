//! What the NVM holds: which page of the SSD each of its frames has the newest
//! copy of, and when a frame may be given away.

use std::collections::VecDeque;

use flashkeel_engine::Durable;

/// Sectors of a logical page of the SSD, and of a frame.
pub(crate) const PAGE_SECTORS: u64 = 8;
/// No frame.
const NONE: u32 = u32::MAX;

/// A page of the SSD, as the tier sees it.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// The frame with a newer copy, or one that is being written.
    frame: u32,
    /// Writes of the page on their way to the SSD.
    ssd_writes: u32,
}

/// A page's worth of NVM.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    page: u32,
    /// The newest write that the frame has got, by the order of submission.
    sequence: u64,
    /// The newest of its writes that was acknowledged.
    acknowledged: u64,
    /// Requests at the NVM or the SSD that stand on the frame.
    pins: u32,
    /// Writes among them.
    writes: u32,
    /// It has the newest copy that was acknowledged.
    is_valid: bool,
    /// Its copy is being written to the SSD.
    is_written_back: bool,
    /// It belongs to a page, and has not been superseded.
    is_owned: bool,
    /// It stands in the queue.
    is_queued: bool,
    /// How many acknowledgements a flush has to cover, so that the frame holds this
    /// page after a power cut too. 0 where it does already.
    durable_after: u64,
    /// Counts its owners, to tell old entries of the queue.
    generation: u32,
}

/// Of a frame that holds nothing yet which a flush could keep.
const NOTHING_YET: u64 = u64::MAX;

/// The frames of an NVM over the pages of an SSD.
#[derive(Clone)]
pub(crate) struct Frames {
    pages: Vec<Page>,
    frames: Vec<Frame>,
    free: Vec<u32>,
    /// Frames to drain with their generation, oldest first.
    queue: VecDeque<(u32, u32)>,
    /// From when on the NVM keeps what a frame holds.
    durable: Durable,
    /// Writes that the NVM has acknowledged, and how many of them it has flushed.
    acknowledgements: u64,
    flushed: u64,
}

impl Frames {
    /// So many, on an NVM that keeps what it is given as `durable` says.
    pub fn new(pages: u64, frames: u64, durable: Durable) -> Frames {
        let frames = frames.min(u64::from(NONE)) as u32;
        Frames {
            pages: vec![Page { frame: NONE, ssd_writes: 0 }; pages as usize],
            frames: vec![Frame::default(); frames as usize],
            free: (0..frames).rev().collect(),
            queue: VecDeque::new(),
            durable,
            acknowledgements: 0,
            flushed: 0,
        }
    }

    /// Pages of the SSD.
    pub fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Frames in use.
    pub fn used(&self) -> u64 {
        (self.frames.len() - self.free.len()) as u64
    }

    /// Whether the NVM can take all of these pages.
    pub fn has_room(&self, pages: std::ops::Range<u64>) -> bool {
        let new = pages.filter(|&page| self.pages[page as usize].frame == NONE).count();
        new <= self.free.len()
    }

    /// Whether the NVM has, or is getting, a copy of the page.
    pub fn has_frame(&self, page: u64) -> bool {
        self.pages[page as usize].frame != NONE
    }

    /// The frame to read a page from, if it is not the SSD.
    pub fn to_read(&self, page: u64) -> Option<u32> {
        let frame = self.pages[page as usize].frame;
        (frame != NONE && self.frames[frame as usize].is_valid).then_some(frame)
    }

    /// Whether a change of the page must go to its frame: the SSD is getting the
    /// older copy, and two changes at once could end in either order.
    pub fn must_take(&self, page: u64) -> bool {
        let frame = self.pages[page as usize].frame;
        frame != NONE && self.frames[frame as usize].is_written_back
    }

    /// The frame that a write of the page goes to.
    pub fn begin_write(&mut self, page: u64, sequence: u64) -> u32 {
        let place = &mut self.pages[page as usize].frame;
        if *place == NONE {
            *place = self.free.pop().expect("there was room");
            let generation = self.frames[*place as usize].generation;
            self.frames[*place as usize] = Frame {
                page: page as u32,
                is_owned: true,
                durable_after: NOTHING_YET,
                generation,
                ..Frame::default()
            };
        }
        let frame = &mut self.frames[*place as usize];
        frame.sequence = sequence;
        frame.writes += 1;
        frame.pins += 1;
        *place
    }

    /// The NVM has done it; `fua` tells that it keeps it already.
    pub fn end_write(&mut self, frame: u32, sequence: u64, fua: bool) {
        self.acknowledgements += 1;
        let state = &mut self.frames[frame as usize];
        state.writes -= 1;
        if state.is_owned {
            state.acknowledged = state.acknowledged.max(sequence);
            state.sequence = state.sequence.max(sequence);
            state.is_valid = true;
            let covered = if fua { 0 } else { self.acknowledgements };
            state.durable_after = state.durable_after.min(covered);
            if !state.is_written_back {
                self.enqueue(frame);
            }
        }
        self.unpin(frame);
    }

    /// The NVM has not done it: the frame holds what it held, or what it should
    /// have got.
    pub fn fail_write(&mut self, frame: u32, sequence: u64) {
        let state = &mut self.frames[frame as usize];
        state.writes -= 1;
        if state.sequence == sequence {
            state.sequence = state.acknowledged;
        }
        if state.is_owned && !state.is_valid && state.writes == 0 {
            self.disown(frame);
        }
        self.unpin(frame);
    }

    /// What a flush of the NVM that begins now covers.
    pub fn acknowledgements(&self) -> u64 {
        self.acknowledgements
    }

    /// The NVM has flushed so many of the writes that it had acknowledged.
    pub fn flushed(&mut self, acknowledgements: u64) {
        self.flushed = self.flushed.max(acknowledgements);
    }

    fn enqueue(&mut self, frame: u32) {
        let state = &mut self.frames[frame as usize];
        if !std::mem::replace(&mut state.is_queued, true) {
            self.queue.push_back((frame, state.generation));
        }
    }

    /// Somebody reads the frame, which must not be given away meanwhile.
    pub fn pin(&mut self, frame: u32) {
        self.frames[frame as usize].pins += 1;
    }

    pub fn unpin(&mut self, frame: u32) {
        let state = &mut self.frames[frame as usize];
        state.pins -= 1;
        if state.pins == 0 && !state.is_owned {
            state.generation = state.generation.wrapping_add(1);
            self.free.push(frame);
        }
    }

    /// The SSD gets a write or a trim of the page.
    pub fn begin_ssd_write(&mut self, page: u64) {
        self.pages[page as usize].ssd_writes += 1;
    }

    /// It has done it: an older copy in the NVM is of no use any more.
    pub fn end_ssd_write(&mut self, page: u64, sequence: u64) {
        let place = &mut self.pages[page as usize];
        place.ssd_writes -= 1;
        let frame = place.frame;
        if frame != NONE {
            let state = &mut self.frames[frame as usize];
            if state.is_written_back || state.acknowledged > sequence {
                return;
            }
            if state.sequence < sequence {
                self.disown(frame);
            } else {
                // What it holds is old; what it is getting is newer.
                state.is_valid = false;
                state.durable_after = NOTHING_YET;
            }
        }
    }

    /// It has not: it has the old copy, or the new one.
    pub fn fail_ssd_write(&mut self, page: u64) {
        self.pages[page as usize].ssd_writes -= 1;
    }

    fn disown(&mut self, frame: u32) {
        let state = &mut self.frames[frame as usize];
        state.is_owned = false;
        state.is_valid = false;
        self.pages[state.page as usize].frame = NONE;
        // Given away at once if nothing stands on it.
        state.pins += 1;
        self.unpin(frame);
    }

    /// Power is cut: nothing is on its way any more, and frames keep what the NVM
    /// does. They are drained again, the oldest writes first.
    pub fn cut_power(&mut self) {
        self.pages.iter_mut().for_each(|page| page.ssd_writes = 0);
        self.free.clear();
        let mut kept = Vec::new();
        for (number, frame) in (0..).zip(&mut self.frames) {
            let Frame { page, acknowledged, is_owned, is_valid, durable_after, .. } = *frame;
            let is_kept = match self.durable {
                Durable::Acknowledged => true,
                Durable::Flushed => durable_after <= self.flushed,
                Durable::Never => false,
            };
            let generation = frame.generation.wrapping_add(1);
            *frame = Frame { page, generation, ..Frame::default() };
            if is_owned && is_valid && is_kept {
                *frame = Frame {
                    sequence: acknowledged,
                    acknowledged,
                    is_valid,
                    is_owned,
                    is_queued: true,
                    ..*frame
                };
                kept.push((acknowledged, number));
            } else {
                self.free.push(number);
                if is_owned {
                    self.pages[page as usize].frame = NONE;
                }
            }
        }
        self.free.reverse();
        kept.sort_unstable();
        let frames = &self.frames;
        self.queue = kept.into_iter().map(|(_, frame)| (frame, frames[frame as usize].generation)).collect();
    }

    /// Whether anything may be left to drain.
    pub fn is_queue_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Frames in the queue, out of date ones included.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Takes the oldest frame off the queue, to read it for the SSD; returns it
    /// with its sequence. `None` if it is out of date, or busy and thus put
    /// back.
    pub fn begin_drain(&mut self) -> Option<(u32, u64)> {
        let (frame, generation) = self.queue.pop_front()?;
        let state = &mut self.frames[frame as usize];
        if state.generation != generation {
            return None;
        }
        state.is_queued = false;
        if !state.is_owned {
            return None;
        }
        if state.writes > 0 || self.pages[state.page as usize].ssd_writes > 0 {
            self.enqueue(frame);
            return None;
        }
        state.pins += 1;
        Some((frame, state.sequence))
    }

    /// The copy cannot be read now.
    pub fn fail_drain(&mut self, frame: u32) {
        if self.frames[frame as usize].is_owned {
            self.enqueue(frame);
        }
        self.unpin(frame);
    }

    /// The copy has been read; returns the page to write it to, unless there
    /// are newer writes, which decide.
    pub fn begin_write_back(&mut self, frame: u32, sequence: u64) -> Option<u64> {
        let state = &mut self.frames[frame as usize];
        let page = state.page;
        if !state.is_owned || state.sequence != sequence || self.pages[page as usize].ssd_writes > 0 {
            if state.is_owned {
                self.enqueue(frame);
            }
            self.unpin(frame);
            return None;
        }
        state.is_written_back = true;
        Some(u64::from(page))
    }

    /// The SSD has not taken the copy: the frame keeps it.
    pub fn fail_write_back(&mut self, frame: u32) {
        self.frames[frame as usize].is_written_back = false;
        self.enqueue(frame);
        self.unpin(frame);
    }

    /// The SSD has the copy: the frame is free, unless it has been written again.
    pub fn end_write_back(&mut self, frame: u32, sequence: u64) {
        let state = &mut self.frames[frame as usize];
        state.is_written_back = false;
        if state.sequence == sequence {
            self.disown(frame);
        } else {
            self.enqueue(frame);
        }
        self.unpin(frame);
    }
}
