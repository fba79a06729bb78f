//! A file read as lines or fixed records, decompressed on the way.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashkeel_config::did_you_mean;
use flate2::bufread::MultiGzDecoder;
use serde::{Deserialize, Serialize};

use crate::text::trim_end;
use crate::{Place, WorkloadError};

mod zstd;

const BUFFER_BYTES: usize = 256 << 10;
/// Most bytes of a file that detection looks at, and longest line there may be.
pub(crate) const HEAD_BYTES: usize = 64 << 10;

/// How a file is compressed, found from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// Not compressed.
    Plain,
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
}

impl Compression {
    fn sniff(magic: &[u8]) -> Self {
        match magic {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            // A skippable frame may come first (RFC 8878, section 3.1.2).
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            _ => Compression::Plain,
        }
    }
}

/// An open input file.
pub(crate) struct Input {
    pub file: String,
    pub compression: Compression,
    source: Box<dyn Read>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    is_ended: bool,
    items: u64,
    byte: u64,
    progress: Progress,
}

/// How much of a file has been read.
#[derive(Clone)]
pub(crate) struct Progress {
    read_bytes: Arc<AtomicU64>,
    file_bytes: u64,
}

impl Progress {
    pub(crate) fn fraction(&self) -> f64 {
        let read = self.read_bytes.load(Ordering::Relaxed) as f64 / self.file_bytes.max(1) as f64;
        // The file may grow while it is read.
        read.min(1.0)
    }
}

/// A file that counts what is read of it.
struct Counted {
    file: File,
    read_bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.read_bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl Input {
    /// Opens `path` and reads its beginning.
    pub(crate) fn open(path: &Path) -> Result<Input, WorkloadError> {
        let name = path.display().to_string();
        let cannot =
            |error: io::Error| WorkloadError::file(&name, format!("cannot read it: {}", reason(&error)));
        let mut file = File::open(path).map_err(|error| {
            let mut refusal = cannot(error);
            refusal.message += &similar_file(path);
            refusal
        })?;
        let mut magic = Vec::new();
        file.by_ref().take(4).read_to_end(&mut magic).map_err(cannot)?;
        file.rewind().map_err(cannot)?;
        let compression = Compression::sniff(&magic);
        let file_bytes = file.metadata().map_err(cannot)?.len();
        let progress = Progress { read_bytes: Arc::default(), file_bytes };
        let file = Counted { file, read_bytes: progress.read_bytes.clone() };
        let source: Box<dyn Read> = match compression {
            Compression::Plain => Box::new(file),
            Compression::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, file))),
            Compression::Zstd => Box::new(zstd::ZstdFrames::new(file)),
        };
        let mut input = Input {
            file: name,
            compression,
            source,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            is_ended: false,
            items: 0,
            byte: 0,
            progress,
        };
        while input.end < HEAD_BYTES && !input.is_ended {
            input.refill()?;
        }
        if input.end == 0 {
            return Err(WorkloadError::file(&input.file, "the file is empty"));
        }
        Ok(input)
    }

    /// The beginning of the decompressed file, while nothing has been taken;
    /// without a last line that may be cut.
    pub(crate) fn head(&self) -> &[u8] {
        let head = &self.buffer[self.start..self.end.min(self.start + HEAD_BYTES)];
        match memchr::memrchr(b'\n', head) {
            Some(at) if head.len() == HEAD_BYTES => &head[..at],
            _ => head,
        }
    }

    /// How much of the file has been read, now and whenever it is asked.
    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// The next line without its end, and its number from 1.
    #[inline]
    pub(crate) fn line(&mut self) -> Result<Option<(u64, &[u8])>, WorkloadError> {
        let mut searched = 0;
        let (length, taken) = loop {
            match memchr::memchr(b'\n', &self.buffer[self.start + searched..self.end]) {
                Some(at) => break (searched + at, searched + at + 1),
                None if self.is_ended => {
                    let rest = self.end - self.start;
                    if rest == 0 {
                        return Ok(None);
                    }
                    break (rest, rest);
                }
                None => {
                    searched = self.end - self.start;
                    if searched > HEAD_BYTES {
                        return Err(WorkloadError::at(
                            &self.file,
                            Place::Line(self.items + 1),
                            "longer than 64 KiB; this is not a text trace",
                        ));
                    }
                    self.refill()?;
                }
            }
        };
        let line = self.start..self.start + length;
        self.start += taken;
        self.byte += taken as u64;
        self.items += 1;
        Ok(Some((self.items, trim_end(&self.buffer[line]))))
    }

    /// The next record of `size` bytes and its number from 1.
    #[inline]
    pub(crate) fn record(&mut self, size: usize) -> Result<Option<(u64, &[u8])>, WorkloadError> {
        while self.end - self.start < size && !self.is_ended {
            self.refill()?;
        }
        let rest = self.end - self.start;
        if rest == 0 {
            return Ok(None);
        }
        if rest < size {
            return Err(WorkloadError::at(
                &self.file,
                Place::Record { number: self.items + 1, byte: self.byte },
                format!("cut off: {rest} of its {size} bytes are there"),
            ));
        }
        let record = self.start..self.start + size;
        self.start += size;
        self.byte += size as u64;
        self.items += 1;
        Ok(Some((self.items, &self.buffer[record])))
    }

    fn refill(&mut self) -> Result<(), WorkloadError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.is_ended = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.damaged(&error)),
            }
            return Ok(());
        }
    }

    #[cold]
    fn damaged(&self, error: &io::Error) -> WorkloadError {
        let whole = self.byte + (self.end - self.start) as u64;
        WorkloadError::file(
            &self.file,
            match self.compression {
                Compression::Plain => format!("cannot read it: {}", reason(error)),
                _ if error.kind() == ErrorKind::UnexpectedEof => {
                    format!("the compressed data is cut off; {whole} bytes could be read")
                }
                _ => {
                    format!("the compressed data is damaged after {whole} readable bytes: {}", reason(error))
                }
            },
        )
    }
}

/// The reason without the operating system's error number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
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
