//! What a path is, whether it may be used, and as what.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Requests to a regular file begin and end at multiples of this many bytes, a block of
/// most file systems; what a file has beyond the last multiple is not used.
const FILE_BLOCK_BYTES: u64 = 4096;

/// What may be done to what a drive holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing: it is read.
    ReadOnly,
    /// Anything: its data may be destroyed.
    Destroy,
}

/// What there is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Bytes that can be used.
    pub bytes: u64,
    /// Requests begin and end at multiples of it.
    pub block_bytes: u64,
    /// Whether it is a block device, and no regular file.
    pub is_device: bool,
    /// Bytes at the end that are not used.
    pub tail_bytes: u64,
}

/// Says what there is at `path`.
///
/// # Errors
/// A sentence without the path, if it is neither a regular file nor a block device, or
/// cannot be looked at.
pub fn find(path: &Path) -> Result<Found, String> {
    let metadata = fs::metadata(path).map_err(|error| reason(&error))?;
    let kind = metadata.file_type();
    let (length, block_bytes) = if kind.is_block_device() {
        let mut device = File::open(path).map_err(|error| reason(&error))?;
        let end = device.seek(SeekFrom::End(0)).map_err(|error| reason(&error))?;
        (end, queue_setting(metadata.rdev(), "logical_block_size").unwrap_or(FILE_BLOCK_BYTES))
    } else if kind.is_file() {
        (metadata.len(), FILE_BLOCK_BYTES)
    } else {
        return Err("neither a regular file nor a block device".into());
    };
    let bytes = length / FILE_BLOCK_BYTES * FILE_BLOCK_BYTES;
    if bytes == 0 {
        return Err(format!("{length} bytes, less than a block of {FILE_BLOCK_BYTES}"));
    }
    Ok(Found { bytes, block_bytes, is_device: kind.is_block_device(), tail_bytes: length - bytes })
}

/// Opens what is at `path`, past the page cache, for nobody else beside.
///
/// # Errors
/// A sentence without the path: somebody else has it, or it cannot be opened so.
pub(crate) fn open(path: &Path, access: Access) -> Result<(File, Found), String> {
    let found = find(path)?;
    let is_written = access == Access::Destroy;
    let exclusive = if found.is_device && is_written { libc::O_EXCL } else { 0 };
    if is_written {
        refuse_used(path)?;
    }
    let file = OpenOptions::new()
        .read(true)
        .write(is_written)
        .custom_flags(libc::O_DIRECT | exclusive)
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => "somebody else holds it, such as a file system or a volume manager".into(),
            Some(libc::EINVAL) => {
                "its file system has no direct I/O (O_DIRECT), as that in memory has none".into()
            }
            _ => reason(&error),
        })?;
    let lock = if is_written {
        FlockOperation::NonBlockingLockExclusive
    } else {
        FlockOperation::NonBlockingLockShared
    };
    flock(file.as_fd(), lock).map_err(|_| "another process works with it".to_owned())?;
    Ok((file, found))
}

/// Refuses what is mounted, or swapped to.
fn refuse_used(path: &Path) -> Result<(), String> {
    let number = |path: &Path| {
        let metadata = fs::metadata(path).ok()?;
        Some(if metadata.file_type().is_block_device() {
            (metadata.rdev(), 0)
        } else {
            (metadata.dev(), metadata.ino())
        })
    };
    let own = number(path);
    for (table, column, use_of) in [("/proc/mounts", 0, "mounted"), ("/proc/swaps", 0, "used for swapping")] {
        let text = fs::read_to_string(table).unwrap_or_default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let Some(source) = words.nth(column).filter(|source| source.starts_with('/')) else { continue };
            if own.is_some() && number(Path::new(source)) == own {
                let place = words.next().filter(|_| use_of == "mounted");
                return Err(format!(
                    "it is {use_of}{}",
                    place.map(|at| format!(" at {at}")).unwrap_or_default()
                ));
            }
        }
    }
    Ok(())
}

/// A setting of the block layer for a device.
fn queue_setting(device: u64, name: &str) -> Option<u64> {
    let folder = format!("/sys/dev/block/{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    // A partition has those of its whole device.
    [format!("{folder}/queue/{name}"), format!("{folder}/../queue/{name}")]
        .iter()
        .find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
}

/// The reason without the operating system's error number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
