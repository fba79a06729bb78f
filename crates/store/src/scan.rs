//! What a file holds, found by reading what lies out of band.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use flashkeel_device::{Cycle, Found, Lpn, Page, Place};
use flashkeel_engine::Time;

use crate::keeper::Kept;
use crate::layout::{CHUNK, EPOCHS, Header, PAGE_BYTES, Section, SectionShape};
use crate::records::{EPOCH_BYTES, Epoch, Held, PLACE_BYTES, Programmed, Record, TRIM_BYTES, Trim, checksum};
use crate::store::SectionState;
use crate::{Damage, Disk, Refused, Watch};

/// 292 years; what is later would soon be so late that nothing can come after it.
const LATEST_NS: u64 = u64::MAX / 2;

/// Pages of a write buffer, a memory or a tier, as they are found.
type HeldPages = Vec<(Place, Option<Box<Page>>)>;

/// What is found.
pub(crate) struct Scanned {
    pub sections: Vec<SectionState>,
    pub found: Vec<Found>,
    /// The last epoch of which anything is found.
    pub last_epoch: u32,
    /// How far the device's time had come.
    pub now: Time,
    /// Pages that are damaged.
    pub damage: Damage,
}

/// Reads a file that should hold what `wanted` says. Records of pages that were being
/// written when their host lost its power are taken away: they would be taken for whole
/// once a later epoch has ended. `watch` is told how much has been read.
pub(crate) fn scan(disk: &dyn Disk, wanted: &Header, watch: &mut Watch<'_>) -> Result<Scanned, Refused> {
    let bytes = disk.bytes()?;
    if bytes < PAGE_BYTES {
        return Err(Refused::Unfit("it holds something else than the data of a served drive".into()));
    }
    let mut page = [0; PAGE_BYTES as usize];
    disk.read_at(&mut page, 0)?;
    let header = Header::decode(&page)?;
    compare(&header, wanted)?;
    let (sections, end) = header.sections();
    if bytes < end {
        return Err(Refused::Unfit(format!("it is truncated: {bytes} bytes where there should be {end}")));
    }
    let synced = last_epoch(disk)?;
    if synced.now.0 > LATEST_NS {
        return Err(Refused::Unfit("its drive has come to the end of its time".into()));
    }
    // Pages are gone through twice; what else there is hardly counts.
    let of_section = |at: &Section| {
        2 * u64::from(at.shape.ppns) * PLACE_BYTES as u64 + u64::from(at.shape.lpns) * TRIM_BYTES as u64
    };
    let total = sections.iter().map(of_section).sum::<u64>().max(1);
    let watching = RefCell::new((0, watch));
    let has_read = |bytes: usize| {
        let (read, watch) = &mut *watching.borrow_mut();
        *read += bytes as u64;
        watch("scan", (*read as f64 / total as f64).min(1.0))
    };
    let (mut last_epoch, mut damage, mut broken_off) = (synced.number, Damage::default(), Vec::new());
    let mut scanned =
        Scanned { sections: vec![], found: vec![], last_epoch, now: synced.now, damage: Damage::default() };
    for (index, at) in sections.into_iter().enumerate() {
        let (has_read, synced) = (&has_read, synced.number);
        let (last_epoch, damage, broken_off) = (&mut last_epoch, &mut damage, &mut broken_off);
        Scan { disk, index, at, synced, last_epoch, damage, broken_off, has_read }
            .run(&mut scanned.sections, &mut scanned.found)?;
    }
    // Not before all has been read: a file that is refused is left as it is.
    for (offset, none) in broken_off {
        disk.write_at(&none, offset)?;
    }
    (scanned.last_epoch, scanned.damage) = (last_epoch, damage);
    for section in &mut scanned.sections {
        section.resting.iter_mut().for_each(|(epoch, _)| *epoch += last_epoch);
    }
    let erased = scanned.found.iter().flat_map(|found| &found.cycles).map(|cycle| cycle.erased_at);
    scanned.now = erased.fold(scanned.now, Time::max);
    Ok(scanned)
}

