//! Where a trace's devices lie in the address space of the simulated one.

use std::sync::Arc;

use flashkeel_engine::{Operation, SECTOR_BYTES, units::Bytes};

use super::compact::{Compaction, Touched};
use super::kept::{Keeper, Kept};
use super::pass::{ALIGN_LIMIT_BYTES, Pass, Selected, Shape};
use super::{DeviceSpaces, Fold, Trace};
use crate::error::Pulse;
use crate::input::is_read_once;
use crate::{Context, Counts, Stopped, Watch, WorkloadError};

const LAYOUT_SECTORS: u64 = ALIGN_LIMIT_BYTES / SECTOR_BYTES;

/// First sector of each device, and the capacity they must fit in.
pub(super) struct AddressMap {
    bases: Vec<u64>,
    device_sectors: u64,
    fold: Fold,
    /// Where addresses go instead, if they do not fit.
    compaction: Option<Compaction>,
    /// Whether a second device has no place: the trace is read only once.
    is_single: bool,
    /// What a result must show.
    pub notes: Vec<String>,
    /// What was delivered while the devices were laid out, if it is not too much.
    pub kept: Option<Arc<Kept>>,
}

/// How far a device of the trace reaches, and the request that reaches it.
#[derive(Clone, Copy, Default)]
struct Reach {
    end: u64,
    item: u64,
}

impl AddressMap {
    /// Lays the devices out. Where they are separate, or to be compacted, this
    /// reads the trace once, as far as it will be delivered; of a trace that can
    /// be read only once, devices that are separate may be but one.
    pub(super) fn find(
        trace: &Trace,
        shape: &Shape,
        context: &Context,
        watch: &mut Watch<'_>,
    ) -> Result<AddressMap, Stopped> {
        let has_bases = trace.devices == DeviceSpaces::Separate && trace.device.is_none();
        let is_once = is_read_once(&trace.path);
        let mut placement = AddressMap {
            bases: Vec::new(),
            device_sectors: context.device_sectors,
            fold: trace.fold,
            compaction: None,
            is_single: has_bases && is_once,
            notes: Vec::new(),
            kept: None,
        };
        if is_once || !has_bases && trace.fold != Fold::Compact {
            return Ok(placement);
        }
        let mut pass = Pass::open(trace, shape, false)?;
        let known = pass.notes();
        let mut touched = (trace.fold == Fold::Compact).then(Touched::default);
        let (extents, kept) = extents(&mut pass, shape, context, has_bases, touched.as_mut(), watch)?;
        placement.kept = kept.map(Arc::new);
        // What is kept is not read again, and what was met in it would not be noted.
        placement.notes.extend(pass.notes().into_iter().filter(|note| !known.contains(note)));
        if !has_bases {
            let end = extents.iter().map(|extent| extent.end).max().unwrap_or(0);
            return placement.compact(touched, end, &pass.file);
        }
        let largest = extents.iter().map(|extent| extent.end).max().unwrap_or(0);
        let mut base = 0u64;
        let mut reach = 0;
        for (device, extent) in (0..).zip(&extents) {
            placement.bases.push(base);
            let end = base.saturating_add(extent.end);
            reach = reach.max(end);
            // Of a device with nothing but flushes nothing lies anywhere.
            let is_beyond = extent.end > 0 && end > context.device_sectors;
            if is_beyond && trace.fold == Fold::Refuse {
                let merge = "devices = \"merge\" puts the devices onto the same addresses, ";
                return Err(pass.refuse(
                    extent.item,
                    format!(
                        "device {} reaches its byte {}{}, beyond the simulated device's {} bytes; {}{REMEDY}",
                        pass.device_name(device),
                        u128::from(extent.end) * 512,
                        if base > 0 {
                            format!(", at {} behind the devices before it", u128::from(end) * 512)
                        } else {
                            String::new()
                        },
                        u128::from(context.device_sectors) * 512,
                        if base > 0 && largest <= context.device_sectors { merge } else { "" },
                    ),
                )
                .into());
            }
            base = end.div_ceil(LAYOUT_SECTORS).saturating_mul(LAYOUT_SECTORS);
        }
        placement.compact(touched, reach, &pass.file)
    }

    /// Compacts what is touched, if that was asked for and the trace reaches
    /// beyond the device.
    fn compact(mut self, touched: Option<Touched>, reach: u64, file: &str) -> Result<AddressMap, Stopped> {
        if touched.is_some() {
            // It goes beyond what is delivered where there are trims.
            self.kept.take_if(|kept| !kept.is_whole);
        }
        let Some(touched) = touched.filter(|_| reach > self.device_sectors) else { return Ok(self) };
        let compaction = touched.compact(self.device_sectors).ok_or_else(|| {
            WorkloadError::file(
                file,
                format!(
                    "it touches {} bytes, more than the simulated device's {}; fold = \"wrap\" folds addresses into \
                     the device",
                    touched.bytes(),
                    u128::from(self.device_sectors) * 512
                ),
            )
        })?;
        self.notes.push(compaction.note(&touched));
        self.compaction = Some(compaction);
        Ok(self)
    }

