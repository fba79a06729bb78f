//! From how a request stands before its volume, and from all signals, to one probability.

use flashkeel_engine::{Prediction, Span, Time};

use super::flight::Flight;
use super::knowledge::Knowledge;
use super::mixer::{INPUTS, SETS, bounded, fixed, float, squash, stretch};
use super::signals::Signals;
use super::tables::{Places, SIGNALS};
use super::view::Terms;

/// The mixture begins with these: what is said of flushes and silences counts most.
pub(super) const WEIGHTS: [f32; INPUTS] = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
/// Inputs that are no signal's.
const OWN: usize = INPUTS - SIGNALS;
/// Greatest logarithm of a time over the threshold.
const MOST: f32 = 6.0;
/// Greatest probability of what a silence brings.
const MOST_LIKELY: f32 = 0.9995;

/// What all of it comes to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thought {
    places: Places,
    inputs: [f32; INPUTS],
    set: u8,
    /// The logarithm of the odds before the calibration.
    odds: f32,
    /// Probability of being slow.
    pub chance: f32,
    /// Whether it is called slow, if anything is.
    pub is_called: bool,
}

impl Knowledge {
    /// What the view and all signals come to; `is_next` if nothing else goes before the request.
    #[inline(always)]
    pub(super) fn think(&self, now: Time, is_next: bool, flight: &mut Flight) {
        let Terms { is_read, base_ns, queue_ns, threshold_ns, .. } = flight.terms;
        let queue = self.signals.queue();
        let thought = &mut flight.thought;
        let (share, share_odds) = self.signals.share(is_read);
        let mut busy = flight.view.busy_chance;
        if let Some(woken) = &flight.woken {
            // What a silence explains is what goes beyond the share of slow ones.
            let beyond = (woken.chance - share) / (1.0 - share + f32::EPSILON);
            busy = if beyond > busy { beyond } else { busy };
            busy = if busy < MOST_LIKELY { busy } else { MOST_LIKELY };
        }
        let quiet = stretch(float(base_ns + queue_ns), float(threshold_ns));
        thought.inputs[..OWN].copy_from_slice(&[share_odds, stretch(busy, 1.0 - busy), bounded(quiet, MOST)]);
        self.signals.places(
            now,
            flight.lba,
            &flight.terms,
            flight.view.phase,
            self.oldest,
            &mut thought.places,
        );
        self.signals.tables.beyond(&thought.places, &mut thought.inputs[OWN..]);
        let set = SETS / 2 * usize::from(is_read) + usize::from(queue.depth);
        thought.set = set as u8;
        thought.odds = self.mixer.mix(set, &thought.inputs);
        thought.chance = self.calibration.probability(thought.odds);
        let latencies = is_next.then(|| Signals::latencies(&thought.places));
        thought.is_called = self.calls.calls(thought.chance, latencies);
    }

    /// What the view comes to, for those who ask.
    #[inline(always)]
    pub(super) fn prediction(&self, flight: &Flight) -> Prediction {
        let Terms { is_read, base_ns, queue_ns, threshold_ns, .. } = flight.terms;
        let chance = flight.thought.chance;
        let expected_ns = base_ns + flight.view.wait_ns + queue_ns;
        let normal_ns = expected_ns.min(threshold_ns);
        let slow_ns = expected_ns.max(self.slow_ns[usize::from(!is_read)]);
        let more_ns = ((slow_ns - normal_ns) * u64::from(fixed(chance))) >> 16;
        Prediction {
            latency: Span(normal_ns + more_ns),
            chance,
            is_slow: self.switch.is_on && flight.thought.is_called,
        }
    }

    /// The signals, the mixture, its calibration and the calls learn from an outcome.
    #[inline]
    pub(super) fn learn(&mut self, flight: &Flight, is_slow: bool) {
        let Thought { places, inputs, set, odds, chance, .. } = &flight.thought;
        let times = self.sample.times(*chance, is_slow);
        if times == 0 {
            return;
        }
        self.signals.learn(places, flight.terms.is_read, is_slow, times);
        let (error, times) = (f32::from(u8::from(is_slow)) - squash(*odds), times as i32 as f32);
        self.mixer.learn(usize::from(*set), inputs, error, times);
        self.calibration.learn(*odds, error, times);
        self.calls.note(*chance, Signals::latencies(places), is_slow, times);
    }
}

/// Probability of being slow after a silence that nothing is known of.
#[inline]
pub(super) fn asleep_prior(is_asleep: bool) -> f32 {
    if is_asleep { 0.8 } else { 0.01 }
}
