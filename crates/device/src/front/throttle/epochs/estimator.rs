//! The throttling delay estimator.

use flashkeel_engine::Span;

/// How long each page is held: nothing at first.
#[derive(Clone, Default)]
pub(super) struct Estimator {
    pub delay_ns: f64,
}

impl Estimator {
    /// An epoch of `length` in which `pages` pages, `written` bytes in all, were
    /// written has ended. The next is expected to write the same; may it write
    /// `capacity` bytes? (Formulas from a review of the READY paper.)
    pub fn adjust(&mut self, length: Span, written: f64, capacity: f64, pages: f64) {
        let per_page = length.0 as f64 / pages;
        if pages == 0.0 {
            self.delay_ns = 0.0;
        } else if written > capacity {
            self.delay_ns += per_page * (written / capacity - 1.0);
        } else {
            self.delay_ns = (self.delay_ns - per_page * (capacity / written - 1.0)).max(0.0);
        }
    }
}
