//! Resolves what a configuration says of one partition.

use flashkeel_config::names_where;
use flashkeel_engine::LOGICAL_PAGE_BYTES;

use super::{DeviceConfig, MapCacheSize};
use crate::flash::Geometry;
use crate::front::BufferLayout;
use crate::front::buffer::BufferKind;
use crate::ftl::gc::movement::Manner;
use crate::ftl::gc::rotation::Order;
use crate::ftl::gc::{GcLayout, MOST_AHEAD_DIVISOR};
use crate::ftl::slc::SlcLayout;
use crate::ftl::{
    AllocationConfig, LPNS_PER_MAP_PAGE, PartitionLayout, Policies as PartitionPolicies, RedundancyConfig,
    Reserves, RetirementConfig, SparesLayout, StaticStripes, TaskLayouts,
};
use crate::sched::Activity;

/// As many chips, or channels, as policies are asked about that a message recommends.
const CHIPS: u32 = 8;

impl DeviceConfig {
    /// A partition of so many mapping units, one of `partitions`.
    pub(super) fn partition_layout(
        &self,
        geometry: &Geometry,
        lpns: u64,
        partitions: u64,
        buffer: &BufferLayout,
    ) -> Result<PartitionLayout, String> {
        let chips = geometry.chips() / partitions as u32;
        let map_pages = lpns.div_ceil(u64::from(LPNS_PER_MAP_PAGE)) as u32;
        let cached_map_pages = match self.map_cache {
            MapCacheSize::All => map_pages,
            MapCacheSize::Size(size) => {
                let pages = size.0 / LOGICAL_PAGE_BYTES / partitions;
                if pages == 0 {
                    return Err(format!(
                        "map_cache is {size}; each partition needs at least one 4KiB map page"
                    ));
                }
                pages.min(u64::from(map_pages)) as u32
            }
        };
        let stripe_width = self.redundancy.policy().width(chips)?;
        let tasks = self.task_layouts(stripe_width)?;
        let static_stripes =
            self.static_stripes(geometry, chips, (lpns as u32, map_pages), buffer, &tasks)?;
        if stripe_width == 1 && static_stripes.is_none() && self.read_path.policy().needs_redundancy() {
            return Err(format!(
                "read_path is {:?}, which needs redundancy to rebuild pages from; redundancy is {:?}",
                self.read_path.name(),
                self.redundancy.name()
            ));
        }
        let groups = chips / stripe_width;
        let domains = self.allocation.policy().domains(groups);
        let gc = &self.gc;
        gc.validate()?;
        self.validate_movement(static_stripes.is_some(), stripe_width)?;
        let manner = gc.movement.policy().manner();
        let groups_per_domain = groups / domains;
        // What is moved at once, or within the only chip of a domain, goes block by block.
        let one_by_one = match manner {
            Manner::Queued => false,
            Manner::Inside(_) => groups_per_domain == 1,
            Manner::Untimed => true,
        };
        let map_margin = if cached_map_pages < map_pages { groups_per_domain } else { 0 };
        // Thresholds and victims are counted in blocks of one chip.
        let order = gc.rotation.policy().order();
        let gc_jobs = match order {
            _ if one_by_one => 1,
            Order::FewestFree => groups_per_domain,
            _ => gc.concurrent_victims.div_ceil(stripe_width),
        };
        let reserves = Reserves { host: gc_jobs.min(groups_per_domain) + map_margin + 1, map: 1, map_margin };
        // Each domain keeps its part of the thresholds, and collection starts
        // before the host has to stop.
        let start = gc.start_below.div_ceil(domains * stripe_width).max(reserves.host + 1);
        let stop = gc.stop_above.div_ceil(domains * stripe_width).max(start);
        let force = gc.force_below.div_ceil(domains * stripe_width).max(reserves.host + 1);
        let mut layout = PartitionLayout {
            geometry: *geometry,
            chips,
            lpns: lpns as u32,
            map_pages,
            cached_map_pages,
            stripe_width,
            static_stripes,
            has_volatile_buffer: buffer.is_volatile,
            domains,
            reserves,
            gc: GcLayout {
                start_below: start,
                stop_above: stop,
                force_below: force,
                jobs: gc_jobs,
                pages_in_flight: gc.pages_in_flight,
                manner,
                order,
                // What takes no time waits for none.
                erases_in_pauses: gc.erasing.policy().waits_for_pauses() && manner != Manner::Untimed,
                most_ahead: stop,
            },
            tasks,
            slc: SlcLayout::resolve(&self.slc_cache, geometry, partitions)?,
            spares: None,
            policies: PartitionPolicies {
                allocation: self.allocation.clone(),
                wear: self.wear.clone(),
                victim: gc.victim.clone(),
                invocation: gc.invocation.clone(),
                update: self.redundancy.policy().update(),
            },
        };
        let spare = self.check_room(geometry, &layout)?;
        layout.gc.most_ahead += spare as u32 / MOST_AHEAD_DIVISOR;
        layout.spares = self.spares(spare, &layout)?;
        Ok(layout)
    }

