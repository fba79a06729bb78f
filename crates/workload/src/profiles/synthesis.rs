//! Makes the requests of a profile, or of what was measured of a trace.
//!
//! Operation and randomness of each request are drawn with probabilities that
//! lean against what has been made so far, sizes and gaps are dealt in decks:
//! short stretches have the published figures too.

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{
    LOGICAL_PAGE_BYTES, LOGICAL_PAGE_SECTORS, Lba, Operation, SECTOR_BYTES, Stream, Time,
};

use super::gaps::Gaps;
use super::sizes::Sizes;
use super::{Profile, RANGE_BYTES};
use crate::generators::arrivals::Elapsed;
use crate::generators::patterns::{Draw, Locate, uniform::Uniform, zipf::Zipf};
use crate::{Arrival, Basis, Context, Counts, Source, WorkloadError};

/// Skew is between extents of this many pages, 1 MiB; within one, pages are
/// alike. Our assumption.
pub(super) const EXTENT_PAGES: u64 = 256;

/// What requests are made from.
pub(super) struct Recipe {
    /// Share of writes.
    pub write_fraction: f64,
    /// Share of requests that do not begin where the one before ended.
    pub random_fraction: f64,
    /// Whether a request that begins where the one before ended may be of the other operation.
    pub is_mixed: bool,
    /// Sizes of reads.
    pub reads: Sizes,
    /// Sizes of writes.
    pub writes: Sizes,
    /// Which extent a random request goes to.
    pub skew: Box<dyn Draw>,
    /// Pages that requests lie in.
    pub pages: u64,
    /// Times between requests.
    pub gaps: Gaps,
    /// Requests to make.
    pub requests: u64,
    /// What every result must show.
    pub notes: Vec<String>,
}

impl Recipe {
    /// The recipe of a profile for a device.
    pub(super) fn of(
        settings: &Profile,
        context: &Context,
        stream: &dyn Fn(&str) -> Stream,
    ) -> Result<Recipe, WorkloadError> {
        let profile = settings.name.characteristics();
        let mut notes = vec![profile.statement()];
        let range = settings.range.map_or(RANGE_BYTES, |range| range.0);
        let device_bytes = context.device_sectors.saturating_mul(SECTOR_BYTES);
        if device_bytes < range {
            notes.push(format!(
                "profile {} lies all over the device's {} instead of {}",
                profile.name,
                Bytes(device_bytes),
                Bytes(range)
            ));
        }
        let times = settings.write_magnification;
        if times > 1 {
            notes.push(format!("writes of profile {} are magnified {times} times", profile.name));
        }
        // The longest write has to fit.
        let least = u64::from(times.div_ceil(4)) * EXTENT_PAGES * LOGICAL_PAGE_BYTES;
        if range < least {
            let message = format!("{} is too small; at least {}", Bytes(range), Bytes(least));
            return Err(WorkloadError::key("workload.source.range", message));
        }
        if device_bytes < least {
            let message = format!(
                "a profile needs a device of at least {}; this one has {}",
                Bytes(least),
                Bytes(device_bytes)
            );
            return Err(WorkloadError::key("workload.source", message));
        }
        let extents = device_bytes.min(range) / (EXTENT_PAGES * LOGICAL_PAGE_BYTES);
        let skew: &dyn Locate = match settings.zipf_theta.unwrap_or(profile.zipf_theta) {
            0.0 => &Uniform {},
            theta => &Zipf { theta },
        };
        let gap_ns = |ms: f64| ms * 1e6 / settings.intensity;
        let kib = profile.sizes_kib;
        Ok(Recipe {
            write_fraction: profile.write_fraction(),
            random_fraction: profile.random_percent / 100.0,
            is_mixed: false,
            reads: Sizes::new(kib, profile.read_kb, 1, stream("read sizes")),
            writes: Sizes::new(kib, profile.write_kb, times, stream("write sizes")),
            skew: skew.draw(extents)?,
            pages: extents * EXTENT_PAGES,
            gaps: Gaps::lognormal(
                gap_ns(profile.synthesised_mean_ms()),
                gap_ns(profile.inter_arrival_median_ms),
                stream("gaps"),
            ),
            requests: profile.requests(),
            notes,
        })
    }
}

