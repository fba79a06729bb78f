//! How early sleep has to end, by how late it has ended so far.

use std::time::Duration;

/// How long before its time a completion is waited for awake, at least: sleep ends late by what
/// it takes to be run, up to 110 us where the machine is a virtual one,
const LEAST: Duration = Duration::from_micros(150);

/// and at most, where there is another processor for the client.
const MOST: Duration = Duration::from_millis(5);

/// What was added for one late end is given up within about so many that were in time.
const FORGETS: u32 = 1024;

/// How early sleep ends.
#[derive(Debug)]
pub(crate) struct Sleep {
    early: Duration,
    most: Duration,
}

impl Sleep {
    /// Nothing is known yet; whether there is one processor only.
    pub fn new(is_alone: bool) -> Sleep {
        Sleep { early: LEAST, most: if is_alone { LEAST } else { MOST } }
    }

    /// How long before somebody has to be awake it is to end.
    pub fn ends_before(&self) -> Duration {
        self.early
    }

    /// It has ended so much later than it was told to: the next may be as late again, and half.
    pub fn ended(&mut self, late: Duration) {
        let wanted = (late + late / 2).min(self.most);
        let kept = self.early - (self.early - LEAST) / FORGETS;
        self.early = wanted.max(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where processors that have nothing to do sleep deeply, sleep once ended 250 us and more
    /// too late before one answer in three.
    #[test]
    fn sleep_that_ends_late_ends_earlier_from_then_on() {
        let mut sleep = Sleep::new(false);
        sleep.ended(Duration::from_micros(60));
        assert_eq!(sleep.ends_before(), LEAST);
        sleep.ended(Duration::from_micros(400));
        assert_eq!(sleep.ends_before(), Duration::from_micros(600));
        (0..100).for_each(|_| sleep.ended(Duration::from_micros(60)));
        assert!((500..600).contains(&sleep.ends_before().as_micros()), "{sleep:?}");
        (0..10_000).for_each(|_| sleep.ended(Duration::from_micros(60)));
        assert!(sleep.ends_before() < LEAST + Duration::from_micros(2), "{sleep:?}");
        sleep.ended(Duration::from_secs(1));
        assert_eq!(sleep.ends_before(), MOST);
    }

    #[test]
    fn where_there_is_one_processor_the_client_needs_it() {
        let mut sleep = Sleep::new(true);
        sleep.ended(Duration::from_millis(4));
        assert_eq!(sleep.ends_before(), LEAST);
    }
}
