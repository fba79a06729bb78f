//! Sizes with a given mean, dealt in decks so that short stretches keep it.

use flashkeel_engine::{SECTOR_BYTES, Stream};

/// Sizes that occur, in KiB, if nothing is published: powers of two from a page of a
/// file system to the longest request that servers of the time made often. All are whole
/// pages, so that a device that aligns requests changes nothing.
pub(super) const WHOLE_PAGES: &[f64] = &[4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
/// What a device takes at least.
const PAGE_KIB: f64 = 4.0;
const DECK: usize = 1024;
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// Draws sizes.
pub(super) struct Sizes {
    /// Each size in sectors, with the share of sizes up to and with it.
    cumulative: Vec<(u32, f64)>,
    deck: Vec<u32>,
    at: usize,
    offset: f64,
    stream: Stream,
}

impl Sizes {
    /// Sizes of these, in KiB, whose whole pages have this mean; all `times` as long. Of
    /// all mixes with the mean it takes the one of most entropy: the weights of the sizes
    /// are exponential in their pages.
    pub(super) fn new(kib: &[f64], mean_kib: f64, times: u32, stream: Stream) -> Sizes {
        let sectors = kib.iter().map(|kib| (kib * 1024.0) as u32 / SECTOR_BYTES as u32 * times);
        let weights: Vec<(u32, f64)> = sectors.zip(weights(kib, mean_kib)).collect();
        Sizes::weighted(weights.into_iter(), stream)
    }

    /// Sizes in sectors, each with how often it occurs; at least one.
    pub(super) fn of(occurrences: &[(u32, f64)], stream: Stream) -> Sizes {
        let all: f64 = occurrences.iter().map(|(_, count)| count).sum();
        Sizes::weighted(occurrences.iter().map(|(sectors, count)| (*sectors, count / all)), stream)
    }

    fn weighted(weights: impl Iterator<Item = (u32, f64)>, stream: Stream) -> Sizes {
        let mut sum = 0.0;
        let cumulative = weights
            .map(|(sectors, weight)| {
                sum += weight;
                (sectors, sum)
            })
            .collect();
        Sizes { cumulative, deck: vec![0; DECK], at: DECK, offset: 0.0, stream }
    }

    /// Sectors of the next request.
    #[inline]
    pub(super) fn next(&mut self) -> u32 {
        if self.at == DECK {
            self.deal();
        }
        self.at += 1;
        self.deck[self.at - 1]
    }

    /// Each size its share of the deck; what rounding leaves over moves from
    /// deck to deck.
    fn deal(&mut self) {
        let mut rung = 0;
        for (index, card) in self.deck.iter_mut().enumerate() {
            let share = (index as f64 + self.offset) / DECK as f64;
            while rung + 1 < self.cumulative.len() && share >= self.cumulative[rung].1 {
                rung += 1;
            }
            *card = self.cumulative[rung].0;
        }
        self.offset = (self.offset + GOLDEN).fract();
        for last in (1..DECK).rev() {
            self.deck.swap(last, self.stream.below(last as u64 + 1) as usize);
        }
        self.at = 0;
    }
}

/// Shares of sizes whose whole pages have this mean, by bisection of the exponent.
fn weights(kib: &[f64], mean_kib: f64) -> Vec<f64> {
    let pages: Vec<f64> = kib.iter().map(|size| size.max(PAGE_KIB)).collect();
    let tilted = |exponent: f64| {
        // Relative to the end that weighs most, so that nothing overflows.
        let heaviest = if exponent > 0.0 { pages[pages.len() - 1] } else { pages[0] };
        let weights: Vec<f64> = pages.iter().map(|size| libm::exp(exponent * (size - heaviest))).collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|weight| weight / sum).collect::<Vec<f64>>()
    };
    let mean = |weights: Vec<f64>| weights.iter().zip(&pages).map(|(w, size)| w * size).sum::<f64>();
    let (mut low, mut high) = (-100.0, 100.0);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if mean(tilted(middle)) < mean_kib {
            low = middle;
        } else {
            high = middle;
        }
    }
    tilted(high)
}
