use flashkeel_engine::Stream;

use super::*;

/// Ends as a log has them of requests that take 0.1 ms or, one in ten, 5 ms, whatever is asked,
/// each `gap_ns` of the request's number after another has ended.
fn coins(depth: usize, gap_ns: impl Fn(usize) -> u64) -> Vec<(u64, u64)> {
    let mut random = Stream::new(1, "coins");
    let mut free_ns: BinaryHeap<_> = std::iter::repeat_n(Reverse(0), depth).collect();
    let mut ends = Vec::new();
    for index in 0..20_000 {
        let Reverse(free_at_ns) = free_ns.pop().expect("what is taken is given back");
        let slow_ns = if random.chance(0.1) { 4_900_000 + random.below(1_000_000) } else { 0 };
        let latency_ns = 100_000 + slow_ns + random.below(20_000);
        let end_ns = free_at_ns + gap_ns(index) + random.below(5_000) + latency_ns;
        ends.push((end_ns, latency_ns));
        free_ns.push(Reverse(end_ns));
    }
    ends.sort_unstable();
    ends.iter().map(|(end_ns, latency_ns)| (end_ns / 1_000_000 * 1_000_000, *latency_ns)).collect()
}

/// What is known of each before it is asked, as (idle before it, outstanding, latency of the one
/// before it), and its own latency, in the order in which they were submitted.
fn known(ends: &[(u64, u64)], submitted_ns: &[u64]) -> Vec<([f64; 3], f64)> {
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by_key(|&index| submitted_ns[index]);
    let (mut outstanding, mut idle_from_ns, mut last_ns) = (Vec::new(), 0, 0);
    let mut all = Vec::new();
    for index in order {
        let (now_ns, latency_ns) = (submitted_ns[index], ends[index].1);
        outstanding.retain(|end_ns| *end_ns > now_ns);
        let idle_ns = now_ns.saturating_sub(idle_from_ns);
        all.push(([idle_ns as f64, outstanding.len() as f64, last_ns as f64], latency_ns as f64));
        outstanding.push(now_ns + latency_ns);
        (idle_from_ns, last_ns) = (idle_from_ns.max(now_ns + latency_ns), latency_ns);
    }
    all
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let (x, y) = (mean(&|pair| pair.0), mean(&|pair| pair.1));
    let product = mean(&|pair| (pair.0 - x) * (pair.1 - y));
    let spread = mean(&|pair| (pair.0 - x).powi(2)) * mean(&|pair| (pair.1 - y).powi(2));
    if spread == 0.0 { 0.0 } else { product / spread.sqrt() }
}

/// Of 20,000 that have nothing to do with each other it is within 0.03, four times its deviation.
fn assert_nothing_tells_the_latency(ends: &[(u64, u64)], submitted_ns: &[u64], what: &str) {
    let all = known(ends, submitted_ns);
    for (which, name) in ["idle", "outstanding", "last latency"].into_iter().enumerate() {
        let pairs: Vec<_> = all.iter().map(|(known, latency_ns)| (known[which], *latency_ns)).collect();
        let found = correlation(&pairs);
        assert!(found.abs() < 0.03, "{what}: {name} tells what is by chance: {found}");
    }
}

#[test]
fn what_is_by_chance_is_not_told_by_gaps_and_queues() {
    for depth in [1, 2, 4, 16] {
        for gap_ns in [1_000, 200_000, 20_000_000] {
            let ends = coins(depth, |_| gap_ns);
            let found = assume(&ends);
            assert_nothing_tells_the_latency(&ends, &found.submitted_ns, &format!("{depth}, {gap_ns} ns"));
        }
    }
}

#[test]
fn pauses_that_the_log_can_tell_are_kept() {
    for depth in [1, 4] {
        let pause_ns = |index: usize| if index % 100 == 50 { 50_000_000 } else { 200_000 };
        let ends = coins(depth, pause_ns);
        let found = assume(&ends);
        assert_nothing_tells_the_latency(&ends, &found.submitted_ns, &format!("pauses, {depth}"));
        if depth == 1 {
            let long = |(index, pair): (usize, [u64; 2])| {
                let idle_ns = pair[1] - pair[0] - ends[index].1;
                (idle_ns > 49_000_000 && idle_ns < 51_000_000).then_some(index + 1)
            };
            let pairs = found.submitted_ns.array_windows().copied().enumerate();
            assert!(pairs.filter_map(long).eq((0..200).map(|each| each * 100 + 50)));
        }
    }
}

#[test]
fn made_times_keep_step_with_the_log() {
    for (depth, within_ms) in [(1, 2), (4, 10)] {
        let ends = coins(depth, |_| 200_000);
        let found = assume(&ends);
        assert_eq!(found.depth, depth);
        assert!(found.gap_ns.abs_diff(202_500) < 3_000, "{}", found.gap_ns);
        for ((time_ns, latency_ns), submitted_ns) in ends.iter().zip(&found.submitted_ns) {
            let off_ns = (submitted_ns + latency_ns).abs_diff(*time_ns);
            assert!(off_ns < within_ms * 1_000_000, "{depth} at a time: {off_ns} ns off");
        }
    }
}

#[test]
fn requests_follow_each_other_where_they_can() {
    let found = assume(&[(0, 300_000), (0, 600_000), (1_000_000, 500_000), (5_000_000, 100_000)]);
    // The pause of 3.9 ms is one of its own. What is left of the other 1.7 ms is three gaps.
    assert_eq!((found.depth, found.gap_ns), (1, 66_666));
    assert_eq!(found.submitted_ns, [0, 366_666, 1_033_332, 5_433_332]);
}

#[test]
fn several_at_a_time_begin_when_others_end() {
    let found = assume(&[
        (3_000_000, 2_900_000),
        (3_000_000, 2_900_000),
        (4_000_000, 4_000_000),
        (6_000_000, 2_500_000),
        (6_000_000, 2_500_000),
        (6_000_000, 2_000_000),
    ]);
    assert_eq!(found.depth, 3);
    let gap_ns = (18_000_000 - 16_800_000) / 3;
    let [early, late] = [2_900_000 + gap_ns, 4_000_000 + gap_ns];
    assert_eq!((found.gap_ns, found.submitted_ns), (gap_ns, vec![0, 0, 0, early, early, late]));
}
