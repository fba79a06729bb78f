//! What hosts will read, for those who go by it.

use std::sync::Arc;

use flashkeel_engine::Time;

/// The reads that each host will make: when, and of how many pages of 4 KiB, in order.
/// None of a host that is not known.
#[derive(Clone, Debug, Default)]
pub struct Foresight(Arc<[Vec<(Time, u32)>]>);

impl Foresight {
    /// Of each host, in their order.
    pub fn new(reads: Vec<Vec<(Time, u32)>>) -> Foresight {
        Foresight(reads.into())
    }

    /// Those of one.
    pub(crate) fn of(&self, host: usize) -> &[(Time, u32)] {
        self.0.get(host).map_or(&[], |reads| reads)
    }
}
