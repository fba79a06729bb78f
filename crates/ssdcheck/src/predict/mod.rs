//! Prediction at run time: volume selector, prediction engine, latency
//! monitor, calibrator (§III-C2).
//!
//! The paper's model says when a flush or a collection blocks a volume. What
//! else a drive does (it sleeps, folds an SLC cache, writes its map) shows in
//! *when* requests are slow: after a silence, while others are slow, at this or
//! that time after a flush began, a certain number of flushes after the last time.
//! Histories learn that, and take the model's word where they have seen nothing
//! yet.

mod calibration;
mod calibrator;
mod calls;
mod circumstances;
mod crowd;
mod flight;
mod flushes;
mod ground;
mod history;
mod intervals;
mod knowledge;
mod learned;
mod mixer;
mod naive;
mod phase;
mod placing;
mod queue;
mod sample;
mod scale;
mod score;
mod signals;
mod silence;
mod switch;
mod tables;
mod thought;
mod view;
mod volume;

use flashkeel_engine::{
    Completion, Filling, Operation, Prediction, Predictor, Request, RequestId, Span, Time,
};

pub use learned::Learned;
pub use score::Score;

use crate::DeviceModel;
use crowd::{Crowd, FEW};
use flight::Flight;
use knowledge::Knowledge;

/// Predicts the requests of one drive from its model, and corrects itself.
#[derive(Clone, Debug)]
pub struct Engine {
    knowledge: Knowledge,
    /// How many requests are outstanding.
    outstanding: usize,
    /// What was thought of each of these, and then of the last request that was asked for: whoever
    /// submits it need not wait for that again, as long as nothing has been submitted or has ended since.
    flights: Vec<Flight>,
    /// Where each of many is.
    crowd: Crowd,
}

impl Engine {
    /// An engine that knows no more than `model` says, and begins with what was learnt before if
    /// that is in it. Of the normal requests it calls no
    /// greater part slow than `false_calls`; without that, as many as give the greatest
    /// harmonic mean of recall and precision, or the paper's share.
    pub fn new(model: &DeviceModel, false_calls: Option<f64>) -> Self {
        let knowledge = Knowledge::new(model, false_calls);
        Engine { knowledge, outstanding: 0, flights: Vec::new(), crowd: Crowd::default() }
    }

    /// Whether predictions are given out; otherwise every request is predicted
    /// to be normal.
    pub fn is_on(&self) -> bool {
        self.knowledge.switch.is_on
    }

    /// Whether a request that took `latency` was slow.
    #[inline]
    pub fn is_slow(&self, operation: Operation, sectors: u32, latency: Span) -> bool {
        latency.0 > self.knowledge.model.expectation(operation == Operation::Read, sectors).0
    }

    /// The model with what has been learnt: who begins with it need not learn it again.
    pub fn model(&self) -> DeviceModel {
        self.knowledge.model()
    }

    /// A request has ended that is not the only one outstanding.
    #[inline(never)]
    fn one_of_several_ended(&mut self, completion: &Completion) {
        let flights = &mut self.flights[..self.outstanding];
        let Some(place) = self.crowd.place(completion.id, flights) else {
            return self.knowledge.flushes.ended(completion.id, completion.time);
        };
        let gone = flights[place];
        self.knowledge.ended(&gone, completion.time);
        self.outstanding -= 1;
        flights[place] = flights[self.outstanding];
        let left = &flights[..self.outstanding];
        self.crowd.left(&gone, place, left);
        if gone.submitted == self.knowledge.oldest {
            self.knowledge.oldest = self.crowd.oldest(left).unwrap_or_default();
        }
    }
}

impl Predictor for Engine {
    #[inline]
    fn predict(&mut self, now: Time, ahead: &[Request], request: &Request) -> Prediction {
        let Some(asked) = self.flights.get_mut(self.outstanding) else {
            self.flights.push(Flight::default());
            return self.predict(now, ahead, request);
        };
        if !ahead.is_empty() {
            if !self.knowledge.is_settled(request.operation == Operation::Read) {
                // What was thought before would be taken for what is thought now.
                asked.id = RequestId::NONE;
            }
            return self.knowledge.look_behind(now, ahead, request);
        }
        if request.fua {
            return self.knowledge.look_at_durable(now, request, asked);
        }
        self.knowledge.look(now, request, asked)
    }

    fn filling(&self, write: &Request) -> Option<Filling> {
        self.knowledge.filling(write)
    }

    #[inline]
    fn submitted(&mut self, now: Time, request: &Request) {
        if !matches!(request.operation, Operation::Read | Operation::Write) {
            return self.knowledge.other_submitted(now, request);
        }
        let Some(asked) = self.flights.get_mut(self.outstanding) else {
            self.flights.push(Flight::default());
            return self.submitted(now, request);
        };
        if !asked.is_of(now, request) || !self.knowledge.is_settled(asked.is_read) {
            let _ = self.knowledge.look(now, request, asked);
        }
        self.knowledge.submitted(now, request, asked);
        self.outstanding += 1;
        if self.outstanding >= FEW {
            self.crowd.came(&self.flights[..self.outstanding]);
        }
        if request.fua && request.operation == Operation::Write {
            self.knowledge.durable_submitted(now, request, &mut self.flights[self.outstanding - 1]);
        }
    }

    fn observe(&mut self, _now: Time, completion: &Completion) {
        match self.flights.first() {
            Some(flight) if self.outstanding == 1 && flight.id == completion.id => {
                self.outstanding = 0;
                self.knowledge.ended(flight, completion.time);
            }
            _ => self.one_of_several_ended(completion),
        }
    }

    fn cut_power(&mut self, now: Time) {
        self.outstanding = 0;
        self.crowd.clear();
        self.knowledge.cut_power(now);
    }
}
