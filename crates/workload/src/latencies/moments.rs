//! When requests were submitted of which the log says in which millisecond they ended,
//! and how long they took.
//!
//! The end of a request less what it took is its beginning within a millisecond, but where in
//! that millisecond depends on what it took: gaps and queues made so would tell in advance
//! what nobody can know. So a request begins when another has ended and a gap has passed that
//! is the same in the whole log: what it takes itself does not move it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flashkeel_engine::Span;

const NS_PER_MS: i64 = 1_000_000;

/// Pauses that are further apart than this are different ones, whatever is left of their
/// milliseconds.
const APART_NS: i64 = 3 * NS_PER_MS;

/// Times of submission that agree with a log, and what was assumed.
pub(super) struct Assumed {
    pub submitted_ns: Vec<u64>,
    depth: usize,
    gap_ns: u64,
}

impl Assumed {
    /// What a result must show.
    pub fn note(&self) -> String {
        let each = match self.depth {
            1 => "one request at a time".into(),
            depth => format!("{depth} requests at a time"),
        };
        format!(
            "the log has times in ms: it is taken for {each}, each {} after another has ended, so that gaps \
             and queues tell nothing of what a request takes; --iolog FILE (write_iolog) or \
             log_issue_time=1 say what they were",
            Span(self.gap_ns)
        )
    }
}

/// Assumes when requests were submitted that ended, in this order, in the millisecond
/// that begins at `.0` nanoseconds, and took `.1` nanoseconds.
pub(super) fn assume(ends: &[(u64, u64)]) -> Assumed {
    let pauses_ns = pauses(&idle(ends));
    let first_ns = ends.iter().map(|&(time_ns, latency_ns)| time_ns as i64 - latency_ns as i64).min();
    let last_ns = ends.iter().map(|&(time_ns, _)| time_ns as i64).max();
    let (first_ns, last_ns) = (first_ns.unwrap_or(0), last_ns.unwrap_or(0));
    // In all, so that the last ends when it did.
    let span_ns = i128::from((last_ns - first_ns - pauses_ns.iter().sum::<i64>()).max(1));
    let busy_ns: i128 = ends.iter().map(|&(_, latency_ns)| i128::from(latency_ns)).sum();
    let mean_depth = ((busy_ns + span_ns - 1) / span_ns) as usize;
    let depth = if is_one_at_a_time(ends) { 1 } else { most_at_once(ends).max(mean_depth).max(1) };
    let followers = ends.len().saturating_sub(depth).max(1);
    let gap_ns = ((depth as i128 * span_ns - busy_ns).max(0) / followers as i128) as u64;
    let begin_ns = first_ns.max(0) as u64;
    let mut free_ns: BinaryHeap<Reverse<u64>> = std::iter::repeat_n(Reverse(begin_ns), depth).collect();
    let mut submitted_ns = Vec::with_capacity(ends.len());
    let (mut all_ended_ns, mut paused_ns) = (begin_ns, 0);
    for (&(_, latency_ns), &pause_ns) in ends.iter().zip(&pauses_ns) {
        if pause_ns > 0 {
            paused_ns = all_ended_ns + pause_ns as u64;
        }
        let Reverse(free_at_ns) = free_ns.pop().expect("what is taken is given back");
        let now_ns = free_at_ns.max(paused_ns);
        submitted_ns.push(now_ns);
        all_ended_ns = all_ended_ns.max(now_ns + latency_ns);
        free_ns.push(Reverse(now_ns + latency_ns + gap_ns));
    }
    Assumed { submitted_ns, depth, gap_ns }
}

/// For how long, within a millisecond, nothing was asked between what ended before each and
/// what ended from it on; below zero where something was.
fn idle(ends: &[(u64, u64)]) -> Vec<i64> {
    let mut idle_ns = vec![0; ends.len()];
    let mut begin_ns = i64::MAX;
    for (idle_ns, &(time_ns, latency_ns)) in idle_ns.iter_mut().zip(ends).rev() {
        begin_ns = begin_ns.min(time_ns as i64 - latency_ns as i64);
        *idle_ns = begin_ns;
    }
    let mut ended_ns = idle_ns.first().copied().unwrap_or(0);
    for (idle_ns, &(time_ns, _)) in idle_ns.iter_mut().zip(ends) {
        *idle_ns -= ended_ns;
        ended_ns = ended_ns.max(time_ns as i64);
    }
    idle_ns
}

/// The pause before each request, 0 for what cannot be told from the shortest. Pauses that the
/// log cannot tell from each other are one, the mean of them.
fn pauses(idle_ns: &[i64]) -> Vec<i64> {
    let mut sorted: Vec<usize> = (0..idle_ns.len()).collect();
    sorted.sort_by_key(|&index| idle_ns[index]);
    let mut pauses_ns = vec![0; idle_ns.len()];
    for alike in sorted.chunk_by(|&one, &other| idle_ns[other] - idle_ns[one] <= APART_NS).skip(1) {
        let sum_ns: i64 = alike.iter().map(|&index| idle_ns[index]).sum();
        for &index in alike {
            pauses_ns[index] = (sum_ns / alike.len() as i64).max(0);
        }
    }
    pauses_ns
}

/// Whether each can have been submitted after its predecessor had ended.
fn is_one_at_a_time(ends: &[(u64, u64)]) -> bool {
    // Whoever writes the log looks at the clock a little after the end.
    const TOLERANCE_NS: u64 = NS_PER_MS as u64 / 5;
    let mut now_ns = 0;
    ends.iter().all(|&(time_ns, latency_ns)| {
        now_ns = time_ns.max(now_ns + latency_ns);
        now_ns < time_ns + NS_PER_MS as u64 + TOLERANCE_NS
    })
}

/// How many were outstanding at once, of those of which the log is sure.
fn most_at_once(ends: &[(u64, u64)]) -> usize {
    let mut steps = Vec::new();
    for &(time_ns, latency_ns) in ends {
        let (time_ns, latency_ns) = (time_ns as i64, latency_ns as i64);
        if latency_ns > 2 * NS_PER_MS {
            steps.push((time_ns + NS_PER_MS - latency_ns, 1));
            steps.push((time_ns - NS_PER_MS, -1));
        }
    }
    steps.sort_unstable();
    let (mut now, mut most) = (0_isize, 0);
    for (_, step) in steps {
        now += step;
        most = most.max(now);
    }
    most as usize
}

#[cfg(test)]
mod tests;
