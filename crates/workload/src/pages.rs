//! Sets of 4 KiB pages, for what a trace touches.

use std::collections::BTreeMap;
use std::ops::Range;

use flashkeel_engine::LOGICAL_PAGE_BYTES;

/// Pages covered by one entry: 2 MiB.
const CHUNK_PAGES: u64 = 512;
const CHUNK_WORDS: usize = CHUNK_PAGES as usize / 64;

/// A set of pages: its size is that of what is touched, and of a long range hardly anything,
/// as a column that is taken for lengths may make terabytes of each request.
#[derive(Default)]
pub(crate) struct Pages {
    /// A bitmap of each chunk that is not part of a whole row.
    chunks: BTreeMap<u64, [u64; CHUNK_WORDS]>,
    /// Rows of chunks that a range covered: the first, and the one behind the last.
    whole: BTreeMap<u64, u64>,
    count: u64,
}

impl Pages {
    /// Takes in the pages of a range of at least one byte.
    #[inline]
    pub(crate) fn insert(&mut self, offset: u64, bytes: u64) {
        let (first, last) = (offset / LOGICAL_PAGE_BYTES, (offset + bytes - 1) / LOGICAL_PAGE_BYTES);
        let (from, to) = (first / CHUNK_PAGES, last / CHUNK_PAGES);
        if from == to {
            return self.fill(from, first % CHUNK_PAGES, last % CHUNK_PAGES);
        }
        self.fill(from, first % CHUNK_PAGES, CHUNK_PAGES - 1);
        self.fill(to, 0, last % CHUNK_PAGES);
        if from + 1 < to {
            self.cover(from + 1, to);
        }
    }

    /// Takes in pages of one chunk, counted within it.
    #[inline]
    fn fill(&mut self, chunk: u64, first: u64, last: u64) {
        if self.whole.range(..=chunk).next_back().is_some_and(|(_, &end)| chunk < end) {
            return;
        }
        let words = self.chunks.entry(chunk).or_insert([0; CHUNK_WORDS]);
        for at in first / 64..=last / 64 {
            let low = u64::MAX << (first.max(at * 64) % 64);
            let high = u64::MAX >> (63 - last.min(at * 64 + 63) % 64);
            let word = &mut words[at as usize];
            self.count += u64::from((low & high & !*word).count_ones());
            *word |= low & high;
        }
    }

    /// Takes in whole chunks.
    fn cover(&mut self, from: u64, to: u64) {
        let parts: Vec<u64> = self.chunks.range(from..to).map(|(&chunk, _)| chunk).collect();
        for chunk in parts {
            let words = self.chunks.remove(&chunk).expect("it was found");
            self.count -= words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        }
        // The last that begins within it or at its end, and so back to the first that it meets.
        let (mut first, mut end, mut known) = (from, to, 0);
        while let Some((&begin, &behind)) = self.whole.range(..=to).next_back()
            && behind >= from
        {
            self.whole.remove(&begin);
            known += behind.min(to).saturating_sub(begin.max(from));
            (first, end) = (first.min(begin), end.max(behind));
        }
        self.whole.insert(first, end);
        self.count += (to - from - known) * CHUNK_PAGES;
    }

    /// Bytes of the pages.
    pub(crate) fn bytes(&self) -> u64 {
        self.count * LOGICAL_PAGE_BYTES
    }

    /// The pages in order, as ranges.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        let whole = self.whole.iter().map(|(from, to)| (*from, Row::Whole(*to)));
        let parts = self.chunks.iter().map(|(chunk, words)| (*chunk, Row::Part(words)));
        let (mut whole, mut parts) = (whole.peekable(), parts.peekable());
        let next = move || match (whole.peek(), parts.peek()) {
            (Some((row, _)), Some((part, _))) if part < row => parts.next(),
            (None, _) => parts.next(),
            _ => whole.next(),
        };
        std::iter::from_fn(next).flat_map(|(chunk, row)| {
            let base = chunk * CHUNK_PAGES;
            let (covered, words) = match row {
                Row::Whole(to) => (Some(base..to * CHUNK_PAGES), None),
                Row::Part(words) => (None, Some(words)),
            };
            let single = words.into_iter().flat_map(move |words| {
                let is_in = |page: &u64| words[(page / 64) as usize] >> (page % 64) & 1 == 1;
                (0..CHUNK_PAGES).filter(is_in).map(move |page| base + page..base + page + 1)
            });
            covered.into_iter().chain(single)
        })
    }
}

enum Row<'a> {
    /// Covered, up to this chunk.
    Whole(u64),
    Part(&'a [u64; CHUNK_WORDS]),
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use flashkeel_engine::Stream;

    use super::*;

    #[test]
    fn pages_are_those_of_a_set_of_them() {
        for seed in 0..200 {
            let mut stream = Stream::new(seed, "pages");
            let (mut pages, mut model) = (Pages::default(), BTreeSet::new());
            for _ in 0..12 {
                let first = stream.below(12 * CHUNK_PAGES);
                let most = if stream.chance(0.5) { 80 } else { 6 * CHUNK_PAGES };
                let count = 1 + stream.below(most);
                let (head, tail) = (stream.below(4096), stream.below(4096));
                pages.insert(
                    first * LOGICAL_PAGE_BYTES + head,
                    (count - 1) * LOGICAL_PAGE_BYTES + 1 + tail.saturating_sub(head),
                );
                model.extend(first..first + count);
                assert_eq!(pages.bytes(), model.len() as u64 * LOGICAL_PAGE_BYTES, "seed {seed}");
                assert!(pages.ranges().flatten().eq(model.iter().copied()), "seed {seed}");
            }
        }
    }

    #[test]
    fn a_range_of_terabytes_takes_no_memory_and_no_time() {
        let mut pages = Pages::default();
        (0..100_000).for_each(|n| pages.insert(n << 42, 1 << 40));
        assert_eq!(pages.bytes(), 100_000 << 40);
        assert!(pages.whole.len() <= 100_000 && pages.chunks.len() <= 200_000);
    }
}
