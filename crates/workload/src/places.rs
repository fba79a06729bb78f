//! Where the writes of a recorded trace go, kept in bounded memory and scaled to
//! a model of a drive.
//!
//! Pages are sampled by a hash of their address, all writes of a page or none,
//! so that the volume between two writes of a page shrinks in proportion
//! (SHARDS, Waldspurger et al., FAST 2015). The sample is thinned further for a
//! model: pages are put in order by how often they are written and cut into
//! equal shares, one page for each share, whose writes are as many as the mean
//! of the share. So a few hot pages count with their volume however small the
//! model is.

use std::collections::BTreeMap;

use flashkeel_engine::{LOGICAL_PAGE_BYTES, Stream};

/// Writes of pages beyond which fewer pages are sampled, if they are enough.
const MANY_TOUCHES: usize = 1 << 22;
/// Most writes of pages that are kept: 256 MiB.
const MOST_TOUCHES: usize = 1 << 26;
/// As many pages as are enough for any model: it has about 65,000.
const ENOUGH_PAGES: usize = 1 << 17;

/// Writes of 4 KiB pages in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Places {
    /// The pages that are sampled, and how often each is written.
    pages: Vec<(u64, u64)>,
    /// Each write, by the place of its page among them.
    touched: Vec<u32>,
    /// Share of the pages that are sampled.
    share: f64,
    /// Bytes of the pages touched over bytes asked for, of the whole trace.
    pub rounding: f64,
}

impl Places {
    /// Bytes of the pages that are written.
    pub fn footprint_bytes(&self) -> f64 {
        self.pages.len() as f64 / self.share * LOGICAL_PAGE_BYTES as f64
    }

    /// The writes to a model of `model_pages` pages, by which it stands for
    /// `pages`: each a page of the model. A trace that touches more pages than
    /// there are is folded onto them.
    pub fn modelled(&self, pages: u64, model_pages: u64, seed: u64) -> Vec<u32> {
        let is_folded = self.pages.len() as f64 / self.share > pages as f64;
        let place = |page: u64| if is_folded { page % pages } else { page };
        let mut counted = counted(self.pages.iter().map(|&(page, count)| (place(page), count)).collect());
        let asked = counted.len() as f64 / self.share * (model_pages as f64 / pages as f64);
        let kept = (asked.round() as usize).clamp(1, counted.len().min(model_pages as usize));
        // Those that are written equally often in an order by chance.
        let salt = Stream::new(seed, "demand/places").word();
        counted.sort_unstable_by_key(|&(page, count)| (std::cmp::Reverse(count), mix(page ^ salt)));
        let mut chosen: Vec<(u64, f64)> = (0..kept)
            .map(|at| {
                let group = &counted[at * counted.len() / kept..(at + 1) * counted.len() / kept];
                let mean = group.iter().map(|&(_, count)| count as f64).sum::<f64>() / group.len() as f64;
                let busy = group.partition_point(|&(_, count)| count as f64 >= mean).max(1);
                let (page, count) = group[busy - 1];
                (page, mean / count as f64)
            })
            .collect();
        chosen.sort_unstable_by_key(|&(page, _)| page);
        let mut due = vec![0.5; kept];
        let mut writes = Vec::new();
        let among = |page: u64| chosen.binary_search_by_key(&place(page), |&(page, _)| page).ok();
        let slots: Vec<Option<usize>> = self.pages.iter().map(|&(page, _)| among(page)).collect();
        for &page in &self.touched {
            let Some(at) = slots[page as usize] else { continue };
            due[at] += chosen[at].1;
            if due[at] >= 1.0 {
                due[at] -= 1.0;
                writes.push(at as u32);
            }
        }
        // Of so little that rounding left nothing.
        if writes.is_empty() { vec![0] } else { writes }
    }
}

/// Each page once, in order, and how often it is written.
fn counted(mut pages: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    pages.sort_unstable_by_key(|&(page, _)| page);
    let sum = |same: &[(u64, u64)]| (same[0].0, same.iter().map(|&(_, count)| count).sum());
    pages.chunk_by(|a, b| a.0 == b.0).map(sum).collect()
}

/// Gathers the places of a trace.
pub(crate) struct Sampler {
    pages: Vec<(u64, u64)>,
    /// Where among them a page is.
    numbers: BTreeMap<u64, u32>,
    touched: Vec<u32>,
    /// Pages with a hash of at most this are sampled.
    limit: u64,
    /// Number of writes with which it is next tried to sample fewer pages.
    many: usize,
    asked_bytes: u64,
    touched_bytes: u64,
    /// Where the last writes ended within a page: what goes on there is written
    /// along with it, as in a write buffer.
    open: [u64; OPEN],
    next_open: usize,
}

/// Streams of writes that go on within a page; ours.
const OPEN: usize = 64;

impl Sampler {
    pub fn new() -> Self {
        Sampler {
            pages: Vec::new(),
            numbers: BTreeMap::new(),
            touched: Vec::new(),
            limit: u64::MAX,
            many: MANY_TOUCHES,
            asked_bytes: 0,
            touched_bytes: 0,
            open: [0; OPEN],
            next_open: 0,
        }
    }

