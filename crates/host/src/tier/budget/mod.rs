//! The budget axis: how much may be written to a medium, week by week.
//!
//! One file per policy. To add one: write the file, add its line to the list.

mod calendar;
mod rating;

use dyn_clone::DynClone;

pub use calendar::{Calendar, DayReport};
pub use rating::{Rating, Ratings, TrafficMeasure};

flashkeel_config::axis! {
    /// How much may be written to a medium.
    pub enum BudgetConfig as "budget": Build {
        /// Any amount; the result tells what was above the rating.
        None(None) in none = "none",
        /// The rating, and what all weeks so far have left of it or taken in advance.
        Anchored(Anchored) in anchored = "anchored",
        /// Algorithm 1 of Roy's dissertation to the letter, which runs away: a week's
        /// budget is twice the last one, less what was written.
        Printed(Printed) in printed = "printed",
    }
}

impl Default for BudgetConfig {
    fn default() -> Self {
        BudgetConfig::None(none::None::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy; `None` where any amount may be written.
    fn build(&self) -> Option<Box<dyn Budget>>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Decides how much may be written in a week.
pub trait Budget: DynClone + Send {
    /// The next week's budget in bytes.
    fn next_week(&mut self, week: Week) -> f64;
}

dyn_clone::clone_trait_object!(Budget);

/// A week that is over, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Week {
    /// What may be written each week by the rating.
    pub rating: f64,
    /// The week's budget.
    pub budget: f64,
    /// What was written in it.
    pub written: f64,
}
