//! `predicted`: a copy that is not predicted to be slow, before any request to it
//! has been. Where all are, the one with the shortest latency.

use flashkeel_engine::{Completion, Predictor, Request, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Copies, Ended, Reader, least};
use crate::mirror::MOST;

/// Settings of `predicted`: none; who predicts is `predictor` of the mirror.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Predicted {}

impl Build for Predicted {
    fn build(&self, predictors: Vec<Box<dyn Predictor>>) -> Box<dyn Reader> {
        Box::new(Foresight { predictors, last: MOST - 1 })
    }

    fn needs_predictor(&self) -> bool {
        true
    }
}

#[derive(Clone)]
struct Foresight {
    /// Of each copy.
    predictors: Vec<Box<dyn Predictor>>,
    last: usize,
}

impl Reader for Foresight {
    fn choose(&mut self, now: Time, read: &Request, copies: &Copies<'_>) -> usize {
        let predictors = &mut self.predictors;
        self.last = least(copies, self.last, |copy| {
            let prediction = predictors[copy].predict(now, &[], read);
            let latency = if prediction.is_slow { prediction.latency } else { Span::ZERO };
            (prediction.is_slow, latency, copies.queued[copy])
        });
        self.last
    }

    fn submitted(&mut self, now: Time, copy: usize, request: &Request) {
        self.predictors[copy].submitted(now, request);
    }

    fn completed(&mut self, now: Time, ended: &Ended, completion: &Completion) {
        self.predictors[ended.copy].observe(now, completion);
    }

    fn cut_power(&mut self, now: Time) {
        self.predictors.iter_mut().for_each(|predictor| predictor.cut_power(now));
    }
}
