//! Quantiles, the most frequent interval, and the chi-squared test.

/// The middle value; 0 of nothing.
pub(super) fn median(values: &mut [u64]) -> u64 {
    quantile(values, 0.5)
}

/// The value below which this part of the values lie; 0 of nothing.
pub(crate) fn quantile(values: &mut [u64], part: f64) -> u64 {
    values.sort_unstable();
    let index = (values.len() as f64 * part) as usize;
    values.get(index.min(values.len().saturating_sub(1))).copied().unwrap_or(0)
}

/// The period of rising positions in `0..length` among which others may lie:
/// the distance at which pairs are most frequent, if they are far more frequent
/// than by chance and come at most of the period's multiples. A distance of 1 is
/// no period.
pub(super) fn period(positions: &[u64], length: u64) -> Option<u64> {
    /// How many positions may lie between two neighbours of the period.
    const REACH: usize = 64;
    /// Fewest pairs, and standard deviations above chance.
    const FEWEST: usize = 5;
    const DEVIATIONS: f64 = 4.0;
    /// Distances that are all so long and the same.
    const ALL: usize = 3;
    const LONG: u64 = 64;
    /// So many distances are multiples of it.
    const MULTIPLES: f64 = 0.9;
    let mut distances: Vec<u64> = Vec::new();
    for (index, &position) in positions.iter().enumerate() {
        let later = positions[index + 1..].iter().take(REACH);
        distances.extend(later.map(|next| next - position).filter(|&distance| distance > 1));
    }
    distances.sort_unstable();
    let runs = || distances.chunk_by(|a, b| a == b).map(|run| (run[0], run.len()));
    // Of a drive that hardly gets anywhere a few have to do, if they are all the same.
    if let [first, second, ..] = positions
        && (ALL..FEWEST).contains(&(positions.len() - 1))
        && positions.windows(2).all(|pair| pair[1] - pair[0] == second - first)
        && second - first >= LONG
    {
        return Some(second - first);
    }
    let most = runs().map(|(_, pairs)| pairs).max().filter(|&most| most >= FEWEST)?;
    // Twice the period comes nearly as often as the period, or more often where many of them
    // are left out: then all are multiples of the period.
    let is_multiple = |of: u64| {
        let neighbours = positions.windows(2).map(|pair| pair[1] - pair[0]);
        let multiples = neighbours.filter(|distance| distance.is_multiple_of(of)).count();
        multiples as f64 >= MULTIPLES * (positions.len() - 1) as f64
    };
    let is_period = |&(distance, pairs): &(u64, usize)| {
        pairs * 5 >= most * 4 || (pairs >= FEWEST && is_multiple(distance))
    };
    let (distance, pairs) = runs().find(is_period)?;
    let (count, length) = (positions.len() as f64, length as f64);
    let by_chance = count * count / length;
    let is_clear = pairs as f64 >= by_chance + DEVIATIONS * libm::sqrt(by_chance.max(1.0));
    let times = length / distance as f64 - 1.0;
    let is_common = pairs as f64 >= 0.5 * times || (is_multiple(distance) && count >= 0.4 * times);
    (is_clear && is_common).then_some(distance)
}