    /// The number of the device that lies at a sector; 0 where all are on the same addresses.
    pub(super) fn device_at(&self, lba: u64) -> usize {
        self.bases.partition_point(|base| *base <= lba).saturating_sub(1)
    }

    /// What became of several devices; none where there is one.
    pub(super) fn layout_note(&self) -> Option<String> {
        let count = self.bases.len();
        (count > 1).then(|| {
            let places: Vec<String> =
                self.bases.iter().take(4).map(|base| Bytes(base * SECTOR_BYTES).to_string()).collect();
            let more = if count > places.len() { ", …" } else { "" };
            format!(
                "its {count} devices lie one after the other, as one: they begin at {}{more}; device = \"…\" takes one",
                places.join(", ")
            )
        })
    }

    /// First sector and length on the simulated device; of length 0 where nothing
    /// of the range is there, as of a trim or of zeros.
    #[inline]
    pub(super) fn place(&self, selected: &Selected, counts: &mut Counts) -> Result<(u64, u32), String> {
        // A flush is of everything, wherever its device lies.
        if selected.operation == Operation::Flush && !self.is_single {
            return Ok((0, 0));
        }
        if let Some(compaction) = &self.compaction {
            let device = if self.bases.is_empty() { 0 } else { selected.device };
            let (lba, sectors) = compaction.place(device, selected.lba, selected.sectors);
            counts.folded += u64::from(sectors > 0 && lba != selected.lba);
            return Ok((lba, sectors));
        }
        if self.is_single && selected.device > 0 {
            return Err("a second device: to lay devices out one after the other the trace is read twice, and this \
                        one comes through a pipe; devices = \"merge\" or device = \"…\" takes one pass, a file two"
                .to_owned());
        }
        let base = self.bases.get(selected.device as usize).copied().unwrap_or(0);
        let lba = base.saturating_add(selected.lba);
        let end = lba.saturating_add(selected.sectors.into());
        if end <= self.device_sectors {
            return Ok((lba, selected.sectors));
        }
        if self.fold != Fold::Wrap {
            return Err(format!(
                "bytes {} to {} lie beyond the device's {} bytes; {REMEDY}",
                u128::from(lba) * 512,
                u128::from(end) * 512,
                u128::from(self.device_sectors) * 512
            ));
        }
        counts.folded += 1;
        let lba = lba % self.device_sectors;
        let room = self.device_sectors - lba;
        if u64::from(selected.sectors) > room {
            counts.clipped += 1;
            return Ok((lba, room as u32));
        }
        Ok((lba, selected.sectors))
    }
}

const REMEDY: &str = "fold = \"compact\" leaves out what the trace does not touch, fold = \"wrap\" folds addresses \
                      into the device";

/// How far each device of the trace reaches among the requests that will be
/// delivered; all are one where they are not separate. And these requests.
fn extents(
    pass: &mut Pass,
    shape: &Shape,
    context: &Context,
    is_separate: bool,
    mut touched: Option<&mut Touched>,
    watch: &mut Watch<'_>,
) -> Result<(Vec<Reach>, Option<Kept>), Stopped> {
    let mut pulse = Pulse::new(watch);
    let mut extents: Vec<Reach> = Vec::new();
    let (mut counts, mut keeper) = (Counts::default(), Keeper::new());
    let mut requests_left = context.requests.unwrap_or(u64::MAX);
    let mut selected = Selected::EMPTY;
    let mut is_whole = false;
    while requests_left > 0 {
        if !pass.next(&mut selected, &mut counts)? {
            is_whole = true;
            break;
        }
        // The first behind the end is what ends a replay, too.
        keeper.take(&selected, &mut counts);
        if shape.duration_ns.is_some_and(|end| selected.time_ns >= end) {
            break;
        }
        pulse.step(|| pass.progress())?;
        // Of a trim compacting may leave nothing; then a request more is delivered.
        let counts_surely = matches!(selected.operation, Operation::Read | Operation::Write);
        requests_left -= u64::from(touched.is_none() || counts_surely);
        let device = if is_separate { selected.device } else { 0 };
        if let Some(touched) = &mut touched {
            touched.insert(device, selected.operation, selected.lba, selected.sectors);
        }
        let device = device as usize;
        if extents.len() <= device {
            extents.resize(device + 1, Reach::default());
        }
        let reach = selected.lba + u64::from(selected.sectors);
        if reach > extents[device].end {
            extents[device] = Reach { end: reach, item: selected.item };
        }
    }
    let kept = keeper.finish(counts, pass.latest_ns(), pass.basis(), is_whole);
    Ok((extents, kept))
}
