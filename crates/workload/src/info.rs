//! What is in a trace, in one pass.

use flashkeel_engine::Operation;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::error::Pulse;
use crate::pages::Pages;
use crate::readers::{FormatName, Record};
use crate::trace::{Ordered, Pace};
use crate::{Basis, Compression, Counts, Stopped, Trace, Watch, WorkloadError};

/// What is in a trace, as recorded: nothing is aligned, folded or rescaled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceInfo {
    /// Format of the file.
    pub format: FormatName,
    /// How the file is compressed.
    pub compression: Compression,
    /// Whether it was recorded, or says of itself that it was synthesised.
    pub basis: Basis,
    /// The trace in the terms of published tables.
    pub terms: Terms,
    /// Requests: reads, writes, trims, flushes and writes of zeros.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Writes of zeros, which carry no data and are no part of what follows on writes.
    pub write_zeroes: u64,
    /// Requests of no length, left out of everything else.
    pub zero_length: u64,
    /// Lines that cannot be read, left out by `bad_lines`.
    pub bad_lines: u64,
    /// Lines or records that are no requests.
    pub not_io: u64,
    /// Requests found out of order and put right by the reorder window.
    pub reordered: u64,
    /// Share of reads among reads and writes.
    pub read_fraction: Option<f64>,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes trimmed.
    pub trim_bytes: u64,
    /// Bytes set to zero without data.
    pub write_zeroes_bytes: u64,
    /// Mean bytes of a read.
    pub mean_read_bytes: Option<f64>,
    /// Mean bytes of a write.
    pub mean_write_bytes: Option<f64>,
    /// Reads and writes by size, in powers of two; empty classes left out.
    pub sizes: Vec<SizeClass>,
    /// Time between the first and the last request, in nanoseconds.
    pub span_ns: u64,
    /// Requests per second over the span.
    pub mean_iops: Option<f64>,
    /// Gaps between requests.
    pub inter_arrival_ns: Option<InterArrival>,
    /// Bytes of the distinct 4 KiB pages read or written, over all devices.
    pub footprint_bytes: u64,
    /// Bytes of the distinct 4 KiB pages written.
    pub write_footprint_bytes: u64,
    /// Highest byte address of any device, not included.
    pub max_address_bytes: u64,
    /// Share of reads and writes that begin where the read or write before
    /// them on the same device ended.
    pub sequential_fraction: Option<f64>,
    /// Share of reads and writes that do not; profiles mean the same by it.
    pub random_fraction: Option<f64>,
    /// The devices of the trace.
    pub devices: Vec<DeviceInfo>,
    /// Assumptions made, such as the unit of time.
    pub notes: Vec<String>,
}

/// A trace in the terms in which papers describe theirs: those of AutoSSD's
/// table 2 and SSDcheck's table II.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Terms {
    /// Hours from the first to the last request.
    pub hours: f64,
    /// Millions of writes.
    pub writes_millions: f64,
    /// Millions of reads.
    pub reads_millions: f64,
    /// Mean size of a write in KB of 1024 bytes.
    pub write_kb: Option<f64>,
    /// Mean size of a read in KB of 1024 bytes.
    pub read_kb: Option<f64>,
    /// Mean time between requests in ms.
    pub inter_arrival_mean_ms: Option<f64>,
    /// Median time between requests in ms.
    pub inter_arrival_median_ms: Option<f64>,
    /// Percentage of writes among reads and writes.
    pub write_percent: Option<f64>,
    /// Percentage of reads and writes that do not begin where the one before
    /// them on the same device ended.
    pub random_percent: Option<f64>,
}

/// Requests of one size class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SizeClass {
    /// Largest size in the class; the smallest is more than half of it.
    pub up_to_bytes: u64,
    /// Reads in the class.
    pub reads: u64,
    /// Writes in the class.
    pub writes: u64,
}

/// Gaps between successive requests, in nanoseconds. The median and the
/// percentile come from a histogram of three significant digits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InterArrival {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub median: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Largest.
    pub max: u64,
}

