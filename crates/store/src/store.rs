//! A store: the file, and what is known of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use flashkeel_device::{Cycle, Found, Medium};
use flashkeel_engine::{Keeper, Time};

use crate::agreed::Agreed;
use crate::area::{Area, Part};
use crate::disk::{self, Naming};
use crate::error::same;
use crate::keeper::{Kept, SectionKeeper};
use crate::layout::{self, EPOCHS, Header, PAGE_BYTES, Section};
use crate::medium::SectionMedium;
use crate::records::{CYCLE_BYTES, Epoch, Record, checksum};
use crate::syncer::{Syncer, Wake};
use crate::{Damage, Disk, Refused, scan};

/// Pages of a device, in a file.
pub struct Store {
    shared: Arc<Mutex<Shared>>,
    /// As long as the file is not whole.
    naming: Option<Naming>,
}

/// What is found where a store is opened.
pub enum Opened {
    /// Nothing: whoever fills it says so with [`Store::complete`].
    New(Store),
    /// What each section holds, and how far the device's time had come: whoever has taken that
    /// over says so with [`Store::complete`].
    Old(Store, Vec<Found>, Time),
}

/// Is told what is done with a file, `format` or `scan`, and which part of that has been, and may
/// break it off.
pub type Watch<'a> = dyn FnMut(&'static str, f64) -> ControlFlow<()> + 'a;

/// How far synchronisation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Synced(u32);

impl Store {
    /// The store at a path, which nobody else may use, for a device like this. `wake` is
    /// called, from another thread, whenever something has been synchronised; without it
    /// that is waited for on the spot. `watch` is told how much has been read, or written of a new
    /// one.
    ///
    /// # Errors
    /// Why the file is not used: it is then left as it is.
    pub fn open(
        path: &Path,
        header: &Header,
        wake: Option<Wake>,
        watch: &mut Watch<'_>,
    ) -> Result<Opened, Refused> {
        match disk::open(path)? {
            disk::Place::New(file, naming) => {
                file.set_len(header.bytes())?;
                let mut store = Store::create(Arc::new(file), header, wake, watch)?;
                store.naming = Some(naming);
                Ok(Opened::New(store))
            }
            disk::Place::Old(file) => Store::resume(Arc::new(file), header, wake, watch),
        }
    }

    /// A new one, on a disk of zeros. `watch` is told how much of what it begins with has been
    /// written.
    ///
    /// # Errors
    /// If the disk cannot be written, or `watch` breaks it off.
    pub fn create(
        disk: Arc<dyn Disk>,
        header: &Header,
        wake: Option<Wake>,
        watch: &mut Watch<'_>,
    ) -> Result<Store, Refused> {
        disk.write_at(&header.encode(), 0)?;
        for place in EPOCHS {
            disk.write_at(&Epoch::none(0), place)?;
        }
        let (sections, end) = header.sections();
        layout::write_none(&*disk, &sections, watch)?;
        let sections = sections.into_iter().map(SectionState::new).collect();
        Ok(Store::over(disk, sections, end, 0, wake))
    }

