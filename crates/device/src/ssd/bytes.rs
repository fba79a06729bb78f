//! The bytes of requests, where data is real: a write's are taken from the
//! arena when its pages enter the buffer, a read's are put there when its flash
//! read, or its look-up in memory, is served.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use flashkeel_engine::{Arena, LOGICAL_PAGE_BYTES, LOGICAL_PAGE_SECTORS, Time};

use super::Ssd;
use crate::address::{Lpn, Ppn};
use crate::ftl::{Found, Kept, Medium, MediumShape, Page};
use crate::layout::Layout;
use crate::sched::FlashOpId;

/// The bytes of requests inside the device.
#[derive(Default)]
pub(super) struct Bytes {
    /// The caller's, as long as a call lasts.
    arena: Arena,
    /// What flash reads on their way bring, by operation.
    reads: BTreeMap<u32, FlashRead>,
    /// Pages that were found damaged and can be rebuilt, each as the read that is to bring it.
    damaged: Vec<FlashRead>,
}

impl Clone for Bytes {
    /// A copy made between two calls: its callers lend it an arena of their own.
    fn clone(&self) -> Bytes {
        Bytes { arena: Arena::new(), reads: self.reads.clone(), damaged: Vec::new() }
    }
}

/// The pages of a request that a flash read serves, neighbours in one flash page.
#[derive(Clone)]
pub(crate) struct FlashRead {
    /// The first of them, counted from the request's first page.
    at: u32,
    pages: Vec<(Lpn, Ppn)>,
    /// They are rebuilt from the rest of their stripe.
    is_rebuilt: bool,
}

impl FlashRead {
    /// The first of its pages, and where that lies.
    pub(crate) fn first(&self) -> (Lpn, Ppn) {
        self.pages[0]
    }
}

impl Ssd {
    /// From now on pages hold bytes: zeros, until others are written. For tests
    /// and servers; it costs memory and time. The device must be at rest.
    pub fn keep_data(&mut self) {
        self.bytes = Some(Bytes::default());
        for partition in &mut self.partitions {
            partition.ftl.keep_data();
        }
    }

    /// How large a medium for what each partition holds has to be.
    pub fn media(&self) -> Vec<MediumShape> {
        let held = self.layout.buffer.size;
        self.partitions.iter().map(|partition| partition.ftl.tables.medium_shape(held)).collect()
    }

    /// What media do not say of themselves: which page of which partition an address is, where
    /// there are several, and which pages have a parity in common. Nothing where that follows.
    pub fn addresses(&self) -> String {
        let Layout { partition_bits, set_pages, partition, geometry, .. } = &self.layout;
        let stripes = partition.static_stripes.map(|stripes| (stripes.width(), geometry.units_per_page));
        match (partition_bits.is_empty() && *set_pages == 0, stripes) {
            (true, None) => String::new(),
            (_, stripes) => format!("bits {partition_bits:?}, sets of {set_pages}, stripes {stripes:?}"),
        }
    }

    /// From now on what pages hold lies in `media`, one for each partition: zeros, until
    /// others are written. The device must be at rest. `watch` is told the fraction of what
    /// there is that they know; where it breaks that off, the device is of no use any more.
    pub fn keep_data_in(
        &mut self,
        media: Vec<Box<dyn Medium>>,
        watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.bytes = Some(Bytes::default());
        let count = media.len() as f64;
        for (index, (partition, medium)) in self.partitions.iter_mut().zip(media).enumerate() {
            let of_all = &mut |fraction: f64| watch((index as f64 + fraction) / count);
            partition.ftl.keep_data_in(medium, of_all)?;
        }
        ControlFlow::Continue(())
    }

    /// Makes a device to which nothing has happened the one whose `media` these are, one
    /// for each partition, with what has been found in them; it starts at `now`.
    pub fn recover(&mut self, now: Time, media: Vec<(Box<dyn Medium>, Found)>) {
        self.bytes = Some(Bytes::default());
        self.may_fail |= media.iter().flat_map(|(_, found)| &found.held).any(|(_, page)| page.is_none());
        let parts = self.partitions.iter_mut().zip(media);
        let kept: Vec<Vec<Kept>> =
            parts.map(|(partition, (medium, found))| partition.ftl.recover(medium, found)).collect();
        // The host has written what waits in the buffer: it does not amplify what it writes next.
        self.machine.written_before.host_pages += kept.iter().map(|kept| kept.len() as u64).sum::<u64>();
        self.begin_again(now, kept);
        if self.partitions.iter_mut().any(|partition| partition.ftl.tables.are_spares_at_end()) {
            self.wear_out(now);
        }
    }

    /// Forgets what flash reads on their way would bring.
    pub(super) fn forget_reads(&mut self) {
        if let Some(bytes) = &mut self.bytes {
            bytes.reads.clear();
        }
    }

    /// Takes over the arena that a caller lends, or gives it back.
    #[inline]
    pub(super) fn lend(&mut self, data: &mut Arena) {
        if let Some(bytes) = &mut self.bytes {
            std::mem::swap(&mut bytes.arena, data);
        }
    }

