//! Checks a configuration as a whole and resolves it into a layout.

use flashkeel_engine::units::Bytes;

use flashkeel_config::names_where;
use flashkeel_engine::LOGICAL_PAGE_BYTES;

use super::DeviceConfig;
use crate::flash::{Geometry, Timing};
use crate::front::BufferLayout;
use crate::front::buffer::BufferKind;
use crate::ftl::Precondition;
use crate::layout::{Layout, Policies};
use crate::limits::{LONGEST, MAX_INDEX, SLOWEST};

/// Partitions at most.
const MOST_PARTITIONS: u32 = 64;

impl DeviceConfig {
    /// Checks the configuration as a whole and resolves it.
    ///
    /// # Errors
    /// A sentence naming the key (relative to the device) and its remedy.
    pub fn validate(&self) -> Result<Layout, String> {
        let geometry = Geometry::resolve(&self.geometry)?;
        let slc_program = self.slc_cache.policy().settings().map(|fold| fold.program);
        let timing = Timing::resolve(&self.timing, slc_program, &geometry)?;
        let suspension = self.suspension.as_ref().map(|it| it.resolve(timing.erase())).transpose()?.flatten();
        self.validate_controller(&geometry)?;
        if self.throttle.policy().needs_wear() && self.wear.policy().rated_cycles().is_none() {
            return Err(format!(
                "throttle is {:?}, which has to know the rated cycles; wear is {:?}",
                self.throttle.name(),
                self.wear.name()
            ));
        }
        let partition_bits = self.partition_page_bits()?;
        let partitions = self.partitions(&geometry, &partition_bits)?;
        let lpns = self.logical_pages(&geometry, &partition_bits)?;
        let buffer = self.buffer.resolve(&geometry, partitions)?;
        self.validate_window(&timing, &buffer, geometry.units_per_page)?;
        let partition = self.partition_layout(&geometry, lpns / partitions, partitions, &buffer)?;
        // The pool of operations holds those of every request, even of as many
        // as the device accepts.
        let reads_per_request = (MAX_INDEX / 2 / self.controller.queue_depth).min(1 << 16);
        if partition.stripe_width > reads_per_request {
            return Err(format!(
                "controller.queue_depth is {}; at most {} with stripes of {} pages, each of which a read may need",
                self.controller.queue_depth,
                MAX_INDEX / 2 / partition.stripe_width,
                partition.stripe_width
            ));
        }
        let precondition =
            Precondition::resolve(&self.precondition, lpns / partitions, self.scrub.start_above)?;
        if let Some(rate) = self.host_link.filter(|&rate| rate < SLOWEST) {
            return Err(format!(
                "host_link is {rate}; at least {SLOWEST}, or leave it out for an unlimited link"
            ));
        }
        let layout = Layout {
            geometry,
            planes_per_chip: self.geometry.planes_per_chip,
            multi_plane: self.geometry.multi_plane,
            timing,
            suspension,
            rated_cycles: self.wear.policy().rated_cycles(),
            controller: self.controller.clone(),
            host_link: self.host_link,
            precondition,
            partitions: partitions as u16,
            partition_bits,
            set_pages: if self.sets > 1 { lpns / partitions } else { 0 },
            is_commanded: self.window.policy().obeys(),
            partition,
            buffer,
            reads_per_request,
            lpns,
            policies: Policies {
                scheduler: self.scheduler.clone(),
                throttle: self.throttle.clone(),
                window: self.window.clone(),
                power: self.power.clone(),
                read_path: self.read_path.clone(),
            },
        };
        layout.check_reads()?;
        Ok(layout)
    }

    fn validate_controller(&self, geometry: &Geometry) -> Result<(), String> {
        let controller = &self.controller;
        for (key, delay) in [
            ("lookup", controller.lookup),
            ("host_generation", controller.host_generation),
            ("background_generation", controller.background_generation),
        ] {
            if delay.min > delay.max {
                return Err(format!("controller.{key}: min {} is above max {}", delay.min, delay.max));
            }
            if delay.max > LONGEST {
                return Err(format!("controller.{key} is up to {}; at most {LONGEST}", delay.max));
            }
        }
        if !(1..=1024).contains(&controller.slots_per_chip) {
            return Err(format!(
                "controller.slots_per_chip is {}; it must lie between 1 and 1024",
                controller.slots_per_chip
            ));
        }
        if !(1..=1 << 20).contains(&controller.queue_depth) {
            return Err(format!(
                "controller.queue_depth is {}; it must lie between 1 and {}",
                controller.queue_depth,
                1 << 20
            ));
        }
        if geometry.chips() > 1 << 16 {
            return Err(format!("geometry: {} chips; at most 65536", geometry.chips()));
        }
        Ok(())
    }