    /// The one on a disk. What has been found in it is not made durable here: pages that were on
    /// their way are known by not being so, and are, until somebody has them again.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn resume(
        disk: Arc<dyn Disk>,
        header: &Header,
        wake: Option<Wake>,
        watch: &mut Watch<'_>,
    ) -> Result<Opened, Refused> {
        let scanned = scan::scan(&*disk, header, watch)?;
        let store = Store::over(disk, scanned.sections, header.bytes(), scanned.last_epoch, wake);
        let mut shared = store.lock();
        (shared.damage, shared.now) = (scanned.damage, scanned.now);
        drop(shared);
        Ok(Opened::Old(store, scanned.found, scanned.now))
    }

    fn over(
        disk: Arc<dyn Disk>,
        sections: Vec<SectionState>,
        end: u64,
        epoch: u32,
        wake: Option<Wake>,
    ) -> Store {
        let syncer = Syncer::new(Arc::clone(&disk), end, epoch, wake);
        let shared = Shared {
            disk,
            syncer,
            sections,
            end,
            pages: Area::default(),
            places: Area::default(),
            slots: Area::default(),
            held: Area::default(),
            trims: Area::default(),
            epoch: epoch.saturating_add(1),
            is_epoch_empty: false,
            now: Time::ZERO,
            fresh_erases: 0,
            owed: 0,
            fault: None,
            damage: Damage::default(),
            damaged: BTreeSet::new(),
        };
        Store { shared: Arc::new(Mutex::new(shared)), naming: None }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }

    /// The media of sections with flash.
    pub fn media(&self, sections: Range<usize>) -> Vec<Box<dyn Medium>> {
        let medium =
            |section| Box::new(SectionMedium::new(Arc::clone(&self.shared), section)) as Box<dyn Medium>;
        sections.map(medium).collect()
    }

    /// Who keeps pages in a section without.
    pub fn keeper(&self, section: usize) -> Box<dyn Keeper> {
        Box::new(SectionKeeper::new(Arc::clone(&self.shared), section))
    }

    /// The device has told its media what there is, or has taken over what they have found: that
    /// is durable before anything else is. A new store gets its name.
    ///
    /// # Errors
    /// If it cannot be written; nothing is left of a new one then.
    pub fn complete(&mut self) -> Result<(), Refused> {
        self.lock().sync_now();
        // The record of the first epoch too.
        self.lock().sync_now();
        if let Some(fault) = self.fault() {
            return Err(Refused::Failed(fault));
        }
        self.naming.take().map_or(Ok(()), Naming::finish)
    }

    /// Writes a text behind everything else, to be [read](Self::text) after a restart. It is
    /// durable with what is told before the next synchronisation.
    pub fn write_text(&self, text: &[u8]) {
        let mut shared = self.lock();
        let end = shared.end;
        let head = [(text.len() as u32).to_le_bytes(), checksum(text).to_le_bytes()].concat();
        shared.attempt(|shared| shared.disk.write_at(&[&head, text].concat(), end));
    }

    /// The text that has been written; `None` if there is none, or it was being written.
    pub fn text(&self) -> Option<Vec<u8>> {
        let shared = self.lock();
        let mut head = [0; 8];
        shared.disk.read_at(&mut head, shared.end).ok()?;
        let [length, sum] =
            [0, 4].map(|at| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes")));
        let has_room = shared.disk.bytes().ok()?.checked_sub(shared.end + 8)? >= u64::from(length);
        let mut text = vec![0; if has_room { length as usize } else { 0 }];
        shared.disk.read_at(&mut text, shared.end + 8).ok()?;
        (length > 0 && checksum(&text) == sum).then_some(text)
    }

    /// Writes all that the media have been told, by `now`: it outlasts the process then.
    pub fn settle(&self, now: Time) {
        let mut shared = self.lock();
        shared.now = now;
        shared.settle();
        shared.end_rest();
    }

    /// The device is left as it is at `now`: makes all of it durable, what is known of its
    /// blocks included.
    ///
    /// # Errors
    /// If that fails.
    pub fn close(&self, now: Time) -> io::Result<()> {
        self.settle(now);
        self.lock().sync_now();
        // Erases are written down once what they rest on is durable.
        self.settle(now);
        self.lock().sync_now();
        self.fault().map_or(Ok(()), Err)
    }

    /// Begins to make durable all that the media have been told; says what
    /// [`synced`](Self::synced) will have come to then.
    pub fn begin_sync(&self) -> Synced {
        Synced(self.lock().begin_sync())
    }

    /// What [`synced`](Self::synced) has to come to before what has been read may be told, if it
    /// has not yet: what a client has read it goes on reading, whatever is lost with the power.
    pub fn owed(&self) -> Option<Synced> {
        let mut shared = self.lock();
        let owed = shared.owed;
        if owed <= shared.synced() {
            return None;
        }
        if owed == shared.epoch {
            shared.begin_sync();
        }
        Some(Synced(owed))
    }

    /// How far synchronisation has come.
    pub fn synced(&self) -> Synced {
        Synced(self.lock().syncer.synced())
    }

    /// Makes durable all that the media have been told before it goes on.
    pub fn sync(&self) {
        self.lock().sync_now();
    }

    /// What has failed first: what was told since cannot be relied on, and nothing is written any
    /// more.
    pub fn fault(&self) -> Option<io::Error> {
        let mut shared = self.lock();
        shared.note_failed_sync();
        shared.fault.as_ref().map(same)
    }

    /// Where in the file the bytes of a partition's pages lie.
    pub fn pages_at(&self, partition: usize) -> Range<u64> {
        let at = self.lock().sections[partition].at;
        at.pages..at.pages + u64::from(at.shape.ppns) * PAGE_BYTES
    }

    /// Pages that were found damaged since this was last asked.
    pub fn damage(&self) -> Damage {
        std::mem::take(&mut self.lock().damage)
    }
}