    /// The blocks that may retire, `spare` of each domain without loss of room.
    fn spares(&self, spare: u64, layout: &PartitionLayout) -> Result<Option<SparesLayout>, String> {
        let policy = self.retirement.policy();
        if !policy.retires() {
            return Ok(None);
        }
        let Some(rated_cycles) = self.wear.policy().rated_cycles() else {
            return Err(format!(
                "retirement is {:?}, which has to know the rated cycles; wear is {:?}",
                self.retirement.name(),
                self.wear.name()
            ));
        };
        if policy.shrinks() && layout.static_stripes.is_some() {
            return Err(format!(
                "retirement is {:?}, but with redundancy {:?} a trim makes no room: a stripe holds every \
                 page; use retirement = {}",
                self.retirement.name(),
                self.redundancy.name(),
                names_where(RetirementConfig::NAMES, |it: RetirementConfig| {
                    it.policy().retires() && !it.policy().shrinks()
                }),
            ));
        }
        Ok(Some(SparesLayout {
            rated_cycles: f64::from(rated_cycles),
            blocks: u32::try_from(spare).expect("no more than there are blocks"),
            shrinks_by: policy.shrinks().then(|| layout.useful_units()),
        }))
    }

    /// Refuses movements and rotations that the device's layout has no use for.
    fn validate_movement(&self, has_plane_groups: bool, stripe_width: u32) -> Result<(), String> {
        let (gc, geometry) = (&self.gc, &self.geometry);
        if gc.rotation.policy().order() == Order::InTurn && !has_plane_groups {
            return Err(format!(
                "gc.rotation is {:?}, which goes round plane groups; redundancy = {} forms them",
                gc.rotation.name(),
                names_where(RedundancyConfig::NAMES, |it: RedundancyConfig| {
                    it.policy().logical_width(CHIPS).is_ok_and(|width| width.is_some())
                }),
            ));
        }
        let Manner::Inside(inside) = gc.movement.policy().manner() else { return Ok(()) };
        if stripe_width > 1 {
            return Err(format!(
                "gc.movement is {:?}, which moves pages within their chip; it needs redundancy {}",
                gc.movement.name(),
                names_where(RedundancyConfig::NAMES, |it: RedundancyConfig| it.policy().width(CHIPS)
                    == Ok(1)),
            ));
        }
        if inside.purpose == Activity::Gc.copyback() && geometry.planes_per_chip > 1 && !geometry.multi_plane
        {
            return Err(format!(
                "gc.movement is {:?}: a copyback stays in its plane, but blocks of {} planes share a chip; use \
                 geometry.planes_per_chip = 1 or multi_plane = true",
                gc.movement.name(),
                geometry.planes_per_chip
            ));
        }
        Ok(())
    }

