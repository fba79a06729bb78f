//! Text in UTF-16, as some Windows programs write it, turned into UTF-8.

use std::char::decode_utf16;
use std::io::{self, ErrorKind, Read};

/// Which byte of a unit comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    /// The lesser.
    Little,
    /// The greater.
    Big,
}

impl ByteOrder {
    /// The whole units of a text.
    fn units(self, text: &[u8]) -> impl Iterator<Item = u16> {
        text.chunks_exact(2).map(move |pair| match self {
            ByteOrder::Little => u16::from_le_bytes([pair[0], pair[1]]),
            ByteOrder::Big => u16::from_be_bytes([pair[0], pair[1]]),
        })
    }
}

const CHUNK_BYTES: usize = 8 << 10;

/// Decodes what it reads.
pub(super) struct Utf16<R> {
    source: R,
    order: ByteOrder,
    /// Bytes read and not decoded: at most half a pair of units.
    packed: Vec<u8>,
    text: Vec<u8>,
    start: usize,
}

impl<R: Read> Utf16<R> {
    pub(super) fn new(source: R, order: ByteOrder) -> Self {
        Utf16 { source, order, packed: Vec::with_capacity(CHUNK_BYTES), text: Vec::new(), start: 0 }
    }

    /// Decodes the next part of the source; `false` at its end.
    fn decode(&mut self) -> io::Result<bool> {
        let room = (CHUNK_BYTES - self.packed.len()) as u64;
        let count = self.source.by_ref().take(room).read_to_end(&mut self.packed)?;
        if self.packed.is_empty() {
            return Ok(false);
        }
        let units: Vec<u16> = self.order.units(&self.packed).collect();
        // The second half of a character may be still to come.
        let is_split = count > 0 && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit));
        let whole = units.len() - usize::from(is_split);
        if whole == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.packed.drain(..2 * whole);
        self.text.clear();
        self.start = 0;
        for character in decode_utf16(units[..whole].iter().copied()) {
            match character {
                Ok('\u{feff}') => {}
                Ok(character) => self.text.extend(character.encode_utf8(&mut [0; 4]).bytes()),
                Err(_) => return Err(io::Error::new(ErrorKind::InvalidData, "not valid UTF-16")),
            }
        }
        Ok(true)
    }
}

impl Utf16<()> {
    /// The byte order of text in UTF-16: told by its mark, unless what follows cannot be
    /// text, or by every other byte being zero and those between being ASCII.
    pub(super) fn sniff(head: &[u8]) -> Option<ByteOrder> {
        let is_ascii = |byte: u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        let is_text = |text: usize, zero: usize| {
            let mut pairs = head.chunks_exact(2).skip(1).peekable();
            pairs.peek().is_some() && pairs.all(|pair| pair[zero] == 0 && is_ascii(pair[text]))
        };
        let order = match *head.get(..2)? {
            [0xff, 0xfe] => ByteOrder::Little,
            [0xfe, 0xff] => ByteOrder::Big,
            [text, 0] if is_ascii(text) && is_text(0, 1) => return Some(ByteOrder::Little),
            [0, text] if is_ascii(text) && is_text(1, 0) => return Some(ByteOrder::Big),
            _ => return None,
        };
        let units: Vec<u16> = order.units(head).collect();
        // The last character may be cut.
        let is_cut = units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit));
        let whole = &units[..units.len() - usize::from(is_cut)];
        decode_utf16(whole.iter().copied())
            .all(|character| character.is_ok_and(|character| character != '\0'))
            .then_some(order)
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.start == self.text.len() {
            if !self.decode()? {
                return Ok(0);
            }
        }
        let count = buffer.len().min(self.text.len() - self.start);
        buffer[..count].copy_from_slice(&self.text[self.start..self.start + count]);
        self.start += count;
        Ok(count)
    }
}
