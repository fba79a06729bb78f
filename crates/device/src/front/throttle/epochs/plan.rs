//! What a throttle by epochs is to reach: settings, and an epoch's capacity.

use flashkeel_engine::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::forecast::MINUTE;
use crate::flash::Endurance;
use crate::front::throttle::Goal;

/// Share of the mean pace at which writes may always go on, however little of
/// the endurance is left; ours, as the paper says only that writes never stop.
const LEAST_PACE: f64 = 0.1;

/// What is to be reached, and how.
// Inline, so that a policy's table of the schema has these keys itself, beside its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(inline)]
pub struct Plan {
    /// How long the device has to last, counted from the start of the run.
    pub lifetime: Span,
    /// Lengths of an epoch to choose from by the traffic, each whole minutes,
    /// at most 2h; the first is used until there is enough to judge by.
    pub epochs: Vec<Span>,
    /// Length of the regulator's periods.
    pub period: Span,
    /// Share of an epoch's capacity that may be used ahead of its time before
    /// writes are held as hard as the capacity demands, 0 to 1.
    pub spare: f64,
    /// The longest that a write is held, if there is one. What is written too soon by
    /// that is written off later epochs, so the lifetime is kept as long as writes held
    /// for no more than that leave enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_budget: Option<Span>,
}

impl Default for Plan {
    /// READY: "Experimental Setting" for the lifetime, "Cyclical Behaviors of
    /// Enterprise Workloads" for the epochs; period and spare from a review of
    /// the paper.
    fn default() -> Self {
        Plan {
            lifetime: Span::from_secs(5 * 365 * 86_400),
            epochs: [30, 1, 60, 120].map(|minutes| Span(minutes * MINUTE)).to_vec(),
            period: Span::from_secs(1),
            spare: 0.1,
            latency_budget: None,
        }
    }
}

impl Plan {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence naming the key and its range.
    pub fn validate(&self) -> Result<(), String> {
        if self.epochs.is_empty() {
            return Err("epochs is empty; give at least one length".into());
        }
        for &epoch in &self.epochs {
            if epoch == Span::ZERO || !epoch.0.is_multiple_of(MINUTE) || epoch.0 > 120 * MINUTE {
                return Err(format!("epochs: an epoch of {epoch}; it must be whole minutes, at most 2h"));
            }
            if epoch > self.lifetime {
                return Err(format!("lifetime is {}; it must be at least an epoch, {epoch}", self.lifetime));
            }
            if self.period == Span::ZERO || self.period > epoch {
                return Err(format!(
                    "period is {}; it must be above 0ns and at most an epoch, {epoch}",
                    self.period
                ));
            }
        }
        if let Some(budget) = self.latency_budget.filter(|&it| it == Span::ZERO || it > self.period) {
            return Err(format!(
                "latency_budget is {budget}; it must be above 0ns and at most a period, {}, or be left out",
                self.period
            ));
        }
        if !(0.0..=1.0).contains(&self.spare) {
            return Err(format!("spare is {}; it must lie between 0 and 1", self.spare));
        }
        Ok(())
    }

    /// The plan for a goal: of its epochs those that are not too short, and the
    /// longest in any case.
    pub(crate) fn aimed_at(&self, goal: &Goal) -> Plan {
        let mut epochs = goal.epochs.clone().unwrap_or_else(|| self.epochs.clone());
        let longest = epochs.iter().copied().max();
        epochs.retain(|&epoch| epoch >= goal.shortest_epoch || Some(epoch) == longest);
        Plan { lifetime: goal.lifetime, epochs, ..self.clone() }
    }

    /// Bytes that the host may write in an epoch that begins at `now`: what is
    /// left of the endurance but for `carried` bytes, divided by what is left of
    /// the lifetime. Never nothing, so that writes never stop: a tenth of the mean
    /// pace at least, and the whole of it once the device has outlived its lifetime, or
    /// what the throttle knows of its endurance.
    pub(super) fn capacity(&self, now: Time, epoch: Span, endurance: &Known, carried: f64) -> f64 {
        let epoch = epoch.0 as f64;
        let pace = endurance.whole_bytes * epoch / self.lifetime.0 as f64;
        if endurance.left_bytes <= 0.0 {
            return pace;
        }
        let left = self.lifetime.0.saturating_sub(now.0) as f64;
        // What is left behind the lifetime is nobody's to be saved.
        let least = if left > 0.0 { LEAST_PACE } else { 1.0 };
        ((endurance.left_bytes - carried) / (left / epoch).max(1.0)).max(least * pace)
    }
}

/// What a throttle knows of the endurance, in bytes that the host writes.
pub(super) struct Known {
    pub whole_bytes: f64,
    pub left_bytes: f64,
}

impl Known {
    /// With or without knowledge of recovery.
    pub fn new(endurance: &Endurance, knows_recovery: bool) -> Self {
        let (used, cost) =
            if knows_recovery { (endurance.wear, endurance.cost) } else { (endurance.cycles, 1.0) };
        let bytes_per_cycle = endurance.flash_bytes / endurance.write_amplification;
        Known {
            whole_bytes: endurance.rated_cycles * bytes_per_cycle,
            left_bytes: (endurance.rated_cycles - used) / cost * bytes_per_cycle,
        }
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::{Span, Time};

    use super::{Known, Plan};

    #[test]
    fn writes_never_stop_even_without_a_spare() {
        let plan = Plan { spare: 0.0, lifetime: Span::from_secs(36_000), ..Plan::default() };
        let epoch = Span::from_secs(3_600);
        let capacity = |left_bytes, carried| {
            plan.capacity(Time::ZERO, epoch, &Known { whole_bytes: 1e6, left_bytes }, carried)
        };
        assert_eq!(capacity(1e6, 0.0), 1e5);
        assert_eq!(capacity(1e3, 0.0), 1e4);
        assert_eq!(capacity(1e3, 1e3), 1e4);
        assert_eq!(capacity(0.0, 0.0), 1e5);
    }

    #[test]
    fn nothing_is_saved_for_later_behind_the_lifetime() {
        let lifetime = Span::from_secs(36_000);
        let plan = Plan { lifetime, ..Plan::default() };
        let capacity = |now, left_bytes| {
            plan.capacity(now, Span::from_secs(3_600), &Known { whole_bytes: 1e6, left_bytes }, 0.0)
        };
        let last_epoch = Time::ZERO + Span::from_secs(32_400);
        assert_eq!(capacity(last_epoch, 1e3), 1e4);
        for behind in [Span::ZERO, Span::from_secs(1_000_000)] {
            assert_eq!(capacity(Time::ZERO + lifetime + behind, 1e3), 1e5);
            assert_eq!(capacity(Time::ZERO + lifetime + behind, 5e5), 5e5);
        }
    }

    #[test]
    fn a_latency_budget_is_above_nothing_and_within_a_period() {
        let within = |latency_budget| Plan { latency_budget, ..Plan::default() }.validate();
        assert_eq!(within(Some(Span::from_ms(5))), Ok(()));
        for wrong in [Span::ZERO, Span::from_secs(2)] {
            let why = within(Some(wrong)).expect_err("out of range");
            assert!(why.starts_with("latency_budget is ") && why.contains("at most a period, 1s"), "{why}");
        }
    }
}
