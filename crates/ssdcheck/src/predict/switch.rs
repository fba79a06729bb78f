//! Turns prediction off where it does harm, and on again where it would help.

use super::Score;

/// Predictions of a slow request between two decisions.
const WINDOW: u64 = 64;
/// Part of the predictions that must come true; more, to be turned on again.
const TARGET: f64 = 0.3;
const TARGET_AGAIN: f64 = 0.4;

/// The off-switch. Predictions are judged whether or not they are given out.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    pub is_on: bool,
    window: Score,
}

impl Switch {
    pub fn new(is_on: bool) -> Self {
        Switch { is_on, window: Score::default() }
    }

    /// Judges a prediction; true if accuracy has just been found too low.
    #[inline]
    pub fn judge(&mut self, predicted_slow: bool, is_slow: bool) -> bool {
        self.window.count(predicted_slow, is_slow);
        if self.window.slow_found + self.window.normal_missed < WINDOW {
            return false;
        }
        let precision = std::mem::take(&mut self.window).precision().unwrap_or(0.0);
        let was_on = self.is_on;
        self.is_on = precision >= if was_on { TARGET } else { TARGET_AGAIN };
        was_on && !self.is_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_off_and_on_again() {
        let mut switch = Switch::new(true);
        // A quarter comes true.
        let turned = (0..64).filter(|i| switch.judge(true, i % 4 == 0)).count();
        assert_eq!((turned, switch.is_on), (1, false));
        // A third is enough to stay on, not to go on again.
        for i in 0..64 {
            switch.judge(true, i % 3 == 0);
        }
        assert!(!switch.is_on);
        for i in 0..64 {
            switch.judge(true, i % 2 == 0);
        }
        assert!(switch.is_on);
        for _ in 0..1_000 {
            switch.judge(false, true);
        }
        assert!(switch.is_on, "what is missed does no harm");
    }
}
