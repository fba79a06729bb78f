//! One pass through a trace: everything but where its devices are placed.

use std::sync::Arc;

use flashkeel_config::did_you_mean;
use flashkeel_engine::{Operation, SECTOR_BYTES};

use super::kept::{Again, Kept};
use super::order::LONGEST_BYTES;
use super::{Ordered, Pace, Trace};
use crate::input::Progress;
use crate::profiles::MOST_MAGNIFIED;
use crate::readers::Record;
use crate::text::listed;
use crate::{Basis, Context, Counts, WorkloadError};

/// Most units of an intensity, which is held in whole decimal ones, so that times stay integers:
/// up to here a number with six decimals is no other.
const MOST_INTENSITY_UNITS: f64 = 1e15;
/// Alignments divide this; devices are laid out in units of it.
pub(super) const ALIGN_LIMIT_BYTES: u64 = 1 << 20;

/// A trace's settings, checked and resolved to integers.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    align_sectors: u64,
    /// In units of which `intensity_unit` are 1.
    intensity: u64,
    intensity_unit: u64,
    write_magnification: u64,
    from_ns: u64,
    to_ns: Option<u64>,
    pub duration_ns: Option<u64>,
}

impl Shape {
    pub(super) fn new(trace: &Trace, context: &Context) -> Result<Shape, WorkloadError> {
        let refuse =
            |key: &str, message: String| Err(WorkloadError::key(&format!("workload.source.{key}"), message));
        let align = trace.align.unwrap_or(context.block);
        if !align.0.is_power_of_two() || !(context.block.0..=ALIGN_LIMIT_BYTES).contains(&align.0) {
            return refuse("align", format!("{align} is not a power of two from {} to 1MiB", context.block));
        }
        if !(1e-6..=1e6).contains(&trace.intensity) {
            return refuse("intensity", format!("{} is not between 0.000001 and 1000000", trace.intensity));
        }
        if !(1..=MOST_MAGNIFIED).contains(&trace.write_magnification) {
            let message = format!("{} is not between 1 and {MOST_MAGNIFIED}", trace.write_magnification);
            return refuse("write_magnification", message);
        }
        if trace.repeat == 0 {
            return refuse("repeat", "a trace is replayed at least once".into());
        }
        let (from_ns, to_ns) =
            trace.window.map_or((0, None), |window| (window.from.0, window.to.map(|to| to.0)));
        if to_ns.is_some_and(|to_ns| to_ns <= from_ns) {
            return refuse("window", "it ends before it begins".into());
        }
        let units = (0..=18).rev().map(|digits| 10u64.pow(digits));
        let intensity_unit =
            units.filter(|unit| trace.intensity * *unit as f64 <= MOST_INTENSITY_UNITS).max();
        let intensity_unit = intensity_unit.expect("an intensity is at most a million");
        Ok(Shape {
            align_sectors: align.0 / SECTOR_BYTES,
            intensity: (trace.intensity * intensity_unit as f64).round() as u64,
            intensity_unit,
            write_magnification: u64::from(trace.write_magnification),
            from_ns,
            to_ns,
            duration_ns: context.duration.map(|duration| duration.0),
        })
    }

