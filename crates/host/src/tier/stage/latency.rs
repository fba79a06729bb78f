//! What requests took at the two devices.

use flashkeel_engine::Span;
use serde::Serialize;

/// One of the two devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    Lower,
    Upper,
}

/// The mean latency of requests, as the dissertation puts it together: share times latency
/// of each device, and what evicting and writing back add. A request that went to both
/// devices counts as the lower's, for which it waits. `None` where there were none.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LatencyReport {
    /// Share of those that the upper served alone: the hit ratio H.
    pub upper_share: Option<f64>,
    /// Mean latency of those while nothing was moved.
    pub upper_ns: Option<f64>,
    /// Of the others, the same.
    pub lower_ns: Option<f64>,
    /// What is added while data are moved, on average over all requests: L.
    pub added_ns: Option<f64>,
    /// What the equation gives: what requests take here on average, from when they come.
    pub mean_ns: Option<f64>,
}

/// Requests that a device served, and how long they took in all.
#[derive(Clone, Copy, Default)]
struct Served {
    requests: u64,
    ns: u64,
}

impl Served {
    fn mean_ns(self) -> Option<f64> {
        (self.requests > 0).then(|| self.ns as f64 / self.requests as f64)
    }
}

/// Requests served, by the order of [`Medium`]: all, and while nothing was moved.
#[derive(Clone, Default)]
pub(super) struct Latencies {
    all: [Served; 2],
    quiet: [Served; 2],
}

impl Latencies {
    #[inline]
    pub fn add(&mut self, medium: Medium, Span(ns): Span, is_quiet: bool) {
        let add = |served: &mut Served| {
            served.requests += 1;
            served.ns += ns;
        };
        add(&mut self.all[medium as usize]);
        if is_quiet {
            add(&mut self.quiet[medium as usize]);
        }
    }

    pub fn report(&self) -> LatencyReport {
        let of = |medium: Medium| {
            let all = self.all[medium as usize];
            (all, self.quiet[medium as usize].mean_ns().or(all.mean_ns()))
        };
        let ((upper, upper_ns), (lower, lower_ns)) = (of(Medium::Upper), of(Medium::Lower));
        let requests = upper.requests + lower.requests;
        let share = |part: Served| part.requests as f64 / requests as f64;
        let weighted = |upper_ns: Option<f64>, lower_ns: Option<f64>| {
            let each = [(upper, upper_ns), (lower, lower_ns)];
            each.into_iter().filter_map(|(part, ns)| Some(share(part) * ns?)).sum::<f64>()
        };
        let is_any = requests > 0;
        let mean_ns = is_any.then(|| weighted(upper.mean_ns(), lower.mean_ns()));
        LatencyReport {
            upper_share: is_any.then(|| share(upper)),
            upper_ns,
            lower_ns,
            added_ns: mean_ns.map(|mean| mean - weighted(upper_ns, lower_ns)),
            mean_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_times_latencies_and_what_moving_adds_make_the_mean() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.report(), LatencyReport::default());
        for (medium, ns, is_quiet) in
            [(Medium::Upper, 10, true), (Medium::Upper, 30, false), (Medium::Lower, 100, true)]
        {
            latencies.add(medium, Span(ns), is_quiet);
        }
        latencies.add(Medium::Lower, Span(160), false);
        let report = latencies.report();
        let of = |value: Option<f64>| value.expect("there were some");
        assert_eq!([report.upper_share, report.upper_ns, report.lower_ns].map(of), [0.5, 10.0, 100.0]);
        assert_eq!((of(report.mean_ns), of(report.added_ns)), (75.0, 20.0));
    }
}
