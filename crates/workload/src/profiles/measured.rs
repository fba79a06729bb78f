//! A workload made from what is measured of a trace at hand: its mix, sizes,
//! gaps, sequentiality and the places it goes to again and again. What it does
//! not keep: the order in which places and sizes come, and changes over hours.

use std::collections::BTreeMap;

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{LOGICAL_PAGE_SECTORS, Operation, SECTOR_BYTES, Stream};
use hdrhistogram::Histogram;

use super::gaps::Gaps;
use super::sizes::Sizes;
use super::synthesis::{EXTENT_PAGES, Recipe, Synthesis};
use crate::generators::patterns::Draw;
use crate::{Context, Source, Stopped, Trace, Watch, WorkloadError};

const EXTENT_SECTORS: u64 = EXTENT_PAGES * LOGICAL_PAGE_SECTORS;
const BATCH: usize = 4096;
/// Sizes kept apart, for each operation; a trace with more has the rest rounded
/// up to powers of two.
const MOST_SIZES: usize = 4096;

/// What a trace is like.
#[derive(Debug)]
pub struct Measured {
    name: String,
    requests: u64,
    reads: u64,
    writes: u64,
    sequential: u64,
    /// From the first request to the last.
    span_ns: u64,
    /// Times between requests in ns.
    gaps: Histogram<u64>,
    /// Numbers of requests at one time, with how often so many come.
    together: BTreeMap<u64, u64>,
    /// Sizes in pages of reads and of writes, with how many there are.
    sizes: [BTreeMap<u64, u64>; 2],
    /// Extents that requests begin in where they follow no other, with how often.
    extents: BTreeMap<u64, u64>,
}

/// Measures what a replay of a trace delivers, by its settings.
///
/// # Errors
/// What is wrong with it, or that `watch` breaks off.
pub fn measure(trace: &Trace, context: &Context, watch: &mut Watch<'_>) -> Result<Measured, Stopped> {
    let name =
        trace.path.file_name().map_or_else(|| "-".to_owned(), |name| name.to_string_lossy().into_owned());
    let mut found = Measured {
        name,
        requests: 0,
        reads: 0,
        writes: 0,
        sequential: 0,
        span_ns: 0,
        gaps: Histogram::new(3).expect("three digits are supported"),
        together: BTreeMap::new(),
        sizes: Default::default(),
        extents: BTreeMap::new(),
    };
    let mut source = trace.source(context, watch)?;
    let (mut last, mut together) = (None, 1);
    // Where the last request of each device ended.
    let mut ends: Vec<Option<u64>> = Vec::new();
    let mut batch = Vec::new();
    loop {
        source.fill(&mut batch, BATCH)?;
        if batch.is_empty() {
            break;
        }
        for arrival in &batch {
            if !matches!(arrival.operation, Operation::Read | Operation::Write) {
                continue;
            }
            let is_write = arrival.operation == Operation::Write;
            found.requests += 1;
            *(if is_write { &mut found.writes } else { &mut found.reads }) += 1;
            let sizes = &mut found.sizes[usize::from(is_write)];
            let pages = u64::from(arrival.sectors).div_ceil(LOGICAL_PAGE_SECTORS);
            let is_kept = sizes.len() < MOST_SIZES || sizes.contains_key(&pages);
            *sizes.entry(if is_kept { pages } else { pages.next_power_of_two() }).or_default() += 1;
            if let Some(last) = last.replace(arrival.time.0) {
                let gap_ns = arrival.time.0 - last;
                found.span_ns += gap_ns;
                found.gaps.record(gap_ns).expect("the histogram grows by itself");
                if gap_ns == 0 {
                    together += 1;
                } else {
                    *found.together.entry(std::mem::replace(&mut together, 1)).or_default() += 1;
                }
            }
            let device = source.device_at(arrival.lba);
            if ends.len() <= device {
                ends.resize(device + 1, None);
            }
            let end = ends[device].replace(arrival.lba.0 + u64::from(arrival.sectors));
            if end == Some(arrival.lba.0) {
                found.sequential += 1;
            } else {
                *found.extents.entry(arrival.lba.0 / EXTENT_SECTORS).or_default() += 1;
            }
        }
        if watch(source.progress().unwrap_or(0.0)).is_break() {
            return Err(Stopped::Interrupted);
        }
    }
    *found.together.entry(together).or_default() += 1;
    if found.requests == 0 {
        return Err(WorkloadError::file(&found.name, "no read and no write in it to measure").into());
    }
    Ok(found)
}

