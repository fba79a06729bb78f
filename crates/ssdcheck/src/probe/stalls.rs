//! Which of the writes to a page that were held up are behind garbage collection: the longest,
//! which recur regularly.

use super::collection::{FEWEST, MOST_WRITES, WARM_UP};
use super::statistics::variation;

/// Collections are at most this part of the slow writes; the others are flushes.
const RARE: usize = 6;
/// Intervals of *Fixed* vary at most by this part of their mean, or so much of the time is in
/// intervals that are as near to a middle one: a late answer makes two of one, and whoever
/// goes by their mean takes the others for irregular, too.
const REGULAR: f64 = 0.35;
const MOSTLY: f64 = 0.7;

/// Where collections began.
#[derive(Default)]
pub(super) struct Starts {
    pub starts: Vec<u64>,
    last: Option<u64>,
}

impl Starts {
    /// Write number `index` was held up; it counts as `position`, unless it is
    /// of the same collection as the one before.
    pub fn stalled(&mut self, index: u64, position: u64, together: u64) {
        if self.last.is_none_or(|last| index - last > together) {
            self.starts.push(position);
        }
        self.last = Some(index);
    }

    pub fn after(&self, warm_up: usize) -> &[u64] {
        &self.starts[warm_up.min(self.starts.len())..]
    }
}

pub(super) fn distances(starts: &[u64]) -> Vec<u64> {
    starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The longest of the stalls above so many nanoseconds of each collection.
pub(super) fn longest_stalls(slow: &[(u64, u64)], above: u64, together: u64) -> Vec<u64> {
    let mut longest: Vec<u64> = Vec::new();
    let mut starts = Starts::default();
    for &(index, latency) in slow.iter().filter(|&&(_, latency)| latency > above) {
        starts.stalled(index, index, together);
        longest.resize(starts.starts.len(), 0);
        if let Some(longest) = longest.last_mut() {
            *longest = latency.max(*longest);
        }
    }
    longest
}

/// The latency above which slow writes, given with their numbers, are rare and
/// recur regularly: where the gap between latencies is the clearest.
/// Where flushes are not seen at all, because slow writes are rarer, every slow
/// write counts if they recur regularly, or those above no gap do.
pub(super) fn stall_threshold(
    slow: &[(u64, u64)],
    buffer_pages: Option<u64>,
    together: u64,
    slow_write_ns: u64,
) -> Option<u64> {
    if slow.len() < FEWEST {
        return None;
    }
    let regularity_above = |above: u64| {
        let mut starts = Starts::default();
        for &(index, _) in slow.iter().filter(|&&(_, latency)| latency > above) {
            starts.stalled(index, index, together);
        }
        let settled = distances(starts.after(WARM_UP / 2));
        if settled.len() >= FEWEST / 2 { regularity(&settled) } else { 0.0 }
    };
    let flushes = buffer_pages.map(|pages| MOST_WRITES / 2 / pages);
    let unseen = flushes.is_some_and(|flushes| (slow.len() as u64) < flushes / 4);
    if unseen && regularity_above(slow_write_ns) == 1.0 {
        return Some(slow_write_ns);
    }
    let most = if unseen { slow.len() - 1 } else { slow.len() / RARE };
    let mut latencies: Vec<u64> = slow.iter().map(|&(_, latency)| latency).collect();
    latencies.sort_unstable();
    let mut best = (0.0, unseen.then_some(slow_write_ns));
    for count in FEWEST..=most {
        let (below, from) = (latencies[latencies.len() - count - 1], latencies[latencies.len() - count]);
        let gap = from as f64 / below as f64;
        // A narrower gap below many is as clear as a wide one below few.
        let mut clarity = libm::log(gap) * libm::sqrt(count as f64);
        if clarity > best.0 {
            // What is wholly regular rather than a clearer gap with late answers above it.
            clarity *= regularity_above(below).powi(2);
        }
        if clarity > best.0 {
            best = (clarity, Some((below as f64 * libm::sqrt(gap)) as u64));
        }
    }
    best.1
}

/// 1 if intervals are of about the same length, less where a few are not, and 0 otherwise.
fn regularity(intervals: &[u64]) -> f64 {
    if variation(intervals) < REGULAR {
        return 1.0;
    }
    let mut sorted = intervals.to_vec();
    sorted.sort_unstable();
    let all: u64 = sorted.iter().sum();
    let mut passed = 0;
    let half = |&&length: &&u64| {
        passed += length;
        2 * passed >= all
    };
    let Some(&middle) = sorted.iter().find(half) else { return 0.0 };
    let is_near = |&&length: &&u64| length.abs_diff(middle) as f64 <= REGULAR * middle as f64;
    let near = sorted.iter().filter(is_near).sum::<u64>() as f64 / all as f64;
    if near >= MOSTLY { near } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Once what else a collection holds up was counted, too, and was more on one specimen.
    #[test]
    fn a_collection_takes_what_its_longest_stall_takes() {
        let slow = [(10, 8_000), (12, 2_000), (14, 2_500), (90, 500), (200, 9_000), (204, 2_000)];
        assert_eq!(longest_stalls(&slow, 1_000, 4), [8_000, 9_000]);
    }

    /// Collections every 4,000 writes that hold up one for 5 ms and one for 2 ms, and flushes of
    /// 100 us each 62, with late answers among them.
    fn slow(late: &[(u64, u64)], flush_ns: u64) -> Vec<(u64, u64)> {
        let collections =
            (1..20).flat_map(|index| [(index * 4_000, 5_000_000), (index * 4_000 + 2, 4_000_000)]);
        let mut all: Vec<(u64, u64)> = collections.chain(late.iter().copied()).collect();
        if flush_ns > 0 {
            all.extend((0..1_290).map(|index| (index * 62 + 5, flush_ns)));
        }
        all.sort_unstable();
        all
    }

    const LATE: [(u64, u64); 9] = [
        (1_234, 300_000),
        (9_991, 430_000),
        (17_001, 510_000),
        (22_000, 640_000),
        (38_123, 800_000),
        (41_100, 1_100_000),
        (53_300, 1_300_000),
        (61_000, 1_700_000),
        (71_717, 1_900_000),
    ];

    #[test]
    fn late_answers_are_no_collections() {
        let together = 62 * 4;
        let threshold = |late: &[(u64, u64)], flush_ns| {
            stall_threshold(&slow(late, flush_ns), Some(62), together, 80_000).expect("they are seen")
        };
        // All that are slow, where flushes are not seen and nothing is late.
        assert_eq!(threshold(&[], 0), 80_000);
        for flush_ns in [0, 120_000] {
            let above = threshold(&LATE, flush_ns);
            assert!((1_900_000..4_000_000).contains(&above), "{above}");
        }
        // One that is later than any collection is long.
        let later = [&LATE[..], &[(30_030, 58_000_000)]].concat();
        let above = threshold(&later, 120_000);
        assert!((1_900_000..4_000_000).contains(&above), "{above}");
    }

    #[test]
    fn a_few_intervals_cut_in_two_leave_the_others_regular() {
        assert_eq!(regularity(&[4_000, 4_200, 3_900, 4_100, 4_000]), 1.0);
        let cut = [4_000, 1_500, 2_500, 4_000, 4_000, 300, 3_700, 4_000, 4_000, 4_000, 2_000, 2_000];
        assert!((MOSTLY..1.0).contains(&regularity(&cut)));
        let odd: Vec<u64> = (1..30).map(|index| index * index * 7 % 1_009).collect();
        assert_eq!(regularity(&odd), 0.0);
        assert_eq!(regularity(&[]), 0.0);
    }
}
