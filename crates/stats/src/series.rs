//! What happened when: one row per window of simulated time.

use flashkeel_engine::{Span, Time};

use crate::{Column, class::Group};

/// Beyond this many windows neighbours are merged and the window doubles.
const MAX_WINDOWS: usize = 1 << 16;

/// Requests of one group that completed within one window.
#[derive(Clone, Copy, Debug)]
struct Tally {
    count: u64,
    bytes: u64,
    sum_ns: u128,
    max_ns: u64,
}

impl Tally {
    const ZERO: Tally = Tally { count: 0, bytes: 0, sum_ns: 0, max_ns: 0 };

    #[inline]
    fn record(&mut self, ns: u64, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    fn merged(mut self, other: Tally) -> Tally {
        self.count += other.count;
        self.bytes += other.bytes;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self
    }

    fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }
}

type Tallies = [Tally; Group::COUNT];

/// Throughput, latency and gauges per window of simulated time.
///
/// A request counts in the window in which it completed. Gauges are the
/// caller's readings at the end of a window.
#[derive(Clone, Debug)]
pub struct Series {
    start: Time,
    window: Span,
    /// [`Time::MAX`] where the clock ends first: this window never closes.
    end: Time,
    open: Tallies,
    closed: Vec<Tallies>,
    gauge_names: Vec<String>,
    /// The latest reading of each gauge.
    latest: Vec<u64>,
    /// Readings at window ends: one row of gauges after the other.
    readings: Vec<u64>,
}

impl Series {
    pub(crate) fn new(start: Time, window: Span, gauge_names: &[&str]) -> Self {
        assert!(window > Span::ZERO, "a window must be longer than 0");
        Series {
            start,
            window,
            end: Time(start.0.saturating_add(window.0)),
            open: [Tally::ZERO; Group::COUNT],
            closed: Vec::new(),
            gauge_names: gauge_names.iter().map(|&name| name.to_owned()).collect(),
            latest: vec![0; gauge_names.len()],
            readings: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, group: Group, completed: Time, latency: Span, bytes: u64) {
        if completed >= self.end {
            self.close_until(completed);
        }
        self.open[group as usize].record(latency.as_ns(), bytes);
    }

    pub(crate) fn end_of_window(&self) -> Time {
        self.end
    }

    /// Closes every window that ends at or before `now`.
    pub(crate) fn close(&mut self, now: Time, gauges: &[u64]) {
        if now >= self.end {
            self.latest.copy_from_slice(gauges);
            self.close_until(now);
        }
    }

    /// Closes the last window, however short, at the end of the run.
    pub(crate) fn finish(&mut self, now: Time, gauges: &[u64]) {
        self.close(now, gauges);
        // A request that completed in the last instant may have opened a window.
        let unfinished = self.end.0 - now.0 < self.window.0;
        if unfinished || self.open.iter().any(|tally| tally.count > 0) {
            self.latest.copy_from_slice(gauges);
            self.push_open();
        }
    }

    #[cold]
    fn close_until(&mut self, now: Time) {
        while self.end <= now && self.end < Time::MAX {
            self.push_open();
            if self.closed.len() == MAX_WINDOWS {
                self.coarsen();
            }
            self.end = Time(self.end.0.saturating_add(self.window.0));
        }
    }

    fn push_open(&mut self) {
        self.closed.push(std::mem::replace(&mut self.open, [Tally::ZERO; Group::COUNT]));
        self.readings.extend_from_slice(&self.latest);
    }

    /// Merges neighbours and doubles the window.
    fn coarsen(&mut self) {
        for pair in 0..MAX_WINDOWS / 2 {
            let (left, right) = (self.closed[2 * pair], self.closed[2 * pair + 1]);
            self.closed[pair] = std::array::from_fn(|group| left[group].merged(right[group]));
        }
        self.closed.truncate(MAX_WINDOWS / 2);

        // The later reading is the one at the end of the merged window.
        let gauges = self.latest.len();
        for pair in 0..MAX_WINDOWS / 2 {
            let later = (2 * pair + 1) * gauges;
            self.readings.copy_within(later..later + gauges, pair * gauges);
        }
        self.readings.truncate(MAX_WINDOWS / 2 * gauges);
        self.window = Span(self.window.0.saturating_mul(2));
    }

    /// Length of a window, after any doubling; the last one may be cut short.
    pub fn window(&self) -> Span {
        self.window
    }

    /// Number of windows.
    pub fn len(&self) -> usize {
        self.closed.len()
    }

    /// Whether there are no windows.
    pub fn is_empty(&self) -> bool {
        self.closed.is_empty()
    }

    /// The columns, one row per window: `start_ns` since the start of the run;
    /// for `read`, `small_read` and `write` the number of requests (`reads`,
    /// …), bytes, mean (none without requests) and maximum latency (0 without
    /// requests); the numbers of `trims` and `flushes`; then the gauges.
    pub fn columns(&self) -> Vec<(String, Column)> {
        let starts = (0..self.len() as u64).map(|row| self.start.0 + row * self.window.0).collect();
        let mut columns = vec![("start_ns".to_owned(), Column::U64(starts))];

        let sets: [(&str, &[Group]); 3] = [
            ("read", &[Group::SmallRead, Group::LargeRead]),
            ("small_read", &[Group::SmallRead]),
            ("write", &[Group::Write]),
        ];
        for (name, groups) in sets {
            let tallies: Vec<Tally> = self
                .closed
                .iter()
                .map(|window| {
                    groups.iter().fold(Tally::ZERO, |sum, &group| sum.merged(window[group as usize]))
                })
                .collect();
            let numbers = |number: fn(&Tally) -> u64| Column::U64(tallies.iter().map(number).collect());
            columns.extend([
                (format!("{name}s"), numbers(|tally| tally.count)),
                (format!("{name}_bytes"), numbers(|tally| tally.bytes)),
                (format!("{name}_mean_ns"), Column::F64(tallies.iter().map(Tally::mean_ns).collect())),
                (format!("{name}_max_ns"), numbers(|tally| tally.max_ns)),
            ]);
        }

        for (name, group) in [("trims", Group::Trim), ("flushes", Group::Flush)] {
            let counts = self.closed.iter().map(|window| window[group as usize].count).collect();
            columns.push((name.to_owned(), Column::U64(counts)));
        }

        let gauges = self.gauge_names.len();
        for (index, name) in self.gauge_names.iter().enumerate() {
            let readings = self.readings.iter().skip(index).step_by(gauges).copied().collect();
            columns.push((name.clone(), Column::U64(readings)));
        }
        columns
    }
}