    /// Takes in a write of at least one byte.
    pub fn write(&mut self, offset: u64, bytes: u64) {
        let end = offset + bytes;
        let mut first = offset / LOGICAL_PAGE_BYTES;
        let mut place = self.next_open;
        if !offset.is_multiple_of(LOGICAL_PAGE_BYTES)
            && let Some(at) = self.open.iter().position(|&open| open == offset)
        {
            first += 1;
            place = at;
            self.open[at] = 0;
        }
        if !end.is_multiple_of(LOGICAL_PAGE_BYTES) {
            self.open[place] = end;
            self.next_open = (self.next_open + usize::from(place == self.next_open)) % OPEN;
        }
        self.asked_bytes += bytes;
        for page in first..end.div_ceil(LOGICAL_PAGE_BYTES) {
            self.touched_bytes += LOGICAL_PAGE_BYTES;
            if mix(page) <= self.limit && !self.is_full() {
                self.touch(page);
                if self.touched.len() >= self.many {
                    self.thin();
                }
            }
        }
    }

    fn touch(&mut self, page: u64) {
        let number = *self.numbers.entry(page).or_insert_with(|| {
            self.pages.push((page, 0));
            self.pages.len() as u32 - 1
        });
        self.pages[number as usize].1 += 1;
        self.touched.push(number);
    }

    /// Samples half as many pages, if they are enough; else as many for twice the writes.
    fn thin(&mut self) {
        let half = self.limit / 2;
        if self.pages.iter().filter(|&&(page, _)| mix(page) <= half).count() < ENOUGH_PAGES {
            self.many = self.many.saturating_mul(2);
            return;
        }
        (self.limit, self.many) = (half, MANY_TOUCHES);
        let pages = std::mem::take(&mut self.pages);
        self.numbers.clear();
        for number in std::mem::take(&mut self.touched) {
            let (page, _) = pages[number as usize];
            if mix(page) <= half {
                self.touch(page);
            }
        }
    }

    /// Whether no further write is kept.
    pub fn is_full(&self) -> bool {
        self.touched.len() >= MOST_TOUCHES
    }

    /// What was gathered; none without a write.
    pub fn finish(self) -> Option<Places> {
        (!self.pages.is_empty()).then(|| Places {
            pages: self.pages,
            touched: self.touched,
            share: self.limit as f64 / u64::MAX as f64,
            rounding: self.touched_bytes as f64 / self.asked_bytes as f64,
        })
    }
}

/// The finaliser of SplitMix64 (Steele et al., OOPSLA 2014).
fn mix(page: u64) -> u64 {
    let word = page.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(writes: impl Iterator<Item = (u64, u64)>) -> Places {
        let mut sampler = Sampler::new();
        writes.for_each(|(offset, bytes)| sampler.write(offset, bytes));
        sampler.finish().expect("writes")
    }

    #[test]
    fn a_write_that_goes_on_within_a_page_shares_it() {
        let stream = |from: u64| (0..1_000).map(move |n| (from + n * 4096, 4096));
        let rounding = |writes: Vec<(u64, u64)>| places(writes.into_iter()).rounding;
        assert_eq!(rounding(stream(0).collect()), 1.0);
        assert!((rounding(stream(512).collect()) - 1.001).abs() < 1e-9);
        let two = stream(512).zip(stream(1 << 40 | 512)).flat_map(|(a, b)| [a, b]);
        assert!((rounding(two.collect()) - 1.001).abs() < 1e-9);
        let apart = (0..1_000).map(|n| (n * 12_288 + 512, 4096));
        assert_eq!(rounding(apart.collect()), 2.0);
    }

    #[test]
    fn a_model_as_large_as_the_drive_gets_every_write() {
        let writes: Vec<u64> = (0..5_000).map(|n| n * n % 977).collect();
        let places = places(writes.iter().map(|page| (page * 4096, 4096)));
        let distinct = counted(writes.iter().map(|&page| (page, 1)).collect());
        let rank = |page: &u64| distinct.binary_search_by_key(page, |&(page, _)| page).unwrap() as u32;
        let expected: Vec<u32> = writes.iter().map(rank).collect();
        assert_eq!(places.modelled(1_000, 1_000, 1), expected);
    }

    #[test]
    fn hot_pages_count_with_their_volume_in_a_small_model() {
        // Half of the writes go to 16 pages of 16,000; the model is a hundredth.
        let writes = (0..400_000u64).map(|n| if n % 2 == 0 { n / 2 % 16 } else { 16 + mix(n) % 16_000 });
        let places = places(writes.map(|page| (page * 4096, 4096)));
        for seed in 0..5 {
            let modelled = places.modelled(100_000, 1_000, seed);
            let by_page = counted(modelled.iter().map(|&page| (u64::from(page), 1)).collect());
            assert_eq!(by_page.len(), 160);
            let most = by_page.iter().map(|&(_, count)| count).max().unwrap() as f64;
            assert!((modelled.len() as f64 / 4_000.0 - 1.0).abs() < 0.05, "{}", modelled.len());
            assert!((most / modelled.len() as f64 - 0.5).abs() < 0.03, "{most} of {}", modelled.len());
        }
    }

    #[test]
    fn what_a_sample_keeps_is_bounded() {
        let pages = (MANY_TOUCHES * 3 / 2) as u64;
        let wide = places((0..pages).map(|page| (page * 4096, 4096)));
        assert!(wide.touched.len() < MANY_TOUCHES && wide.pages.len() < MANY_TOUCHES);
        assert!((wide.footprint_bytes() / (pages * 4096) as f64 - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_trace_that_begins_in_few_places_is_looked_at_to_its_end() {
        let (hot, cold) = (MANY_TOUCHES as u64 + 1_000, 300_000);
        let writes = (0..hot).map(|n| n % 1_000).chain(1_000..1_000 + cold);
        let places = places(writes.map(|page| (page * 4096, 4096)));
        assert_eq!(places.footprint_bytes(), ((1_000 + cold) * 4096) as f64);
        assert_eq!(places.touched.len() as u64, hot + cold);
    }
}
