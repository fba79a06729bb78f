//! `varying`: independent arrivals at a rate that rises and falls by chance.

use flashkeel_engine::{Span, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrive, Clock, gap_ns};
use crate::generators::refuse;
use crate::noise::lognormal;
use crate::{Seeds, WorkloadError};

/// A Poisson process whose rate is lognormal, the same within each step and much like the
/// last one's in the next. Workloads of one `course` in a run have their peaks together;
/// each seed of a run draws its courses anew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Varying {
    /// Mean rate in requests per second.
    pub iops: f64,
    /// Standard deviation of the logarithm of the rate; 0 for a constant one.
    pub spread: f64,
    /// How long the rate stays the same.
    pub step: Span,
    /// After how long it is correlated with itself by 1/e.
    pub persistence: Span,
    /// The number of the course that the rate takes: of one number in a run, of one course.
    /// Each seed draws them anew.
    pub course: u64,
    /// By how much that course is delayed, up to 10 s.
    pub delay: Span,
}

/// How long a course has lasted before a workload without delay begins.
const LEAD: Span = Span::from_secs(10);
/// Most steps from a request to the next at the mean rate; ours. Each is taken by itself.
const MOST_STEPS: f64 = 1e6;

impl Default for Varying {
    /// Ours.
    fn default() -> Self {
        Varying {
            iops: 10_000.0,
            spread: 0.5,
            step: Span::from_ms(10),
            persistence: Span::from_ms(100),
            course: 0,
            delay: Span::ZERO,
        }
    }
}

impl Arrive for Varying {
    fn clock(&self, seeds: Seeds, _: f64) -> Result<Box<dyn Clock>, WorkloadError> {
        let gap_ns = gap_ns(self.iops)?;
        if gap_ns > MOST_STEPS * self.step.0 as f64 {
            let (iops, step) = (self.iops, self.step);
            let message = format!(
                "{iops} is a request in more than a million steps of {step}; a longer step or a higher rate"
            );
            return Err(refuse("arrivals.iops", message));
        }
        let mut stream = Stream::new(seeds.run, &format!("course of arrivals {}", self.course));
        let level = lognormal(&mut stream, self.spread);
        let kept = libm::exp(-self.step.as_secs_f64() / self.persistence.as_secs_f64());
        let mut course = Course { step_ns: self.step.0, spread: self.spread, kept, level, stream };
        let before_ns = LEAD.0 - self.delay.0;
        (0..before_ns / self.step.0).for_each(|_| course.go_on());
        let origin_ns = before_ns % self.step.0;
        let within_ns = origin_ns as f64;
        Ok(Box::new(State { gap_ns, course, origin_ns, step_begins: 0, within_ns }))
    }

    fn validate(&self) -> Result<(), String> {
        if !(0.0..=4.0).contains(&self.spread) {
            return Err(format!("spread is {}; it must lie between 0 and 4", self.spread));
        }
        let us = Span::from_us(1);
        for (key, span) in [("step", self.step), ("persistence", self.persistence)] {
            if span < us || span > Span::from_secs(3600) {
                return Err(format!("{key} is {span}; it must lie between 1us and 1h"));
            }
        }
        if self.delay > LEAD {
            return Err(format!("delay is {}; at most {LEAD}", self.delay));
        }
        Ok(())
    }
}

/// The rate, step by step.
struct Course {
    step_ns: u64,
    spread: f64,
    /// How much of a step's level is left in the next.
    kept: f64,
    /// The rate, with a median of 1.
    level: f64,
    stream: Stream,
}

impl Course {
    /// The rate of this step, as a multiple of the mean one.
    fn rate(&self) -> f64 {
        self.level * libm::exp(-self.spread * self.spread / 2.0)
    }

    fn go_on(&mut self) {
        let new = libm::sqrt(1.0 - self.kept * self.kept) * self.spread;
        self.level = libm::pow(self.level, self.kept) * lognormal(&mut self.stream, new);
    }
}

struct State {
    gap_ns: f64,
    course: Course,
    /// How much of the first step lies before the workload.
    origin_ns: u64,
    /// When the present step began, from the beginning of the first.
    step_begins: u64,
    /// How much of it is over.
    within_ns: f64,
}