pub(crate) fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Erases after which somebody begins to synchronise, so that blocks can be used again
/// without waiting for that.
const MOST_FRESH_ERASES: u32 = 16;

/// Where flushing ends: there are epochs left with which to open the file some hundreds of
/// times, and copy what it holds.
const MOST_FLUSHED: u32 = u32::MAX - 1_024;

/// What all media of a store share.
pub(crate) struct Shared {
    pub disk: Arc<dyn Disk>,
    syncer: Syncer,
    pub sections: Vec<SectionState>,
    /// Where they end.
    end: u64,
    pub pages: Area,
    pub places: Area,
    slots: Area,
    held: Area,
    trims: Area,
    /// Of what is being written.
    epoch: u32,
    /// Nothing has been done in it.
    is_epoch_empty: bool,
    now: Time,
    /// Erases since the last synchronisation began.
    fresh_erases: u32,
    /// The epoch that has to end before what has been read may be told.
    pub owed: u32,
    /// What has failed: nothing is written any more.
    fault: Option<io::Error>,
    pub damage: Damage,
    /// Pages in flash of which that has been said, by section and number.
    pub damaged: BTreeSet<(usize, u32)>,
}

/// One section of the file, and what is known of it.
pub(crate) struct SectionState {
    pub at: Section,
    /// How often each block has been erased; `None` if nothing has been said of it.
    pub erases: Vec<Option<u32>>,
    /// The epoch in which each block was erased, if it has not been programmed since.
    pub erased_in: Vec<u32>,
    /// Erases that are to be written down once an epoch has ended.
    pub erased: VecDeque<(u32, u32, Cycle)>,
    /// By entry of the write buffer, the place that holds it.
    pub slot_of: Vec<Option<u32>>,
    /// Places that may be used.
    pub free: VecDeque<u32>,
    /// Places that may be used once an epoch has ended.
    pub resting: VecDeque<(u32, u32)>,
    /// Pages that were held so far.
    pub stamp: u64,
    /// By page, where it is kept that is not in flash.
    pub kept: BTreeMap<u32, Kept>,
    /// The last of those in their order.
    pub sequence: u64,
    /// Pages that are to be given up once an epoch has ended, if they lie where they did.
    pub handed_over: VecDeque<(u32, u32, Kept)>,
    /// Pages of the owner that would not agree after a loss of power.
    pub agreed: Agreed,
}

impl SectionState {
    pub fn new(at: Section) -> SectionState {
        let blocks = at.shape.blocks() as usize;
        SectionState {
            at,
            erases: vec![None; blocks],
            erased_in: vec![0; blocks],
            erased: VecDeque::new(),
            slot_of: Vec::new(),
            free: (0..at.shape.slots).collect(),
            resting: VecDeque::new(),
            stamp: 0,
            kept: BTreeMap::new(),
            sequence: 0,
            handed_over: VecDeque::new(),
            agreed: Agreed::default(),
        }
    }
}