/// A recipe being followed.
pub(super) struct Synthesis {
    write: Share,
    random: Share,
    is_mixed: bool,
    draws: Stream,
    reads: Sizes,
    writes: Sizes,
    extents: Box<dyn Draw>,
    pages: u64,
    places: Stream,
    gaps: Gaps,
    elapsed: Elapsed,
    /// Operation and end of the request before, once there is one.
    run: Option<(Operation, u64)>,
    length: u64,
    requests_left: u64,
    end_ns: u64,
    counts: Counts,
    notes: Vec<String>,
}

impl Synthesis {
    /// Follows a recipe as far as `context` says, with streams of its names.
    pub(super) fn new(recipe: Recipe, stream: &dyn Fn(&str) -> Stream, context: &Context) -> Synthesis {
        let length = recipe.requests.min(context.requests.unwrap_or(u64::MAX));
        Synthesis {
            write: Share::new(recipe.write_fraction),
            random: Share::new(recipe.random_fraction),
            is_mixed: recipe.is_mixed,
            draws: stream("draws"),
            reads: recipe.reads,
            writes: recipe.writes,
            extents: recipe.skew,
            pages: recipe.pages,
            places: stream("places"),
            gaps: recipe.gaps,
            elapsed: Elapsed::default(),
            run: None,
            length,
            requests_left: length,
            end_ns: context.duration.map_or(u64::MAX, |duration| duration.0),
            counts: Counts::default(),
            notes: recipe.notes,
        }
    }

    /// Operation, first page and sectors of the next request, which are served by whole
    /// pages.
    #[inline]
    fn next(&mut self) -> (Operation, u64, u32) {
        let wants_random = self.random.draw(&mut self.draws);
        let operation = match self.run {
            Some((operation, _)) if !wants_random && !self.is_mixed => operation,
            _ if self.write.draw(&mut self.draws) => Operation::Write,
            _ => Operation::Read,
        };
        let sectors = match operation {
            Operation::Write => self.writes.next(),
            _ => self.reads.next(),
        };
        let pages = u64::from(sectors).div_ceil(LOGICAL_PAGE_SECTORS);
        let follows = self.run.map(|(_, end)| end).filter(|end| !wants_random && end + pages <= self.pages);
        let first = follows.unwrap_or_else(|| {
            let extent = self.extents.next(&mut self.places, 1);
            (extent * EXTENT_PAGES + self.places.below(EXTENT_PAGES)).min(self.pages - pages)
        });
        self.random.made(follows.is_none());
        self.write.made(operation == Operation::Write);
        self.run = Some((operation, first + pages));
        (operation, first, sectors)
    }
}

impl Source for Synthesis {
    fn fill(&mut self, batch: &mut Vec<Arrival>, limit: usize) -> Result<(), WorkloadError> {
        batch.clear();
        for _ in 0..self.requests_left.min(limit as u64) {
            let time_ns = self.elapsed.ns();
            if time_ns >= self.end_ns {
                self.requests_left = 0;
                break;
            }
            WorkloadError::unless_countable(time_ns)?;
            let (operation, page, sectors) = self.next();
            self.elapsed.add(self.gaps.next());
            self.requests_left -= 1;
            self.counts.read += 1;
            self.counts.deliver(operation);
            let lba = Lba(page * LOGICAL_PAGE_SECTORS);
            let whole = sectors.next_multiple_of(LOGICAL_PAGE_SECTORS as u32);
            batch.push(Arrival {
                time: Time(time_ns),
                operation,
                lba,
                sectors: whole,
                asked_sectors: sectors,
            });
        }
        Ok(())
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn progress(&self) -> Option<f64> {
        Some(self.counts.delivered as f64 / self.length as f64)
    }

    fn basis(&self) -> Basis {
        Basis::Synthetic
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// A share of all requests that is kept closely.
struct Share {
    wanted: f64,
    /// Requests missing of what is wanted.
    missing: f64,
}

impl Share {
    /// Requests missing that make one certain.
    const PATIENCE: f64 = 64.0;

    fn new(wanted: f64) -> Share {
        Share { wanted, missing: 0.0 }
    }

    #[inline]
    fn draw(&self, stream: &mut Stream) -> bool {
        stream.chance(self.wanted + self.missing / Self::PATIENCE)
    }

    #[inline]
    fn made(&mut self, is_one: bool) {
        self.missing += self.wanted - f64::from(u8::from(is_one));
    }
}
