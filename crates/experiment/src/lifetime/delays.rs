//! How long pages were held, as a distribution with weights.

/// Buckets for each tenfold of a delay: values are exact within 0.12 %,
/// so that their three digits agree with those of means.
const PER_DECADE: f64 = 1000.0;
const DECADES: usize = 16;

/// Delays of many pages.
#[derive(Clone, Debug)]
pub struct Delays {
    /// Pages held for less than a nanosecond, then by bucket.
    none: f64,
    buckets: Vec<f64>,
    pages: f64,
    sum_ns: f64,
    square_ns: f64,
    longest_ns: f64,
}

impl Default for Delays {
    fn default() -> Self {
        let buckets = vec![0.0; DECADES * PER_DECADE as usize];
        Delays { none: 0.0, buckets, pages: 0.0, sum_ns: 0.0, square_ns: 0.0, longest_ns: 0.0 }
    }
}

impl Delays {
    /// `pages` pages were held for `delay_ns` each.
    pub fn add(&mut self, pages: f64, delay_ns: f64) {
        if pages <= 0.0 {
            return;
        }
        self.pages += pages;
        self.sum_ns += pages * delay_ns;
        self.square_ns += pages * delay_ns * delay_ns;
        self.longest_ns = self.longest_ns.max(delay_ns);
        if delay_ns < 1.0 {
            self.none += pages;
        } else {
            let bucket = (libm::log10(delay_ns) * PER_DECADE) as usize;
            self.buckets[bucket.min(DECADES * PER_DECADE as usize - 1)] += pages;
        }
    }

    /// Pages added.
    pub fn pages(&self) -> f64 {
        self.pages
    }

    /// Mean delay; 0 without pages.
    pub fn mean_ns(&self) -> f64 {
        if self.pages > 0.0 { self.sum_ns / self.pages } else { 0.0 }
    }

    /// Standard deviation.
    pub fn deviation_ns(&self) -> f64 {
        let mean = self.mean_ns();
        (self.square_ns / self.pages.max(1e-300) - mean * mean).max(0.0).sqrt()
    }

    /// Share of the pages that were held at all.
    pub fn share_held(&self) -> f64 {
        if self.pages > 0.0 { 1.0 - self.none / self.pages } else { 0.0 }
    }

    /// Longest delay.
    pub fn longest_ns(&self) -> f64 {
        self.longest_ns
    }

    /// The delay that a share of the pages does not exceed.
    pub fn quantile_ns(&self, share: f64) -> f64 {
        let mut left = share * self.pages - self.none;
        if left <= 0.0 {
            return 0.0;
        }
        for (bucket, &pages) in self.buckets.iter().enumerate() {
            left -= pages;
            if left <= 0.0 {
                return libm::pow(10.0, (bucket as f64 + 0.5) / PER_DECADE).min(self.longest_ns);
            }
        }
        self.longest_ns
    }
}

/// The mean and the longest of few delays, which costs next to nothing to begin.
#[derive(Clone, Copy, Debug, Default)]
pub struct Brief {
    pages: f64,
    sum_ns: f64,
    pub longest_ns: f64,
}

impl Brief {
    /// `pages` pages were held for `delay_ns` each.
    pub fn add(&mut self, pages: f64, delay_ns: f64) {
        self.pages += pages;
        self.sum_ns += pages * delay_ns;
        self.longest_ns = self.longest_ns.max(delay_ns);
    }

    /// Mean delay; 0 without pages.
    pub fn mean_ns(&self) -> f64 {
        if self.pages > 0.0 { self.sum_ns / self.pages } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::Delays;

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let mut delays = Delays::default();
        delays.add(500.0, 0.0);
        (1..=500).for_each(|ms| delays.add(1.0, f64::from(ms) * 1e6));
        for (share, expected) in [(0.5, 0.0), (0.75, 250e6), (0.99, 490e6), (1.0, 500e6)] {
            let got = delays.quantile_ns(share);
            assert!((got - expected).abs() <= 0.0012 * expected, "{share}: {got} instead of {expected}");
        }
        assert!((delays.mean_ns() - 125.25e6).abs() < 1.0);
    }
}
