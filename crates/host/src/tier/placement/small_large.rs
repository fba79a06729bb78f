//! `small-large`: writes below the average size go to the upper, the others to the
//! lower (Roy, dissertation, §3.4.1 and §3.5.3); or those up to a given size (§5.3.5).

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Predictor, Request, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Placement};

/// Settings of `small-large`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SmallLarge {
    /// Whether pages that the upper holds are written there, whatever the size.
    pub takes_hits: bool,
    /// Largest write that counts as small; if absent, those below the average size do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to: Option<Bytes>,
}

impl Default for SmallLarge {
    /// Write hits in the upper are persisted there (§3.5.3).
    fn default() -> Self {
        SmallLarge { takes_hits: true, up_to: None }
    }
}

impl Build for SmallLarge {
    fn build(&self, _predictor: Option<Box<dyn Predictor>>, _random: Stream) -> Box<dyn Placement> {
        Box::new(Sizes { takes_hits: self.takes_hits, up_to: self.up_to, writes: 0, sectors: 0 })
    }
}

/// The running mean of all writes, the one that is asked about included, or a size that
/// takes its place.
#[derive(Clone)]
struct Sizes {
    takes_hits: bool,
    up_to: Option<Bytes>,
    writes: u64,
    sectors: u64,
}

impl Placement for Sizes {
    fn came(&mut self, write: &Request) {
        self.writes += 1;
        self.sectors += u64::from(write.sectors);
    }

    fn takes(&mut self, _now: Time, write: &Request) -> bool {
        match self.up_to {
            Some(most) => write.bytes() <= most.0,
            None => u64::from(write.sectors) * self.writes < self.sectors,
        }
    }

    fn takes_hits(&self) -> bool {
        self.takes_hits
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::{Lba, Operation, RequestId};

    use super::*;

    #[test]
    fn what_is_below_the_mean_is_small_and_the_mean_itself_large() {
        let mut placement = SmallLarge::default().build(None, Stream::new(1, "test"));
        let write = |sectors| Request::new(RequestId(0), Operation::Write, Lba(0), sectors);
        let mut takes = |sectors| {
            placement.came(&write(sectors));
            placement.takes(Time::ZERO, &write(sectors))
        };
        // Means: 8, 16, 16, 14.
        assert_eq!([8, 24, 16, 8].map(&mut takes), [false, false, false, true]);
    }

    #[test]
    fn a_given_size_takes_the_place_of_the_mean() {
        let config = SmallLarge { up_to: Some(Bytes(8 << 10)), ..SmallLarge::default() };
        let mut placement = config.build(None, Stream::new(1, "test"));
        let write = |sectors| Request::new(RequestId(0), Operation::Write, Lba(0), sectors);
        let mut takes = |sectors| {
            placement.came(&write(sectors));
            placement.takes(Time::ZERO, &write(sectors))
        };
        assert_eq!([8, 16, 24, 16].map(&mut takes), [true, true, false, true]);
    }

    /// Of large writes more find no room than of small ones.
    #[test]
    fn what_finds_no_room_counts_in_the_mean() {
        let mut placement = SmallLarge::default().build(None, Stream::new(1, "test"));
        let write = |sectors| Request::new(RequestId(0), Operation::Write, Lba(0), sectors);
        placement.came(&write(64));
        placement.came(&write(8));
        assert!(placement.takes(Time::ZERO, &write(8)));
    }
}