impl Measured {
    /// A source of as many requests like the trace's, or as `context` limits.
    pub fn source(&self, context: &Context) -> Box<dyn Source> {
        let stream = |name: &str| Stream::new(context.seeds.own, &format!("workload/measured/{name}"));
        let share = |part: u64| part as f64 / self.requests as f64;
        let weights = |sizes: &BTreeMap<u64, u64>| {
            let pairs: Vec<(u32, f64)> = sizes
                .iter()
                .map(|(pages, count)| ((pages * LOGICAL_PAGE_SECTORS) as u32, *count as f64))
                .collect();
            // An operation that never comes needs a size all the same.
            if pairs.is_empty() { vec![(LOGICAL_PAGE_SECTORS as u32, 1.0)] } else { pairs }
        };
        let [reads, writes] = [weights(&self.sizes[0]), weights(&self.sizes[1])];
        let last = self.extents.last_key_value().map_or(0, |(extent, _)| *extent);
        let longest =
            self.sizes.iter().filter_map(|sizes| sizes.last_key_value()).map(|(pages, _)| *pages).max();
        let recipe = Recipe {
            write_fraction: share(self.writes),
            random_fraction: 1.0 - share(self.sequential),
            reads: Sizes::of(&reads, stream("read sizes")),
            writes: Sizes::of(&writes, stream("write sizes")),
            skew: Box::new(ExtentDraw::new(&self.extents)),
            is_mixed: true,
            pages: ((last + 1) * EXTENT_PAGES).max(longest.unwrap_or(0)),
            gaps: self.gaps(&stream),
            requests: context.requests.unwrap_or(self.requests),
            notes: vec![self.statement()],
        };
        Box::new(Synthesis::new(recipe, &stream, context))
    }

    fn gaps(&self, stream: &dyn Fn(&str) -> Stream) -> Gaps {
        let gaps: Vec<(f64, u64)> = self
            .gaps
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to() as f64, bucket.count_at_value()))
            .filter(|(gap_ns, _)| *gap_ns > 0.0)
            .collect();
        let count: u64 = gaps.iter().map(|(_, count)| count).sum();
        let together: Vec<(f64, u64)> =
            self.together.iter().map(|(requests, count)| (*requests as f64, *count)).collect();
        Gaps::measured(&gaps, self.span_ns as f64 / count.max(1) as f64, &together, stream)
    }

    /// What every result made from it must say.
    fn statement(&self) -> String {
        let mean_gap_ns = self.span_ns as f64 / self.gaps.len().max(1) as f64;
        format!(
            "made from what was measured of {}, synthetic, no recorded trace: {} requests, {:.1} % writes, {:.1} % \
             random, gaps of {:.3} ms mean and {:.3} ms median, places in {} of its extents of {}; sizes are whole pages",
            self.name,
            self.requests,
            100.0 * self.writes as f64 / self.requests as f64,
            100.0 * (1.0 - self.sequential as f64 / self.requests as f64),
            mean_gap_ns / 1e6,
            self.gaps.value_at_quantile(0.5) as f64 / 1e6,
            self.extents.len(),
            Bytes(EXTENT_SECTORS * SECTOR_BYTES),
        )
    }
}

/// Draws extents as often as the trace went to them.
struct ExtentDraw {
    /// Visits up to and with each extent.
    visits: Vec<(u64, u64)>,
}

impl ExtentDraw {
    fn new(extents: &BTreeMap<u64, u64>) -> ExtentDraw {
        let mut sum = 0;
        let visits = extents
            .iter()
            .map(|(extent, count)| {
                sum += count;
                (sum, *extent)
            })
            .collect();
        ExtentDraw { visits }
    }
}

impl Draw for ExtentDraw {
    fn next(&mut self, stream: &mut Stream, _: u64) -> u64 {
        let Some((all, _)) = self.visits.last() else { return 0 };
        let visit = stream.below(*all);
        let at = self.visits.partition_point(|(sum, _)| *sum <= visit);
        self.visits[at].1
    }
}
