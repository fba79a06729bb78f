//! A medium's rating, and how it is spread over days.

use flashkeel_engine::{LOGICAL_PAGE_BYTES, Span, units::Bytes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BudgetConfig;

/// What each day took is kept, and a run may have many of them.
const SHORTEST_DAY: Span = Span::from_ms(1);

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

    /// The ratings of media of these capacities, each in bytes a day.
    ///
    /// # Errors
    /// A sentence that begins with the key, if one of them is too small.
    pub fn of(&self, upper: Bytes, lower: Bytes) -> Result<Ratings, String> {
        let of = |name: &str, rating: &Option<Rating>, capacity| {
            let of = |rating: &Rating| rating.of(capacity).map_err(|message| format!("{name}.{message}"));
            rating.as_ref().map(of).transpose()
        };
        Ok(Ratings { upper: of("upper", &self.upper, upper)?, lower: of("lower", &self.lower, lower)? })
    }
}

/// What may be written to a medium, and how it is spread over the days of a week (Roy,
/// dissertation, §3.4.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rating {
    /// What may be written each day. What is written above it is critical, the rest
    /// safe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_day: Option<Bytes>,
    /// The same as a share of the medium's capacity, instead of `per_day`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive_writes_per_day: Option<f64>,
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
    pub traffic: TrafficMeasure,
}

/// What the traffic of a day is. The dissertation calls a day busy by its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrafficMeasure {
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
        let Rating { day, week, weight, .. } = *self;
        match (self.per_day, self.drive_writes_per_day) {
            (Some(per_day), None) => at_least_a_block("per_day", per_day)?,
            (None, Some(times)) if times > 0.0 && times.is_finite() => {}
            (None, Some(times)) => {
                return Err(format!("drive_writes_per_day is {times}; it must be above 0"));
            }
            (None, None) => return Err("per_day is missing, or drive_writes_per_day in its place".into()),
            (Some(_), Some(_)) => {
                return Err("per_day and drive_writes_per_day say the same; leave one out".into());
            }
        }
        if day < SHORTEST_DAY {
            return Err(format!("day is {day}; it must be {SHORTEST_DAY} or longer"));
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

    /// The rating of a medium of this capacity.
    fn of(&self, capacity: Bytes) -> Result<Rating, String> {
        let Some(times) = self.drive_writes_per_day else { return Ok(self.clone()) };
        let per_day = Bytes((capacity.0 as f64 * times) as u64);
        at_least_a_block(&format!("drive_writes_per_day of {capacity}"), per_day)?;
        Ok(Rating { per_day: Some(per_day), drive_writes_per_day: None, ..self.clone() })
    }

    /// What may be written each day by a rating [`of`](Ratings::of) a medium.
    pub(super) fn bytes_per_day(&self) -> u64 {
        self.per_day.expect("the rating of a medium").0
    }
}

fn at_least_a_block(what: &str, per_day: Bytes) -> Result<(), String> {
    if per_day.0 < LOGICAL_PAGE_BYTES {
        return Err(format!("{what} is {per_day}; at least a block of 4KiB"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lower(rating: serde_json::Value) -> Result<Ratings, String> {
        let ratings: Ratings = serde_json::from_value(json!({ "lower": rating })).unwrap();
        ratings.validate()?;
        ratings.of(Bytes(0), Bytes(1_000_000_000_000))
    }

    #[test]
    fn a_rating_by_drive_writes_scales_with_the_capacity() {
        let found = lower(json!({ "drive_writes_per_day": 0.11 })).unwrap().lower.unwrap();
        assert_eq!(found.bytes_per_day(), 110_000_000_000);
        assert_eq!(found, lower(json!({ "per_day": "110GB" })).unwrap().lower.unwrap());
    }

    #[test]
    fn what_is_no_rating_is_refused() {
        for (rating, message) in [
            (json!({}), "lower.per_day is missing, or drive_writes_per_day in its place"),
            (
                json!({ "per_day": "1GB", "drive_writes_per_day": 1.0 }),
                "lower.per_day and drive_writes_per_day say the same; leave one out",
            ),
            (json!({ "drive_writes_per_day": 0.0 }), "lower.drive_writes_per_day is 0; it must be above 0"),
            (
                json!({ "drive_writes_per_day": 1e-9 }),
                "lower.drive_writes_per_day of 1TB is 1KB; at least a block of 4KiB",
            ),
            (json!({ "per_day": "0B" }), "lower.per_day is 0B; at least a block of 4KiB"),
        ] {
            assert_eq!(lower(rating).unwrap_err(), message);
        }
    }
}