impl Shared {
    /// Does something that may fail; after the first failure nothing any more.
    pub fn attempt(&mut self, what: impl FnOnce(&mut Shared) -> io::Result<()>) {
        if self.fault.is_none()
            && let Err(error) = what(self)
        {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: io::Error) {
        self.fault.get_or_insert(error);
    }

    fn note_failed_sync(&mut self) {
        if let Some(error) = self.syncer.failure() {
            self.fail(error);
        }
    }

    /// The epoch in which what is done now is done.
    pub fn present_epoch(&mut self) -> u32 {
        self.is_epoch_empty = false;
        self.epoch
    }

    /// Writes to a part of the file, now or later.
    pub fn write(&mut self, part: Part, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.is_epoch_empty = false;
        let area = match part {
            Part::Pages => &mut self.pages,
            Part::Places => &mut self.places,
            Part::Slots => &mut self.slots,
            Part::Held => &mut self.held,
            Part::Trims => &mut self.trims,
        };
        area.write(&*self.disk, bytes, offset)
    }

    /// Writes down the erases of blocks whose former contents nobody can need any more:
    /// what was written up to then is durable.
    pub fn end_erases(&mut self, section: usize) {
        let synced = self.synced();
        loop {
            let state = &mut self.sections[section];
            let over = state.erased.front().filter(|(epoch, ..)| *epoch <= synced);
            let Some(&(_, block, cycle)) = over else { break };
            state.erased.pop_front();
            let offset = state.at.cycles + u64::from(block) * CYCLE_BYTES as u64;
            self.attempt(|shared| shared.disk.write_at(&cycle.encode(block), offset));
        }
    }

    fn settle_all(&mut self) -> io::Result<()> {
        for area in [&mut self.pages, &mut self.held, &mut self.places, &mut self.slots, &mut self.trims] {
            area.settle(&*self.disk)?;
        }
        Ok(())
    }

    /// Writes what is to be written yet.
    pub fn settle(&mut self) {
        (0..self.sections.len()).for_each(|section| self.end_handed_over(section));
        self.attempt(Shared::settle_all);
        (0..self.sections.len()).for_each(|section| self.end_erases(section));
    }

    /// Begins to end the present epoch, or nothing where nothing was done in it; returns the
    /// one after which all is durable that has been done.
    pub fn begin_sync(&mut self) -> u32 {
        self.settle();
        if self.is_epoch_empty { self.epoch - 1 } else { self.end_epoch(MOST_FLUSHED) }
    }

    fn end_epoch(&mut self, most: u32) -> u32 {
        self.note_failed_sync();
        let number = self.epoch;
        if number >= most {
            // Under a number of before, what is done later would pass for durable.
            self.fail(io::Error::other("it has been flushed as often as it can be; copy it to a new one"));
        }
        if self.fault.is_none() {
            self.syncer.begin(Epoch { number, now: self.now });
            (self.epoch, self.is_epoch_empty) = (number + 1, true);
            self.fresh_erases = 0;
        }
        number
    }

    /// Ends the present epoch.
    pub fn sync_now(&mut self) {
        self.settle();
        let epoch = self.end_epoch(u32::MAX);
        self.await_begun(epoch);
    }

    fn await_begun(&mut self, epoch: u32) {
        if self.fault.is_none() {
            self.syncer.wait(epoch);
            self.note_failed_sync();
        }
    }

    /// Waits until an epoch has ended.
    pub fn await_epoch(&mut self, epoch: u32) {
        if self.syncer.synced() >= epoch {
            return;
        }
        if epoch >= self.epoch {
            return self.sync_now();
        }
        self.await_begun(epoch);
    }

    /// The last epoch that has ended.
    pub fn synced(&self) -> u32 {
        self.syncer.synced()
    }

    /// A block has been erased.
    pub fn note_erase(&mut self) {
        self.fresh_erases += 1;
        if self.fresh_erases >= MOST_FRESH_ERASES {
            self.begin_sync_unless_busy();
        }
    }

    /// Blocks that were erased rest until the present epoch has ended: begins to end it while nobody
    /// needs them, so that whoever does waits for less.
    fn end_rest(&mut self) {
        if self.fresh_erases > 0 && !self.syncer.is_waited_for() {
            self.begin_sync_unless_busy();
        }
    }

    /// Begins to end the present epoch, unless another is being ended.
    pub fn begin_sync_unless_busy(&mut self) {
        if !self.syncer.is_busy() {
            self.begin_sync();
        }
    }
}
