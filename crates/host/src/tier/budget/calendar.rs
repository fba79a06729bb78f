//! What was written to a medium, by day and week, and what may be.

use flashkeel_engine::Time;
use serde::Serialize;

use super::{Budget, Rating, TrafficMeasure, Week};

/// A day of a medium.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DayReport {
    /// Bytes written within the rating.
    pub safe_bytes: u64,
    /// Bytes written above it.
    pub critical_bytes: u64,
    /// Bytes that might be written by the budget; none where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_bytes: Option<f64>,
}

/// The days and weeks of a medium with a rating. The first begin when it does.
#[derive(Clone)]
pub struct Calendar {
    rating: Rating,
    budget: Option<Box<dyn Budget>>,
    days_of_week: u64,
    /// Number of the day, from 0.
    day: u64,
    ends: Time,
    /// What is expected of each day of a week, in the unit of traffic.
    expected: Vec<f64>,
    /// What has come on each day of this week.
    came: Vec<f64>,
    week_budget: f64,
    day_budget: f64,
    week_written: f64,
    day_written: u64,
    /// Days that are over, and the budgets of all weeks.
    days: Vec<DayReport>,
    weeks: Vec<f64>,
}

impl Calendar {
    /// From a time on, with the same expected of every day.
    pub fn new(rating: &Rating, from: Time) -> Calendar {
        let days_of_week = rating.week.0 / rating.day.0;
        let week_budget = rating.bytes_per_day() as f64 * days_of_week as f64;
        Calendar {
            rating: rating.clone(),
            budget: rating.budget.policy().build(),
            days_of_week,
            day: 0,
            ends: from + rating.day,
            expected: vec![1.0; days_of_week as usize],
            came: vec![0.0; days_of_week as usize],
            week_budget,
            day_budget: week_budget / days_of_week as f64,
            week_written: 0.0,
            day_written: 0,
            days: Vec::new(),
            weeks: vec![week_budget],
        }
    }

    /// A request has come that writes so many bytes, 0 if it reads.
    #[inline]
    pub fn come(&mut self, now: Time, bytes: u64) {
        self.turn_to(now);
        let day = (self.day % self.days_of_week) as usize;
        self.came[day] += match self.rating.traffic {
            TrafficMeasure::Requests => 1.0,
            TrafficMeasure::Written => bytes as f64,
        };
    }

    /// Whether so many bytes more are within the day's budget.
    pub fn allows(&mut self, now: Time, bytes: u64) -> bool {
        self.turn_to(now);
        self.budget.is_none() || (self.day_written + bytes) as f64 <= self.day_budget
    }

    /// The medium gets a write.
    #[inline]
    pub fn write(&mut self, now: Time, bytes: u64) {
        self.turn_to(now);
        self.day_written += bytes;
    }

    #[inline]
    fn turn_to(&mut self, now: Time) {
        while now >= self.ends {
            self.end_day();
        }
    }

    fn today(&self) -> DayReport {
        let safe_bytes = self.day_written.min(self.rating.bytes_per_day());
        DayReport {
            safe_bytes,
            critical_bytes: self.day_written - safe_bytes,
            budget_bytes: self.budget.is_some().then_some(self.day_budget),
        }
    }

    fn end_day(&mut self) {
        let today = self.today();
        self.days.push(today);
        self.week_written += self.day_written as f64;
        self.day_written = 0;
        self.day += 1;
        self.ends += self.rating.day;
        if self.day.is_multiple_of(self.days_of_week) {
            self.end_week();
        }
        let day = (self.day % self.days_of_week) as usize;
        let all: f64 = self.expected.iter().sum();
        let share = if all > 0.0 { self.expected[day] / all } else { 1.0 / self.days_of_week as f64 };
        self.day_budget = self.week_budget * share;
    }

    /// Eq. 3.1 for each day, and the next week's budget.
    fn end_week(&mut self) {
        // What is expected before anything has come has no unit.
        let weight = if self.weeks.len() == 1 { 1.0 } else { self.rating.weight };
        for (expected, came) in self.expected.iter_mut().zip(&mut self.came) {
            *expected = weight * std::mem::take(came) + (1.0 - weight) * *expected;
        }
        if let Some(budget) = &mut self.budget {
            let rating = self.rating.bytes_per_day() as f64 * self.days_of_week as f64;
            let week = Week { rating, budget: self.week_budget, written: self.week_written };
            self.week_budget = budget.next_week(week);
        }
        self.weeks.push(self.week_budget);
        self.week_written = 0.0;
    }

    /// All days so far, the last of which is not over.
    pub fn days(&self) -> Vec<DayReport> {
        self.days.iter().cloned().chain([self.today()]).collect()
    }

    /// The budgets of all weeks so far, in bytes; none where there is no budget.
    pub fn week_budgets(&self) -> &[f64] {
        if self.budget.is_some() { &self.weeks } else { &[] }
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Span;
    use serde_json::json;

    use super::*;

    fn calendar(budget: &str) -> Calendar {
        let rating = json!({ "per_day": "1000000B", "budget": budget, "day": "1s", "week": "4s" });
        Calendar::new(&serde_json::from_value(rating).unwrap(), Time::ZERO)
    }

    #[test]
    fn a_week_is_spread_as_the_traffic_of_the_last_ones() {
        let mut calendar = calendar("anchored");
        let second = |number: u64| Time(Span::from_secs(number).0);
        for (day, requests) in [(0, 1), (1, 2), (2, 3), (3, 2)] {
            (0..requests).for_each(|_| calendar.come(second(day), 0));
            calendar.write(second(day), 1_250_000);
        }
        // 1 MB was written above the rating; the days have an eighth, a quarter, ...
        for (day, budget) in [(4, 375_000), (5, 750_000), (6, 1_125_000), (7, 750_000)] {
            assert!(calendar.allows(second(day), budget));
            assert!(!calendar.allows(second(day), budget + 1));
        }
        let days = calendar.days();
        assert_eq!((days[0].safe_bytes, days[0].critical_bytes), (1_000_000, 250_000));
        assert_eq!(days.len(), 8);
        assert_eq!(calendar.week_budgets(), [4e6, 3e6]);
    }

    #[test]
    fn without_a_budget_everything_is_allowed_and_told() {
        let mut calendar = calendar("none");
        calendar.write(Time(5), 3_000_000);
        assert!(calendar.allows(Time(6), 1 << 40));
        assert_eq!(calendar.days()[0].critical_bytes, 2_000_000);
        assert!(calendar.week_budgets().is_empty());
    }
}
