//! `conditional`: as soon as too much of the upper is modified (Roy, dissertation,
//! §3.6.2).

use flashkeel_engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Happened, View, Writeback};

/// Settings of `conditional`. The concurrency threshold S is the share of write misses
/// among write misses and evict misses (eq. 3.5), both in pages of 4 KiB. Of what it is a share, which
/// percentage is applied to it and what an evict miss is, the dissertation does not
/// say. Here S is the share of the upper that may be modified, the rest being for
/// relevant clean data, unless `of` says another; writing back begins above `start` of
/// it and goes on down to `stop`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Conditional {
    /// Of what S is a share.
    pub of: ShareOf,
    /// Part of S above which writing back begins.
    pub start: f64,
    /// Part of S at which it ends.
    pub stop: f64,
    /// What an evict miss is.
    pub evict_miss: EvictMiss,
    /// Pages on their way to the lower at once.
    pub depth: u32,
}

/// Of what S is a share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ShareOf {
    /// All that the upper can hold.
    #[default]
    Capacity,
    /// What it holds at the time.
    Held,
}

/// What counts as an evict miss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EvictMiss {
    /// Clean data evicted above that the upper does not hold.
    #[default]
    Offered,
    /// Of these, what it takes.
    Admitted,
}

impl Default for Conditional {
    /// Ours.
    fn default() -> Self {
        let (of, evict_miss) = Default::default();
        Conditional { of, start: 0.9, stop: 0.8, evict_miss, depth: 32 }
    }
}

impl Build for Conditional {
    fn build(&self) -> Box<dyn Writeback> {
        Box::new(Threshold::new(self))
    }

    fn validate(&self) -> Result<(), String> {
        let Conditional { start, stop, depth, .. } = *self;
        if !(start > 0.0 && start <= 1.0) {
            return Err(format!("start is {start}; it must be above 0 and at most 1"));
        }
        if !(0.0..=start).contains(&stop) {
            return Err(format!("stop is {stop}; it must lie between 0 and start, {start}"));
        }
        if depth == 0 {
            return Err("depth is 0; at least a page at a time".into());
        }
        Ok(())
    }
}

/// What has missed, and whether writing back has begun.
#[derive(Clone)]
pub(super) struct Threshold {
    settings: Conditional,
    /// In pages.
    write_misses: u64,
    evict_misses: u64,
    /// S; all of the upper before anything has missed.
    share: f64,
    is_going: bool,
}

impl Threshold {
    pub fn new(settings: &Conditional) -> Threshold {
        let settings = settings.clone();
        Threshold { settings, write_misses: 0, evict_misses: 0, share: 1.0, is_going: false }
    }
}

impl Writeback for Threshold {
    fn hear(&mut self, _now: Time, happened: Happened) {
        match happened {
            Happened::WriteMissed { pages } => self.write_misses += pages,
            Happened::EvictMissed { is_admitted }
                if is_admitted || self.settings.evict_miss == EvictMiss::Offered =>
            {
                self.evict_misses += 1;
            }
            Happened::EvictMissed { .. } | Happened::Arrived | Happened::Served(_) => return,
        }
        self.share = self.write_misses as f64 / (self.write_misses + self.evict_misses) as f64;
    }

    fn wants(&mut self, _now: Time, view: View) -> u64 {
        let whole = match self.settings.of {
            ShareOf::Capacity => view.frames,
            ShareOf::Held => view.used,
        };
        let share = self.share * whole as f64;
        let modified = view.modified as f64;
        self.is_going =
            modified > share * if self.is_going { self.settings.stop } else { self.settings.start };
        if !self.is_going {
            return 0;
        }
        u64::from(self.settings.depth).saturating_sub(view.on_their_way)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_back_begins_above_the_one_bound_and_ends_at_the_other() {
        let mut threshold = Threshold::new(&Conditional::default());
        let wants = |threshold: &mut Threshold, modified| {
            threshold.wants(Time::ZERO, View { frames: 1000, modified, ..View::default() }) > 0
        };
        assert!(!wants(&mut threshold, 900));
        assert!(wants(&mut threshold, 901));
        // Either is counted in pages.
        (0..100).for_each(|_| threshold.hear(Time::ZERO, Happened::WriteMissed { pages: 3 }));
        (0..100).for_each(|_| threshold.hear(Time::ZERO, Happened::EvictMissed { is_admitted: false }));
        // S is 0.75: from 675 down to 600.
        assert!(wants(&mut threshold, 601));
        assert!(!wants(&mut threshold, 600));
        assert!(!wants(&mut threshold, 675));
        assert!(wants(&mut threshold, 676));
    }

    #[test]
    fn of_what_is_held_a_half_empty_upper_may_have_less_modified() {
        let view = View { frames: 1000, used: 500, modified: 460, ..View::default() };
        let wants = |of| {
            let settings = Conditional { of, ..Conditional::default() };
            Threshold::new(&settings).wants(Time::ZERO, view) > 0
        };
        assert_eq!([ShareOf::Capacity, ShareOf::Held].map(wants), [false, true]);
    }
}
