//! What collection keeps in stock for the host, and how fast it lets the host use it.
//!
//! Where a drive is asked for more than it sustains, the host's programs wait for space in
//! any case. Left alone they take the last block there is, all stop, and go on where one is
//! erased: most wait for nothing, some for many erases, and all for few chips. So they are
//! held before that, and each page that is moved lets go as many as it gains.

use std::ops::Range;

use flashkeel_engine::Time;

use super::Gc;
use super::rotation::Order;
use crate::ftl::relocation::Progress;
use crate::ftl::{Ftl, PartitionLayout};
use crate::machine::Machine;
use crate::sched::Task;

/// What the invocation `ahead` keeps in each domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stock {
    /// Free blocks where nothing is expected: a block for each chip above what the host
    /// leaves, because it opens one on each at about the same time.
    pub at_least: u32,
    /// The most that they may be.
    pub at_most: u32,
    /// Free blocks of each chip. Where a chip has too few the host writes to the others.
    pub on_each: usize,
    /// Pages of 4 KiB in stock below which the host writes no faster than space is gained.
    pub paced_below: u64,
}

impl Stock {
    /// Of a partition whose invocation policy looks ahead.
    pub fn new(layout: &PartitionLayout) -> Self {
        let chips = layout.chips / layout.stripe_width / layout.domains;
        let at_most = layout.gc.most_ahead;
        let at_least = (layout.reserves.host + chips).min(at_most);
        // One of each chip's is kept for what is moved within it.
        let is_enough = layout.gc.order == Order::FewestFree && 2 * chips <= at_least;
        // Half of the block that the host, and a quarter of that which collection has open on
        // each chip: with less left, the host would soon write to few of them.
        let quarters = 4 * (at_least - chips.min(at_least)) + 3 * chips;
        Stock {
            at_least,
            at_most,
            on_each: if is_enough { 2 } else { 0 },
            paced_below: u64::from(quarters) * u64::from(layout.data_units_per_block()) / 4,
        }
    }
}

impl Gc {
    /// The chips of a domain.
    fn chips(ftl: &Ftl, domain: u32) -> Range<u32> {
        let chips = ftl.shape.stripes.groups() / ftl.shape.domains;
        domain * chips..(domain + 1) * chips
    }

    /// Whether a chip of `domain` has fewer free blocks than are kept on each.
    pub(super) fn lacks_on_a_chip(ftl: &Ftl, domain: u32) -> bool {
        let least = ftl.tasks.gc.stock.map_or(0, |stock| stock.on_each);
        least > 0 && Gc::chips(ftl, domain).any(|chip| ftl.tables.blocks.free_on(chip) < least)
    }

    /// Whether the host's next program waits until more has been moved.
    #[inline]
    pub(super) fn paces_host(ftl: &Ftl, domain: u32, stock: &Stock) -> bool {
        let units = u64::from(ftl.shape.data_units_per_block());
        let free = u64::from(ftl.tables.blocks.free_in(domain)) * units;
        free < stock.paced_below && Gc::is_below_pace(ftl, domain, stock, free)
    }

    /// The same where free blocks alone are fewer. Nobody waits where nothing is emptied.
    fn is_below_pace(ftl: &Ftl, domain: u32, stock: &Stock, free: u64) -> bool {
        let units = u64::from(ftl.shape.data_units_per_block());
        let jobs =
            ftl.tasks.relocation.jobs.iter().filter(|job| {
                job.progress != Progress::Unused && job.mover == Task::Gc && job.domain == domain
            });
        // Of a block half of whose pages have been moved half counts: on the mean nothing.
        let (mut emptied, mut count) = (0, 0);
        for job in jobs {
            let left = u64::from(ftl.tables.blocks.valid(job.block));
            let valid = u64::from(job.valid.max(1));
            emptied += units * valid.saturating_sub(left) / valid;
            count += 1;
        }
        let room =
            |task| u64::from(ftl.tables.points.room(task, domain)) * u64::from(ftl.shape.units_per_page);
        count > 0
            && free + room(Task::Host) + room(Task::Gc) + emptied < stock.paced_below + count * units / 2
    }

    /// Pages of `domain` have been moved: the host may write as much as that gains.
    #[inline]
    pub(in crate::ftl) fn has_moved(ftl: &mut Ftl, now: Time, domain: u32, machine: &mut Machine) {
        if ftl.tasks.gc.stock.is_some() && ftl.tasks.stalled.holds_host(domain) {
            ftl.retry_stalled(now, domain, machine);
        }
    }
}
