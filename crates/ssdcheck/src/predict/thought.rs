//! From how a request stands before its volume, and from all signals, to one probability.

use flashkeel_engine::{Lba, Prediction, Span, Time};

use super::mixer::{INPUTS, bounded, float, log2, stretch};
use super::signals::{Places, SIGNALS};
use super::view::{Terms, View};
use super::volume::Volume;
use super::{Engine, Flight};

/// The mixture begins with these: what is said of flushes and silences counts most.
pub(super) const WEIGHTS: [f32; INPUTS] =
    [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
/// Inputs that are no signal's.
const OWN: usize = INPUTS - SIGNALS;
/// Greatest logarithm of a time over the threshold.
const MOST: f32 = 6.0;
/// Least probability of what a volume is at, and of a share.
const LEAST: f32 = 0.0005;
const LEAST_SHARE: f32 = 0.001;

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
}

impl Engine {
    /// What the view and all signals come to.
    #[inline(always)]
    pub(super) fn think(&self, now: Time, lba: Lba, terms: &Terms, volume: &Volume, view: &View) -> Thought {
        let &Terms { is_read, base_ns, queue_ns, threshold_ns, .. } = terms;
        let is_followed = self.drive.buffer_pages > 0 && !self.drive.is_flushed_by_reads;
        let phase = match is_followed {
            true => (volume.pending * 64 / self.drive.buffer_pages).min(63),
            false => self.signals.since_slow(),
        };
        let oldest = if self.ids.is_empty() { now } else { self.oldest };
        let places = self.signals.places(now, lba, terms, phase, oldest);
        let share = self.slow_share[usize::from(is_read)];
        // What a silence explains is what goes beyond the share of slow ones.
        let beyond = (view.waking_chance - share) / (1.0 - share + f32::EPSILON);
        let busy = if beyond > view.busy_chance { beyond } else { view.busy_chance };
        let busy = 0.5 + bounded(busy - 0.5, 0.5 - LEAST);
        let threshold = float(threshold_ns);
        let quiet_ns = base_ns + queue_ns;
        let ratios = [
            (busy, 1.0 - busy),
            (view.waking_chance, 1.0 - view.waking_chance),
            (float(quiet_ns + view.wait_ns), threshold),
            (float(quiet_ns), threshold),
        ]
        .map(|(of, to)| stretch(of, to));
        let outstanding = self.ids.len() as u32;
        let own: [f32; OWN] = [
            1.0,
            self.signals.mean(is_read),
            log2((1 + outstanding) as i32 as f32),
            self.share_odds[usize::from(is_read)],
            ratios[0],
            ratios[1],
            bounded(ratios[2], MOST),
            bounded(ratios[3], MOST),
        ];
        let signals = self.signals.odds(&places, is_read);
        let inputs = std::array::from_fn(|at| if at < OWN { own[at] } else { signals[at - OWN] });
        let set = 4 * usize::from(is_read) + (outstanding + 1).ilog2().min(3) as usize;
        let odds = self.mixer.mix(set, &inputs);
        Thought { places, inputs, set: set as u8, odds, chance: self.calibration.probability(odds) }
    }

    /// What the view comes to, for those who ask.
    #[inline(always)]
    pub(super) fn prediction(&self, terms: &Terms, view: &View, thought: &Thought) -> Prediction {
        let &Terms { is_read, base_ns, queue_ns, threshold_ns, .. } = terms;
        let expected_ns = base_ns + view.wait_ns + queue_ns;
        let normal_ns = expected_ns.min(threshold_ns);
        let slow_ns = expected_ns.max(self.slow_ns[usize::from(!is_read)]);
        let more_ns = float(slow_ns - normal_ns) * thought.chance;
        Prediction {
            latency: Span(normal_ns + more_ns as i64 as u64),
            chance: thought.chance,
            is_slow: self.switch.is_on && thought.chance >= self.calls.least,
        }
    }

    /// The mixture, its calibration and the calls learn from an outcome.
    #[inline]
    pub(super) fn learn(&mut self, flight: &Flight, now: Time, took: Span, is_slow: bool) {
        let Thought { places, inputs, set, odds, chance } = &flight.thought;
        self.signals.ended(now, &flight.terms, places, took.0);
        self.mixer.learn(usize::from(*set), inputs, *odds, is_slow);
        self.calibration.learn(*odds, is_slow);
        self.calls.note(*chance, is_slow);
    }
}

/// The logarithm of the odds of a share of slow requests.
#[inline]
pub(super) fn share_odds(share: f32) -> f32 {
    let share = share.clamp(LEAST_SHARE, 1.0 - LEAST_SHARE);
    stretch(share, 1.0 - share)
}

/// Probability of being slow after a silence that nothing is known of.
#[inline]
pub(super) fn asleep_prior(is_asleep: bool) -> f32 {
    if is_asleep { 0.8 } else { 0.01 }
}
