//! Write demand: how many bytes are written when, for work on lifetimes, where
//! single requests no longer count.
//!
//! One file per kind of traffic. To add one: write the file, add its line to
//! the list.

use flashkeel_config::axis;
use std::ops::ControlFlow;
use std::sync::Arc;

use flashkeel_engine::{Span, Stream};

use crate::places::Places;
use crate::{Stopped, Watch, WorkloadError};

/// What every kind of traffic has in common.
pub trait Load {
    /// Its write demand. Where it is generated, `seed` decides the noise; `watch`
    /// is told how much has been read of a file.
    ///
    /// # Errors
    /// If the settings make no sense, the input cannot be read, or `watch` breaks
    /// off.
    fn load_watched(&self, seed: u64, watch: &mut Watch<'_>) -> Result<Demand, Stopped>;

    /// Its write demand, as of [`load_watched`](Self::load_watched).
    ///
    /// # Errors
    /// If the settings make no sense or the input cannot be read.
    fn load(&self, seed: u64) -> Result<Demand, WorkloadError> {
        self.load_watched(seed, &mut |_| ControlFlow::Continue(())).map_err(|stopped| match stopped {
            Stopped::Wrong(error) => error,
            Stopped::Interrupted | Stopped::Unwritten(_) => {
                unreachable!("nobody interrupts, and nothing is written")
            }
        })
    }

    /// Whether each seed has a demand of its own.
    fn is_drawn(&self) -> bool {
        false
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

axis! {
    /// Where a write demand comes from.
    pub enum Traffic as "traffic": Load {
        /// The same volume, day and night.
        Constant(Constant) in constant = "constant",
        /// A generated series with the volume and regularity of a known trace.
        Profile(Profile) in profile = "profile",
        /// A recorded series of bytes written.
        Series(Series) in series = "series",
        /// The writes of a recorded trace.
        Recorded(Recorded) in recorded = "trace",
    }
}

/// Bytes written in intervals of equal length, repeated for ever.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Length of an interval.
    pub interval: Span,
    /// Bytes written in each; at least one interval.
    pub written: Vec<f64>,
    /// Whether it is generated rather than recorded.
    pub is_synthetic: bool,
    /// What was recorded beside the volume; none where it is generated, or
    /// recorded by windows only.
    pub recorded: Option<Arc<Recording>>,
    /// What whoever reads a result must know.
    pub notes: Vec<String>,
}

/// What a recorded trace says of its writes besides their volume.
#[derive(Debug, PartialEq)]
pub struct Recording {
    /// Time from its first request to its last.
    pub span: Span,
    /// Where its writes go; none where it has no writes.
    pub places: Option<Places>,
}

impl Demand {
    /// Time after which it repeats.
    pub fn length(&self) -> Span {
        Span(self.interval.0 * self.written.len() as u64)
    }

    /// Mean bytes written in a day.
    pub fn bytes_per_day(&self) -> f64 {
        let day = Span::from_secs(86_400).0 as f64;
        self.written.iter().sum::<f64>() * day / self.length().0 as f64
    }

    /// Share of the periods of `period` in which the demand differs from that
    /// of the period before by less than `share` of it (READY, "Cyclical
    /// Behaviors of Enterprise Workloads"). The period is taken in whole
    /// intervals; none where there are fewer than two periods.
    pub fn similarity(&self, period: Span, share: f64) -> Option<f64> {
        let intervals = (period.0 / self.interval.0).max(1) as usize;
        let periods: Vec<f64> =
            self.written.chunks_exact(intervals).map(|period| period.iter().sum()).collect();
        let similar = periods.windows(2).filter(|pair| (pair[1] - pair[0]).abs() < share * pair[0]).count();
        (periods.len() > 1).then(|| similar as f64 / (periods.len() - 1) as f64)
    }

    /// The same demand in intervals that are as many times as long.
    #[must_use]
    pub fn merged(&self, times: usize) -> Demand {
        if times <= 1 {
            return self.clone();
        }
        // Through as many repetitions as it takes for intervals to come out even.
        let intervals = self.written.len();
        let long = |at: usize| (0..times).map(|part| self.written[(at * times + part) % intervals]).sum();
        Demand {
            interval: Span(self.interval.0 * times as u64),
            written: (0..intervals).map(long).collect(),
            ..self.clone()
        }
    }

    /// Another demand of this length that might have been seen as well: days of it
    /// (hours, if it has less than two days), drawn with replacement. The same demand
    /// where it has less than two of either. A day begins anywhere, and goes on at the
    /// beginning behind the end, so that each interval is as likely as any other
    /// (Politis and Romano's circular block bootstrap); but where the demand is of whole
    /// days, they are drawn as they are. Where this one has writes, the other has too.
    #[must_use]
    pub fn resampled(&self, seed: u64) -> Demand {
        let blocks = [86_400, 3_600].map(|seconds| (Span::from_secs(seconds).0 / self.interval.0) as usize);
        let Some(block) = blocks.into_iter().find(|&block| block > 0 && self.written.len() >= 2 * block)
        else {
            return self.clone();
        };
        let mut stream = Stream::new(seed, "demand/resample");
        let intervals = self.written.len();
        // The coarsest steps that reach each interval from equally many places.
        let step = common_divisor(intervals, block);
        let draws = intervals.div_ceil(block);
        let has_writes = |written: &[f64]| written.iter().any(|&bytes| bytes > 0.0);
        loop {
            let drawn = (0..draws).flat_map(|_| {
                let first = stream.below((intervals / step) as u64) as usize * step;
                self.written.iter().cycle().skip(first).take(block)
            });
            let written: Vec<f64> = drawn.take(intervals).copied().collect();
            // Days without any may be drawn alone, from which no lifetime would follow.
            if has_writes(&written) || !has_writes(&self.written) {
                return Demand { written, ..self.clone() };
            }
        }
    }
}

/// The greatest common divisor of two numbers.
fn common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common_divisor(b, a % b) }
}
