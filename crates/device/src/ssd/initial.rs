//! The state a device starts in: preconditioned, or restored.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;

use flashkeel_engine::{Span, Stream, Time};

use super::{Partition, Ssd};
use crate::arrivals::Arrivals;
use crate::flash::Array;
use crate::front::Buffer;
use crate::ftl::{Aging, SteadyState};
use crate::layout::Layout;
use crate::sched::Dispatcher;

impl Ssd {
    /// The write buffer of a partition, with nothing in it.
    pub(super) fn empty_buffer(layout: &Layout) -> Buffer {
        let stripes = layout.partition.static_stripes.map(|stripes| stripes.len());
        let may_shrink = layout.partition.spares.is_some_and(|spares| spares.shrinks_by.is_some());
        Buffer::new(&layout.buffer, layout.partition.domains, stripes, may_shrink)
    }

    /// The flash under its scheduler, with nothing to do.
    pub(super) fn idle_chips(layout: &Layout, seed: u64) -> Dispatcher {
        let geometry = &layout.geometry;
        let (chips, depth) = (geometry.chips(), layout.controller.slots_per_chip);
        let (partitions, random) = (u32::from(layout.partitions), Stream::new(seed, "scheduler"));
        let arbiter = layout.policies.scheduler.policy().build(chips, depth, partitions, random);
        let array = Array::new(geometry, layout.timing.clone(), layout.suspension);
        Dispatcher::new(array, arbiter, chips, depth, partitions)
    }

    /// No write so far, for each NVM set or the whole, where anybody works ahead.
    pub(super) fn no_arrivals(layout: &Layout) -> Vec<Arrivals> {
        let sets = if layout.set_pages == 0 { 1 } else { layout.partitions };
        let looks_ahead = layout.partition.policies.invocation.policy().looks_ahead();
        let count = if looks_ahead { usize::from(sets) } else { 0 };
        vec![Arrivals::new(layout.partitions / sets); count]
    }

    /// Brings a fresh device to its configured initial state, without timing;
    /// `None` where that is to leave it fresh. `progress` is told the fraction
    /// done, an estimate; where it breaks off the device is of no use any more.
    pub fn precondition(
        &mut self,
        progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
    ) -> ControlFlow<(), Option<SteadyState>> {
        let Some(wanted) = self.layout.precondition else { return ControlFlow::Continue(None) };
        let partitions = self.partitions.len() as u64;
        let expected = wanted.expected_pages(partitions, self.layout.geometry.units());
        let seed = wanted.seed.unwrap_or(self.seed);
        let mut random = Stream::new(seed, "precondition");
        let mut pages = 0;
        let mut sum = SteadyState { host_pages: 0, write_amplification: 0.0 };
        for partition in &mut self.partitions {
            let mut told = |written: u64| {
                pages += written;
                progress((pages as f64 / expected).min(0.99))
            };
            partition.ftl.rest(&self.layout.partition, seed);
            let state = partition.ftl.precondition(&wanted, &mut random, &mut told)?;
            partition.ftl.rest(&self.layout.partition, self.seed);
            sum.host_pages += state.host_pages;
            // Partitions are of one size: their mean counts.
            sum.write_amplification += state.write_amplification / partitions as f64;
        }
        progress(1.0)?;
        ControlFlow::Continue(Some(sum))
    }

    /// Writes logical pages without timing, one `every` so long after `from`, as
    /// far as wear is concerned; returns when the last was written. Like
    /// preconditioning, for a device that nothing has been asked of: its buffer,
    /// map cache and SLC cache stay as they are.
    pub fn age(&mut self, from: Time, every: Span, pages: impl Iterator<Item = u64>) -> Time {
        assert!(self.is_at_rest(), "only a device at rest ages");
        let mut now = from;
        let layout = &self.layout;
        let mut agings: Vec<Aging> =
            self.partitions.iter_mut().map(|partition| partition.ftl.age()).collect();
        for page in pages {
            now += every;
            let (part, lpn) = layout.locate(page);
            agings[part].write(now, lpn);
        }
        agings.into_iter().for_each(Aging::end);
        self.partitions.iter_mut().for_each(|partition| partition.ftl.rest(&layout.partition, self.seed));
        now
    }

    fn is_at_rest(&self) -> bool {
        let buffered =
            |partition: &Partition| partition.buffer.occupancy.pending + partition.buffer.occupancy.flushing;
        self.requests.len() == 0 && self.partitions.iter().all(|partition| buffered(partition) == 0)
    }

    /// Writes the state of a device at rest, as preconditioning left it.
    ///
    /// # Errors
    /// What writing returns.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        assert!(self.is_at_rest(), "only a device at rest is saved");
        self.partitions.iter().try_for_each(|partition| partition.ftl.tables.save(out))
    }

    /// Restores into a fresh device what [`save`](Self::save) wrote for the
    /// same configuration. Whether it is whole is for whoever kept it to see.
    ///
    /// # Errors
    /// If the input ends early or contradicts itself; the device is unusable then.
    pub fn restore(&mut self, input: &mut dyn Read) -> io::Result<()> {
        self.partitions.iter_mut().try_for_each(|partition| partition.ftl.restore(input))
    }
}
