//! How good predictions were, class by class.

use serde::Serialize;

/// Requests by what was predicted and what came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Score {
    /// Slow, and predicted to be.
    pub slow_found: u64,
    /// Slow, but predicted normal.
    pub slow_missed: u64,
    /// Normal, and predicted to be.
    pub normal_found: u64,
    /// Normal, but predicted slow.
    pub normal_missed: u64,
}

impl Score {
    /// Counts a request.
    #[inline]
    pub fn count(&mut self, predicted_slow: bool, is_slow: bool) {
        let counter = match (is_slow, predicted_slow) {
            (true, true) => &mut self.slow_found,
            (true, false) => &mut self.slow_missed,
            (false, false) => &mut self.normal_found,
            (false, true) => &mut self.normal_missed,
        };
        *counter += 1;
    }

    /// Part of the slow requests that were predicted; `None` if none was slow.
    pub fn slow_recall(&self) -> Option<f64> {
        part(self.slow_found, self.slow_missed)
    }

    /// Part of the normal requests that were predicted; `None` if none was normal.
    pub fn normal_recall(&self) -> Option<f64> {
        part(self.normal_found, self.normal_missed)
    }

    /// Part of the predictions of a slow request that came true; `None` if
    /// there were none.
    pub fn precision(&self) -> Option<f64> {
        part(self.slow_found, self.normal_missed)
    }
}

fn part(of: u64, others: u64) -> Option<f64> {
    (of + others > 0).then(|| of as f64 / (of + others) as f64)
}
