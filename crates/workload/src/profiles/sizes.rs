//! Sizes with a given mean, dealt in decks so that short stretches keep it.

use flashkeel_engine::{SECTOR_BYTES, Stream};

/// Sizes that occur, in KiB: powers of two from a page of a file system to the
/// longest request that servers of the time made often. All are whole pages,
/// so that a device that aligns requests changes nothing.
const KIB: [f64; 7] = [4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
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
    /// Sizes of this mean, from 4 to 256 KiB. Of all mixes with the mean it takes
    /// the one of most entropy: the weights of the sizes are exponential in them.
    pub(super) fn new(mean_kib: f64, stream: Stream) -> Sizes {
        let sectors = KIB.map(|kib| (kib as u64 * 1024 / SECTOR_BYTES) as u32);
        let weights: Vec<(u32, f64)> = sectors.into_iter().zip(weights(mean_kib)).collect();
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

/// Shares of [`KIB`] with this mean, by bisection of the exponent.
fn weights(mean_kib: f64) -> [f64; KIB.len()] {
    let tilted = |exponent: f64| {
        // Relative to the end that weighs most, so that nothing overflows.
        let heaviest = if exponent > 0.0 { KIB[KIB.len() - 1] } else { KIB[0] };
        let weights = KIB.map(|size| libm::exp(exponent * (size - heaviest)));
        let sum: f64 = weights.iter().sum();
        weights.map(|weight| weight / sum)
    };
    let mean = |weights: [f64; KIB.len()]| weights.iter().zip(KIB).map(|(w, size)| w * size).sum::<f64>();
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
