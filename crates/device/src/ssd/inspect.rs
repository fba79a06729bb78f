//! What a device tells of itself: counters, gauges, and its conservation laws.

use flashkeel_engine::{Holds, LOGICAL_PAGE_BYTES, LOGICAL_PAGE_SECTORS, Lba, Operation, Request, Time};

use super::{Partition, Ssd};
use crate::address::BlockId;
use crate::counters::{Counters, Report, Wearing, Worn};
use crate::flash::Endurance;
use crate::ftl::{Ftl, Gauge, Tables};
use crate::layout::Layout;
use crate::machine::Machine;
use crate::sched::{Interval, Task};

impl Ssd {
    /// Counts a request of the host.
    pub(super) fn count(&mut self, request: &Request) {
        let pages = u64::from(request.sectors) / LOGICAL_PAGE_SECTORS;
        let counters = &mut self.machine.counters;
        match request.operation {
            Operation::Read => counters.host_pages_read += pages,
            Operation::Write => counters.host_pages_written += pages,
            Operation::Trim => counters.host_pages_trimmed += pages,
            Operation::WriteZeroes => counters.host_pages_zeroed += pages,
            Operation::Flush | Operation::Demote => {}
        }
    }

    /// What the device has done since its start or the last reset.
    pub fn report(&self) -> Report {
        let counted = self.machine.counters.report(self.layout.geometry.units_per_page);
        Report { wear: self.wear(), ..counted }
    }

    /// What blocks have used of their endurance; none where that is not accounted for.
    fn wear(&self) -> Option<Worn> {
        let rated_cycles = f64::from(self.layout.rated_cycles?);
        let most_cycles = self.worn().fold(0.0, f64::max);
        Some(Worn { rated_cycles, mean_cycles: self.endurance().wear, most_cycles })
    }

    /// The counters behind [`report`](Self::report).
    pub fn counters(&self) -> &Counters {
        &self.machine.counters
    }

    /// Starts counting anew, as at the end of a warm-up; endurance goes on.
    pub fn reset_counters(&mut self) {
        self.machine.written_before += self.machine.counters.wearing();
        let mut counters = Counters::default();
        for (set, partition) in self.partitions.iter().enumerate() {
            counters.deterministic_windows += self.deterministic(set);
            counters.broken_windows += u64::from(partition.ftl.window_broken);
        }
        self.machine.counters = counters;
    }

    /// From now on notes what each chip does in a window of time.
    pub fn watch(&mut self, from: Time, to: Time) {
        self.machine.dispatcher.watch(from, to);
        (0..self.partitions.len()).for_each(|set| self.watch_window(Time::ZERO, set));
    }

    /// What chips have done in the window that is watched, cut to it, in the
    /// order in which it ended.
    pub fn watched(&self) -> &[Interval] {
        self.machine.dispatcher.watched()
    }

    /// How many chips each channel has.
    pub fn channels(&self) -> Vec<u32> {
        let geometry = &self.layout.geometry;
        vec![geometry.chips_per_channel; (geometry.chips() / geometry.chips_per_channel) as usize]
    }

    /// Names of the gauges, in order. The last are no states but counts, named as in a
    /// [`Report`]: from one reading to the next they tell of the time between.
    pub fn gauge_names() -> Vec<String> {
        // Garbage collection, which every device has, stands among the first.
        let names = ["free_blocks", "gc_active", "buffered_pages", "requests_in_device", "max_read_count"];
        let of_task = |task: Task| {
            let active = std::iter::once(format!("{}_active", task.label()));
            active.chain(Ftl::gauges_of(task).iter().map(|gauge| gauge.name.into()))
        };
        let shares = Task::ALL.iter().map(|task| format!("share_{}_ppm", task.label()));
        let names = names.into_iter().map(String::from);
        let counted = ["host_bytes_written", "programmed_bytes", "erases"].map(String::from);
        names.chain(gauged_tasks().flat_map(of_task)).chain(shares).chain(counted).collect()
    }

    /// Reads the gauges into `values`, in the order of
    /// [`gauge_names`](Self::gauge_names).
    pub fn gauges(&self, values: &mut Vec<u64>) {
        values.clear();
        let sum = |each: fn(&Partition) -> u64| self.partitions.iter().map(each).sum::<u64>();
        values.push(sum(|partition| u64::from(partition.ftl.tables.free_blocks())));
        let active = self.partitions.iter().fold(0, |active, part| active | part.ftl.signals().active);
        let is_active = |task| u64::from(active >> task as u32 & 1);
        values.push(is_active(Task::Gc));
        values.push(sum(|partition| {
            u64::from(partition.buffer.occupancy.pending + partition.buffer.occupancy.flushing)
        }));
        values.push(self.requests.len() as u64);
        let counts = self.partitions.iter().map(|partition| partition.ftl.tables.blocks.max_read_count());
        values.push(u64::from(counts.max().unwrap_or(0)));
        for task in gauged_tasks() {
            values.push(is_active(task));
            values.extend(Ftl::gauges_of(task).iter().map(|gauge| self.gauge(gauge)));
        }
        values.extend(self.machine.dispatcher.arbiter().shares_ppm());
        let counted = self.machine.counters.report(self.layout.geometry.units_per_page);
        let Report { host_bytes_written, programmed_bytes, erases, .. } = counted;
        values.extend([host_bytes_written, programmed_bytes, erases]);
    }

