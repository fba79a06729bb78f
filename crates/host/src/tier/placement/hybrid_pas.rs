//! `hybrid-pas`: writes that are predicted to be slow on the SSD go to the NVM,
//! and so does a share of the others (SSDcheck's Hybrid PAS, §IV). Where few of the requests
//! are writes none does, which leaves SSD-only PAS: §IV has the user choose between the two, and
//! says that it could be done by watching the requests.

use flashkeel_engine::{Completion, Operation, Predictor, Request, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Placement};

/// Settings of `hybrid-pas`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HybridPas {
    /// Percentage of the writes predicted to be normal that go to the NVM, 0 to
    /// 100.
    pub nvm_weight: u32,
    /// Percentage of writes, 0 to 100, among some 256 requests of late (writes, and reads that the
    /// lower serves), below which no write goes to the NVM: the SSD alone serves them, with
    /// `scheduler = "pas"` as SSD-only PAS. 0: never.
    pub least_writes: u32,
}

/// Requests over which the share of writes is taken.
const MEMORY: f32 = 256.0;

impl Default for HybridPas {
    /// SSDcheck, Fig. 15.
    fn default() -> Self {
        HybridPas { nvm_weight: 80, least_writes: 0 }
    }
}

impl Build for HybridPas {
    fn build(&self, predictor: Option<Box<dyn Predictor>>, random: Stream) -> Box<dyn Placement> {
        Box::new(Selective {
            predictor: predictor.expect("the stack has been validated"),
            nvm_weight: u64::from(self.nvm_weight),
            least_writes: self.least_writes as f32 / 100.0,
            writes: 1.0,
            random,
        })
    }

    fn needs_predictor(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), String> {
        for (key, percentage) in [("nvm_weight", self.nvm_weight), ("least_writes", self.least_writes)] {
            if percentage > 100 {
                return Err(format!("{key} is {percentage}; a percentage is at most 100"));
            }
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Selective {
    predictor: Box<dyn Predictor>,
    nvm_weight: u64,
    least_writes: f32,
    /// Part of the requests of late that are writes.
    writes: f32,
    random: Stream,
}

impl Placement for Selective {
    fn came(&mut self, _write: &Request) {
        self.writes += (1.0 - self.writes) / MEMORY;
    }

    fn takes(&mut self, now: Time, write: &Request) -> bool {
        // Drawn for every write, so that a prediction does not shift the others' luck.
        let is_chosen = self.random.below(100) < self.nvm_weight;
        self.writes >= self.least_writes && (is_chosen || self.predictor.predict(now, &[], write).is_slow)
    }

    fn submitted(&mut self, now: Time, request: &Request) {
        if request.operation == Operation::Read {
            self.writes -= self.writes / MEMORY;
        }
        self.predictor.submitted(now, request);
    }

    fn completed(&mut self, now: Time, completion: &Completion) {
        self.predictor.observe(now, completion);
    }

    fn cut_power(&mut self, now: Time) {
        self.predictor.cut_power(now);
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::{Lba, Prediction, RequestId, Span};

    use super::*;

    /// Thinks that nothing is slow.
    #[derive(Clone)]
    struct Calm;

    impl Predictor for Calm {
        fn predict(&mut self, _now: Time, _ahead: &[Request], _request: &Request) -> Prediction {
            Prediction { latency: Span(10_000), chance: 0.0, is_slow: false }
        }

        fn submitted(&mut self, _now: Time, _request: &Request) {}

        fn observe(&mut self, _now: Time, _completion: &Completion) {}

        fn cut_power(&mut self, _now: Time) {}
    }

    /// Of 100 writes after 2,000 requests of which one in `of` is a write, those that are taken.
    fn taken(least_writes: u32, of: u64) -> usize {
        let settings = HybridPas { nvm_weight: 100, least_writes };
        let mut placement = settings.build(Some(Box::new(Calm)), Stream::new(1, "placement"));
        let mut takes = |id: u64, is_write: bool| {
            let operation = if is_write { Operation::Write } else { Operation::Read };
            let request = Request::new(RequestId(id), operation, Lba(0), 8);
            if is_write {
                placement.came(&request);
                return placement.takes(Time::ZERO, &request);
            }
            placement.submitted(Time::ZERO, &request);
            false
        };
        (0..2_000).for_each(|id| {
            takes(id, id % of == 0);
        });
        (2_000..2_000 + 100 * of).filter(|&id| takes(id, id % of == 0)).count()
    }

    #[test]
    fn writes_go_to_the_nvm_where_enough_of_the_requests_are_writes() {
        assert_eq!((taken(40, 1), taken(40, 2), taken(40, 4)), (100, 100, 0));
        assert_eq!((taken(0, 4), taken(0, 20)), (100, 100), "nobody asked to choose");
        assert_eq!(taken(20, 4), 100);
    }

    #[test]
    fn percentages_are_at_most_100() {
        let refused = |settings: HybridPas| settings.validate().expect_err("too much");
        assert!(refused(HybridPas { nvm_weight: 101, ..HybridPas::default() }).starts_with("nvm_weight"));
        assert!(refused(HybridPas { least_writes: 101, ..HybridPas::default() }).starts_with("least_writes"));
    }
}
