//! Buckets of latencies, wider where latencies are longer.

/// The bucket of a latency: `2^BITS` to each doubling, so that a bucket is at most
/// `2^-BITS` of its latencies wide; below `2^(BITS + 1)` ns one to each nanosecond.
#[inline]
pub(crate) fn bucket_of<const BITS: u32>(ns: u64) -> usize {
    let shift = (ns | 1 << BITS).ilog2() - BITS;
    ((u64::from(shift) << BITS) + (ns >> shift)) as usize
}

/// The smallest latency of a bucket, and the largest.
pub(crate) fn ends_of<const BITS: u32>(bucket: usize) -> (u64, u64) {
    let bucket = bucket as u64;
    let shift = (bucket >> BITS).saturating_sub(1);
    let smallest = (bucket - (shift << BITS)) << shift;
    (smallest, smallest + ((1 << shift) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow_one_another_and_are_narrow<const BITS: u32>() {
        let mut previous = bucket_of::<BITS>(0);
        assert_eq!(previous, 0);
        for ns in 1..200_000u64 {
            let bucket = bucket_of::<BITS>(ns);
            assert!(bucket == previous || bucket == previous + 1);
            let (smallest, largest) = ends_of::<BITS>(bucket);
            assert!(smallest <= ns && ns <= largest);
            previous = bucket;
        }
        for ns in [1_000_000u64, 1 << 40, u64::MAX] {
            let bucket = bucket_of::<BITS>(ns);
            let (smallest, largest) = ends_of::<BITS>(bucket);
            assert!(smallest <= ns && ns <= largest && largest - smallest < ns >> BITS);
            assert_eq!((bucket_of::<BITS>(smallest), bucket_of::<BITS>(largest)), (bucket, bucket));
        }
    }

    #[test]
    fn buckets_follow_one_another_and_are_narrow() {
        follow_one_another_and_are_narrow::<6>();
        follow_one_another_and_are_narrow::<10>();
    }
}