fn compare(found: &Header, wanted: &Header) -> Result<(), Refused> {
    let size = |header: &Header| {
        let pages: u64 = header.sections.iter().map(|section| u64::from(section.ppns)).sum();
        format!(
            "{} bytes over {} of flash in {} partitions",
            header.capacity_bytes,
            pages * PAGE_BYTES,
            header.sections.len()
        )
    };
    let keys = differing(found, wanted);
    Err(Refused::Unfit(if !keys.is_empty() {
        let (found, wanted, keys) = (size(found), size(wanted), keys.join(", "));
        let found = if found == wanted { found } else { format!("{found}; this one has {wanted}") };
        format!("it is of another drive: {found}; what differs follows from {keys}")
    } else if found.placement != wanted.placement {
        format!(
            "it is of another stack, whose drives, memories and tiers are put together otherwise ({})",
            size(found)
        )
    } else if found.addresses != wanted.addresses {
        "it is of another drive, with the same numbers, but other partition_bits or sets, or stripes of other \
         pages, which follow from redundancy and geometry.page_size"
            .into()
    } else {
        return Ok(());
    }))
}

/// The keys that numbers follow from in which two differ.
fn differing(found: &Header, wanted: &Header) -> Vec<&'static str> {
    let has_other = |number: fn(&SectionShape) -> u32, kept: bool| {
        let mut pairs = found.sections.iter().zip(&wanted.sections);
        pairs.any(|(one, other)| other.is_keeper() == kept && number(one) != number(other))
    };
    let is_as_large = found.capacity_bytes == wanted.capacity_bytes;
    let keys = [
        (!is_as_large, "logical_capacity"),
        (found.sections.len() != wanted.sections.len(), "partition_bits, sets or the devices of the stack"),
        (has_other(|section| section.ppns, false), "geometry"),
        (
            has_other(|section| section.units_per_block, false),
            "geometry.pages_per_block and page_size, redundancy",
        ),
        (is_as_large && has_other(|section| section.lpns, false), "redundancy"),
        (has_other(|section| section.slots, false), "buffer.size"),
        (
            has_other(|section| section.lpns.max(section.slots), true),
            "the capacity of a memory, tier or mirror",
        ),
    ];
    keys.into_iter().filter_map(|(differs, key)| differs.then_some(key)).collect()
}

/// The last epoch that has ended for certain: the later of the two records.
///
/// A record is written when all of its epoch has been made durable, and is durable itself when the
/// next epoch has ended. A loss of power leaves it as it was or as it was written, as it lies in one
/// sector: the last epoch that has ended is found, or the last but one, also where one record has been
/// written over another, because the epoch between them ended with the later one. So neither power nor
/// process ends with a damaged record.
///
/// One that is damaged may have been the later, and the other then says less than is so: what
/// is damaged of an epoch that has ended would pass for something that was being written, and an older
/// version would be served in its place. So neither does for both.
fn last_epoch(disk: &dyn Disk) -> Result<Epoch, Refused> {
    let mut last = None;
    for place in EPOCHS {
        let mut bytes = [0; EPOCH_BYTES];
        disk.read_at(&mut bytes, place)?;
        let found = Epoch::decode(&bytes, 0).map_err(|_| damaged("the record of its last epoch", place))?;
        last = last.into_iter().chain(found).max_by_key(|epoch| epoch.number);
    }
    last.ok_or_else(|| Refused::Unfit("it was never completed".into()))
}

fn damaged(what: &str, offset: u64) -> Refused {
    Refused::Unfit(format!("it is damaged: {what}, at byte {offset}, does not have the right checksum"))
}

/// A section that is being read.
struct Scan<'a> {
    disk: &'a dyn Disk,
    index: usize,
    at: Section,
    synced: u32,
    last_epoch: &'a mut u32,
    damage: &'a mut Damage,
    /// Where records lie that are to be taken away, and what they become.
    broken_off: &'a mut Vec<(u64, [u8; PLACE_BYTES])>,
    /// Is told of bytes that have been read.
    has_read: &'a dyn Fn(usize) -> ControlFlow<()>,
}

