//! Zstandard files as a byte stream: any number of frames, skippable ones
//! among them, each with its checksum verified.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::followed;

/// Decodes frame after frame until the source ends between two frames.
pub(super) struct ZstdFrames<R> {
    source: BufReader<R>,
    decoder: FrameDecoder,
    is_in_frame: bool,
    /// Whether a frame has been decoded.
    has_begun: bool,
}

impl<R: Read> ZstdFrames<R> {
    pub(super) fn new(source: R) -> Self {
        ZstdFrames {
            source: BufReader::new(source),
            decoder: FrameDecoder::new(),
            is_in_frame: false,
            has_begun: false,
        }
    }

    /// Begins the next frame; `false` at the end of the source.
    fn begin(&mut self) -> io::Result<bool> {
        while let Some(first) = self.source.fill_buf()?.first() {
            // Of a frame, or of one to be skipped.
            if self.has_begun && !matches!(first, 0x28 | 0x50..=0x5f) {
                return Err(followed("Zstandard"));
            }
            match self.decoder.reset(&mut self.source) {
                Ok(()) => {
                    self.has_begun = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let skipped = io::copy(&mut self.source.by_ref().take(length.into()), &mut io::sink())?;
                    if skipped < u64::from(length) {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(self.classify(error)),
            }
        }
        Ok(false)
    }

    /// The decoder reports every failure alike; at the end of the source it is
    /// the data that is cut off.
    fn classify(&mut self, error: FrameDecoderError) -> io::Error {
        match self.source.fill_buf() {
            Ok([]) => ErrorKind::UnexpectedEof.into(),
            Ok(_) => io::Error::other(error.to_string()),
            Err(error) => error,
        }
    }
}

impl<R: Read> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_in_frame {
                if !self.begin()? {
                    return Ok(0);
                }
                self.is_in_frame = true;
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let block =
                    self.decoder.decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1));
                if let Err(error) = block {
                    return Err(self.classify(error));
                }
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let stated = self.decoder.get_checksum_from_data();
            if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
                return Err(io::Error::other("its checksum does not match"));
            }
            self.is_in_frame = false;
        }
    }
}
