//! The wall clock as the model's.

use std::time::{Duration, Instant};

use flashkeel_engine::{Span, Time};

/// Model time that runs with the wall clock, or slower by a factor.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    from: Time,
    scale: f64,
}

impl Clock {
    /// It is `from` now. Under a `scale` of 10 a millisecond of the model takes ten.
    pub fn start(from: Time, scale: f64) -> Clock {
        Clock { start: Instant::now(), from, scale }
    }

    /// How much of the wall clock's time one of the model's takes.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// The model's time now.
    #[inline]
    pub fn now(&self) -> Time {
        let passed = self.start.elapsed().as_nanos();
        let passed = if self.scale == 1.0 { passed as u64 } else { (passed as f64 / self.scale) as u64 };
        Time(self.from.0.saturating_add(passed))
    }

    /// How much of the model's time passes in a time of the wall clock.
    #[inline]
    pub fn span(&self, time: Duration) -> Span {
        let span = time.as_nanos() as u64;
        Span(if self.scale == 1.0 { span } else { (span as f64 / self.scale) as u64 })
    }

    /// How long it is until a time of the model; nothing if that is over.
    pub fn until(&self, time: Time) -> Duration {
        let span = time.0.saturating_sub(self.now().0);
        if self.scale == 1.0 {
            Duration::from_nanos(span)
        } else {
            Duration::from_nanos((span as f64 * self.scale) as u64)
        }
    }
}
