//! A file read as lines or fixed records, decompressed on the way.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flashkeel_engine::reason;

use crate::text::trim_end;
use crate::{Location, WorkloadError};

mod layers;
mod members;
mod open;
mod utf16;
mod zip;
mod zstd;

pub use layers::Compression;
pub(crate) use open::{Progress, identity, is_read_once, open_at, version};

const BUFFER_BYTES: usize = 256 << 10;
/// Most bytes of a file that detection looks at, and longest line there may be.
pub(crate) const HEAD_BYTES: usize = 64 << 10;

/// An open input file.
pub(crate) struct Input {
    path: PathBuf,
    /// What messages call it.
    pub file: String,
    /// The outermost.
    pub compression: Compression,
    /// What a result must show of how it was packed.
    pub notes: Vec<String>,
    source: Box<dyn Read>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    is_ended: bool,
    items: u64,
    byte: u64,
    progress: Progress,
}

impl Input {
    /// Opens what is at `path`, `-` for standard input, and reads its beginning.
    pub(crate) fn open(path: &Path) -> Result<Input, WorkloadError> {
        let (source, progress) = open::open(path)?;
        let mut input = Input {
            path: path.to_owned(),
            file: open::name(path),
            compression: Compression::Plain,
            notes: Vec::new(),
            source: Box::new(io::empty()),
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            is_ended: false,
            items: 0,
            byte: 0,
            progress,
        };
        let outermost = |layers: &[Compression]| layers.first().copied().unwrap_or(Compression::Plain);
        match layers::unwrap(Box::new(source)) {
            Ok(unwrapped) => {
                input.compression = outermost(&unwrapped.layers);
                input.source = unwrapped.source;
                input.notes = unwrapped.notes;
            }
            Err((error, layers)) => {
                input.compression = outermost(&layers);
                return Err(input.damaged(&error));
            }
        }
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

    /// The file itself, from its beginning.
    pub(crate) fn reopen(&self) -> Result<std::fs::File, WorkloadError> {
        open::again(&self.path)
    }

    /// Whether it is a pipe.
    pub(crate) fn is_read_once(&self) -> bool {
        is_read_once(&self.path)
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
                            Location::Line(self.items + 1),
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
                Location::Record { number: self.items + 1, byte: self.byte },
                format!("cut off: {rest} of its {size} bytes are there"),
            ));
        }
        let record = self.start..self.start + size;
        self.start += size;
        self.byte += size as u64;
        self.items += 1;
        Ok(Some((self.items, &self.buffer[record])))
    }

    /// Where the next line or record begins.
    pub(crate) fn byte(&self) -> u64 {
        self.byte
    }

    /// Passes over so many bytes, fewer at the end of the file.
    pub(crate) fn skip(&mut self, bytes: u64) -> Result<(), WorkloadError> {
        let mut left = bytes;
        while left > 0 {
            if self.start == self.end {
                if self.is_ended {
                    break;
                }
                self.refill()?;
            }
            let taken = left.min((self.end - self.start) as u64);
            self.start += taken as usize;
            self.byte += taken;
            left -= taken;
        }
        Ok(())
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
                _ if error.kind() == ErrorKind::Unsupported => reason(error),
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

/// The error where compressed data has ended and the file has not.
fn followed(compression: &str) -> io::Error {
    let message = format!(
        "its {compression} data is followed by bytes that are none; unpack it first, if they are not part of it"
    );
    io::Error::new(ErrorKind::Unsupported, message)
}
