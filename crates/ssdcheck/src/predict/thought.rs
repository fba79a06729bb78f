//! From how a request stands before its volume, and from all signals, to one probability.

use flashkeel_engine::{Prediction, Span, Time};

use super::flight::{Flight, Outcome};
use super::ground::Ground;
use super::knowledge::Knowledge;
use super::mixer::{INPUTS, SETS, bounded, fixed, float, squash, stretch};
use super::queue::DEPTHS;
use super::signals::Signals;
use super::tables::{COMMON, ENTRIES, Places};
use super::view::{Terms, View};

/// The mixture begins with these: what is said of flushes and silences counts most.
pub(super) const WEIGHTS: [f32; INPUTS] = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
/// Which of what is common to all is of the requests outstanding.
const OUTSTANDING: usize = 3;
/// What is mixed of the wait for others where there are none: what it takes then its size tells, and a
/// table has that.
pub(super) const QUIET: f32 = 1.0;
/// Greatest logarithm of a time over the threshold, and of the odds.
const MOST: f32 = 6.0;
const MOST_ODDS: f32 = super::mixer::MOST - 0.01;

/// What all of it comes to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thought {
    places: Places,
    /// The logarithm of the odds for what its volume is at, and of those that all came to before
    /// the calibration.
    at_volume: f32,
    odds: f32,
    /// Probability of being slow.
    pub chance: f32,
    /// Whether it is called slow, if anything is.
    pub is_called: bool,
}

impl Knowledge {
    /// What a view, with the odds that count, and all signals come to; `is_next` if no read or write
    /// goes before the request. One pass: whatever depends neither on the request nor on the time is
    /// worked out once for all that come until the next one is submitted or ends.
    #[inline(always)]
    pub(super) fn think(
        &self,
        now: Time,
        is_next: bool,
        terms: &Terms,
        view: &View,
        flight: &mut Flight,
    ) -> Prediction {
        let &Terms { is_read, base_ns, size, .. } = terms;
        let ground = &self.signals.of[usize::from(is_read)];
        let thought = &mut flight.thought;
        let own = self.signals.own_places(now, flight.lba, size, view.phase, ground);
        let [mut by_last, by_region, by_phase] = self.signals.tables.beyond(own);
        let (mut common, mut sum) = (ground.places, ground.sum);
        if ground.is_busy || !is_next {
            (common, sum) = self.behind(now, is_read, is_next, base_ns);
        }
        if !is_next {
            // When those before it have gone, what came last will be another.
            by_last = 0.0;
        }
        thought.places = [own[0], own[1], own[2], common[0], common[1]];
        let own = [view.odds, by_last, by_region, by_phase];
        let odds = own.iter().zip(ground.weights.iter().step_by(2)).map(|(input, weight)| input * weight);
        let odds = bounded(sum + odds.sum::<f32>(), MOST_ODDS);
        let chance = self.calibration.probability(odds);
        let latencies = is_next.then(|| Signals::latencies(&thought.places));
        let is_called = self.calls.calls(chance, latencies);
        (thought.at_volume, thought.odds, thought.chance) = (view.odds, odds, chance);
        thought.is_called = is_called;
        // Expected is the mean of what it takes if it is slow and if it is not.
        let further_ns = view.wait_ns + self.queue_ns;
        let normal_ns = base_ns.wrapping_add_signed(ground.margin_ns.min(further_ns as i64));
        let slow_ns = ground.slow_ns.max(base_ns + further_ns);
        let more_ns = ((slow_ns - normal_ns) * u64::from(fixed(chance))) >> 16;
        Prediction { latency: Span(normal_ns + more_ns), chance, is_slow: self.switch.is_on && is_called }
    }

