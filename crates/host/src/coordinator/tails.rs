//! How long reads took, window by window.

use std::collections::VecDeque;

use flashkeel_engine::Span;

/// The part of a window's reads that are at most as long as its tail: the 99.99th
/// percentile, by nearest rank, so the longest of fewer than 10,000.
const OF_TEN_THOUSAND: usize = 9_999;

/// The tails of windows, host by host.
#[derive(Clone, Default)]
pub(super) struct Tails {
    /// Windows of which a read is on its way, oldest first, after so many others.
    open: VecDeque<Open>,
    closed: u64,
    /// The tail of each window that has ended and had reads, of each host.
    tails: Vec<Vec<u64>>,
    spare: Vec<Open>,
}

#[derive(Clone)]
struct Open {
    is_over: bool,
    /// It began before the last reset.
    is_off: bool,
    outstanding: u32,
    latencies_ns: Vec<Vec<u64>>,
}

impl Tails {
    pub fn new(hosts: usize) -> Tails {
        Tails { tails: vec![Vec::new(); hosts], ..Tails::default() }
    }

    /// A window begins.
    pub fn begin(&mut self) {
        let hosts = self.tails.len();
        let empty =
            || Open { is_over: false, is_off: false, outstanding: 0, latencies_ns: vec![Vec::new(); hosts] };
        let mut open = self.spare.pop().unwrap_or_else(empty);
        (open.is_over, open.is_off) = (false, false);
        self.open.push_back(open);
    }

    /// The present window, if there is one, is over.
    pub fn end(&mut self) {
        if let Some(open) = self.open.back_mut() {
            open.is_over = true;
        }
        self.close();
    }

    /// A read comes in the present window; returns the number of that.
    #[inline]
    pub fn came(&mut self) -> u64 {
        self.open.back_mut().expect("a window has begun").outstanding += 1;
        self.closed + self.open.len() as u64 - 1
    }

    /// A read that came in a window has been answered.
    #[inline]
    pub fn answered(&mut self, window: u64, host: usize, latency: Span) {
        let open = &mut self.open[(window - self.closed) as usize];
        open.latencies_ns[host].push(latency.0);
        open.outstanding -= 1;
        if open.outstanding == 0 && open.is_over {
            self.close();
        }
    }

    /// What has been measured is forgotten, and windows that have begun are left out.
    pub fn reset(&mut self) {
        self.tails.iter_mut().for_each(Vec::clear);
        self.open.iter_mut().for_each(|open| open.is_off = true);
    }

    /// Nothing is on its way any more, and no window lasts.
    pub fn cut_power(&mut self) {
        self.closed += self.open.len() as u64;
        self.open.clear();
    }

    fn close(&mut self) {
        while self.open.front().is_some_and(|open| open.is_over && open.outstanding == 0) {
            let mut open = self.open.pop_front().expect("there is one");
            self.closed += 1;
            for (tails, latencies) in self.tails.iter_mut().zip(&mut open.latencies_ns) {
                if !latencies.is_empty() && !open.is_off {
                    let rank = (latencies.len() * OF_TEN_THOUSAND).div_ceil(10_000) - 1;
                    tails.push(*latencies.select_nth_unstable(rank).1);
                }
                latencies.clear();
            }
            self.spare.push(open);
        }
    }

    /// The tail of a host's windows that so many of ten thousand windows do not exceed, by
    /// nearest rank, and of how many windows.
    pub fn percentile(&self, host: usize, of_ten_thousand: usize) -> (Option<u64>, usize) {
        let mut tails = self.tails[host].clone();
        let rank = (tails.len() * of_ten_thousand).div_ceil(10_000).max(1) - 1;
        let tail = (!tails.is_empty()).then(|| *tails.select_nth_unstable(rank).1);
        (tail, tails.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_window_counts_once_its_last_read_is_answered() {
        let mut tails = Tails::new(2);
        tails.begin();
        let first: Vec<u64> = (0..3).map(|_| tails.came()).collect();
        tails.answered(first[0], 0, Span(5));
        tails.end();
        tails.begin();
        let second = tails.came();
        tails.answered(second, 0, Span(100));
        tails.end();
        // A read of the first is still on its way.
        assert_eq!(tails.percentile(0, 5_000), (None, 0));
        tails.answered(first[1], 0, Span(7));
        tails.answered(first[2], 1, Span(9));
        assert_eq!(tails.percentile(0, 5_000), (Some(7), 2));
        assert_eq!(tails.percentile(0, 9_999), (Some(100), 2));
        assert_eq!(tails.percentile(1, 5_000), (Some(9), 1));
    }
}
