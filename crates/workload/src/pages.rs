//! Sets of 4 KiB pages, for what a trace touches.

use flashkeel_engine::LOGICAL_PAGE_BYTES;
use std::collections::BTreeMap;

/// Pages covered by one entry: 2 MiB.
const CHUNK_PAGES: u64 = 512;
const CHUNK_WORDS: usize = CHUNK_PAGES as usize / 64;

/// A set of pages as a sparse bitmap: its size is that of what is touched.
#[derive(Default)]
pub(crate) struct Pages {
    chunks: BTreeMap<u64, [u64; CHUNK_WORDS]>,
    count: u64,
}

impl Pages {
    /// Takes in the pages of a range of at least one byte.
    #[inline]
    pub(crate) fn insert(&mut self, offset: u64, bytes: u64) {
        let (first, last) = (offset / LOGICAL_PAGE_BYTES, (offset + bytes - 1) / LOGICAL_PAGE_BYTES);
        for chunk in first / CHUNK_PAGES..=last / CHUNK_PAGES {
            let words = self.chunks.entry(chunk).or_insert([0; CHUNK_WORDS]);
            let base = chunk * CHUNK_PAGES;
            for page in first.max(base)..=last.min(base + CHUNK_PAGES - 1) {
                let (word, bit) = ((page - base) / 64, 1u64 << (page % 64));
                self.count += u64::from(words[word as usize] & bit == 0);
                words[word as usize] |= bit;
            }
        }
    }

    /// Bytes of the pages.
    pub(crate) fn bytes(&self) -> u64 {
        self.count * LOGICAL_PAGE_BYTES
    }

    /// The pages in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        self.chunks.iter().flat_map(|(chunk, words)| {
            let base = chunk * CHUNK_PAGES;
            (0..CHUNK_PAGES)
                .filter(|page| words[(page / 64) as usize] >> (page % 64) & 1 == 1)
                .map(move |page| base + page)
        })
    }
}