impl Scan<'_> {
    fn run(mut self, sections: &mut Vec<SectionState>, found: &mut Vec<Found>) -> Result<(), Refused> {
        let mut state = SectionState::new(self.at);
        let mut cycles = self.cycles()?;
        self.later_cycles(&mut cycles)?;
        state.erases = cycles.iter().map(|cycle| Some(cycle.erases)).collect();
        let mut unsettled = Vec::new();
        let places = self.places(&cycles, &mut unsettled)?;
        let trims = self.trims()?;
        let held = self.held(&places, &trims, &mut state, &mut unsettled)?;
        sections.push(state);
        found.push(Found { places, trims, held, unsettled, cycles });
        Ok(())
    }

    /// Reads records one after another.
    fn records<const BYTES: usize, R: Record<BYTES>>(
        &self,
        what: &str,
        offset: u64,
        count: u32,
        mut each: impl FnMut(u32, R) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let mut chunk = vec![0; CHUNK];
        let per_chunk = (CHUNK / BYTES) as u32;
        for first in (0..count).step_by(per_chunk as usize) {
            let records = per_chunk.min(count - first) as usize;
            let start = offset + u64::from(first) * BYTES as u64;
            let bytes = &mut chunk[..records * BYTES];
            self.disk.read_at(bytes, start)?;
            if (self.has_read)(bytes.len()).is_break() {
                return Err(Refused::Failed(io::ErrorKind::Interrupted.into()));
            }
            for (index, bytes) in (first..).zip(bytes.chunks_exact(BYTES)) {
                let place = offset + u64::from(index) * BYTES as u64;
                if let Some(record) = R::decode(bytes, index).map_err(|_| damaged(what, place))? {
                    each(index, record)?;
                }
            }
        }
        Ok(())
    }

    fn cycles(&self) -> Result<Vec<Cycle>, Refused> {
        let blocks = self.at.shape.blocks();
        let mut cycles = vec![Cycle::default(); blocks as usize];
        self.records("what is known of a block", self.at.cycles, blocks, |index, cycle| {
            cycles[index as usize] = cycle;
            Ok(())
        })?;
        Ok(cycles)
    }

    /// An erase is written down when nothing can need what it has erased any more, which
    /// may be lost, and the block is programmed again after that.
    fn later_cycles(&self, cycles: &mut [Cycle]) -> Result<(), Refused> {
        let shape = self.at.shape;
        self.records("what is known of a page", self.at.places, shape.ppns, |ppn, record: Programmed| {
            let cycle = &mut cycles[(ppn / shape.units_per_block) as usize];
            if record.erases > cycle.erases {
                cycle.worn += f64::from(record.erases - cycle.erases);
                cycle.erases = record.erases;
            }
            Ok(())
        })
    }

    /// What each page of flash holds. What was written in epochs that have not ended is
    /// `unsettled`.
    fn places(&mut self, cycles: &[Cycle], unsettled: &mut Vec<Lpn>) -> Result<Vec<Option<Place>>, Refused> {
        let shape = self.at.shape;
        let mut places = vec![None; shape.ppns as usize];
        let mut broken_off = Vec::new();
        let mut last_epoch = *self.last_epoch;
        self.records("what is known of a page", self.at.places, shape.ppns, |ppn, record: Programmed| {
            last_epoch = last_epoch.max(record.epoch);
            let offset = self.at.places + u64::from(ppn) * PLACE_BYTES as u64;
            let erases = cycles[(ppn / shape.units_per_block) as usize].erases;
            if record.place.lpn.0 >= shape.lpns {
                return Err(Refused::Unfit(format!(
                    "it is damaged: what is known of a page, at byte {offset}, contradicts the rest"
                )));
            }
            if record.erases < erases {
                return Ok(());
            }
            let is_certain = record.epoch <= self.synced;
            unsettled.extend((!is_certain).then_some(record.place.lpn));
            let offset = self.at.pages + u64::from(ppn) * PAGE_BYTES;
            match record.page.filter(|_| !is_certain && !record.is_damaged) {
                Some(sum) if checksum(&self.page(offset)?) != sum => broken_off.push(ppn),
                _ => places[ppn as usize] = Some(record.place),
            }
            Ok(())
        })?;
        *self.last_epoch = last_epoch;
        let none = |ppn| (self.at.places + u64::from(ppn) * PLACE_BYTES as u64, Programmed::none(ppn));
        self.broken_off.extend(broken_off.into_iter().map(none));
        self.drop_overwritten(&mut places)?;
        Ok(places)
    }

    /// Where the newest version of a page is found twice, one of them may be what its block
    /// held before it was erased, under bytes written since: the loss of power has taken the
    /// newer record and that of the erase. Its checksum tells.
    fn drop_overwritten(&self, places: &mut [Option<Place>]) -> Result<(), Refused> {
        let mut newest: Vec<Option<(u64, u32)>> = vec![None; self.at.shape.lpns as usize];
        let mut alike: BTreeMap<Lpn, Vec<u32>> = BTreeMap::new();
        for (ppn, place) in (0..).zip(places.iter()) {
            let Some(Place { lpn, sequence }) = *place else { continue };
            let best = &mut newest[lpn.0 as usize];
            match *best {
                Some((found, _)) if found > sequence => {}
                Some((found, first)) if found == sequence => {
                    alike.entry(lpn).or_insert_with(|| vec![first]).push(ppn);
                }
                _ => {
                    *best = Some((sequence, ppn));
                    alike.remove(&lpn);
                }
            }
        }
        for copies in alike.into_values() {
            let are_whole: Vec<bool> =
                copies.iter().map(|&ppn| self.is_whole(ppn)).collect::<Result<_, _>>()?;
            // Where none is, it is damage, and found when it is read.
            if are_whole.contains(&true) {
                let others = copies.iter().zip(&are_whole).filter(|(_, is_whole)| !**is_whole);
                others.for_each(|(&ppn, _)| places[ppn as usize] = None);
            }
        }
        Ok(())
    }

    /// Whether a page has the right checksum.
    fn is_whole(&self, ppn: u32) -> Result<bool, Refused> {
        let mut bytes = [0; PLACE_BYTES];
        self.disk.read_at(&mut bytes, self.at.places + u64::from(ppn) * PLACE_BYTES as u64)?;
        let sum = Programmed::decode(&bytes, ppn).ok().flatten().and_then(|record| record.page);
        let Some(sum) = sum else { return Ok(true) };
        Ok(checksum(&self.page(self.at.pages + u64::from(ppn) * PAGE_BYTES)?) == sum)
    }

    fn trims(&self) -> Result<Vec<(Lpn, u64)>, Refused> {
        let mut trims = Vec::new();
        self.records("the trim of a page", self.at.trims, self.at.shape.lpns, |lpn, trim: Trim| {
            trims.push((Lpn(lpn), trim.sequence));
            Ok(())
        })?;
        Ok(trims)
    }

    /// What the write buffer held, the newest last. What has been there since a while ago, in
    /// flash or void by now, is `unsettled`, too. A page of an epoch that has ended whose
    /// checksum is wrong is damaged: its place stays taken as long as nothing newer is found.
    fn held(
        &mut self,
        places: &[Option<Place>],
        trims: &[(Lpn, u64)],
        state: &mut SectionState,
        unsettled: &mut Vec<Lpn>,
    ) -> Result<HeldPages, Refused> {
        let mut elsewhere = vec![0; self.at.shape.lpns as usize];
        for place in places.iter().flatten() {
            let newest = &mut elsewhere[place.lpn.0 as usize];
            *newest = place.sequence.max(*newest);
        }
        // A trim makes void what is older.
        for &(lpn, sequence) in trims {
            let newest = &mut elsewhere[lpn.0 as usize];
            *newest = (sequence - 1).max(*newest);
        }
        let mut found: Vec<(u32, Held, Option<Box<Page>>)> = Vec::new();
        let mut last_epoch = *self.last_epoch;
        self.records("what is known of a buffered page", self.at.slots, self.at.shape.slots, |slot, record: Held| {
            last_epoch = last_epoch.max(record.epoch);
            state.stamp = state.stamp.max(record.stamp);
            let Some(newest) = elsewhere.get(record.place.lpn.0 as usize) else {
                let offset = self.at.slots + u64::from(slot) * PLACE_BYTES as u64;
                return Err(Refused::Unfit(format!(
                    "it is damaged: what is known of a buffered page, at byte {offset}, contradicts the rest"
                )));
            };
            unsettled.push(record.place.lpn);
            let mut page = None;
            if record.place.sequence > *newest {
                page = match record.page {
                    None => Some(Box::new([0; _])),
                    Some(sum) => {
                        let held = self.page(self.at.held + u64::from(slot) * PAGE_BYTES)?;
                        (checksum(&held) == sum).then(|| Box::new(held))
                    }
                };
            }
            found.push((slot, record, page));
            Ok(())
        })?;
        *self.last_epoch = last_epoch;
        // A place that has been used again may have lost its record, but not its bytes: then
        // what the former record says is elsewhere, or a newer version is, which may have come into
        // the same place in the order of writes.
        let order = |record: &Held| (record.place.sequence, record.stamp);
        let mut newest: Vec<(u64, u64)> = elsewhere.iter().map(|&sequence| (sequence, u64::MAX)).collect();
        for (_, record, _) in found.iter().filter(|(.., page)| page.is_some()) {
            let newest = &mut newest[record.place.lpn.0 as usize];
            *newest = order(record).max(*newest);
        }
        let (mut held, mut used, mut stale, mut damaged) = (vec![], vec![], vec![], vec![]);
        for (slot, record, page) in found {
            let lpn = record.place.lpn.0 as usize;
            match page {
                Some(_) => {
                    used.push(slot);
                    held.push((slot, record, page));
                }
                None if order(&record) <= newest[lpn] => stale.push(slot),
                None if record.epoch > self.synced => {
                    stale.push(slot);
                    let offset = self.at.slots + u64::from(slot) * PLACE_BYTES as u64;
                    self.broken_off.push((offset, Held::none(slot)));
                }
                None => {
                    damaged.push(slot);
                    self.note_damage(slot, record.place.lpn);
                    held.push((slot, record, None));
                }
            }
        }
        let is_taken =
            |slot: &u32| [&used, &stale, &damaged].iter().any(|taken| taken.binary_search(slot).is_ok());
        state.free.retain(|slot| !is_taken(slot));
        // Epochs are counted from the last of all sections. What has taken over what was found, with
        // the pages of whose stripes the parity is not right, is durable once the next has ended.
        let rest = |slots: Vec<u32>, epochs| slots.into_iter().map(move |slot| (epochs, slot));
        state.resting.extend(rest(stale, 1));
        held.sort_by_key(|(_, record, _)| order(record));
        if self.at.shape.is_keeper() {
            let trimmed = trims.iter().map(|&(_, sequence)| sequence).max().unwrap_or(0);
            state.sequence = held.last().map_or(trimmed, |(_, record, _)| trimmed.max(record.place.sequence));
            for &(slot, Held { place, .. }, _) in &held {
                // The newest comes last; older ones are not needed once that is durable.
                let former = state.kept.insert(place.lpn.0, Kept { slot, sequence: place.sequence });
                state.resting.extend(former.map(|former| (1, former.slot)));
            }
        } else {
            // These hold what is found until all of it has been held again. An epoch ends before
            // that where the others are needed for it.
            state.resting.extend(rest(used, 2));
        }
        Ok(held.into_iter().map(|(_, record, page)| (record.place, page)).collect())
    }

    fn note_damage(&mut self, slot: u32, lpn: Lpn) {
        let (page, index, offset) = (lpn.0, self.index, self.at.held + u64::from(slot) * PAGE_BYTES);
        let whose = if self.at.shape.is_keeper() { "a memory, tier or mirror" } else { "a write buffer" };
        self.damage.note(|| {
            format!(
                "page {page} of {whose} (section {index}), at byte {offset} of the file, cannot be read: its \
                 checksum is wrong"
            )
        });
    }

    fn page(&self, offset: u64) -> Result<Page, Refused> {
        let mut page = [0; PAGE_BYTES as usize];
        let failed =
            |error: io::Error| io::Error::new(error.kind(), format!("section {}: {error}", self.index));
        self.disk.read_at(&mut page, offset).map_err(failed)?;
        Ok(page)
    }
}