    /// The logical stripes of a partition, if it has any.
    fn static_stripes(
        &self,
        geometry: &Geometry,
        chips: u32,
        (lpns, map_pages): (u32, u32),
        buffer: &BufferLayout,
        tasks: &TaskLayouts,
    ) -> Result<Option<StaticStripes>, String> {
        let whole_channels = chips.is_multiple_of(geometry.chips_per_channel);
        let channels = if whole_channels { chips / geometry.chips_per_channel } else { 1 };
        let Some(width) = self.redundancy.policy().logical_width(channels)? else { return Ok(None) };
        let needs = |key: &str, wanted: &str, why: &str| {
            Err(format!("redundancy is {:?}, which needs {key} = {wanted}: {why}", self.redundancy.name()))
        };
        if !self.allocation.policy().keeps_to_chips() {
            let wanted =
                names_where(AllocationConfig::NAMES, |it: AllocationConfig| it.policy().keeps_to_chips());
            return needs("allocation", &wanted, "the members of a stripe stay on chips of their own");
        }
        if let Some(task) = tasks.keeper_of_map() {
            let key = format!("{task}.enabled");
            return needs(&key, "false", "map pages in flash would be in no stripe");
        }
        if self.map_cache != MapCacheSize::All {
            return needs("map_cache", "\"all\"", "map pages in flash would be in no stripe");
        }
        if !buffer.coalesces {
            return needs(
                "buffer.rewrite",
                "\"coalesce\"",
                "a stripe is flushed with one version of each page",
            );
        }
        if buffer.kind.policy().acknowledges_in_flash() {
            let wanted =
                names_where(BufferKind::NAMES, |it: BufferKind| !it.policy().acknowledges_in_flash());
            return needs("buffer.kind", &wanted, "stripes are flushed from a buffer");
        }
        if buffer.is_volatile {
            return needs("buffer.volatile", "false", "data and parity of a stripe change together");
        }
        let data = (width - 1) * geometry.units_per_page;
        if data > 128 {
            return Err(format!(
                "redundancy.pages is {width}: a stripe has {data} mapping units of 4KiB; at most 128 beside its parity"
            ));
        }
        Ok(Some(StaticStripes::new(width, chips, geometry.units_per_page, lpns, lpns + map_pages)))
    }

    /// Refuses a device whose garbage collection could not gain space; the blocks of
    /// a domain that it could do without.
    fn check_room(&self, geometry: &Geometry, layout: &PartitionLayout) -> Result<u64, String> {
        let kept_in_flash = layout.cached_map_pages < layout.map_pages;
        let mapped = layout.lpns + if layout.map_in_flash() { layout.map_pages } else { 0 };
        // Striped domains may differ by a flash page in what they hold.
        let mapped = match &layout.static_stripes {
            Some(stripes) => u64::from(stripes.lpns_per_chip()),
            None => u64::from(mapped.div_ceil(layout.domains)) + u64::from(geometry.units_per_page),
        };
        let groups = layout.chips / layout.stripe_width;
        let blocks = u64::from(groups / layout.domains * geometry.blocks_per_chip);
        let useful = u64::from(layout.useful_units());
        let per_domain = groups / layout.domains;
        let rooms = layout.tasks.rooms(per_domain);
        // The host, garbage collection, and where the map has pages in flash these.
        let always = per_domain * (2 + u32::from(kept_in_flash));
        let open = u64::from(always + rooms.iter().map(|(_, room)| room.open).sum::<u32>());
        let moved = u64::from(rooms.iter().map(|(_, room)| room.moved).sum::<u32>());
        let needed = mapped.div_ceil(useful) + open + moved + u64::from(layout.gc.stop_above) + 1;
        if blocks < needed {
            let movers = rooms.iter().filter(|(_, room)| room.moved > 0).map(|(task, _)| *task);
            let movers: Vec<&str> = movers.collect();
            let where_ = if layout.domains > 1 { "each chip of a striped device" } else { "the device" };
            return Err(format!(
                "logical_capacity: too little over-provisioning: {where_} has {blocks} blocks, but the data take {}, with a flash page of \
                 garbage in each to gain, {open} are open for writing{}, and garbage collection stops at {} free; lower logical_capacity ({}) or \
                 gc.stop_above, or add blocks",
                mapped.div_ceil(useful),
                if moved > 0 {
                    format!(", {moved} are emptied by {}", movers.join(" and "))
                } else {
                    String::new()
                },
                layout.gc.stop_above,
                self.logical_capacity
            ));
        }
        Ok(blocks - needed)
    }
}
