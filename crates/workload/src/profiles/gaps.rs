//! Gaps between requests, in bursts: with a given mean and median, or as measured.
//!
//! Where only mean and median are known, gaps are lognormal: the two figures decide both of
//! its parameters. They come in decks, each of the same gaps: the means of equally likely
//! parts of the distribution. So every deck has mean and median exactly, and a tail that is
//! cut there does not leave short stretches without most of their time.
//!
//! By a coarse clock many requests come at one time. How many do is dealt in the same way,
//! and a gap follows the last of them.
//!
//! A deck's order makes the bursts: half of the variance that decides it is
//! noise, half is a state that decays slowly, so that short gaps follow short
//! ones.

use flashkeel_engine::Stream;

const DECK: usize = 2048;
/// Requests over which the state falls to 1/e; our assumption.
const BURST: f64 = 128.0;

pub(super) struct Gaps {
    /// In ns.
    gaps: Deck,
    /// How many requests come at one time; one if not given.
    together: Option<Deck>,
    /// Requests that are still to come at this time.
    due: f64,
}

impl Gaps {
    /// Lognormal ones.
    pub(super) fn lognormal(mean_ns: f64, median_ns: f64, stream: Stream) -> Gaps {
        Gaps { gaps: Deck::new(lognormal(mean_ns, median_ns), stream), together: None, due: 0.0 }
    }

    /// Those of a trace: gaps above 0 that take `mean_ns` on average, and numbers of requests at
    /// one time; both ascending, each with how often it occurs.
    pub(super) fn measured(
        gaps: &[(f64, u64)],
        mean_ns: f64,
        together: &[(f64, u64)],
        stream: &dyn Fn(&str) -> Stream,
    ) -> Gaps {
        let mut gaps = parts(gaps);
        // What was counted in buckets is a little off.
        let counted_ns = gaps.iter().sum::<f64>() / DECK as f64;
        gaps.iter_mut().filter(|gap| **gap > 0.0).for_each(|gap| *gap *= mean_ns / counted_ns);
        let mut together = Deck::new(parts(together), stream("together"));
        let due = together.next() - 1.0;
        Gaps { gaps: Deck::new(gaps, stream("gaps")), together: Some(together), due }
    }

    /// The next gap in ns.
    #[inline]
    pub(super) fn next(&mut self) -> f64 {
        if let Some(together) = &mut self.together {
            if self.due >= 1.0 {
                self.due -= 1.0;
                return 0.0;
            }
            // What is left of one is owed to those that come next.
            self.due += together.next() - 1.0;
        }
        self.gaps.next()
    }
}

/// Numbers dealt over and over, each time in another order.
struct Deck {
    /// Ascending.
    sorted: Vec<f64>,
    /// In the order of this deck.
    deck: Vec<f64>,
    at: usize,
    /// Scores with their places in the lowest bits.
    scores: Vec<u64>,
    state: f64,
    decay: f64,
    stream: Stream,
}

impl Deck {
    fn new(sorted: Vec<f64>, stream: Stream) -> Deck {
        let decay = libm::exp(-1.0 / BURST);
        Deck { sorted, deck: vec![0.0; DECK], at: DECK, scores: vec![0; DECK], state: 0.0, decay, stream }
    }

    #[inline]
    fn next(&mut self) -> f64 {
        if self.at == DECK {
            self.deal();
        }
        self.at += 1;
        self.deck[self.at - 1]
    }

    fn deal(&mut self) {
        let refresh = libm::sqrt(1.0 - self.decay * self.decay);
        for (place, score) in self.scores.iter_mut().enumerate() {
            self.state = self.decay * self.state + refresh * normal(&mut self.stream);
            // Both of unit variance; far from overflow, and positive.
            let sum = self.state + normal(&mut self.stream) + 100.0;
            *score = (sum * 2f64.powi(32)) as u64 * DECK as u64 + place as u64;
        }
        self.scores.sort_unstable();
        for (gap, score) in self.sorted.iter().zip(&self.scores) {
            self.deck[*score as usize % DECK] = *gap;
        }
        self.at = 0;
    }
}

/// Near enough to a standard normal number to decide an order: the sum of four
/// uniform ones.
#[inline]
fn normal(stream: &mut Stream) -> f64 {
    let word = stream.word();
    let sum = (0..4).map(|part| (word >> (16 * part)) & 0xffff).sum::<u64>() as f64;
    // Each has mean 32767.5 and variance 65536²/12.
    (sum - 131_070.0) / (65_536.0 * 0.577_350_269_189_625_8)
}

/// Means of the equally likely parts of numbers that occur so often; 0 where there are none.
fn parts(occurrences: &[(f64, u64)]) -> Vec<f64> {
    let mut parts = vec![0.0; DECK];
    // A part is as long as all numbers together, and each number is as many as there are parts.
    let part_length: u64 = occurrences.iter().map(|(_, count)| count).sum();
    let mut at = 0;
    for (number, count) in occurrences {
        let end = at + count * DECK as u64;
        while at < end {
            let part = at / part_length;
            let until = end.min((part + 1) * part_length);
            parts[part as usize] += number * (until - at) as f64 / part_length as f64;
            at = until;
        }
    }
    parts
}

/// Means of the equally likely parts of a lognormal distribution.
fn lognormal(mean: f64, median: f64) -> Vec<f64> {
    let sigma = libm::sqrt(2.0 * libm::log((mean / median).max(1.0)));
    // The mean below quantile p is mean · Φ(Φ⁻¹(p) − σ).
    let below = |part: usize| match part {
        0 => 0.0,
        DECK => mean,
        _ => mean * cumulative(quantile(part as f64 / DECK as f64) - sigma),
    };
    (0..DECK).map(|part| (below(part + 1) - below(part)) * DECK as f64).collect()
}

/// Φ, the standard normal distribution.
fn cumulative(x: f64) -> f64 {
    libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// Φ⁻¹ by bisection.
fn quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if cumulative(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}
