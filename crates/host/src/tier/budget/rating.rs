//! A medium's rating, and how it is spread over days.

use flashkeel_device::LOGICAL_PAGE_BYTES;
use flashkeel_engine::{Span, units::Bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BudgetConfig;

/// The ratings of a tier's two devices, where they are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ratings {
    /// Of the upper.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upper: Option<Rating>,
    /// Of the lower.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lower: Option<Rating>,
}

impl Ratings {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub fn validate(&self) -> Result<(), String> {
        for (name, rating) in [("upper", &self.upper), ("lower", &self.lower)] {
            if let Some(rating) = rating {
                rating.validate().map_err(|message| format!("{name}.{message}"))?;
            }
        }
        Ok(())
    }
}

/// What may be written to a medium, and how it is spread over the days of a week (Roy,
/// dissertation, §3.4.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rating {
    /// What may be written each day. What is written above it is critical, the rest
    /// safe.
    pub per_day: Bytes,
    /// What follows from it.
    #[serde(default)]
    pub budget: BudgetConfig,
    /// How long a day is.
    #[serde(default = "day")]
    pub day: Span,
    /// How long a week is, over whose days a budget is spread: a multiple of a day.
    #[serde(default = "week")]
    pub week: Span,
    /// Weight of the last week in what is expected of a day, above 0 up to 1 (α of
    /// eq. 3.1).
    #[serde(default = "weight")]
    pub weight: f64,
    /// What a day's traffic is measured by.
    #[serde(default)]
    pub traffic: Traffic,
}

/// What the traffic of a day is. The dissertation calls a day busy by its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Traffic {
    /// Reads and writes that came.
    #[default]
    Requests,
    /// Bytes that came to be written.
    Written,
}

fn day() -> Span {
    Span::from_secs(24 * 60 * 60)
}

fn week() -> Span {
    Span::from_secs(7 * 24 * 60 * 60)
}

/// As in the dissertation.
fn weight() -> f64 {
    0.5
}

impl Rating {
    fn validate(&self) -> Result<(), String> {
        let Rating { per_day, day, week, weight, .. } = *self;
        if per_day.0 < LOGICAL_PAGE_BYTES {
            return Err(format!("per_day is {per_day}; at least a block of 4KiB"));
        }
        if day == Span::ZERO {
            return Err("day is 0ns; it must be longer".into());
        }
        if week < day {
            return Err(format!("week is {week}, shorter than a day of {day}"));
        }
        if !week.0.is_multiple_of(day.0) || week.0 / day.0 > 1000 {
            return Err(format!("week is {week}; it must be a multiple of a day, {day}, up to 1000 of them"));
        }
        if !(weight > 0.0 && weight <= 1.0) {
            return Err(format!("weight is {weight}; it must be above 0 and at most 1"));
        }
        Ok(())
    }
}
