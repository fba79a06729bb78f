//! A zip archive with one file, as a byte stream: PKWARE's APPNOTE 6.3,
//! sections 4.3.7 (local header) and 4.4 (its fields). The file may be stored
//! or deflated; its checksum is verified. The archive is read forwards only, so
//! that it may come through a pipe.

use std::io::{self, BufRead, ErrorKind, Read};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;

const LOCAL_HEADER: [u8; 4] = *b"PK\x03\x04";
const DESCRIPTOR: [u8; 4] = *b"PK\x07\x08";
const HEADER_BYTES: usize = 30;
/// What is there of an archive without a file: the shortest record.
const ENTRY_BYTES: usize = 22;
const IS_ENCRYPTED: u16 = 1;
/// Size and checksum follow the data.
const HAS_DESCRIPTOR: u16 = 1 << 3;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// The only file of an archive.
pub(super) struct ZipMember<R> {
    data: Data<R>,
    crc: Crc,
    /// The checksum, where the header has it.
    expected: Option<u32>,
}

enum Data<R> {
    Stored(io::Take<R>),
    Deflated(DeflateDecoder<R>),
    Ended,
}

/// Passes over so many bytes.
fn skip(source: &mut impl Read, bytes: u64) -> io::Result<()> {
    match io::copy(&mut source.by_ref().take(bytes), &mut io::sink())? {
        skipped if skipped < bytes => Err(ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn unsupported(what: &str) -> io::Error {
    io::Error::new(ErrorKind::Unsupported, what)
}

impl<R: BufRead> ZipMember<R> {
    /// Reads the header of the archive's first file.
    pub(super) fn open(mut source: R) -> io::Result<Self> {
        let mut header = [0; HEADER_BYTES];
        // Folders come before what is in them.
        loop {
            source.read_exact(&mut header[..ENTRY_BYTES])?;
            if header[..4] != LOCAL_HEADER {
                return Err(unsupported("a zip archive without a file in it"));
            }
            source.read_exact(&mut header[ENTRY_BYTES..])?;
            let size = u32::from_le_bytes(header[18..22].try_into().expect("four bytes"));
            let (named, extra) =
                (u16::from_le_bytes([header[26], header[27]]), u16::from_le_bytes([header[28], header[29]]));
            let mut name = Vec::new();
            source.by_ref().take(named.into()).read_to_end(&mut name)?;
            skip(&mut source, extra.into())?;
            if name.len() < named.into() {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            if !(name.ends_with(b"/") && size == 0) {
                break;
            }
        }
        let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let u32_at = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
        let (flags, method) = (u16_at(6), u16_at(8));
        if flags & IS_ENCRYPTED != 0 {
            return Err(unsupported("an encrypted zip archive; unpack it first"));
        }
        let has_descriptor = flags & HAS_DESCRIPTOR != 0;
        let data = match method {
            DEFLATED => Data::Deflated(DeflateDecoder::new(source)),
            STORED if !has_descriptor && u32_at(18) < u32::MAX => {
                Data::Stored(source.take(u32_at(18).into()))
            }
            STORED => {
                return Err(unsupported("a zip archive whose file has no size before it; unpack it first"));
            }
            _ => {
                return Err(unsupported(
                    "a zip archive packed by a method other than deflate; unpack it first",
                ));
            }
        };
        Ok(ZipMember { data, crc: Crc::new(), expected: (!has_descriptor).then(|| u32_at(14)) })
    }

    /// Checks what stands behind the data: its checksum, and no second file.
    fn finish(&mut self) -> io::Result<()> {
        let mut source = match std::mem::replace(&mut self.data, Data::Ended) {
            Data::Stored(data) if data.limit() > 0 => return Err(ErrorKind::UnexpectedEof.into()),
            Data::Stored(data) => data.into_inner(),
            Data::Deflated(data) => data.into_inner(),
            Data::Ended => return Ok(()),
        };
        let mut word = || {
            let mut word = [0; 4];
            source.read_exact(&mut word).map(|()| word)
        };
        let expected = match self.expected {
            Some(expected) => expected,
            None => {
                let first = word()?;
                // The signature is optional (4.3.9.3).
                let crc = u32::from_le_bytes(if first == DESCRIPTOR { word()? } else { first });
                // Two sizes follow, of four bytes each or of eight.
                word()?;
                word()?;
                crc
            }
        };
        if expected != self.crc.sum() {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "the checksum of the file in the archive differs",
            ));
        }
        let mut next = word()?;
        if next[..2] != *b"PK" {
            word()?;
            next = word()?;
        }
        if next == LOCAL_HEADER {
            return Err(unsupported("a zip archive of several files; unpack the one that is meant"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for ZipMember<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.data {
            Data::Stored(data) => data.read(buffer)?,
            Data::Deflated(data) => data.read(buffer)?,
            Data::Ended => return Ok(0),
        };
        if count == 0 && !buffer.is_empty() {
            self.finish()?;
            return Ok(0);
        }
        self.crc.update(&buffer[..count]);
        Ok(count)
    }
}
