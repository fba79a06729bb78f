//! `opportunistic`: in the gaps between requests (Roy, dissertation, §3.6.2).

use flashkeel_engine::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Happened, View, Writeback};

/// Settings of `opportunistic`. Reads are the demand queue, which goes first; pages to
/// be written back are the other. When the first is empty and nothing is being written
/// back, as many pages go as the lower takes, one after the other, in the gap that is
/// expected between two requests. Where it would take none in that, one goes at a time in a
/// gap that has lasted longer than the lower takes for a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Opportunistic {
    /// Weight of the last gap in the expected one, above 0 up to 1 (α of eq. 3.3).
    pub weight: f64,
    /// Pages at once at most, however long the gap is expected to be.
    pub most: u32,
}

impl Default for Opportunistic {
    /// α as in the dissertation; `most` is ours.
    fn default() -> Self {
        Opportunistic { weight: 0.5, most: 64 }
    }
}

impl Build for Opportunistic {
    fn build(&self) -> Box<dyn Writeback> {
        Box::new(Gaps::new(self))
    }

    fn validate(&self) -> Result<(), String> {
        if !(self.weight > 0.0 && self.weight <= 1.0) {
            return Err(format!("weight is {}; it must be above 0 and at most 1", self.weight));
        }
        if self.most == 0 {
            return Err("most is 0; at least a page at a time".into());
        }
        Ok(())
    }
}

/// The expected gap, and how long the lower takes for a request on average.
#[derive(Clone)]
pub(super) struct Gaps {
    weight: f64,
    most: u64,
    last: Option<Time>,
    gap_ns: f64,
    served: u64,
    served_ns: u64,
    /// When the gap will have lasted longer than expected, if somebody has to ask then.
    asks_again: Time,
}

impl Gaps {
    pub fn new(settings: &Opportunistic) -> Gaps {
        let Opportunistic { weight, most } = *settings;
        Gaps {
            weight,
            most: most.into(),
            last: None,
            gap_ns: 0.0,
            served: 0,
            served_ns: 0,
            asks_again: Time::MAX,
        }
    }
}

impl Writeback for Gaps {
    fn hear(&mut self, now: Time, happened: Happened) {
        match happened {
            Happened::Arrived => {
                if let Some(last) = self.last.replace(now) {
                    let gap = now.since(last).0 as f64;
                    self.gap_ns = self.weight * gap + (1.0 - self.weight) * self.gap_ns;
                }
            }
            Happened::Served(Span(latency)) => {
                self.served += 1;
                self.served_ns += latency;
            }
            Happened::WriteMissed { .. } | Happened::EvictMissed { .. } => {}
        }
    }

    fn wants(&mut self, now: Time, view: View) -> u64 {
        // Whatever is inside ends, and somebody asks then.
        self.asks_again = Time::MAX;
        if view.reads > 0 || view.on_their_way > 0 {
            return 0;
        }
        // Eq. 3.4. Before the lower has served anything, one page tells how long it takes.
        let mean_ns = self.served_ns as f64 / self.served as f64;
        let pages = if mean_ns > 0.0 { self.gap_ns / mean_ns } else { 1.0 };
        if pages >= 1.0 {
            return (pages as u64).min(self.most);
        }
        // A burst expects none, which nobody corrects before the next request.
        let is_longer = self.last.unwrap_or(Time::ZERO) + Span(mean_ns as u64 + 1);
        if is_longer <= now {
            return 1;
        }
        self.asks_again = is_longer;
        0
    }

    fn next_event(&self) -> Option<Time> {
        Some(self.asks_again)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_pages_go_as_the_lower_takes_in_the_expected_gap() {
        let mut gaps = Gaps::new(&Opportunistic::default());
        for at in [0, 800, 1200] {
            gaps.hear(Time(at), Happened::Arrived);
        }
        // The gaps of 800 and 400 make 400 and 400; a request takes 100 and 60.
        gaps.hear(Time(1200), Happened::Served(Span(100)));
        gaps.hear(Time(1200), Happened::Served(Span(60)));
        let view = View { frames: 10, modified: 10, ..View::default() };
        assert_eq!(gaps.wants(Time(1300), view), 5);
        assert_eq!(gaps.wants(Time(1300), View { reads: 1, ..view }), 0);
        assert_eq!(gaps.wants(Time(1300), View { on_their_way: 1, ..view }), 0);
    }

    #[test]
    fn a_gap_behind_a_burst_is_used_once_it_is_long() {
        let mut gaps = Gaps::new(&Opportunistic::default());
        (0..50).for_each(|request| gaps.hear(Time(request * 20), Happened::Arrived));
        gaps.hear(Time(980), Happened::Served(Span(100)));
        let view = View { frames: 10, modified: 10, ..View::default() };
        assert_eq!(gaps.wants(Time(1000), view), 0);
        let longer = gaps.next_event().expect("it has a time of its own");
        assert_eq!(longer, Time(1081));
        assert_eq!(gaps.wants(longer, View { reads: 1, ..view }), 0);
        assert_eq!(gaps.next_event(), Some(Time::MAX), "the end of the read asks");
        for at in [1081, 1200, 60_000_000_000] {
            assert_eq!((gaps.wants(Time(at), view), gaps.next_event()), (1, Some(Time::MAX)));
        }
        gaps.hear(Time(1300), Happened::Arrived);
        gaps.hear(Time(1300), Happened::Arrived);
        gaps.hear(Time(1300), Happened::Arrived);
        assert_eq!(gaps.wants(Time(1300), view), 0, "another burst");
    }
}