    /// The partition bits as bits of the logical page number, rising.
    fn partition_page_bits(&self) -> Result<Vec<u32>, String> {
        let mut bits = Vec::new();
        for &bit in &self.partition_bits {
            if !(3..48).contains(&bit) {
                return Err(format!(
                    "partition_bits: bit {bit} of the LBA; it must lie between 3 (4 KiB) and 47"
                ));
            }
            bits.push(bit - 3);
        }
        bits.sort_unstable();
        if bits.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("partition_bits names a bit twice".into());
        }
        if bits.len() > 6 {
            return Err(format!("partition_bits has {} bits; at most 6 (64 partitions)", bits.len()));
        }
        Ok(bits)
    }

    /// How many partitions there are.
    fn partitions(&self, geometry: &Geometry, bits: &[u32]) -> Result<u64, String> {
        let chips = geometry.chips();
        if self.sets == 0 || self.sets > MOST_PARTITIONS {
            return Err(format!("sets is {}; it must lie between 1 and {MOST_PARTITIONS}", self.sets));
        }
        if self.sets > 1 && !bits.is_empty() {
            return Err(
                "sets: NVM sets are partitions of consecutive addresses; leave out partition_bits".into()
            );
        }
        if !chips.is_multiple_of(self.sets) {
            return Err(format!(
                "sets is {}, but there are {chips} chips; the chips must divide evenly",
                self.sets
            ));
        }
        let partitions = 1u32 << bits.len();
        if !chips.is_multiple_of(partitions) {
            return Err(format!(
                "partition_bits makes {partitions} partitions of {chips} chips; the chips must divide evenly"
            ));
        }
        Ok(u64::from(partitions.max(self.sets)))
    }

    /// Refuses windows that the flash, or the buffer of a set, cannot keep.
    fn validate_window(&self, timing: &Timing, buffer: &BufferLayout, units: u32) -> Result<(), String> {
        let window = self.window.policy();
        if let Some((key, length)) = window.shortest_background()
            && length < timing.erase()
        {
            return Err(format!(
                "window.{key} is {length}, in which no block could be erased; at least {}, the time that \
                 an erase takes (timing.erase)",
                timing.erase()
            ));
        }
        let Some(promised) = window.promised_pages() else { return Ok(()) };
        if buffer.kind.policy().acknowledges_in_flash() {
            let wanted =
                names_where(BufferKind::NAMES, |it: BufferKind| !it.policy().acknowledges_in_flash());
            return Err(format!(
                "window.writes_typical is {promised}, which a buffer has to take; buffer.kind is {:?}, use {wanted}",
                buffer.kind.name()
            ));
        }
        let room = u64::from(buffer.size / units);
        if promised > room {
            return Err(format!(
                "window.writes_typical is {promised}, but the buffer of a set has room for {room} flash pages; \
                 lower it, or raise buffer.size"
            ));
        }
        Ok(())
    }

    fn logical_pages(&self, geometry: &Geometry, partition_bits: &[u32]) -> Result<u64, String> {
        let (capacity, lpns) = (self.logical_capacity, self.logical_capacity.0 / LOGICAL_PAGE_BYTES);
        if lpns == 0 || !capacity.0.is_multiple_of(LOGICAL_PAGE_BYTES) {
            let near = Bytes(lpns.max(1) * LOGICAL_PAGE_BYTES);
            return Err(format!("logical_capacity is {capacity}; use a multiple of 4KiB, such as {near}"));
        }
        if lpns > geometry.units() {
            return Err(format!(
                "logical_capacity {capacity} exceeds the flash, {}",
                Bytes(geometry.units() * LOGICAL_PAGE_BYTES)
            ));
        }
        if !lpns.is_multiple_of(u64::from(self.sets)) {
            return Err(format!(
                "logical_capacity {capacity} is no multiple of 4KiB for each of {} sets; use {}",
                self.sets,
                Bytes(lpns / u64::from(self.sets) * u64::from(self.sets) * LOGICAL_PAGE_BYTES)
            ));
        }
        // Every partition must be of one size: the addresses that the highest
        // bit divides come in whole periods.
        if let Some(&top) = partition_bits.last() {
            let period = 1u64 << (top + 1);
            if !lpns.is_multiple_of(period) {
                return Err(format!(
                    "logical_capacity {capacity} is not a multiple of {}, the period of partition bit {}",
                    Bytes(period * LOGICAL_PAGE_BYTES),
                    top + 3
                ));
            }
        }
        Ok(lpns)
    }
}
