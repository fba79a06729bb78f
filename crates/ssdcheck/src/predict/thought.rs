//! From how a request stands before its volume, and from all signals, to one probability.

use flashkeel_engine::{Operation, Prediction, Request, Span, Time};

use super::mixer::{INPUTS, log2, stretch};
use super::signals::Places;
use super::volume::Volume;
use super::{Engine, Flight, View};

/// The mixture begins with these: what is said of flushes and silences counts most.
pub(super) const WEIGHTS: [f32; INPUTS] =
    [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];

/// What all of it comes to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thought {
    places: Places,
    inputs: [f32; INPUTS],
    set: u8,
    /// The logarithm of the odds before the calibration.
    odds: f32,
    /// Probability of being slow.
    pub chance: f32,
}

impl Engine {
    /// What the view and all signals come to.
    #[inline]
    pub(super) fn think(&self, now: Time, request: &Request, volume: &Volume, view: &View) -> Thought {
        let is_read = request.operation == Operation::Read;
        let (threshold_ns, base_ns) = self.model.expectation(is_read, request.sectors);
        let queue_ns = self.outstanding_pages * self.page_ns;
        let is_followed = self.drive.buffer_pages > 0 && !self.drive.is_flushed_by_reads;
        let phase = match is_followed {
            true => (u64::from(volume.pending) * 64 / u64::from(self.drive.buffer_pages)).min(63) as u32,
            false => self.signals.since_slow(),
        };
        let oldest = self.flights.iter().map(|flight| flight.submitted).min();
        let places = self.signals.places(now, request, phase, oldest);
        let slow_from = log2(threshold_ns as f32);
        let times = |ns: u64| (log2(ns as f32) - slow_from).clamp(-6.0, 6.0);
        let odds_of = |probability: f32| stretch(probability, 1.0 - probability);
        let mut inputs = [0.0; INPUTS];
        inputs[0] = 1.0;
        let share = self.slow_share[usize::from(is_read)];
        let busy = self.busy_by_size.probability(view.busy_by_size as usize, view.prior);
        let waking = self.silence.probability(view.silence as usize, asleep_prior(view.is_asleep));
        // What a silence explains is what goes beyond the share of slow ones.
        inputs[1] =
            odds_of(busy.max((waking - share) / (1.0 - share).max(f32::EPSILON)).clamp(0.0005, 0.9995));
        inputs[2] = odds_of(waking);
        inputs[3] = times(base_ns + view.wait_ns + queue_ns);
        inputs[4] = times(base_ns + queue_ns);
        inputs[5] = self.signals.mean(is_read);
        inputs[6] = log2(1.0 + self.ids.len() as f32);
        inputs[7] = odds_of(self.slow_share[usize::from(is_read)].clamp(0.001, 0.999));
        inputs[8..].copy_from_slice(&self.signals.odds(&places, is_read));
        let set = 4 * usize::from(is_read) + (self.ids.len() + 1).ilog2().min(3) as usize;
        let odds = self.mixer.mix(set, &inputs);
        Thought { places, inputs, set: set as u8, odds, chance: self.calibration.probability(odds) }
    }

    /// What the view comes to, for those who ask.
    #[inline]
    pub(super) fn prediction(&self, view: &View, thought: &Thought, request: &Request) -> Prediction {
        let is_read = request.operation == Operation::Read;
        let (threshold_ns, base_ns) = self.model.expectation(is_read, request.sectors);
        let queue_ns = self.outstanding_pages * self.page_ns;
        let expected_ns = base_ns + view.wait_ns + queue_ns;
        let normal_ns = expected_ns.min(threshold_ns);
        let slow_ns = expected_ns.max(self.slow_ns[usize::from(!is_read)]);
        let more_ns = slow_ns.saturating_sub(normal_ns) as f32 * thought.chance;
        Prediction {
            latency: Span(normal_ns + more_ns as u64),
            chance: thought.chance,
            is_slow: self.switch.is_on && thought.chance >= self.calls.least,
        }
    }

    /// The mixture, its calibration and the calls learn from an outcome.
    #[inline]
    pub(super) fn learn(&mut self, flight: &Flight, now: Time, took: Span) {
        let Thought { places, inputs, set, odds, chance } = &flight.thought;
        let (threshold_ns, _) = self.model.expectation(flight.is_read, 8 * flight.pages);
        let is_slow = took.0 > threshold_ns;
        self.signals.ended(now, flight.is_read, places, took.0, threshold_ns);
        self.mixer.learn(usize::from(*set), inputs, *odds, is_slow);
        self.calibration.learn(*odds, is_slow);
        self.calls.note(*chance, is_slow);
    }
}

/// Probability of being slow after a silence that nothing is known of.
#[inline]
pub(super) fn asleep_prior(is_asleep: bool) -> f32 {
    if is_asleep { 0.8 } else { 0.01 }
}
