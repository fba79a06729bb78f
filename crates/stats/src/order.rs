//! Order statistics: which sorted samples bound a percentile.

/// z for 2.5 % in each tail of the normal distribution.
const Z: f64 = 1.959_964;

/// Above this variance the binomial's quantiles are taken from the normal
/// distribution; the ranks are then off by less than one in a standard
/// deviation of fourteen. Below it the sum is exact, and short.
const EXACT_UP_TO_VARIANCE: f64 = 200.0;

/// One-based ranks, among sorted samples, of a 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RankInterval {
    /// Rank of the lower end; none if even the smallest sample may lie above
    /// the percentile.
    pub low: Option<u64>,
    /// Rank of the upper end; none if even the largest sample may lie below
    /// the percentile.
    pub high: Option<u64>,
}

/// The rank of the percentile itself: the least with at least `ppm` millionths
/// of the `count` samples at or below it.
pub(crate) fn rank(count: u64, ppm: u32) -> u64 {
    (u128::from(count) * u128::from(ppm)).div_ceil(1_000_000) as u64
}

/// The distribution-free 95 % interval of a percentile from `count` samples.
///
/// The number of independent samples at or below the true percentile q is
/// binomial (n, q), whatever the distribution of the samples, so the samples of
/// ranks l and u enclose it unless fewer than l or at least u lie below; each
/// has a probability of at most 2.5 % (David and Nagaraja, Order Statistics,
/// section 7.1).
pub(crate) fn interval(count: u64, ppm: u32) -> RankInterval {
    // Counted from the top, where the numbers are small: samples above q.
    let above = 1.0 - f64::from(ppm) / 1e6;
    let (least, most) = central_range(count, above);
    RankInterval { low: (most < count).then(|| count - most), high: (least > 0).then(|| count - least + 1) }
}

/// The least k whose binomial distribution function exceeds 2.5 %, and the
/// least k whose distribution function is at least 97.5 %.
fn central_range(trials: u64, chance: f64) -> (u64, u64) {
    let n = trials as f64;
    let variance = n * chance * (1.0 - chance);
    if variance > EXACT_UP_TO_VARIANCE {
        let reach = Z * variance.sqrt();
        let least = (n * chance - reach - 0.5).ceil();
        let most = (n * chance + reach - 0.5).ceil();
        return (least.max(0.0) as u64, (most as u64).min(trials));
    }
    let odds = chance / (1.0 - chance);
    // At most 800 trials at p50, so the first term is no denormal number.
    let mut term = (n * (-chance).ln_1p()).exp();
    let mut sum = term;
    let mut least = None;
    for k in 0..trials {
        if least.is_none() && sum > 0.025 {
            least = Some(k);
        }
        if sum >= 0.975 {
            return (least.unwrap_or(k), k);
        }
        term *= (n - k as f64) / (k + 1) as f64 * odds;
        sum += term;
    }
    (least.unwrap_or(trials), trials)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_covers_its_share_of_the_samples() {
        assert_eq!(rank(1, 500_000), 1);
        assert_eq!(rank(10, 500_000), 5);
        assert_eq!(rank(11, 500_000), 6);
        assert_eq!(rank(1_000, 999_000), 999);
        assert_eq!(rank(1_001, 999_000), 1_000);
        assert_eq!(rank(999_999, 999_999), 999_999);
    }

    #[test]
    fn intervals_match_the_published_table_for_the_median() {
        // The sign test's table: ranks of the 95 % interval of a median.
        for (count, low, high) in [(6, 1, 6), (10, 2, 9), (15, 4, 12), (20, 6, 15), (50, 18, 33)] {
            let interval = interval(count, 500_000);
            assert_eq!((interval.low, interval.high), (Some(low), Some(high)), "{count} samples");
        }
        assert_eq!(interval(5, 500_000), RankInterval { low: None, high: None });
    }

    #[test]
    fn the_upper_end_needs_samples_beyond() {
        // 0.999^n falls to 2.5 % at n = 3688.
        assert_eq!(interval(3_687, 999_000).high, None);
        assert_eq!(interval(3_688, 999_000).high, Some(3_688));
    }

    #[test]
    fn exact_sum_and_normal_distribution_meet() {
        for ppm in [500_000, 900_000, 990_000, 999_900] {
            let q = f64::from(ppm) / 1e6;
            let edge = (EXACT_UP_TO_VARIANCE / (q * (1.0 - q))) as u64;
            let (exact, normal) = (interval(edge - 1, ppm), interval(edge + 2, ppm));
            for (a, b) in [(exact.low, normal.low), (exact.high, normal.high)] {
                assert!(a.unwrap().abs_diff(b.unwrap()) <= 4, "{ppm}: {exact:?} {normal:?}");
            }
        }
    }
}