    fn gauge(&self, gauge: &Gauge) -> u64 {
        let each = self.partitions.iter().map(|partition| u64::from((gauge.read)(&partition.ftl)));
        if gauge.is_largest { each.max().unwrap_or(0) } else { each.sum() }
    }

    /// What pages hold from a sector on, and for how many of `sectors` that is so.
    pub(super) fn held_from(&self, from: Lba, sectors: u32) -> (u32, Holds) {
        let holds = |page: u64| {
            let (part, local) = self.layout.locate(page);
            self.partitions[part].ftl.tables.holds(local)
        };
        let first = from.0 / LOGICAL_PAGE_SECTORS;
        let end = (from.0 + u64::from(sectors)).div_ceil(LOGICAL_PAGE_SECTORS);
        let held = holds(first);
        let next = (first + 1..end).find(|&page| holds(page) != held).unwrap_or(end);
        ((next * LOGICAL_PAGE_SECTORS - from.0).min(u64::from(sectors)) as u32, held)
    }

    /// Erases of each block, partition by partition.
    pub fn erase_counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.partitions.iter().flat_map(|partition| {
            (0..partition.ftl.tables.blocks.len())
                .map(|block| partition.ftl.tables.blocks.erase_count(BlockId(block)))
        })
    }

    /// Effective wear of each block in rated cycles, partition by partition;
    /// empty where the device does not account for wear.
    pub fn worn(&self) -> impl Iterator<Item = f64> + '_ {
        let wear = self.partitions.iter().filter_map(|partition| partition.ftl.tables.wear.as_ref());
        wear.flat_map(|wear| wear.worn().iter().copied())
    }

    /// What has been used of the flash's endurance since the run began; all
    /// zeros where the device does not account for wear.
    pub fn endurance(&self) -> Endurance {
        endurance(&self.layout, &self.machine, &self.partitions)
    }

    /// Mean room in open blocks and free blocks at this moment, in 4 KiB
    /// pages: (free, open). For comparison with closed forms.
    pub fn unwritten_pages(&self) -> (u64, u64) {
        let sum = |pages: fn(&Tables) -> u64| {
            self.partitions.iter().map(|partition| pages(&partition.ftl.tables)).sum()
        };
        let (free, open) = (sum(Tables::free_units), sum(Tables::open_units));
        (free, open)
    }

    /// Checks every conservation law at rest or in flight; slow, for tests.
    ///
    /// # Panics
    /// If one is broken.
    pub fn check(&self) {
        for partition in &self.partitions {
            partition.ftl.check();
        }
    }

    /// Bytes of memory held per mapped 4 KiB page in the tables that grow with
    /// capacity.
    pub fn bytes_per_page(&self) -> f64 {
        let bytes: usize = self.partitions.iter().map(|partition| partition.ftl.tables.table_bytes()).sum();
        bytes as f64 / self.layout.lpns as f64
    }
}

/// The tasks with gauges of their own.
fn gauged_tasks() -> impl Iterator<Item = Task> {
    Task::ALL.iter().copied().filter(|&task| task.is_background() && task != Task::Gc)
}

/// What has been used of the endurance of a device in these parts.
pub(super) fn endurance(layout: &Layout, machine: &Machine, partitions: &[Partition]) -> Endurance {
    let Some(rated) = layout.rated_cycles else { return Endurance::default() };
    let mut written = machine.written_before;
    written += machine.counters.wearing();
    let mut endurance = Endurance {
        rated_cycles: f64::from(rated),
        flash_bytes: (layout.geometry.units() * LOGICAL_PAGE_BYTES) as f64,
        write_amplification: amplification(layout, partitions, written),
        ..Endurance::default()
    };
    for wear in partitions.iter().filter_map(|partition| partition.ftl.tables.wear.as_ref()) {
        wear.add_to(&mut endurance, partitions.len());
    }
    endurance
}

/// Bytes programmed per byte of the host's; 1 until something is programmed.
fn amplification(layout: &Layout, partitions: &[Partition], written: Wearing) -> f64 {
    let Wearing { host_pages, flash_pages } = written;
    if host_pages == 0 || flash_pages == 0 {
        return 1.0;
    }
    let programmed = flash_pages * u64::from(layout.geometry.units_per_page);
    let amplification = programmed as f64 / host_pages as f64;
    if amplification >= 1.0 {
        return amplification;
    }
    // What has not been merged in the buffer will be programmed too.
    let buffered = |partition: &Partition| partition.buffer.occupancy.pending;
    let buffered: u64 = partitions.iter().map(buffered).map(u64::from).sum();
    ((programmed + buffered) as f64 / host_pages as f64).min(1.0)
}