    pub(super) fn scale(&self, ns: u64) -> u64 {
        if self.intensity == self.intensity_unit {
            return ns;
        }
        let scaled = u128::from(ns) * u128::from(self.intensity_unit) / u128::from(self.intensity);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// The range in whole alignment units, as (first sector, sectors): outwards,
    /// or inwards for a trim, which may leave nothing of it.
    #[inline]
    fn align(&self, operation: Operation, offset: u64, bytes: u64) -> (u64, u64) {
        let end = offset + bytes;
        // A power of two, so that nothing is divided.
        let below = self.align_sectors - 1;
        let (first, end) = if operation == Operation::Trim {
            (offset.div_ceil(SECTOR_BYTES) + below, end / SECTOR_BYTES)
        } else {
            (offset / SECTOR_BYTES, end.div_ceil(SECTOR_BYTES) + below)
        };
        (first & !below, (end & !below).saturating_sub(first & !below))
    }

    /// Whole alignment units of zeros are left zeros; what covers the rest in part is
    /// a write, since the rest of its unit stays what it is. The part of a request of zeros
    /// that comes first, and what is behind it.
    #[cold]
    fn part_of_zeros(&self, request: Record) -> (Record, Option<Record>) {
        let unit = self.align_sectors * SECTOR_BYTES;
        let (from, to) = (request.offset, request.offset + request.bytes);
        let (first, end) = (from.checked_next_multiple_of(unit).unwrap_or(to), to / unit * unit);
        let written = |request: Record| Record { operation: Operation::Write, ..request };
        let split_at = |at: u64| {
            let (before, behind) = (at - from, to - at);
            let first = Record { bytes: before, ..request };
            (first, Record { offset: at, bytes: behind, ..request })
        };
        if from == first && to == end {
            (request, None)
        } else if first >= end {
            (written(request), None)
        } else if from < first {
            let (edge, rest) = split_at(first);
            (written(edge), Some(rest))
        } else {
            let (zeros, edge) = split_at(end);
            (zeros, Some(written(edge)))
        }
    }
}

/// A request that is to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Selected {
    /// From the first request delivered in this pass, intensity applied.
    pub time_ns: u64,
    /// Its number in the file, for messages; 0 where it was kept, which happens only to what
    /// is right.
    pub item: u64,
    pub device: u32,
    pub operation: Operation,
    /// First sector on its device.
    pub lba: u64,
    pub sectors: u32,
    /// Sectors it touched before it was aligned.
    pub asked_sectors: u32,
    /// What it took; 0 where that was not measured or not asked for.
    pub response_ns: u64,
}

impl Selected {
    /// Nothing, to be filled.
    pub const EMPTY: Selected = Selected {
        time_ns: 0,
        item: 0,
        device: 0,
        operation: Operation::Read,
        lba: 0,
        sectors: 0,
        asked_sectors: 0,
        response_ns: 0,
    };
}

/// One pass through a trace.
pub(super) struct Pass {
    pub file: String,
    progress: Progress,
    input: Ordered,
    shape: Shape,
    device: Option<String>,
    /// What is still to come of a request that has been divided.
    rest: Option<Record>,
    /// Time of the trace's first request.
    origin_ns: Option<u64>,
    /// Time of the first request delivered.
    first_ns: Option<u64>,
    /// Time of the last, by the trace's own clock.
    latest_ns: u64,
    /// What it delivers, where that is known.
    again: Option<Again>,
}

impl Pass {
    pub(super) fn open(trace: &Trace, shape: &Shape, responses: bool) -> Result<Pass, WorkloadError> {
        let opened = trace.open_file(responses)?;
        Ok(Pass {
            file: opened.file.clone(),
            progress: opened.progress.clone(),
            input: Ordered::new(opened, trace),
            shape: *shape,
            device: trace.device.clone(),
            rest: None,
            origin_ns: None,
            first_ns: None,
            latest_ns: 0,
            again: None,
        })
    }

    /// Opens a trace of which it may be known what a pass delivers: nothing is read then but
    /// its beginning, unless what requests took is asked for, which is not kept.
    pub(super) fn again(
        trace: &Trace,
        shape: &Shape,
        kept: Option<&Arc<Kept>>,
        responses: bool,
    ) -> Result<Pass, WorkloadError> {
        let pass = Pass::open(trace, shape, responses)?;
        let kept = kept.filter(|_| !pass.has_responses()).cloned();
        Ok(Pass { again: kept.map(Again::new), ..pass })
    }

    /// Whether it says what requests took.
    pub(super) fn has_responses(&self) -> bool {
        self.input.reader().has_responses()
    }

    /// Fraction of the file that has been read.
    pub(super) fn progress(&self) -> f64 {
        self.again.as_ref().map_or_else(|| self.progress.fraction(), Again::progress)
    }

    /// When the last request was recorded, by the trace's own clock; of what was kept, the last
    /// of all.
    pub(super) fn latest_ns(&self) -> u64 {
        self.again.as_ref().map_or(self.latest_ns, Again::latest_ns)
    }

    /// The error of a line or record.
    pub(super) fn refuse(&self, item: u64, message: impl Into<String>) -> WorkloadError {
        self.input.refuse(item, message)
    }

    pub(super) fn notes(&self) -> Vec<String> {
        self.input.notes()
    }

    /// A note about a rate that no drive could serve.
    pub(super) fn rate_note(&self, pace: &Pace) -> Option<String> {
        let reader = self.input.reader();
        pace.note(reader.tick_ns(), |unit| reader.tick_setting(unit))
    }

