//! What a path is, whether it may be used, and as what.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use flashkeel_engine::reason;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

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
        (end, setting(metadata.rdev(), "logical_block_size").unwrap_or(FILE_BLOCK_BYTES))
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
    let own = number(path);
    if is_written {
        refuse_used(own)?;
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
    flock(file.as_fd(), lock).map_err(|error| match error {
        Errno::WOULDBLOCK => "another process works with it".to_owned(),
        other => format!("it cannot be locked: {}", reason(&other.into())),
    })?;
    let metadata = file.metadata().map_err(|error| reason(&error))?;
    if own != Some(number_of(&metadata)) {
        return Err("something else was put in its place just now".into());
    }
    Ok((file, found))
}

/// What tells a block device, or a file, from all others.
type Number = (u64, u64);

fn number(path: &Path) -> Option<Number> {
    fs::metadata(path).ok().map(|metadata| number_of(&metadata))
}

fn number_of(metadata: &Metadata) -> Number {
    if metadata.file_type().is_block_device() {
        (metadata.rdev(), 0)
    } else {
        (metadata.dev(), metadata.ino())
    }
}

/// Refuses what is mounted, swapped to, write-protected, or what a loop device lies on:
/// nobody else says that the latter is held.
fn refuse_used(own: Option<Number>) -> Result<(), String> {
    for (table, use_of) in [("/proc/mounts", "mounted"), ("/proc/swaps", "used for swapping")] {
        let text = fs::read_to_string(table).unwrap_or_default();
        for line in text.lines() {
            let mut words = line.split_whitespace().map(unescaped);
            let Some(source) = words.next().filter(|source| source.starts_with('/')) else { continue };
            if own.is_some() && number(Path::new(&source)) == own {
                let place = words.next().filter(|_| use_of == "mounted");
                return Err(format!(
                    "it is {use_of}{}",
                    place.map(|at| format!(" at {at}")).unwrap_or_default()
                ));
            }
        }
    }
    for device in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let Ok(below) = fs::read_to_string(device.path().join("loop/backing_file")) else { continue };
        if own.is_some() && number(Path::new(below.trim_end_matches('\n'))) == own {
            return Err(format!("the loop device /dev/{} lies on it", device.file_name().display()));
        }
    }
    match own {
        Some((device, 0)) if setting(device, "ro") == Some(1) => Err("it is write-protected".into()),
        _ => Ok(()),
    }
}

/// A word of a table of the kernel, in which blanks are octal numbers, such as `\040`.
fn unescaped(word: &str) -> String {
    let mut parts = word.split('\\');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                text.push(char::from(byte));
                text += &part[3..];
            }
            None => text += part,
        }
    }
    text
}

/// A setting of the block layer for a device.
fn setting(device: u64, name: &str) -> Option<u64> {
    let folder = format!("/sys/dev/block/{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    // A partition has those of the queue from its whole device.
    [format!("{folder}/{name}"), format!("{folder}/queue/{name}"), format!("{folder}/../queue/{name}")]
        .iter()
        .find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_in_names_are_numbers_in_tables_of_the_kernel() {
        for (word, text) in
            [("/dev/sda1", "/dev/sda1"), (r"/a\040b\134c", r"/a b\c"), (r"/a\", "/a"), (r"\04", "04")]
        {
            assert_eq!(unescaped(word), text);
        }
    }
}
