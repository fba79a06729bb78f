//! What several test files share.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod tables;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Lba, Operation, Time};
use flashkeel_workload::{
    Arrival, Context, Counts, Open, Seeds, Source, SourceConfig, Stopped, Trace, TraceInfo, WorkloadConfig,
    WorkloadError,
};

/// A device of 1 TiB.
pub const DEVICE_SECTORS: u64 = 1 << 31;

/// Writes a file of this name into a folder of its own.
pub fn file(name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, contents).unwrap();
    path
}

/// A workload of this source, everything else at its default.
pub fn workload(source: SourceConfig) -> WorkloadConfig {
    WorkloadConfig {
        source,
        pacing: Default::default(),
        warm_up: Default::default(),
        requests: None,
        duration: None,
        hint: 0,
        fua: false,
    }
}

/// A trace whose ranges are not widened beyond sectors, for [`open`] and [`replay`].
pub fn unaligned(path: PathBuf) -> Trace {
    let mut trace = Trace::new(path);
    trace.align = Some(Bytes(512));
    trace
}

/// Opens a workload, an [`unaligned`] one as if devices took single sectors.
pub fn open(workload: &WorkloadConfig, device_sectors: u64) -> Result<Box<dyn Source>, WorkloadError> {
    let block = Bytes(512);
    match &workload.source {
        SourceConfig::Trace(trace) if trace.align == Some(block) => {
            let pacing = workload.pacing.policy();
            let (requests, is_timed) = (workload.requests, pacing.is_timed());
            let duration = workload.duration.filter(|_| pacing.is_open());
            let context =
                Context { device_sectors, seeds: Seeds::alone(1), requests, duration, is_timed, block };
            trace.open(&context, &mut go_on).map_err(wrong)
        }
        _ => workload.open(device_sectors, 1),
    }
}

