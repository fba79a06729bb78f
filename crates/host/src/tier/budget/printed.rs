//! `printed`: Algorithm 1 and eq. 3.2 of Roy's dissertation as they stand there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Budget, Build, Week};

/// Settings of `printed`: none. A week's budget is the last one less what was written
/// above it, which is twice the last one less what was written. It runs away: whoever
/// writes 90 % of the rating steadily may write 26 ratings after eight weeks, whoever
/// writes 110 % nothing in the fourth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Printed {}

impl Build for Printed {
    fn build(&self) -> Option<Box<dyn Budget>> {
        Some(Box::new(Letter))
    }
}

#[derive(Clone)]
struct Letter;

impl Budget for Letter {
    fn next_week(&mut self, week: Week) -> f64 {
        let reward = week.written - week.budget;
        week.budget - reward
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_away() {
        let after = |written: f64, weeks: u32| {
            let mut budget = Printed {}.build().expect("a limit");
            (0..weeks).fold(1.0, |week, _| budget.next_week(Week { rating: 1.0, budget: week, written }))
        };
        assert!((after(0.9, 8) - 26.5).abs() < 1e-9);
        assert!(after(1.1, 3) > 0.0 && after(1.1, 4) < 0.0);
    }
}
