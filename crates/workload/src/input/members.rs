//! gzip and bzip2 files as a byte stream: any number of members (RFC 1952, section 2.2; what
//! `bzip2` makes of a long file in parts), each with its checksums verified, and nothing else
//! behind them. Their own programs pass over that with a warning; a trace may go on there.

use std::io::{self, BufRead, Read};

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;

use super::followed;

/// A decoder of one member.
pub(super) trait Member: Read {
    /// What its bytes come from.
    type Source: BufRead;
    /// What messages call it.
    const NAME: &'static str;
    /// The first byte of each.
    const FIRST: u8;

    /// Begins a member.
    fn begin(source: Self::Source) -> Self;

    /// What is behind it, once it has ended.
    fn end(self) -> Self::Source;
}

impl<R: BufRead> Member for GzDecoder<R> {
    type Source = R;
    const NAME: &'static str = "gzip";
    const FIRST: u8 = 0x1f;

    fn begin(source: R) -> Self {
        GzDecoder::new(source)
    }

    fn end(self) -> R {
        self.into_inner()
    }
}

impl<R: BufRead> Member for BzDecoder<R> {
    type Source = R;
    const NAME: &'static str = "bzip2";
    const FIRST: u8 = b'B';

    fn begin(source: R) -> Self {
        BzDecoder::new(source)
    }

    fn end(self) -> R {
        self.into_inner()
    }
}

/// Decodes member after member until the source ends between two.
pub(super) struct Members<M> {
    /// None once the source has ended.
    member: Option<M>,
}

impl<M: Member> Members<M> {
    pub(super) fn new(source: M::Source) -> Self {
        Members { member: Some(M::begin(source)) }
    }
}

impl<M: Member> Read for Members<M> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(mut member) = self.member.take() {
            let read = member.read(buffer);
            if buffer.is_empty() || !matches!(read, Ok(0)) {
                self.member = Some(member);
                return read;
            }
            let mut source = member.end();
            match source.fill_buf()?.first() {
                None => {}
                Some(&first) if first == M::FIRST => self.member = Some(M::begin(source)),
                Some(_) => return Err(followed(M::NAME)),
            }
        }
        Ok(0)
    }
}