/// Watches without breaking off.
pub fn go_on(_: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The error of what nobody has broken off.
pub fn wrong(stopped: Stopped) -> WorkloadError {
    match stopped {
        Stopped::Wrong(error) | Stopped::Unwritten(error) => error,
        Stopped::Interrupted => panic!("nobody interrupts"),
    }
}

/// What is in a trace.
pub fn info(trace: &Trace) -> Result<TraceInfo, WorkloadError> {
    flashkeel_workload::info(trace, &mut go_on).map_err(wrong)
}

/// Every arrival of a source, fetched in small batches.
pub fn drain(source: &mut dyn Source) -> Result<Vec<Arrival>, WorkloadError> {
    let mut all = Vec::new();
    let mut batch = Vec::new();
    loop {
        source.fill(&mut batch, 7)?;
        if batch.is_empty() {
            return Ok(all);
        }
        all.append(&mut batch);
    }
}

/// Every arrival of a workload on a device of 1 TiB, and its counts.
pub fn run(workload: &WorkloadConfig) -> Result<(Vec<Arrival>, Counts), WorkloadError> {
    let mut source = open(workload, DEVICE_SECTORS)?;
    let arrivals = drain(&mut *source)?;
    let counts = source.counts().clone();
    let passed_over = counts.other_device + counts.outside_window + counts.zero_length + counts.trims_dropped;
    assert_eq!(counts.delivered, arrivals.len() as u64);
    assert!(counts.read >= counts.delivered + passed_over);
    assert!(arrivals.is_sorted_by_key(|arrival| arrival.time));
    Ok((arrivals, counts))
}

/// Every arrival of a trace.
pub fn replay(trace: Trace) -> Result<(Vec<Arrival>, Counts), WorkloadError> {
    run(&workload(SourceConfig::Trace(trace)))
}

/// The message of a trace that must be refused, without its folder.
pub fn refusal(trace: Trace) -> String {
    let path = trace.path.clone();
    let error = replay(trace).expect_err("the trace must be refused").to_string();
    strip(&error, &path)
}

/// A message with the folder of `path` cut out.
pub fn strip(message: &str, path: &std::path::Path) -> String {
    message.replace(&format!("{}/", path.parent().unwrap().display()), "")
}

pub fn read(time_ns: u64, lba: u64, sectors: u32) -> Arrival {
    Arrival {
        time: Time(time_ns),
        operation: Operation::Read,
        lba: Lba(lba),
        sectors,
        asked_sectors: sectors,
    }
}

pub fn write(time_ns: u64, lba: u64, sectors: u32) -> Arrival {
    Arrival { operation: Operation::Write, ..read(time_ns, lba, sectors) }
}

pub fn trim(time_ns: u64, lba: u64, sectors: u32) -> Arrival {
    Arrival { operation: Operation::Trim, ..read(time_ns, lba, sectors) }
}

pub fn flush(time_ns: u64) -> Arrival {
    Arrival { operation: Operation::Flush, ..read(time_ns, 0, 0) }
}

/// An arrival of which only so many sectors were asked for.
pub fn asked(asked_sectors: u32, arrival: Arrival) -> Arrival {
    Arrival { asked_sectors, ..arrival }
}

/// A vSCSI record of 32 bytes.
pub fn vscsi(opcode: u16, bytes: u32, block: u64, time_us: u64) -> Vec<u8> {
    let mut record = Vec::new();
    for word in [7u32, bytes, 1] {
        record.extend(word.to_le_bytes());
    }
    record.extend(opcode.to_le_bytes());
    record.extend(0x100u16.to_le_bytes());
    record.extend(block.to_le_bytes());
    record.extend(time_us.to_le_bytes());
    record
}

/// Compresses with gzip.
pub fn gzip(contents: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

/// Compresses with Zstandard.
pub fn zstd(contents: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(contents, ruzstd::encoding::CompressionLevel::Fastest)
}

/// Compresses with xz.
pub fn xz(contents: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

/// Compresses with bzip2.
pub fn bzip2(contents: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

/// A zip archive of these files, deflated; with their sizes behind the data, as
/// of an archive that was written to a pipe, or before it.
pub fn zip(files: &[&[u8]], is_piped: bool) -> Vec<u8> {
    use std::io::Write;
    let mut archive = Vec::new();
    for contents in files {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(contents).unwrap();
        let packed = encoder.finish().unwrap();
        let mut crc = flate2::Crc::new();
        crc.update(contents);
        let sizes = [crc.sum(), packed.len() as u32, contents.len() as u32];
        archive.extend(b"PK\x03\x04\x14\x00");
        archive.extend(u16::to_le_bytes(u16::from(is_piped) << 3));
        archive.extend(b"\x08\x00\x00\x00\x00\x00");
        archive.extend(sizes.iter().flat_map(|&size| if is_piped { [0; 4] } else { size.to_le_bytes() }));
        archive.extend(b"\x05\x00\x00\x00t.csv");
        archive.extend(packed);
        if is_piped {
            archive.extend(b"PK\x07\x08");
            archive.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
        }
    }
    // The central directory, of which only the signature is looked at.
    archive.extend(b"PK\x01\x02");
    archive
}

/// A record of a binary blktrace file, and the bytes that follow it.
pub fn blktrace(time_ns: u64, action: u32, sector: u64, bytes: u32, more: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    record.extend(0x6561_7407u32.to_le_bytes());
    record.extend(1u32.to_le_bytes());
    record.extend(time_ns.to_le_bytes());
    record.extend(sector.to_le_bytes());
    for word in [bytes, action, 4020, 259 << 20 | 2, 0] {
        record.extend(word.to_le_bytes());
    }
    record.extend([0, 0]);
    record.extend((more.len() as u16).to_le_bytes());
    record.extend(more);
    record
}

/// A record of libCacheSim's oracleGeneral.
pub fn oracle(time_s: u32, object: u64, bytes: u32, next: i64) -> Vec<u8> {
    let mut record = time_s.to_le_bytes().to_vec();
    record.extend(object.to_le_bytes());
    record.extend(bytes.to_le_bytes());
    record.extend(next.to_le_bytes());
    record
}
