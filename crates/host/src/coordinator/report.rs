//! What a coordinator has done.

use serde::Serialize;

use super::counts::Counts;
use super::tails::Tails;
use crate::claim::Priority;

/// What a coordinator has done since the start or the last reset.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CoordinatorReport {
    /// Deterministic windows that have begun since and ended.
    pub windows: u64,
    /// Those that ended because all counts were used.
    pub used_up: u64,
    /// Those others that the device ended by itself, before their time.
    pub forced: u64,
    /// Messages between hosts and coordinator.
    pub messages: u64,
    /// Times that hosts were given more within a window.
    pub top_ups: u64,
    /// What has become of each host.
    pub hosts: Vec<HostReport>,
}

/// What has become of a host; reads are counted in 4 KiB, and only those that came in
/// deterministic windows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostReport {
    /// Its class.
    pub class: Priority,
    /// Reads that it was given in all windows.
    pub given: u64,
    /// Those of them that it made.
    pub used: u64,
    /// Reads that it asked for.
    pub asked: u64,
    /// Those of them that were beyond what it was given.
    pub beyond: u64,
    /// Those among them that it sent all the same as if they were not.
    pub overtaken: u64,
    /// Used of what was given, in percent: what a tenth, half and nine tenths of the
    /// windows do not exceed; of windows in which it was given some.
    pub utilisation_percent: Option<[u32; 3]>,
    /// Beyond of what was asked for, the same, of windows in which it asked.
    pub deficiency_percent: Option<[u32; 3]>,
    /// Windows with reads of it.
    pub windows: usize,
    /// The 99.99th percentile of its reads within each window: the median of these.
    pub tail_p50_ns: Option<u64>,
    /// Their 99th percentile.
    pub tail_p99_ns: Option<u64>,
    /// Their 99.9th.
    pub tail_p99_9_ns: Option<u64>,
    /// Their 99.99th.
    pub tail_p99_99_ns: Option<u64>,
}

/// What is counted.
#[derive(Clone, Default)]
pub(super) struct Tally {
    windows: u64,
    used_up: u64,
    forced: u64,
    pub messages: u64,
    pub top_ups: u64,
    hosts: Vec<HostTally>,
    /// The present window began before the last reset, and is left out.
    is_off: bool,
}

#[derive(Clone)]
struct HostTally {
    given: u64,
    used: u64,
    asked: u64,
    overtaken: u64,
    utilisation: [u32; 101],
    deficiency: [u32; 101],
}

impl Default for HostTally {
    fn default() -> Self {
        HostTally { given: 0, used: 0, asked: 0, overtaken: 0, utilisation: [0; 101], deficiency: [0; 101] }
    }
}

impl Tally {
    pub fn new(hosts: usize) -> Tally {
        Tally { hosts: vec![HostTally::default(); hosts], ..Tally::default() }
    }

    /// Counts anew, from the next window on.
    pub fn reset(&mut self) {
        *self = Tally { is_off: true, ..Tally::new(self.hosts.len()) };
    }

    /// A window begins.
    pub fn began(&mut self) {
        self.is_off = false;
    }

    /// All counts of the window are used.
    pub fn used_up(&mut self) {
        self.used_up += u64::from(!self.is_off);
    }

    /// The device has ended the window by itself.
    pub fn forced(&mut self) {
        self.forced += u64::from(!self.is_off);
    }

    /// A window has ended.
    pub fn ended(&mut self, counts: &Counts) {
        if self.is_off {
            return;
        }
        self.windows += 1;
        for (tally, host) in self.hosts.iter_mut().zip(&counts.hosts) {
            tally.given += host.given;
            tally.used += host.used;
            tally.asked += host.asked;
            if let Some(percent) = (host.used * 100).checked_div(host.given) {
                tally.utilisation[percent.min(100) as usize] += 1;
            }
            if let Some(percent) = (host.asked.saturating_sub(host.used) * 100).checked_div(host.asked) {
                tally.deficiency[percent as usize] += 1;
            }
        }
    }

    /// A host has sent pages beyond its count as if they were not.
    pub fn overtook(&mut self, host: usize, pages: u64) {
        self.hosts[host].overtaken += if self.is_off { 0 } else { pages };
    }

    pub fn counters(&self) -> Vec<u64> {
        let hosts = self.hosts.iter().flat_map(|host| [host.given, host.used, host.asked]);
        [self.windows, self.used_up, self.forced, self.top_ups].into_iter().chain(hosts).collect()
    }

    pub fn report(&self, counts: &Counts, tails: &Tails) -> CoordinatorReport {
        let host = |(index, (tally, host)): (usize, (&HostTally, &super::counts::HostCounts))| {
            let tail = |of_ten_thousand| tails.percentile(index, of_ten_thousand).0;
            HostReport {
                class: host.class,
                given: tally.given,
                used: tally.used,
                asked: tally.asked,
                beyond: tally.asked.saturating_sub(tally.used),
                overtaken: tally.overtaken,
                utilisation_percent: tenths(&tally.utilisation),
                deficiency_percent: tenths(&tally.deficiency),
                windows: tails.percentile(index, 0).1,
                tail_p50_ns: tail(5_000),
                tail_p99_ns: tail(9_900),
                tail_p99_9_ns: tail(9_990),
                tail_p99_99_ns: tail(9_999),
            }
        };
        CoordinatorReport {
            windows: self.windows,
            used_up: self.used_up,
            forced: self.forced,
            messages: self.messages,
            top_ups: self.top_ups,
            hosts: self.hosts.iter().zip(&counts.hosts).enumerate().map(host).collect(),
        }
    }
}

/// The 10th, 50th and 90th percentile of what is counted by percent, by nearest rank.
fn tenths(counts: &[u32; 101]) -> Option<[u32; 3]> {
    let all: u64 = counts.iter().map(|&count| u64::from(count)).sum();
    let percentile = |percent: u64| {
        let rank = (all * percent).div_ceil(100).max(1);
        let mut below = 0;
        let reached = |count: &u32| {
            below += u64::from(*count);
            below >= rank
        };
        counts.iter().position(reached).expect("the last reaches all") as u32
    };
    (all > 0).then(|| [percentile(10), percentile(50), percentile(90)])
}
