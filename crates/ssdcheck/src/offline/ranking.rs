//! The area under the receiver operating characteristic, from ranks.

/// How likely a slow request has the greater value than a normal one, of all pairs; equal
/// ones count half (Mann and Whitney's U over the number of pairs). Both kinds are there.
pub(super) fn roc_auc(mut values: Vec<(f64, bool)>) -> f64 {
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut below, mut wins, mut slow_all) = (0.0, 0.0, 0.0);
    for equal in values.chunk_by(|one, other| one.0 == other.0) {
        let slow = equal.iter().filter(|(_, is_slow)| *is_slow).count() as f64;
        let normal = equal.len() as f64 - slow;
        wins += slow * (below + normal / 2.0);
        below += normal;
        slow_all += slow;
    }
    wins / (slow_all * below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_part_of_pairs_in_order() {
        let values = |slow: &[f64], normal: &[f64]| {
            let of = |values: &[f64], is_slow| values.iter().map(|&v| (v, is_slow)).collect::<Vec<_>>();
            [of(slow, true), of(normal, false)].concat()
        };
        assert_eq!(roc_auc(values(&[3.0, 4.0], &[1.0, 2.0])), 1.0);
        assert_eq!(roc_auc(values(&[1.0], &[2.0])), 0.0);
        assert_eq!(roc_auc(values(&[1.0, 1.0], &[1.0])), 0.5);
        // Of six pairs four are in order, and one is equal.
        assert_eq!(roc_auc(values(&[2.0, 5.0], &[1.0, 2.0, 3.0])), 4.5 / 6.0);
    }
}
