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
/// Greatest logarithm of a time over the threshold.
const MOST: f32 = 6.0;

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
    /// What a view with these `odds` and this `phase`, and all signals, come to; `is_next` if no read
    /// or write goes before the request. One pass: whatever does not depend on the request or on the time
    /// has been worked out when the last one was submitted or ended.
    #[inline(always)]
    pub(super) fn think(
        &self,
        now: Time,
        is_next: bool,
        terms: &Terms,
        odds: f32,
        phase: u32,
        flight: &mut Flight,
    ) -> Prediction {
        let &Terms { is_read, base_ns, queue_ns, threshold_ns, .. } = terms;
        let thought = &mut flight.thought;
        let (_, share_odds) = self.signals.share(is_read);
        let places = &mut thought.places;
        self.signals.places(now, flight.lba, terms, phase, places);
        let mut set = SETS / 2 * usize::from(is_read);
        // Where nothing is before it, its size tells what it takes, and a table has that.
        let mut quiet = 1.0;
        if self.signals.is_busy() {
            let queue = self.signals.queue();
            places[SIGNALS - 1] = queue.place(now, self.oldest);
            set += queue.depth();
            quiet = bounded(stretch(float(base_ns + queue_ns), float(threshold_ns)), MOST);
        }
        let [mut last, mean, region, phase, mut outstanding] = self.signals.tables.beyond(set, places);
        if !is_next {
            // When those before it have gone, what came last and what is outstanding will be others.
            (last, outstanding) = (0.0, 0.0);
        }
        thought.inputs = [share_odds, odds, quiet, last, mean, region, phase, outstanding];
        thought.set = set as u8;
        thought.odds = self.mixer.mix(set, &thought.inputs);
        thought.chance = self.calibration.probability(thought.odds);
        let latencies = is_next.then(|| Signals::latencies(&thought.places));
        thought.is_called = self.calls.calls(thought.chance, latencies);
        // Expected is the mean of what it takes if it is slow and if it is not.
        let expected_ns = base_ns + flight.wait_ns + queue_ns;
        let normal_ns = expected_ns.min(threshold_ns);
        let slow_ns = expected_ns.max(self.slow_ns[usize::from(!is_read)]);
        let more_ns = ((slow_ns - normal_ns) * u64::from(fixed(thought.chance))) >> 16;
        Prediction {
            latency: Span(normal_ns + more_ns),
            chance: thought.chance,
            is_slow: self.switch.is_on && thought.is_called,
        }
    }

    /// The histories, the signals, the mixture, its calibration and the calls learn from an outcome,
    /// as if it had come so many times: `is_slow` but for the queue, and `was_slow` in all.
    #[inline(never)]
    pub(super) fn learn(&mut self, flight: &Flight, is_slow: bool, was_slow: bool, times: u32) {
        if let Some(woken) = &flight.woken {
            self.silence.note(woken.silence as usize, is_slow, times);
        }
        if !flight.is_waking() {
            self.circumstances.note(flight.place, flight.waits, is_slow, times);
        }
        let Thought { places, inputs, set, odds, chance, .. } = &flight.thought;
        let set = usize::from(*set);
        self.signals.learn(set, places, was_slow, times);
        let (error, times) = (f32::from(u8::from(was_slow)) - squash(*odds), times as i32 as f32);
        self.mixer.learn(set, inputs, error, times);
        self.calibration.learn(*odds, error, times);
        self.calls.note(*chance, Signals::latencies(places), was_slow, times);
    }
}

/// Probability of being slow after a silence that nothing is known of.
#[inline]
pub(super) fn asleep_prior(is_asleep: bool) -> f32 {
    if is_asleep { 0.8 } else { 0.01 }
}
