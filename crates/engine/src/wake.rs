//! When something will next happen.

use crate::Time;

/// When a leaf or a stage will next do something without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// [`Time::MAX`] where nobody here knows a time.
    due: Time,
    hears_outside: bool,
    has_notice: bool,
}

impl Wake {
    /// Not before it is given something to do.
    pub const NEVER: Wake = Wake { due: Time::MAX, hears_outside: false, has_notice: false };
    /// When something outside says so, such as a real drive: nobody here knows
    /// the time. What has a clock of its own says this even while it is idle, so
    /// that nobody runs ahead of it.
    pub const OUTSIDE: Wake = Wake { hears_outside: true, ..Wake::NEVER };

    /// At a time that is known.
    #[inline]
    pub const fn at(due: Time) -> Wake {
        Wake { due, ..Wake::NEVER }
    }

    /// At a time that is known, or before, when something outside says so.
    #[inline]
    pub const fn at_or_outside(due: Time) -> Wake {
        Wake { due, ..Wake::OUTSIDE }
    }

    /// Of a time, where one is known, and of whether something outside may have
    /// a say.
    #[inline]
    pub fn new(time: Option<Time>, hears_outside: bool) -> Wake {
        Wake { due: time.unwrap_or(Time::MAX), hears_outside, has_notice: false }
    }

    /// The same, and whether there is an event that has not been taken yet.
    #[inline]
    pub fn noting(self, has_notice: bool) -> Wake {
        Wake { has_notice, ..self }
    }

    /// The time; [`Time::MAX`] where none is known.
    #[inline]
    pub fn due(self) -> Time {
        self.due
    }

    /// The time, where it is known.
    #[inline]
    pub fn time(self) -> Option<Time> {
        (self.due < Time::MAX).then_some(self.due)
    }

    /// Whether something outside may have a say: whoever waits has to listen,
    /// and must not take the time for later than it is.
    #[inline]
    pub fn hears_outside(self) -> bool {
        self.hears_outside
    }

    /// Whether there is an event that has not been taken yet.
    #[inline]
    pub fn has_notice(self) -> bool {
        self.has_notice
    }

    /// Whichever of two comes first.
    #[inline]
    pub fn or(self, other: Wake) -> Wake {
        Wake {
            due: self.due.min(other.due),
            hears_outside: self.hears_outside | other.hears_outside,
            has_notice: self.has_notice | other.has_notice,
        }
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
        Wake::new(time, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_the_first_counts_and_the_outside_is_never_forgotten() {
        let (early, late) = (Time(3), Time(7));
        assert_eq!(Wake::at(late).or(Wake::at(early)), Wake::at(early));
        assert_eq!(Wake::NEVER.or(Wake::at(late)), Wake::at(late));
        assert_eq!(Wake::NEVER.or(Wake::OUTSIDE), Wake::OUTSIDE);
        assert_eq!(Wake::at(late).or(Wake::OUTSIDE), Wake::at_or_outside(late));
        assert_eq!(Wake::at_or_outside(late).or(Wake::at(early)), Wake::at_or_outside(early));
        assert_eq!(Wake::NEVER.or(Wake::NEVER), Wake::NEVER);
        assert!(Wake::at(late).noting(true).or(Wake::at(early)).has_notice());
        assert!(Wake::at(early).is_due(early) && !Wake::at(late).is_due(early));
        assert!(!Wake::OUTSIDE.is_due(Time::MAX));
    }
}