/// One device of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceInfo {
    /// Its name in the trace.
    pub name: String,
    /// Its requests.
    pub requests: u64,
    /// Its highest byte address, not included.
    pub max_address_bytes: u64,
}

/// Reads a trace from beginning to end and says what is in it. Of the settings
/// only those that say how the file is read matter: format, time unit, action,
/// reorder window, requests of no length and bad lines. `watch` is told how much has been
/// read.
///
/// # Errors
/// The first thing that is wrong with the file, or that `watch` breaks off.
pub fn info(trace: &Trace, watch: &mut Watch<'_>) -> Result<TraceInfo, Stopped> {
    let opened = trace.open_file(false)?;
    let (format, compression, file) = (opened.format, opened.compression, opened.file.clone());
    let (progress, mut pulse) = (opened.progress.clone(), Pulse::new(watch));
    let mut input = Ordered::new(opened, trace);
    let (mut record, mut counts) = (Record::EMPTY, Counts::default());
    let mut tally = Tally::new();
    while input.next(&mut record, &mut counts)? {
        tally.add(&record);
        pulse.step(|| progress.fraction())?;
    }
    if tally.requests() == 0 {
        let mut message = format!(
            "no request in it ({} lines or records of other kinds, {} requests of no length)",
            counts.not_io, counts.zero_length
        );
        if let Some(remedy) = input.reader().remedy() {
            message += &format!("; {remedy}");
        }
        return Err(WorkloadError::file(&file, message).into());
    }
    let basis = input.basis();
    let devices = tally
        .devices
        .iter()
        .zip(input.reader().devices().names())
        .map(|(device, name)| DeviceInfo {
            name,
            requests: device.requests,
            max_address_bytes: device.max_address_bytes,
        })
        .collect();
    let mut notes = input.notes();
    let pace = Pace {
        requests: tally.requests(),
        bytes: tally.data_bytes(),
        span_ns: tally.last_ns - tally.first_ns,
        latest_ns: tally.last_ns,
    };
    let reader = input.reader();
    notes.extend(pace.note(reader.tick_ns(), |unit| reader.tick_setting(unit)));
    Ok(tally.finish((format, compression, basis), &counts, devices, notes))
}

/// Counts kept while a trace is read.
struct Tally {
    /// By operation, those that a trace may hold.
    of: [Sum; 5],
    sizes: [[u64; 2]; 64],
    first_ns: u64,
    last_ns: u64,
    gaps: Histogram<u64>,
    /// The histogram knows no more than its class.
    longest_gap_ns: u64,
    sequential: u64,
    devices: Vec<Device>,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    requests: u64,
    bytes: u64,
}

#[derive(Default)]
struct Device {
    requests: u64,
    max_address_bytes: u64,
    /// End of the read or write before.
    cursor: Option<u64>,
    touched: Pages,
    written: Pages,
}

impl Tally {
    fn new() -> Self {
        Tally {
            of: [Sum::default(); 5],
            sizes: [[0; 2]; 64],
            first_ns: 0,
            last_ns: 0,
            gaps: Histogram::new(3).expect("three digits are supported"),
            longest_gap_ns: 0,
            sequential: 0,
            devices: Vec::new(),
        }
    }

    fn requests(&self) -> u64 {
        self.of.iter().map(|sum| sum.requests).sum()
    }

    /// Bytes read and written.
    fn data_bytes(&self) -> u64 {
        let bytes = |operation: Operation| self.of[operation as usize].bytes;
        bytes(Operation::Read).saturating_add(bytes(Operation::Write))
    }

