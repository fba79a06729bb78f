//! What the NVM holds: which page of the SSD each of its slots has the newest
//! copy of, and when a slot may be given away.

use std::collections::VecDeque;

/// Sectors of a logical page of the SSD, and of a slot.
pub(crate) const PAGE_SECTORS: u64 = 8;
/// No slot.
const NONE: u32 = u32::MAX;

/// A page of the SSD, as the tier sees it.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// The slot with a newer copy, or one that is being written.
    slot: u32,
    /// Writes of the page on their way to the SSD.
    ssd_writes: u32,
}

/// A page's worth of NVM.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    page: u32,
    /// The newest write that the slot has got, by the order of submission.
    sequence: u64,
    /// The newest of its writes that was acknowledged.
    acknowledged: u64,
    /// Requests at the NVM or the SSD that stand on the slot.
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
    /// Counts its owners, to tell old entries of the queue.
    generation: u32,
}

/// The slots of an NVM over the pages of an SSD.
#[derive(Clone)]
pub(crate) struct Slots {
    pages: Vec<Page>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots to drain with their generation, oldest first.
    queue: VecDeque<(u32, u32)>,
}

impl Slots {
    pub fn new(pages: u64, slots: u64) -> Slots {
        let slots = slots.min(u64::from(NONE)) as u32;
        Slots {
            pages: vec![Page { slot: NONE, ssd_writes: 0 }; pages as usize],
            slots: vec![Slot::default(); slots as usize],
            free: (0..slots).rev().collect(),
            queue: VecDeque::new(),
        }
    }

    /// Pages of the SSD.
    pub fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Slots in use.
    pub fn used(&self) -> u64 {
        (self.slots.len() - self.free.len()) as u64
    }

    /// Whether the NVM can take all of these pages.
    pub fn has_room(&self, pages: std::ops::Range<u64>) -> bool {
        let new = pages.filter(|&page| self.pages[page as usize].slot == NONE).count();
        new <= self.free.len()
    }

    /// The slot to read a page from, if it is not the SSD.
    pub fn to_read(&self, page: u64) -> Option<u32> {
        let slot = self.pages[page as usize].slot;
        (slot != NONE && self.slots[slot as usize].is_valid).then_some(slot)
    }

    /// Whether a change of the page must go to its slot: the SSD is getting the
    /// older copy, and two changes at once could end in either order.
    pub fn must_take(&self, page: u64) -> bool {
        let slot = self.pages[page as usize].slot;
        slot != NONE && self.slots[slot as usize].is_written_back
    }

    /// The slot that a write of the page goes to.
    pub fn begin_write(&mut self, page: u64, sequence: u64) -> u32 {
        let place = &mut self.pages[page as usize].slot;
        if *place == NONE {
            *place = self.free.pop().expect("there was room");
            let generation = self.slots[*place as usize].generation;
            self.slots[*place as usize] =
                Slot { page: page as u32, is_owned: true, generation, ..Slot::default() };
        }
        let slot = &mut self.slots[*place as usize];
        slot.sequence = sequence;
        slot.writes += 1;
        slot.pins += 1;
        *place
    }

    /// The NVM has done it.
    pub fn end_write(&mut self, slot: u32, sequence: u64) {
        let state = &mut self.slots[slot as usize];
        state.writes -= 1;
        if state.is_owned {
            state.acknowledged = state.acknowledged.max(sequence);
            state.is_valid = true;
            if !state.is_written_back {
                self.enqueue(slot);
            }
        }
        self.unpin(slot);
    }

    fn enqueue(&mut self, slot: u32) {
        let state = &mut self.slots[slot as usize];
        if !std::mem::replace(&mut state.is_queued, true) {
            self.queue.push_back((slot, state.generation));
        }
    }

    /// Somebody reads the slot, which must not be given away meanwhile.
    pub fn pin(&mut self, slot: u32) {
        self.slots[slot as usize].pins += 1;
    }

    pub fn unpin(&mut self, slot: u32) {
        let state = &mut self.slots[slot as usize];
        state.pins -= 1;
        if state.pins == 0 && !state.is_owned {
            state.generation = state.generation.wrapping_add(1);
            self.free.push(slot);
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
        let slot = place.slot;
        if slot != NONE {
            let state = &mut self.slots[slot as usize];
            if state.is_written_back || state.acknowledged > sequence {
                return;
            }
            if state.sequence < sequence {
                self.disown(slot);
            } else {
                // What it holds is old; what it is getting is newer.
                state.is_valid = false;
            }
        }
    }

    fn disown(&mut self, slot: u32) {
        let state = &mut self.slots[slot as usize];
        state.is_owned = false;
        state.is_valid = false;
        self.pages[state.page as usize].slot = NONE;
        // Given away at once if nothing stands on it.
        state.pins += 1;
        self.unpin(slot);
    }

    /// Power is cut: nothing is on its way any more, and slots keep what they have
    /// acknowledged. They are drained again, the oldest writes first.
    pub fn cut_power(&mut self) {
        self.pages.iter_mut().for_each(|page| page.ssd_writes = 0);
        self.free.clear();
        let mut kept = Vec::new();
        for (number, slot) in (0..).zip(&mut self.slots) {
            let Slot { page, acknowledged, is_owned, is_valid, .. } = *slot;
            let generation = slot.generation.wrapping_add(1);
            *slot = Slot { page, generation, ..Slot::default() };
            if is_owned && is_valid {
                *slot = Slot {
                    sequence: acknowledged,
                    acknowledged,
                    is_valid,
                    is_owned,
                    is_queued: true,
                    ..*slot
                };
                kept.push((acknowledged, number));
            } else {
                self.free.push(number);
                if is_owned {
                    self.pages[page as usize].slot = NONE;
                }
            }
        }
        self.free.reverse();
        kept.sort_unstable();
        let slots = &self.slots;
        self.queue = kept.into_iter().map(|(_, slot)| (slot, slots[slot as usize].generation)).collect();
    }

    /// Whether anything may be left to drain.
    pub fn is_queue_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Slots in the queue, out of date ones included.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Takes the oldest slot off the queue, to read it for the SSD; returns it
    /// with its sequence. `None` if it is out of date, or busy and thus put
    /// back.
    pub fn begin_drain(&mut self) -> Option<(u32, u64)> {
        let (slot, generation) = self.queue.pop_front()?;
        let state = &mut self.slots[slot as usize];
        if state.generation != generation {
            return None;
        }
        state.is_queued = false;
        if !state.is_owned {
            return None;
        }
        if state.writes > 0 || self.pages[state.page as usize].ssd_writes > 0 {
            self.enqueue(slot);
            return None;
        }
        state.pins += 1;
        Some((slot, state.sequence))
    }

    /// The copy has been read; returns the page to write it to, unless there
    /// are newer writes, which decide.
    pub fn begin_write_back(&mut self, slot: u32, sequence: u64) -> Option<u64> {
        let state = &mut self.slots[slot as usize];
        let page = state.page;
        if !state.is_owned || state.sequence != sequence || self.pages[page as usize].ssd_writes > 0 {
            if state.is_owned {
                self.enqueue(slot);
            }
            self.unpin(slot);
            return None;
        }
        state.is_written_back = true;
        Some(u64::from(page))
    }

    /// The SSD has the copy: the slot is free, unless it has been written again.
    pub fn end_write_back(&mut self, slot: u32, sequence: u64) {
        let state = &mut self.slots[slot as usize];
        state.is_written_back = false;
        if state.sequence == sequence {
            self.disown(slot);
        } else {
            self.enqueue(slot);
        }
        self.unpin(slot);
    }
}