/// Standard deviation over mean; infinite of fewer than two values.
pub(super) fn variation(values: &[u64]) -> f64 {
    if values.len() < 2 {
        return f64::INFINITY;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<u64>() as f64 / count;
    let square = values.iter().map(|&value| (value as f64 - mean) * (value as f64 - mean)).sum::<f64>();
    libm::sqrt(square / (count - 1.0)) / mean
}

/// How much further than those of the first sample, on either side, intervals
/// may lie and still count as like them; how far from its middle the slack may
/// reach; and the part of the sample, on either side, that is left out of it.
const SLACK: f64 = 0.1;
const FAR: f64 = 0.35;
const STRAYS: f64 = 0.05;

/// Probability that intervals as different as these come from one
/// distribution: the chi-squared test over five bins: what the first sample
/// covers, what lies beside that, and what lies far off.
pub(super) fn same_distribution(a: &[u64], b: &[u64]) -> f64 {
    let mut sorted = a.to_vec();
    // Intervals may come in two lengths, in turn.
    let middle = (quantile(&mut sorted, 0.25) + quantile(&mut sorted, 0.75)) as f64 / 2.0;
    let (least, most) = (quantile(&mut sorted, STRAYS), quantile(&mut sorted, 1.0 - STRAYS));
    let low = (least as f64 * (1.0 - SLACK)).max(middle * (1.0 - FAR)).min(least as f64);
    let high = (most as f64 * (1.0 + SLACK)).min(middle * (1.0 + FAR)).max(most as f64);
    let edges = [low * 0.5, low, high, high * 1.5].map(|edge| edge as u64);
    let count = |sample: &[u64]| {
        let mut counts = [0.0; 5];
        for value in sample {
            counts[edges.partition_point(|edge| edge < value)] += 1.0;
        }
        counts
    };
    let (count_a, count_b) = (count(a), count(b));
    let (total_a, total_b) = (a.len() as f64, b.len() as f64);
    let (mut chi_squared, mut used) = (0.0, 0);
    for (in_a, in_b) in count_a.iter().zip(&count_b) {
        let both = in_a + in_b;
        if both == 0.0 {
            continue;
        }
        used += 1;
        for (seen, total) in [(in_a, total_a), (in_b, total_b)] {
            let expected = both * total / (total_a + total_b);
            chi_squared += (seen - expected) * (seen - expected) / expected;
        }
    }
    if used == 1 { 1.0 } else { upper_tail(chi_squared, f64::from(used - 1)) }
}

/// Probability of a chi-squared value above `x` with `freedom` degrees of
/// freedom: the regularised incomplete gamma function Q(k/2, x/2), by its
/// series and its continued fraction (Abramowitz and Stegun, 6.5.29, 6.5.31).
fn upper_tail(x: f64, freedom: f64) -> f64 {
    let (a, x) = (freedom / 2.0, x / 2.0);
    if x <= 0.0 {
        return 1.0;
    }
    let front = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > sum * 1e-15 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return (1.0 - front * sum).clamp(0.0, 1.0);
    }
    // From the inside out; 200 levels are plenty beyond x = a + 1.
    let mut fraction = 0.0;
    for n in (1..200).rev() {
        let n = f64::from(n);
        fraction = n * (n - a) / (x + 2.0 * n + 1.0 - a - fraction);
    }
    (front / (x + 1.0 - a - fraction)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_tail_is_that_of_the_tables() {
        // Abramowitz and Stegun, table 26.8: 5 % and 0.1 % points.
        for (x, freedom, tail) in
            [(3.841, 1.0, 0.05), (11.070, 5.0, 0.05), (20.515, 5.0, 0.001), (0.554, 5.0, 0.99)]
        {
            assert!((upper_tail(x, freedom) - tail).abs() < tail * 0.01 + 1e-4, "{x} {freedom}");
        }
    }

    #[test]
    fn equal_samples_are_the_same_and_shifted_ones_are_not() {
        let a: Vec<u64> = (0..40).map(|i| 100 + i % 7).collect();
        let b: Vec<u64> = (0..40).map(|i| 100 + (i * 3) % 7).collect();
        let c: Vec<u64> = (0..40).map(|i| if i % 2 == 0 { 130 } else { 70 + i % 7 }).collect();
        assert!(same_distribution(&a, &b) > 0.9);
        assert!(same_distribution(&a, &c) < 1e-9);
        assert_eq!(same_distribution(&[5; 30], &[5; 30]), 1.0);
        // Two lengths in turn, a little different; and strays that cover nothing.
        let in_turn = |a, b| (0..70).map(|i| if i % 2 == 0 { a } else { b }).collect::<Vec<u64>>();
        assert!(same_distribution(&in_turn(243, 333), &in_turn(234, 342)) > 0.9);
        let strays: Vec<u64> = [264, 880].into_iter().chain((0..68).map(|i| 512 + i * 2)).collect();
        assert!(same_distribution(&strays, &in_turn(742, 394)) < 1e-9);
        assert!(same_distribution(&[50; 30], &[66; 30]) < 1e-9);
    }

    #[test]
    fn a_period_is_found_among_other_positions() {
        let flushes: Vec<u64> = (0..12).map(|i| 5 + 31 * i).collect();
        assert_eq!(period(&flushes, 372), Some(31));
        let mut noisy = [&flushes[..], &[3, 50, 51, 120, 200, 290]].concat();
        noisy.sort_unstable();
        assert_eq!(period(&noisy, 372), Some(31));
        let squares: Vec<u64> = (0..19).map(|i| i * i).collect();
        assert_eq!(period(&squares, 372), None);
        assert_eq!(period(&[7], 372), None);
    }

    #[test]
    fn quantiles_and_variation() {
        assert_eq!(median(&mut [9, 1, 5]), 5);
        assert_eq!(quantile(&mut [], 0.9), 0);
        assert_eq!(variation(&[4, 4, 4]), 0.0);
        assert!((variation(&[1, 3]) - 2f64.sqrt() / 2.0).abs() < 1e-12);
    }
}
