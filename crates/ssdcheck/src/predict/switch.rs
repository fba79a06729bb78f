//! Turns prediction off where it does harm, and on again where it would help.

/// Part of the predictions of a slow request that must come true; more, to be
/// turned on again. Who affords less asks for fewer false calls: this is for drives that
/// nothing can be said of.
const TARGET: f32 = 0.06;
const TARGET_AGAIN: f32 = 0.08;
/// Predictions of a slow request over which that part is taken. It runs on: a
/// drive may show so few that whole windows of them would keep what has long been
/// right turned off.
const MEMORY: f32 = 64.0;
/// The part that is presumed of a model that tells what to expect.
const PRESUMED: f32 = 0.5;

/// The off-switch. Predictions are judged whether or not they are given out.
#[derive(Clone, Debug)]
pub(super) struct Switch {
    pub is_on: bool,
    /// Part of the predictions of a slow request that came true of late.
    pub precision: f32,
}

impl Switch {
    pub fn new(is_on: bool) -> Self {
        Switch { is_on, precision: if is_on { PRESUMED } else { 0.0 } }
    }

    /// Judges a prediction; true if accuracy has just been found too low.
    #[inline]
    pub fn judge(&mut self, predicted_slow: bool, is_slow: bool) -> bool {
        if !predicted_slow {
            return false;
        }
        self.precision += (f32::from(u8::from(is_slow)) - self.precision) / MEMORY;
        let was_on = self.is_on;
        self.is_on = self.precision >= if was_on { TARGET } else { TARGET_AGAIN };
        was_on && !self.is_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_off_and_on_again() {
        let mut switch = Switch::new(true);
        // One in forty comes true.
        let turned = (1..=400).filter(|i| switch.judge(true, i % 40 == 0)).count();
        assert_eq!((turned, switch.is_on), (1, false));
        for i in 1..=64 {
            switch.judge(true, i % 2 == 0);
        }
        assert!(switch.is_on);
        // One in eight is enough to stay on.
        for i in 1..=256 {
            switch.judge(true, i % 8 == 0);
        }
        assert!(switch.is_on);
        for _ in 0..1_000 {
            switch.judge(false, true);
        }
        assert!(switch.is_on, "what is missed does no harm");
    }

    #[test]
    fn it_begins_as_it_is_told() {
        assert!(Switch::new(true).is_on);
        let mut switch = Switch::new(false);
        let needed = (1..).find(|_| {
            switch.judge(true, true);
            switch.is_on
        });
        assert_eq!(needed, Some(6));
    }
}
