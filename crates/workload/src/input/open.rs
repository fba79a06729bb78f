//! Where the bytes of a trace come from: a file, a pipe or standard input.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashkeel_config::did_you_mean;
use flashkeel_engine::reason;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::WorkloadError;

/// What a file is known by, whatever it is called: its device and its number there.
/// None of what is no file.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    metadata_of_file(path).map(|file| (file.dev(), file.ino()))
}

/// What changes with the contents of a file, for all that one can see without reading
/// them. None of what is no file.
pub(crate) fn version(path: &Path) -> Option<[i64; 7]> {
    let parts = |file: Metadata| {
        let (dev, ino, size) = (file.dev() as i64, file.ino() as i64, file.size() as i64);
        [dev, ino, size, file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()]
    };
    metadata_of_file(path).map(parts)
}

fn metadata_of_file(path: &Path) -> Option<Metadata> {
    let metadata = if path == Path::new(STANDARD_INPUT) {
        standard_input().and_then(|file| file.metadata())
    } else {
        path.metadata()
    };
    metadata.ok().filter(Metadata::is_file)
}

/// The name of standard input, as a path.
const STANDARD_INPUT: &str = "-";

/// How much of a file has been read.
#[derive(Clone)]
pub(crate) struct Progress {
    read_bytes: Arc<AtomicU64>,
    /// None of a pipe.
    file_bytes: Option<u64>,
}

impl Progress {
    /// Says that so much has been read, from 0 to 1, for who reads by itself.
    pub(crate) fn reach(&self, fraction: f64) {
        let bytes = self.file_bytes.unwrap_or(0) as f64 * fraction;
        self.read_bytes.store(bytes as u64, Ordering::Relaxed);
    }

    /// From 0 to 1; always 0 of a pipe.
    pub(crate) fn fraction(&self) -> f64 {
        let Some(file_bytes) = self.file_bytes else { return 0.0 };
        let read = self.read_bytes.load(Ordering::Relaxed) as f64 / file_bytes.max(1) as f64;
        // The file may grow while it is read.
        read.min(1.0)
    }
}

/// A file that counts what is read of it.
pub(super) struct Counted {
    file: File,
    read_bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer).map_err(|error| match error.kind() {
            // Who reads would try again, and wait for a pipe for ever.
            ErrorKind::Interrupted => io::Error::other("interrupted"),
            _ => error,
        })?;
        self.read_bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// What messages call the input at `path`.
pub(super) fn name(path: &Path) -> String {
    if path == Path::new(STANDARD_INPUT) { "standard input".into() } else { path.display().to_string() }
}

/// Whether what is at `path` can be read only once: a pipe, a terminal, a
/// socket. What does not exist cannot be read at all, which is found later.
pub(crate) fn is_read_once(path: &Path) -> bool {
    let metadata = if path == Path::new(STANDARD_INPUT) {
        standard_input().and_then(|file| file.metadata())
    } else {
        path.metadata()
    };
    metadata.is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Opens what is at `path`.
pub(super) fn open(path: &Path) -> Result<(Counted, Progress), WorkloadError> {
    let cannot =
        |error: io::Error| WorkloadError::file(&name(path), format!("cannot read it: {}", reason(&error)));
    let file = if path == Path::new(STANDARD_INPUT) {
        standard_input().map_err(cannot)?
    } else {
        open_at(path, OFlags::RDONLY).map_err(|error| {
            let mut refusal = cannot(error);
            refusal.message += &similar_file(path);
            refusal
        })?
    };
    let metadata = file.metadata().map_err(cannot)?;
    let progress =
        Progress { read_bytes: Arc::default(), file_bytes: metadata.is_file().then_some(metadata.len()) };
    Ok((Counted { file, read_bytes: progress.read_bytes.clone() }, progress))
}

/// Opens what is at `path`. The standard library tries again after a signal; who
/// waits for the other end of a named pipe may interrupt that.
pub(crate) fn open_at(path: &Path, flags: OFlags) -> io::Result<File> {
    match rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()) {
        Ok(opened) => Ok(File::from(opened)),
        Err(Errno::INTR) => Err(io::Error::other("interrupted")),
        Err(error) => Err(error.into()),
    }
}

/// The file at `path` once more, for who reads it in another order.
pub(super) fn again(path: &Path) -> Result<File, WorkloadError> {
    let opened = if path == Path::new(STANDARD_INPUT) { standard_input() } else { File::open(path) };
    opened.map_err(|error| WorkloadError::file(&name(path), format!("cannot read it: {}", reason(&error))))
}

/// Standard input; from its beginning where it is a file.
fn standard_input() -> io::Result<File> {
    let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    if file.metadata()?.is_file() { File::open("/dev/stdin") } else { Ok(file) }
}

/// `; did you mean "x"?` with a file of the same folder, or nothing.
fn similar_file(path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (Some(name), Ok(entries)) = (path.file_name().and_then(|name| name.to_str()), folder.read_dir())
    else {
        return String::new();
    };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    did_you_mean(name, names.iter().map(String::as_str).filter(|other| *other != name))
}
