//! `debit`: each task may have only so many operations outstanding, in
//! proportion to its share; shares follow the state of the FTL by feedback
//! (AutoSSD, §3.2 and §3.3). Not work-conserving on purpose.

use flashkeel_engine::{Span, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arbiter, Build, Pending, Signals};
use crate::address::ChipId;
use crate::config::LONGEST;
use crate::sched::Task;

/// Settings of `debit`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Debit {
    /// How often shares are adjusted.
    pub period: Span,
    /// P of eq. 1: share per missing free block.
    pub gc_p: f64,
    /// I of eq. 1: what remains of the former share after a period; below 1.
    pub gc_i: f64,
    /// Smallest share of garbage collection while it is active.
    pub gc_min: f64,
    /// Largest share of garbage collection.
    pub gc_max: f64,
    /// A fixed share for garbage collection instead of the feedback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gc_static: Option<f64>,
    /// Share of map traffic; the host has what garbage collection leaves.
    pub map: f64,
}

impl Default for Debit {
    /// AutoSSD tuned P and I by hand and gives no values; these are ours.
    fn default() -> Self {
        Debit {
            period: Span::from_ms(1),
            gc_p: 1e-5,
            gc_i: 0.999,
            gc_min: 0.02,
            gc_max: 0.8,
            gc_static: None,
            map: 0.25,
        }
    }
}

impl Build for Debit {
    fn build(&self, chips: u32, depth: u32, random: Stream) -> Box<dyn Arbiter> {
        let mut arbiter = DebitArbiter {
            settings: self.clone(),
            random,
            slots: chips * depth,
            gc_share: self.gc_static.unwrap_or(self.gc_min),
            gc_active: false,
            debit: [0; Task::COUNT],
            limit: [0; Task::COUNT],
            open: 0,
        };
        arbiter.apply_shares();
        Box::new(arbiter)
    }

    fn validate(&self) -> Result<(), String> {
        let share = |key: &str, value: f64| match value {
            0.0..=1.0 => Ok(()),
            _ => Err(format!("scheduler.{key} is {value}; a share lies between 0 and 1")),
        };
        share("gc_min", self.gc_min)?;
        share("gc_max", self.gc_max)?;
        share("map", self.map)?;
        share("gc_static", self.gc_static.unwrap_or(0.0))?;
        if self.gc_min > self.gc_max {
            return Err(format!("scheduler.gc_min ({}) is above gc_max ({})", self.gc_min, self.gc_max));
        }
        if !(0.0..1.0).contains(&self.gc_i) {
            return Err(format!("scheduler.gc_i is {}; it must be at least 0 and below 1", self.gc_i));
        }
        if !(self.gc_p >= 0.0 && self.gc_p.is_finite()) {
            return Err(format!("scheduler.gc_p is {}; it must not be negative", self.gc_p));
        }
        if !(SHORTEST_PERIOD..=LONGEST).contains(&self.period) {
            return Err(format!(
                "scheduler.period is {}; it must lie between {SHORTEST_PERIOD} and {LONGEST}",
                self.period
            ));
        }
        Ok(())
    }
}

/// Shorter periods would only cost time: an operation lasts longer.
const SHORTEST_PERIOD: Span = Span::from_us(1);
/// At rest a share decays until it is this close to its least value.
const SETTLED_WITHIN: f64 = 1e-6;

#[derive(Clone)]
struct DebitArbiter {
    settings: Debit,
    random: Stream,
    /// Slots of all chips: the total that shares divide.
    slots: u32,
    gc_share: f64,
    gc_active: bool,
    /// Outstanding operations of each task.
    debit: [u32; Task::COUNT],
    /// Most operations each task may have outstanding.
    limit: [u32; Task::COUNT],
    /// Bit set of the tasks below their limit.
    open: u32,
}

impl DebitArbiter {
    fn apply_shares(&mut self) {
        let limit = |share: f64| ((share * f64::from(self.slots)) as u32).max(1);
        let gc_share = if self.gc_active { self.gc_share } else { 0.0 };
        self.limit[Task::Gc as usize] = limit(self.gc_share);
        self.limit[Task::Map as usize] = limit(self.settings.map);
        self.limit[Task::Host as usize] = limit(1.0 - gc_share);
        for task in 0..Task::COUNT {
            self.refresh(task);
        }
    }

    #[inline]
    fn refresh(&mut self, task: usize) {
        let open = u32::from(self.debit[task] < self.limit[task]);
        self.open = self.open & !(1 << task) | open << task;
    }

    /// Room below the limit, relative to it, as a weight.
    #[inline]
    fn weight(&self, task: Task) -> u64 {
        let (debit, limit) = (self.debit[task as usize], self.limit[task as usize]);
        u64::from(limit - debit) * 1024 / u64::from(limit)
    }
}

impl Arbiter for DebitArbiter {
    #[inline]
    fn open_tasks(&self) -> u32 {
        self.open
    }

    #[inline]
    fn pick(&mut self, _chip: ChipId, pending: &Pending<'_>) -> Task {
        let mut task = pending.tasks().next().expect("something is pending");
        if pending.mask.count_ones() > 1 {
            // At random, in favour of the smaller debit relative to its limit.
            let total: u64 = pending.tasks().map(|task| self.weight(task) + 1).sum();
            let mut at = self.random.below(total);
            for candidate in pending.tasks() {
                task = candidate;
                let weight = self.weight(candidate) + 1;
                if at < weight {
                    break;
                }
                at -= weight;
            }
        }
        self.debit[task as usize] += 1;
        self.refresh(task as usize);
        task
    }

    #[inline]
    fn completed(&mut self, task: Task) {
        self.debit[task as usize] -= 1;
        self.refresh(task as usize);
    }

    fn control_period(&self) -> Option<Span> {
        Some(self.settings.period)
    }

    fn control(&mut self, signals: &Signals) {
        let Debit { gc_p, gc_i, gc_min, gc_max, gc_static, .. } = self.settings;
        self.gc_active = signals.gc_active;
        // S[t] = P e[t] + I S[t-1] (eq. 1).
        let share = gc_p * f64::from(signals.free_block_shortfall) + gc_i * self.gc_share;
        let share = if !signals.gc_active && share < gc_min + SETTLED_WITHIN { gc_min } else { share };
        // The host's share is of no use to writes that wait for a free block.
        let share = if signals.host_stalled { gc_max } else { share };
        self.gc_share = gc_static.unwrap_or(share.clamp(gc_min, gc_max));
        self.apply_shares();
    }

    fn is_settled(&self) -> bool {
        !self.gc_active && (self.settings.gc_static.is_some() || self.gc_share <= self.settings.gc_min)
    }

    fn shares_ppm(&self) -> [u64; Task::COUNT] {
        let ppm = |share: f64| (share * 1e6) as u64;
        let gc = if self.gc_active { self.gc_share } else { 0.0 };
        let mut shares = [0; Task::COUNT];
        shares[Task::Gc as usize] = ppm(gc);
        shares[Task::Map as usize] = ppm(self.settings.map);
        shares[Task::Host as usize] = ppm(1.0 - gc);
        shares
    }
}