    /// The places that a request has in common with others where it stands behind some, and what these
    /// come to in the mixture.
    #[inline(never)]
    fn behind(&self, now: Time, is_read: bool, is_next: bool, base_ns: u64) -> ([u32; COMMON], f32) {
        let Ground { mut places, is_busy, .. } = self.signals.of[usize::from(is_read)];
        if is_busy {
            let first = places[1] / ENTRIES as u32 * ENTRIES as u32;
            places[1] = first + self.signals.queue().place(now, self.oldest);
        }
        let mut inputs = self.common(is_read, places, self.quiet(is_read, places, base_ns, self.queue_ns));
        if !is_next {
            // When those before it have gone, what is outstanding will be others.
            inputs[OUTSTANDING] = 0.0;
        }
        (places, common_sum(self.mixer.weights(places[0] as usize / ENTRIES), inputs))
    }

    /// What is mixed of what a request has in common with others, and of the wait for these.
    #[inline]
    pub(super) fn common(&self, is_read: bool, places: [u32; COMMON], quiet: f32) -> [f32; INPUTS / 2] {
        let (_, share_odds) = self.signals.share(is_read);
        let [mean, outstanding] = self.signals.tables.beyond(places);
        [share_odds, quiet, mean, outstanding]
    }

    /// What is mixed of the wait for those that a request at these places stands behind.
    #[inline]
    fn quiet(&self, is_read: bool, places: [u32; COMMON], base_ns: u64, queue_ns: u64) -> f32 {
        if (places[0] as usize / ENTRIES).is_multiple_of(DEPTHS) {
            return QUIET;
        }
        let threshold_ns = self.signals.of[usize::from(is_read)].threshold_ns(base_ns);
        bounded(stretch(float(base_ns + queue_ns), float(threshold_ns)), MOST)
    }

    /// The histories, the signals, the mixture, its calibration and the calls learn from an outcome,
    /// as if it had come so many times.
    #[inline]
    pub(super) fn learn(&mut self, flight: &Flight, outcome: &Outcome, times: u32) {
        let (is_slow, was_slow) = (outcome.is_slow(), outcome.was_slow());
        let &Flight { is_read, base_ns, queue_ns, .. } = flight;
        if let Some(woken) = &flight.woken {
            self.silence.note(woken.silence as usize, is_slow, times);
        }
        if !flight.is_waking() {
            self.circumstances.note(flight.place, is_slow, times);
        }
        let &Thought { places, at_volume, odds, chance, is_called } = &flight.thought;
        let [last, region, phase, mean, outstanding] = places;
        let [by_last, by_region, by_phase] = self.signals.tables.beyond([last, region, phase]);
        let common = [mean, outstanding];
        let quiet = self.quiet(is_read, common, base_ns, queue_ns);
        let [share, quiet, mean, outstanding] = self.common(is_read, common, quiet);
        let inputs = [at_volume, share, by_last, quiet, by_region, mean, by_phase, outstanding];
        self.signals.learn(is_read, &places, was_slow, times);
        let (error, times) = (f32::from(u8::from(was_slow)) - squash(odds), times as i32 as f32);
        // What is as sure as can be and comes true teaches nothing: steps of the weights, which know no
        // size, would go on for ever.
        if was_slow == (odds < 0.0) || odds.abs() < MOST_ODDS {
            self.mixer.learn(places[0] as usize / ENTRIES % SETS, &inputs, error, times);
        }
        self.calibration.learn(odds, error, times);
        self.calls.note(chance, is_called, Signals::latencies(&places), was_slow, times);
    }
}

/// What the inputs come to that a request has in common with others.
#[inline]
pub(super) fn common_sum(weights: &[f32; INPUTS], inputs: [f32; INPUTS / 2]) -> f32 {
    weights.iter().skip(1).step_by(2).zip(inputs).map(|(weight, input)| weight * input).sum()
}

/// Probability of being slow after a silence that nothing is known of.
#[inline]
pub(super) fn asleep_prior(is_asleep: bool) -> f32 {
    if is_asleep { 0.8 } else { 0.01 }
}
