//! What is gathered of a life while it passes, however it does.

use flashkeel_engine::Time;

use super::delays::{Brief, Delays};
use super::outcome::{Moment, Response};
use super::{DAY_NS, Drive};

/// Response times of writes that are served so long and held so long.
pub(super) fn response(service: &Delays, held: &Delays) -> Response {
    let mean_ns = service.mean_ns() + held.mean_ns();
    let deviation = libm::hypot(service.deviation_ns(), held.deviation_ns());
    Response {
        mean_ns,
        variation: deviation / mean_ns,
        service_mean_ns: service.mean_ns(),
        service_p99_ns: service.quantile_ns(0.99),
        delay_mean_ns: held.mean_ns(),
        delay_quantiles_ns: [0.5, 0.9, 0.99, 0.999, 0.9999].map(|share| held.quantile_ns(share)),
        delay_longest_ns: held.longest_ns(),
        held: held.share_held(),
    }
}

/// Gathers the course of a life.
#[derive(Default)]
pub(super) struct Course {
    pub moments: Vec<Moment>,
    since: Brief,
}

/// Points of a course, evenly over the wear.
const MOMENTS: f64 = 200.0;

impl Course {
    pub fn add(&mut self, pages: f64, delay_ns: f64) {
        self.since.add(pages, delay_ns);
    }

    /// The wear stands at a share `wear` of what the drive endures.
    pub fn note(&mut self, now: Time, wear: f64) {
        if wear * MOMENTS >= self.moments.len() as f64 {
            self.moments.push(Moment {
                years: Drive::years(now.0 as f64 / DAY_NS as f64),
                wear,
                delay_mean_ns: self.since.mean_ns(),
                delay_longest_ns: self.since.longest_ns,
            });
            self.since = Brief::default();
        }
    }
}