    fn add(&mut self, record: &Record) {
        if self.requests() == 0 {
            self.first_ns = record.time_ns;
        } else {
            let gap_ns = record.time_ns - self.last_ns;
            self.gaps.record(gap_ns).expect("the histogram grows by itself");
            self.longest_gap_ns = self.longest_gap_ns.max(gap_ns);
        }
        self.last_ns = record.time_ns;
        let sum = &mut self.of[record.operation as usize];
        sum.requests += 1;
        sum.bytes = sum.bytes.saturating_add(record.bytes);

        let index = record.device as usize;
        if self.devices.len() <= index {
            self.devices.resize_with(index + 1, Device::default);
        }
        let device = &mut self.devices[index];
        device.requests += 1;
        device.max_address_bytes = device.max_address_bytes.max(record.offset + record.bytes);
        if !matches!(record.operation, Operation::Read | Operation::Write) {
            return;
        }
        let is_write = record.operation == Operation::Write;
        self.sizes[record.bytes.next_power_of_two().trailing_zeros() as usize][usize::from(is_write)] += 1;
        self.sequential += u64::from(device.cursor == Some(record.offset));
        device.cursor = Some(record.offset + record.bytes);
        device.touched.insert(record.offset, record.bytes);
        if is_write {
            device.written.insert(record.offset, record.bytes);
        }
    }

    fn finish(
        self,
        (format, compression, basis): (FormatName, Compression, Basis),
        counts: &Counts,
        devices: Vec<DeviceInfo>,
        notes: Vec<String>,
    ) -> TraceInfo {
        let [reads, writes, trims, flushes, write_zeroes] = self.of;
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let requests = self.requests();
        let data = reads.requests + writes.requests;
        let span_ns = self.last_ns - self.first_ns;
        let sizes = self.sizes.iter().enumerate().filter(|(_, [reads, writes])| reads + writes > 0);
        let footprint =
            |pages: fn(&Device) -> &Pages| self.devices.iter().map(|device| pages(device).bytes()).sum();
        let inter_arrival_ns = (requests > 1).then(|| InterArrival {
            mean: span_ns as f64 / (requests - 1) as f64,
            median: self.gaps.value_at_quantile(0.5).min(self.longest_gap_ns),
            p99: self.gaps.value_at_quantile(0.99).min(self.longest_gap_ns),
            max: self.longest_gap_ns,
        });
        let percent = |part: u64| share(part, data).map(|share| share * 100.0);
        let mean_kb = |sum: Sum| share(sum.bytes, sum.requests).map(|bytes| bytes / 1024.0);
        TraceInfo {
            format,
            compression,
            basis,
            terms: Terms {
                hours: span_ns as f64 / 3.6e12,
                writes_millions: writes.requests as f64 / 1e6,
                reads_millions: reads.requests as f64 / 1e6,
                write_kb: mean_kb(writes),
                read_kb: mean_kb(reads),
                inter_arrival_mean_ms: inter_arrival_ns.as_ref().map(|gaps| gaps.mean / 1e6),
                inter_arrival_median_ms: inter_arrival_ns.as_ref().map(|gaps| gaps.median as f64 / 1e6),
                write_percent: percent(writes.requests),
                random_percent: percent(data - self.sequential),
            },
            requests,
            reads: reads.requests,
            writes: writes.requests,
            trims: trims.requests,
            flushes: flushes.requests,
            write_zeroes: write_zeroes.requests,
            zero_length: counts.zero_length,
            bad_lines: counts.bad_lines,
            not_io: counts.not_io,
            reordered: counts.reordered,
            read_fraction: share(reads.requests, data),
            read_bytes: reads.bytes,
            write_bytes: writes.bytes,
            trim_bytes: trims.bytes,
            write_zeroes_bytes: write_zeroes.bytes,
            mean_read_bytes: share(reads.bytes, reads.requests),
            mean_write_bytes: share(writes.bytes, writes.requests),
            sizes: sizes
                .map(|(power, &[reads, writes])| SizeClass { up_to_bytes: 1 << power, reads, writes })
                .collect(),
            span_ns,
            mean_iops: (span_ns > 0).then(|| (requests - 1) as f64 * 1e9 / span_ns as f64),
            inter_arrival_ns,
            footprint_bytes: footprint(|device| &device.touched),
            write_footprint_bytes: footprint(|device| &device.written),
            max_address_bytes: devices.iter().map(|device| device.max_address_bytes).max().unwrap_or(0),
            sequential_fraction: share(self.sequential, data),
            random_fraction: share(data - self.sequential, data),
            devices,
            notes,
        }
    }
}