    pub(super) fn basis(&self) -> Basis {
        self.again.as_ref().map_or_else(|| self.input.basis(), Again::basis)
    }

    pub(super) fn device_name(&self, device: u32) -> String {
        self.input.reader().devices().name(device)
    }

    /// Puts what the trace has next into `next`, or the rest of what it had last; whether
    /// there was anything.
    #[inline]
    fn next_record(&mut self, next: &mut Record, counts: &mut Counts) -> Result<bool, WorkloadError> {
        if self.rest.is_some() {
            counts.read += 1;
            *next = self.rest.take().expect("there is a rest");
            return Ok(true);
        }
        let is_read = self.input.next(next, counts)?;
        if next.operation == Operation::Write {
            next.bytes = next.bytes.saturating_mul(self.shape.write_magnification).min(LONGEST_BYTES);
            if next.offset.checked_add(next.bytes).is_none() {
                let message = format!(
                    "a write at byte {}, magnified to {} bytes, ends beyond any 64-bit address",
                    next.offset, next.bytes
                );
                return Err(self.refuse(next.item, message));
            }
        }
        Ok(is_read)
    }

    /// Puts the next request to deliver into `next`; whether there was one.
    #[inline]
    pub(super) fn next(&mut self, next: &mut Selected, counts: &mut Counts) -> Result<bool, WorkloadError> {
        if let Some(again) = &mut self.again {
            return Ok(again.next(next, counts));
        }
        let mut record = Record::EMPTY;
        while self.next_record(&mut record, counts)? {
            let shape = &self.shape;
            let recorded_ns = record.time_ns - *self.origin_ns.get_or_insert(record.time_ns);
            if shape.to_ns.is_some_and(|to_ns| recorded_ns >= to_ns) {
                counts.outside_window += 1;
                return Ok(false);
            }
            if recorded_ns < shape.from_ns {
                counts.outside_window += 1;
                continue;
            }
            if let Some(name) = &self.device
                && !self.input.reader().devices().is(record.device, name)
            {
                counts.other_device += 1;
                continue;
            }
            if record.operation == Operation::WriteZeroes {
                (record, self.rest) = shape.part_of_zeros(record);
            }
            let bytes = record.bytes;
            let (lba, sectors) = shape.align(record.operation, record.offset, bytes);
            if sectors == 0 && record.operation == Operation::Trim {
                counts.trims_dropped += 1;
                continue;
            }
            let is_same = lba * SECTOR_BYTES == record.offset && sectors * SECTOR_BYTES == bytes;
            counts.aligned += u64::from(!is_same);
            self.latest_ns = record.time_ns;
            let time_ns = shape.scale(record.time_ns - *self.first_ns.get_or_insert(record.time_ns));
            *next = Selected {
                time_ns,
                item: record.item,
                device: record.device,
                operation: record.operation,
                lba,
                // A request is at most 1 TiB long, aligned or not: see `Ordered`.
                sectors: sectors as u32,
                asked_sectors: bytes.div_ceil(SECTOR_BYTES) as u32,
                response_ns: record.response_ns,
            };
            return Ok(true);
        }
        Ok(false)
    }

    /// The error for a trace of which nothing is left to deliver.
    pub(super) fn nothing_left(&self, trace: &Trace, counts: &Counts) -> WorkloadError {
        let names = self.input.reader().devices().names();
        let mut message = if counts.read == 0 {
            let remedy = self.input.reader().remedy().map(|remedy| format!("; {remedy}"));
            format!(
                "no request in it ({} lines or records of other kinds){}",
                counts.not_io,
                remedy.unwrap_or_default()
            )
        } else {
            format!(
                "none of its {} requests is left: {} of other devices, {} outside the window, {} of no length, {} trims below the alignment",
                counts.read,
                counts.other_device,
                counts.outside_window,
                counts.zero_length,
                counts.trims_dropped
            )
        };
        // What is kept has some of the device that was asked for.
        let is_unknown = |device: &&String| self.again.is_none() && !names.contains(device);
        if let Some(device) = trace.device.as_ref().filter(is_unknown) {
            message += &format!(
                "; its devices are {}{}",
                listed(names.iter().map(String::as_str)),
                did_you_mean(device, names.iter().map(String::as_str))
            );
        }
        WorkloadError::file(&self.file, message)
    }
}
