//! `exact`: each host tells what it will ask for, as if it knew (the dissertation on PLMC,
//! section 4.3.3: host directed, HoD; the ideal that expectations are held against).

use flashkeel_engine::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Demand, Foresight};

/// Settings of `exact`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Exact {}

impl Build for Exact {
    fn build(&self, hosts: usize) -> Box<dyn Demand> {
        Box::new(Known { at: vec![0; hosts] })
    }

    fn foresees(&self) -> bool {
        true
    }
}

#[derive(Clone)]
struct Known {
    /// The first read of each host that has not come before the last window.
    at: Vec<usize>,
}

impl Demand for Known {
    fn need(&mut self, now: Time, host: usize, window: Span, foresight: &Foresight) -> Option<u64> {
        let reads = foresight.of(host);
        let at = &mut self.at[host];
        *at += reads[*at..].partition_point(|read| read.0 < now);
        let coming = reads[*at..].partition_point(|read| read.0 < now + window);
        Some(reads[*at..*at + coming].iter().map(|read| u64::from(read.1)).sum())
    }

    fn is_exact(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_needs_what_it_will_read_in_the_window_and_nothing_else() {
        let ms = |ms: u64| Time::ZERO + Span::from_ms(ms);
        let reads = vec![(ms(0), 1), (ms(3), 2), (ms(9), 4), (ms(10), 8), (ms(30), 16)];
        let foresight = Foresight::new(vec![reads, Vec::new()]);
        let mut demand = Exact {}.build(2);
        let mut need = |at, host| demand.need(ms(at), host, Span::from_ms(10), &foresight);
        assert_eq!(need(0, 0), Some(7));
        assert_eq!(need(10, 0), Some(8));
        assert_eq!(need(21, 0), Some(16));
        assert_eq!(need(40, 0), Some(0));
        assert_eq!(need(40, 1), Some(0));
    }
}
