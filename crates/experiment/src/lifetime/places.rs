//! Where the single writes of a life go.

use flashkeel_device::THROTTLE_UNIT_BYTES;
use flashkeel_engine::{LOGICAL_PAGE_BYTES, Stream};
use flashkeel_workload::Demand;
use flashkeel_workload::generators::patterns::Draw;

use super::LifetimePlan;
use crate::Error;

/// Logical pages of a unit of writing.
pub(super) const UNIT_PAGES: usize = (THROTTLE_UNIT_BYTES / LOGICAL_PAGE_BYTES) as usize;

/// Gives the logical pages of a model one unit after the other.
pub(super) enum PageSequence {
    /// By an access pattern.
    Drawn { draw: Box<dyn Draw>, stream: Stream },
    /// As recorded, over and over.
    Recorded { writes: Vec<u32>, next: usize },
}

impl PageSequence {
    /// Those of a plan on a model of `pages` logical pages: its pattern, or what
    /// was recorded, or everywhere alike.
    pub fn new(plan: &LifetimePlan, demand: &Demand, pages: u64, seed: u64) -> Result<Self, Error> {
        if let Some(places) = plan.recorded_places(demand) {
            let drive_pages = plan.drive.capacity.0 / LOGICAL_PAGE_BYTES;
            let writes = places.modelled(drive_pages, pages, seed);
            return Ok(PageSequence::Recorded { writes, next: 0 });
        }
        let pattern = plan.pattern.clone().unwrap_or_default();
        let draw = pattern.policy().draw(pages / UNIT_PAGES as u64)?;
        Ok(PageSequence::Drawn { draw, stream: Stream::new(seed, "lifetime/place") })
    }

    pub fn next(&mut self) -> [u64; UNIT_PAGES] {
        match self {
            PageSequence::Drawn { draw, stream } => {
                let first = draw.next(stream, 1) * UNIT_PAGES as u64;
                std::array::from_fn(|at| first + at as u64)
            }
            PageSequence::Recorded { writes, next } => std::array::from_fn(|_| {
                let page = u64::from(writes[*next]);
                *next = (*next + 1) % writes.len();
                page
            }),
        }
    }
}
