//! When something will next happen.

use crate::Time;

/// When a leaf or a stage will next do something without being asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wake {
    /// Not before it is given something to do.
    #[default]
    Never,
    /// At a time that is known.
    At(Time),
    /// When something outside says so, such as a real drive: nobody here knows
    /// the time. What has a clock of its own says this even while it is idle, so
    /// that nobody runs ahead of it.
    Outside,
    /// At a time that is known, or before, when something outside says so.
    AtOrOutside(Time),
}

impl Wake {
    /// The time, where it is known.
    #[inline]
    pub fn time(self) -> Option<Time> {
        match self {
            Wake::At(time) | Wake::AtOrOutside(time) => Some(time),
            Wake::Never | Wake::Outside => None,
        }
    }

    /// Whether something outside may have a say: whoever waits has to listen,
    /// and must not take the time for later than it is.
    #[inline]
    pub fn hears_outside(self) -> bool {
        matches!(self, Wake::Outside | Wake::AtOrOutside(_))
    }

    /// Of a time, where one is known, and of whether something outside may have
    /// a say.
    #[inline]
    pub fn new(time: Option<Time>, hears_outside: bool) -> Wake {
        match (time, hears_outside) {
            (Some(time), false) => Wake::At(time),
            (Some(time), true) => Wake::AtOrOutside(time),
            (None, false) => Wake::Never,
            (None, true) => Wake::Outside,
        }
    }

    /// Whichever of two comes first.
    #[inline]
    pub fn or(self, other: Wake) -> Wake {
        let time = match (self.time(), other.time()) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        Wake::new(time, self.hears_outside() || other.hears_outside())
    }

    /// Whether something is due at or before `now`, as far as is known.
    #[inline]
    pub fn is_due(self, now: Time) -> bool {
        self.time().is_some_and(|time| time <= now)
    }
}

impl From<Option<Time>> for Wake {
    #[inline]
    fn from(time: Option<Time>) -> Wake {
        time.map_or(Wake::Never, Wake::At)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_the_first_counts_and_the_outside_is_never_forgotten() {
        let (early, late) = (Time(3), Time(7));
        assert_eq!(Wake::At(late).or(Wake::At(early)), Wake::At(early));
        assert_eq!(Wake::Never.or(Wake::At(late)), Wake::At(late));
        assert_eq!(Wake::Never.or(Wake::Outside), Wake::Outside);
        assert_eq!(Wake::At(late).or(Wake::Outside), Wake::AtOrOutside(late));
        assert_eq!(Wake::AtOrOutside(late).or(Wake::At(early)), Wake::AtOrOutside(early));
        assert_eq!(Wake::Never.or(Wake::Never), Wake::Never);
        assert!(Wake::At(early).is_due(early) && !Wake::At(late).is_due(early));
        assert!(!Wake::Outside.is_due(Time::MAX));
    }
}
