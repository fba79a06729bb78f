//! `hybrid-pas`: writes that are predicted to be slow on the SSD go to the NVM,
//! and so does a share of the others (SSDcheck's Hybrid PAS, §IV).

use flashkeel_engine::{Completion, Predictor, Request, Stream, Time};
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
}

impl Default for HybridPas {
    /// SSDcheck, Fig. 15.
    fn default() -> Self {
        HybridPas { nvm_weight: 80 }
    }
}

impl Build for HybridPas {
    fn build(&self, predictor: Option<Box<dyn Predictor>>, random: Stream) -> Box<dyn Placement> {
        Box::new(Selective {
            predictor: predictor.expect("the stack has been validated"),
            nvm_weight: u64::from(self.nvm_weight),
            random,
        })
    }

    fn needs_predictor(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), String> {
        if self.nvm_weight > 100 {
            return Err(format!("nvm_weight is {}; a percentage is at most 100", self.nvm_weight));
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Selective {
    predictor: Box<dyn Predictor>,
    nvm_weight: u64,
    random: Stream,
}

impl Placement for Selective {
    fn takes(&mut self, now: Time, write: &Request) -> bool {
        // Drawn for every write, so that a prediction does not shift the others' luck.
        let is_chosen = self.random.below(100) < self.nvm_weight;
        is_chosen || self.predictor.predict(now, &[], write).is_slow
    }

    fn submitted(&mut self, now: Time, request: &Request) {
        self.predictor.submitted(now, request);
    }

    fn completed(&mut self, now: Time, completion: &Completion) {
        self.predictor.observe(now, completion);
    }

    fn cut_power(&mut self, now: Time) {
        self.predictor.cut_power(now);
    }
}
