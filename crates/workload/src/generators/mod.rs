//! Synthetic workloads in the manner of fio: an operation mix and block sizes,
//! an access pattern that says where, an arrival process that says when.

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{LOGICAL_PAGE_BYTES, Lba, Operation, SECTOR_BYTES, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Arrival, Basis, Context, Counts, Open, Source, Stopped, Watch, WorkloadError};

pub mod arrivals;
pub mod block_size;
pub mod patterns;

pub use arrivals::ArrivalProcess;
pub use block_size::BlockSize;
pub use patterns::Pattern;

use arrivals::Clock;
use block_size::Sizes;
use patterns::Draw;

/// Settings of a synthetic workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Synthetic {
    /// Share of reads among the requests, 0 to 1.
    pub read_fraction: f64,
    /// Share of trims, 0 to 1.
    pub trim_fraction: f64,
    /// Share of writes of zeros without data, 0 to 1; what is none of these is a write.
    pub zero_fraction: f64,
    /// Block sizes, each a size or a size and its weight: `["4KiB/70", "64KiB/30"]`.
    pub block_sizes: Vec<BlockSize>,
    /// Block sizes of writes, of zeros too, where they are not those of `block_sizes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_block_sizes: Option<Vec<BlockSize>>,
    /// Requests begin at multiples of this; the smallest block size if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub align: Option<Bytes>,
    /// Where the requests go.
    pub pattern: Pattern,
    /// Beginning of the part of the device they go to.
    pub region_offset: Bytes,
    /// Length of that part; the rest of the device if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region_size: Option<Bytes>,
    /// When the requests arrive. Needed unless the pacing is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<ArrivalProcess>,
}

impl Default for Synthetic {
    fn default() -> Self {
        Synthetic {
            read_fraction: 1.0,
            trim_fraction: 0.0,
            zero_fraction: 0.0,
            block_sizes: vec![BlockSize { size: Bytes(LOGICAL_PAGE_BYTES), weight: 1 }],
            write_block_sizes: None,
            align: None,
            pattern: Pattern::default(),
            region_offset: Bytes(0),
            region_size: None,
            arrivals: None,
        }
    }
}

fn refuse(key: &str, message: impl Into<String>) -> WorkloadError {
    WorkloadError::key(&format!("workload.source.{key}"), message)
}

/// Refuses a number outside `0..=1`.
fn fraction(key: &str, value: f64) -> Result<f64, WorkloadError> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(refuse(key, format!("{value} is not between 0 and 1")))
    }
}

/// What shares may add up to: 0.34, 0.56 and 0.1 are more than 1 in binary.
const ALL: f64 = 1.0 + 1e-9;

/// The word below which a 32-bit random word falls with this probability.
fn threshold(probability: f64) -> u64 {
    (probability.min(1.0) * 2f64.powi(32)).round() as u64
}

impl Open for Synthetic {
    fn open(&self, context: &Context, _: &mut Watch<'_>) -> Result<Box<dyn Source>, Stopped> {
        let read = fraction("read_fraction", self.read_fraction)?;
        let trim = fraction("trim_fraction", self.trim_fraction)?;
        if read + trim > ALL {
            return Err(refuse("trim_fraction", "reads and trims together are more than all requests").into());
        }
        let zero = fraction("zero_fraction", self.zero_fraction)?;
        if read + trim + zero > ALL {
            return Err(refuse(
                "zero_fraction",
                "reads, trims and writes of zeros together are more than all requests",
            )
            .into());
        }
        let mut sizes = Sizes::new("block_sizes", &self.block_sizes, context.block)?;
        let mut write_sizes = match &self.write_block_sizes {
            Some(sizes) => Some(Sizes::new("write_block_sizes", sizes, context.block)?),
            None => None,
        };
        let smallest =
            write_sizes.as_ref().map_or(sizes.smallest(), |writes| writes.smallest().min(sizes.smallest()));
        let align = self.align.unwrap_or(smallest);
        if align.0 == 0 || !align.0.is_multiple_of(context.block.0) {
            return Err(refuse("align", format!("{align} is not a multiple of {}", context.block)).into());
        }
        let align_sectors = align.0 / SECTOR_BYTES;
        write_sizes.iter_mut().chain([&mut sizes]).for_each(|sizes| sizes.count_places(align_sectors));
        let (first, region_sectors) = self.region(context.device_sectors, align_sectors)?;
        let places = region_sectors / align_sectors;
        let known = [("block_sizes", Some(&sizes)), ("write_block_sizes", write_sizes.as_ref())];
        for (key, sizes) in known.into_iter().filter_map(|(key, sizes)| Some((key, sizes?))) {
            if sizes.largest().0.div_ceil(align.0) > places {
                let region = Bytes(region_sectors * SECTOR_BYTES);
                let message = format!("{} does not fit a region of {region}", sizes.largest());
                return Err(refuse(key, message).into());
            }
        }
        let clock = match (&self.arrivals, context.is_timed) {
            (Some(process), true) => {
                let share = (1.0 - read - trim).max(0.0);
                let mean = write_sizes.as_ref().unwrap_or(&sizes).mean_bytes();
                Some(process.policy().clock(context.seeds, share * mean)?)
            }
            (None, false) => None,
            (None, true) => {
                return Err(refuse(
                    "arrivals",
                    "needed to know when requests arrive, unless pacing is closed",
                )
                .into());
            }
            (Some(_), false) => {
                return Err(
                    refuse("arrivals", "closed pacing decides when requests arrive; leave it out").into()
                );
            }
        };
        let stream = |name: &str| Stream::new(context.seeds.own, &format!("workload/{name}"));
        Ok(Box::new(Generator {
            mix: Mix {
                read: threshold(read),
                read_or_trim: threshold(read + trim),
                no_write: threshold(read + trim + zero),
            },
            mix_stream: stream("mix"),
            sizes,
            write_sizes,
            size_stream: stream("size"),
            align_sectors,
            first,
            draw: self.pattern.policy().draw(places)?,
            place_stream: stream("place"),
            clock,
            clock_stream: stream("arrivals"),
            requests_left: context.requests.unwrap_or(u64::MAX),
            end_ns: context.duration.map_or(u64::MAX, |duration| duration.0),
            counts: Counts::default(),
        }))
    }

