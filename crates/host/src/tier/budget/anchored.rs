//! `anchored`: each week the rating, and what all weeks so far have left of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Budget, Build, Week};

/// Settings of `anchored`: none. After any number of weeks the budgets have allowed what
/// the rating allows for so many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Anchored {}

impl Build for Anchored {
    fn build(&self) -> Option<Box<dyn Budget>> {
        Some(Box::new(Excess(0.0)))
    }
}

/// What was written above the ratings of all weeks so far, in bytes; below zero if less.
#[derive(Clone)]
struct Excess(f64);

impl Budget for Excess {
    fn next_week(&mut self, week: Week) -> f64 {
        self.0 += week.written - week.rating;
        (week.rating - self.0).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_sum_to_ratings_whatever_is_written() {
        let mut budget = Anchored {}.build().expect("a limit");
        let mut next = |written| budget.next_week(Week { rating: 100.0, budget: 0.0, written });
        assert_eq!([90.0, 90.0, 90.0].map(&mut next), [110.0, 120.0, 130.0]);
        assert_eq!([330.0, 0.0, 0.0].map(&mut next), [0.0, 0.0, 100.0]);
    }
}