    /// Gives the buffered copy of a page the bytes that its write brought.
    #[inline(always)]
    pub(crate) fn hold(&mut self, index: u32, part: usize, entry: u32) {
        if self.bytes.is_some() {
            self.hold_bytes(index, part, entry);
        }
        if let Some(log) = self.machine.dispatcher.log_mut() {
            log.buffers(part, entry, self.requests[index].origin);
        }
    }

    #[cold]
    fn hold_bytes(&mut self, index: u32, part: usize, entry: u32) {
        let request = &self.requests[index];
        let at = (request.next - request.first) as u32;
        let payload = request.payload.skip(at * LOGICAL_PAGE_SECTORS as u32);
        let given =
            self.bytes.as_ref().and_then(|bytes| bytes.arena.read(payload, LOGICAL_PAGE_SECTORS as u32));
        let page: Page =
            given.map_or([0; LOGICAL_PAGE_BYTES as usize], |page| page.try_into().expect("a page of bytes"));
        self.partitions[part].ftl.tables.hold(entry, &page);
    }

    /// Serves the next page of a read from memory, or as one that was never
    /// written.
    #[inline]
    pub(crate) fn serve_from_memory(&mut self, index: u32, part: usize, lpn: Lpn) {
        if self.bytes.is_some() {
            let request = &self.requests[index];
            let at = (request.next - request.first) as u32;
            let page = self.partitions[part].ftl.tables.content(lpn);
            self.fill(index, at, page);
        }
    }

    /// Notes what a flash read, or several that rebuild a page, will bring.
    #[inline]
    pub(crate) fn note_read(
        &mut self,
        id: FlashOpId,
        index: u32,
        part: usize,
        pages: Range<u32>,
        is_rebuilt: bool,
    ) {
        if self.bytes.is_some() {
            let read = self.flash_read(index, part, pages, is_rebuilt);
            self.note_flash_read(id, read);
        }
    }

    /// The same of one that brings this.
    pub(crate) fn note_flash_read(&mut self, id: FlashOpId, read: FlashRead) {
        self.bytes.as_mut().and_then(|bytes| bytes.reads.insert(id.0, read));
    }

    /// Serves pages that are rebuilt from what is all in memory.
    pub(crate) fn serve_rebuilt(&mut self, index: u32, part: usize, pages: Range<u32>) {
        if self.bytes.is_some() {
            let read = self.flash_read(index, part, pages, true);
            self.serve(index, part, read);
        }
    }

    /// The last `pages` that a request has taken up, with their places now:
    /// nothing is erased while it is being read.
    #[cold]
    fn flash_read(&self, index: u32, part: usize, pages: Range<u32>, is_rebuilt: bool) -> FlashRead {
        let request = &self.requests[index];
        let at = (request.next - request.first) as u32 - pages.len() as u32;
        let map = &self.partitions[part].ftl.tables.map;
        let place = |lpn| map.flash_home(lpn).expect("a page that is read lies in flash");
        FlashRead { at, pages: pages.map(|lpn| (Lpn(lpn), place(Lpn(lpn)))).collect(), is_rebuilt }
    }

    /// A flash read of a request is done. What it should have brought and is damaged is left to be
    /// rebuilt, as far as that can be.
    #[inline]
    pub(crate) fn serve_read(&mut self, now: Time, id: FlashOpId, index: u32, part: usize) {
        let read = self.bytes.as_mut().and_then(|bytes| bytes.reads.remove(&id.0));
        if let Some(read) = read {
            self.serve(index, part, read);
            while let Some(damaged) = self.bytes.as_mut().and_then(|bytes| bytes.damaged.pop()) {
                self.rebuild_damaged(now, index, part, id, damaged);
            }
        }
    }

    #[cold]
    pub(crate) fn serve(&mut self, index: u32, part: usize, read: FlashRead) {
        for (at, (lpn, ppn)) in (read.at..).zip(read.pages) {
            let tables = &self.partitions[part].ftl.tables;
            let page = tables.read_page(lpn, ppn, read.is_rebuilt);
            if page.is_none() && !read.is_rebuilt && tables.restored(lpn).is_some() {
                let damaged = FlashRead { at, pages: vec![(lpn, ppn)], is_rebuilt: true };
                self.bytes.iter_mut().for_each(|bytes| bytes.damaged.push(damaged.clone()));
                continue;
            }
            self.fill(index, at, page);
        }
    }

    /// Puts a page of a request into the arena; zeros where it is lost.
    #[cold]
    fn fill(&mut self, index: u32, at: u32, page: Option<Page>) {
        let request = &mut self.requests[index];
        let payload = request.payload.skip(at * LOGICAL_PAGE_SECTORS as u32);
        if page.is_none() {
            let is_damaged = self.partitions[0].ftl.tables.is_in_medium();
            request.is_unreadable |= is_damaged;
            request.is_lost |= !is_damaged;
            self.may_fail = true;
        }
        if let Some(bytes) = &mut self.bytes
            && let Some(place) = bytes.arena.write(payload, LOGICAL_PAGE_SECTORS as u32)
        {
            place.copy_from_slice(&page.unwrap_or([0; LOGICAL_PAGE_BYTES as usize]));
        }
    }
}