    fn is_finite(&self) -> bool {
        false
    }
}

impl Synthetic {
    /// First sector and length in sectors of the region, inside the device.
    fn region(&self, device_sectors: u64, align_sectors: u64) -> Result<(u64, u64), WorkloadError> {
        let sectors = |key, bytes: Bytes| {
            if bytes.0.is_multiple_of(align_sectors * SECTOR_BYTES) {
                Ok(bytes.0 / SECTOR_BYTES)
            } else {
                Err(refuse(key, format!("{bytes} is not a multiple of the alignment of the requests")))
            }
        };
        let whole = || {
            let size = Bytes(device_sectors * SECTOR_BYTES);
            format!("the {size} of the device, or of the tenant's volume")
        };
        let first = sectors("region_offset", self.region_offset)?;
        if first >= device_sectors {
            return Err(refuse("region_offset", format!("it lies beyond {}", whole())));
        }
        let length = match self.region_size {
            None => device_sectors - first,
            Some(size) => sectors("region_size", size)?,
        };
        if length > device_sectors - first {
            return Err(refuse("region_size", format!("the region reaches beyond {}", whole())));
        }
        Ok((first, length))
    }
}

/// Probabilities of operations as thresholds of a 32-bit word.
struct Mix {
    read: u64,
    read_or_trim: u64,
    no_write: u64,
}

/// The threshold of what is certain.
const ALWAYS: u64 = 1 << 32;

impl Mix {
    /// The next operation; no number is drawn where there is only one.
    #[inline]
    fn draw(&self, stream: &mut Stream) -> Operation {
        match *self {
            Mix { read: ALWAYS, .. } => return Operation::Read,
            Mix { no_write: 0, .. } => return Operation::Write,
            _ => {}
        }
        let word = stream.word() >> 32;
        if word < self.read {
            Operation::Read
        } else if word >= self.no_write {
            Operation::Write
        } else if word < self.read_or_trim {
            Operation::Trim
        } else {
            Operation::WriteZeroes
        }
    }
}

/// A synthetic workload being generated.
struct Generator {
    mix: Mix,
    mix_stream: Stream,
    sizes: Sizes,
    write_sizes: Option<Sizes>,
    size_stream: Stream,
    align_sectors: u64,
    first: u64,
    draw: Box<dyn Draw>,
    place_stream: Stream,
    clock: Option<Box<dyn Clock>>,
    clock_stream: Stream,
    requests_left: u64,
    end_ns: u64,
    counts: Counts,
}

impl Source for Generator {
    fn fill(&mut self, batch: &mut Vec<Arrival>, limit: usize) -> Result<(), WorkloadError> {
        batch.clear();
        let count = self.requests_left.min(limit as u64);
        self.requests_left -= count;
        for _ in 0..count {
            let time_ns = self.clock.as_mut().map_or(0, |clock| clock.next(&mut self.clock_stream));
            if time_ns >= self.end_ns {
                self.requests_left = 0;
                break;
            }
            WorkloadError::unless_countable(time_ns)?;
            let operation = self.mix.draw(&mut self.mix_stream);
            let sizes = match (&self.write_sizes, operation) {
                (Some(sizes), Operation::Write | Operation::WriteZeroes) => sizes,
                _ => &self.sizes,
            };
            let block_size::Drawn { sectors, places } = sizes.draw(&mut self.size_stream);
            let place = self.draw.next(&mut self.place_stream, places);
            let lba = Lba(self.first + place * self.align_sectors);
            self.counts.deliver(operation);
            batch.push(Arrival { time: Time(time_ns), operation, lba, sectors, asked_sectors: sectors });
        }
        self.counts.read += batch.len() as u64;
        Ok(())
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn progress(&self) -> Option<f64> {
        None
    }

    fn basis(&self) -> Basis {
        Basis::Synthetic
    }

    fn notes(&self) -> &[String] {
        &[]
    }
}