impl Clock for State {
    fn next(&mut self, stream: &mut Stream) -> u64 {
        // In time at the mean rate.
        let mut left_ns = stream.exponential(self.gap_ns);
        loop {
            let rate = self.course.rate();
            let step_ns = self.course.step_ns as f64;
            let within = self.within_ns + left_ns / rate;
            // Behind the end of the clock nothing more comes, wherever the course began.
            if self.step_begins == u64::MAX {
                return u64::MAX;
            }
            if within < step_ns {
                self.within_ns = within;
                let now = self.step_begins.checked_add(within as u64);
                return now.map_or(u64::MAX, |now| now - self.origin_ns);
            }
            left_ns -= (step_ns - self.within_ns) * rate;
            left_ns = left_ns.max(0.0);
            self.step_begins = self.step_begins.saturating_add(self.course.step_ns);
            self.within_ns = 0.0;
            self.course.go_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arrivals within each tenth of a second of the first 100 s.
    fn counts(varying: &Varying, seed: u64) -> Vec<f64> {
        counts_in_run(varying, 1, seed)
    }

    fn counts_in_run(varying: &Varying, run: u64, own: u64) -> Vec<f64> {
        let (mut clock, mut stream) =
            (varying.clock(Seeds { run, own }, 0.0).unwrap(), Stream::new(own, "test"));
        let mut counts = vec![0.0; 1_000];
        let mut last = 0;
        loop {
            let now = clock.next(&mut stream);
            assert!(now >= last);
            last = now;
            match counts.get_mut((now / 100_000_000) as usize) {
                Some(count) => *count += 1.0,
                None => return counts,
            }
        }
    }

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn correlation(a: &[f64], b: &[f64]) -> f64 {
        let (mean_a, mean_b) = (mean(a), mean(b));
        let product = |a: &[f64], b: &[f64], mean_a: f64, mean_b: f64| {
            a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b)).sum::<f64>()
        };
        product(a, b, mean_a, mean_b) / (product(a, a, mean_a, mean_a) * product(b, b, mean_b, mean_b)).sqrt()
    }

    #[test]
    fn the_mean_rate_is_kept_and_the_spread_shows() {
        let even = counts(&Varying { spread: 0.0, iops: 2_000.0, ..Varying::default() }, 1);
        let uneven = counts(&Varying { spread: 0.6, iops: 2_000.0, ..Varying::default() }, 1);
        assert!((mean(&even) - 200.0).abs() < 2.0, "{}", mean(&even));
        assert!((mean(&uneven) - 200.0).abs() < 20.0, "{}", mean(&uneven));
        let most = |counts: &[f64]| counts.iter().fold(0.0, |most: f64, &count| most.max(count));
        assert!(most(&even) < 270.0 && most(&uneven) > 400.0, "{} {}", most(&even), most(&uneven));
    }

    #[test]
    fn steps_of_which_a_request_takes_millions_are_refused() {
        let slow = Varying { iops: 0.001, step: Span::from_us(1), ..Varying::default() };
        let error = slow
            .clock(Seeds::alone(1), 0.0)
            .err()
            .expect("a request takes a thousand million steps")
            .to_string();
        assert!(error.starts_with("workload.source.arrivals.iops: 0.001 "), "{error}");
        assert!(Varying { step: Span::from_ms(1), ..slow }.clock(Seeds::alone(1), 0.0).is_ok());
    }

    #[test]
    fn the_end_of_the_clock_is_its_end_wherever_a_course_begins() {
        let rare = Varying { iops: 1e-7, step: Span::from_secs(3600), ..Varying::default() };
        for delay in [Span::ZERO, LEAD] {
            let varying = Varying { delay, ..rare.clone() };
            let (mut clock, mut stream) =
                (varying.clock(Seeds::alone(1), 0.0).unwrap(), Stream::new(1, "test"));
            let times: Vec<u64> = (0..10_000).map(|_| clock.next(&mut stream)).collect();
            assert!(times.is_sorted() && times[9_999] == u64::MAX, "{}", times[9_999]);
        }
    }

    #[test]
    fn workloads_of_one_course_have_their_peaks_together_unless_one_is_delayed() {
        let course = Varying { spread: 0.6, iops: 3_000.0, course: 7, ..Varying::default() };
        let delayed = Varying { delay: Span::from_ms(400), ..course.clone() };
        let (a, b, later) = (counts(&course, 1), counts(&course, 2), counts(&delayed, 3));
        assert!(correlation(&a, &b) > 0.9, "{}", correlation(&a, &b));
        assert!(correlation(&a, &later).abs() < 0.3, "{}", correlation(&a, &later));
        assert!(correlation(&a[..996], &later[4..]) > 0.9);
        let other = counts(&Varying { course: 8, ..course.clone() }, 2);
        assert!(correlation(&a, &other).abs() < 0.3);
        let another_run = counts_in_run(&course, 2, 1);
        assert!(correlation(&a, &another_run).abs() < 0.3);
    }
}
