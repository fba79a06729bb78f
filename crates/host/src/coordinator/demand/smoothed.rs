//! `smoothed`: exponential smoothing of what each host has asked for (the dissertation on
//! PLMC, equation 4.1: coordinator directed, CoD).

use flashkeel_engine::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Demand, Foresight};

/// Settings of `smoothed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Smoothed {
    /// The weight of the last window, 0 to 1; the rest is the former expectation's.
    pub smoothing: f64,
}

impl Default for Smoothed {
    /// ζ of chapter 5; chapter 4 gives none.
    fn default() -> Self {
        Smoothed { smoothing: 0.5 }
    }
}

impl Build for Smoothed {
    fn build(&self, hosts: usize) -> Box<dyn Demand> {
        Box::new(Expectation { smoothing: self.smoothing, expected: vec![None; hosts] })
    }

    fn validate(&self) -> Result<(), String> {
        if !(0.0..=1.0).contains(&self.smoothing) {
            return Err(format!("smoothing is {}; it must lie between 0 and 1", self.smoothing));
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Expectation {
    smoothing: f64,
    /// Of each host, in reads of 4 KiB a window.
    expected: Vec<Option<f64>>,
}

impl Demand for Expectation {
    fn need(&mut self, _now: Time, host: usize, _window: Span, _foresight: &Foresight) -> Option<u64> {
        self.expected[host].map(|expected| expected.ceil() as u64)
    }

    fn measured(&mut self, host: usize, reads: f64) {
        let former = self.expected[host].unwrap_or(reads);
        self.expected[host] = Some(self.smoothing * reads + (1.0 - self.smoothing) * former);
    }

    fn cut_power(&mut self) {
        self.expected.fill(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_window_counts_by_its_weight_and_the_first_wholly() {
        let mut demand = Smoothed { smoothing: 0.25 }.build(2);
        let nothing = Foresight::default();
        let need =
            |demand: &mut Box<dyn Demand>, host| demand.need(Time::ZERO, host, Span::from_ms(1), &nothing);
        assert_eq!(need(&mut demand, 0), None);
        demand.measured(0, 100.0);
        assert_eq!(need(&mut demand, 0), Some(100));
        demand.measured(0, 20.0);
        assert_eq!(need(&mut demand, 0), Some(80));
        assert_eq!(need(&mut demand, 1), None);
        demand.cut_power();
        assert_eq!(need(&mut demand, 0), None);
    }
}
