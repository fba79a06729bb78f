//! Latency histograms by operation and size.

use flashkeel_engine::{Operation, Span};
use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{
    Class, SizeClass,
    class::{OPERATION_NAMES, OPERATIONS},
};

const SIGNIFICANT_DIGITS: u8 = 3;

/// Largest relative error of a latency read from a histogram. Counts, means
/// and maxima are exact.
pub const HISTOGRAM_PRECISION: f64 = 0.001;

/// Latencies and bytes of one set of requests.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub histogram: Histogram<u64>,
    pub bytes: u64,
    pub sum_ns: u64,
    pub max_ns: u64,
}

impl Cell {
    pub fn new() -> Self {
        let histogram = Histogram::new(SIGNIFICANT_DIGITS).expect("three significant digits are possible");
        Cell { histogram, bytes: 0, sum_ns: 0, max_ns: 0 }
    }

    #[inline]
    fn record(&mut self, latency: Span, bytes: u64) {
        let ns = latency.as_ns();
        self.histogram.record(ns).expect("the histogram grows as needed");
        self.bytes += bytes;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    pub fn merge(&mut self, other: &Cell) {
        self.histogram.add(&other.histogram).expect("the histogram grows as needed");
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// One histogram per operation and size class.
#[derive(Clone, Debug)]
pub struct Latencies {
    cells: Vec<Cell>,
}

#[inline]
fn index_of(operation: usize, size: SizeClass) -> usize {
    operation * SizeClass::COUNT + size.index()
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies { cells: vec![Cell::new(); OPERATIONS * SizeClass::COUNT] }
    }
}

impl Latencies {
    #[inline]
    pub(crate) fn record(&mut self, operation: Operation, size: SizeClass, latency: Span, bytes: u64) {
        self.cells[index_of(operation as usize, size)].record(latency, bytes);
    }

    pub(crate) fn merge(&mut self, other: &Latencies) {
        for (mine, theirs) in self.cells.iter_mut().zip(&other.cells) {
            mine.merge(theirs);
        }
    }

    /// Every request of a class in one cell.
    pub(crate) fn of_class(&self, class: Class) -> Cell {
        let mut merged = Cell::new();
        for (operation, size, cell) in self.filled() {
            if class.contains(operation, size) {
                merged.merge(cell);
            }
        }
        merged
    }

    /// The cells that hold anything, with operation and size.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (usize, SizeClass, &Cell)> {
        let keys = (0..OPERATIONS).flat_map(|op| SizeClass::all().map(move |size| (op, size)));
        keys.zip(&self.cells)
            .filter(|(_, cell)| !cell.histogram.is_empty())
            .map(|((op, size), cell)| (op, size, cell))
    }
}

/// One cell as a result holds it.
#[derive(Serialize, Deserialize)]
struct SavedCell {
    operation: String,
    max_bytes: Option<u64>,
    bytes: u64,
    sum_ns: u64,
    max_ns: u64,
    /// (largest latency of the bucket, requests in it), ascending.
    counts: Vec<(u64, u64)>,
}

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.filled().map(|(operation, size, cell)| {
            SavedCell {
                operation: OPERATION_NAMES[operation].to_owned(),
                max_bytes: size.max_bytes(),
                bytes: cell.bytes,
                sum_ns: cell.sum_ns,
                max_ns: cell.max_ns,
                counts: cell
                    .histogram
                    .iter_recorded()
                    .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
                    .collect(),
            }
        }))
    }
}

impl<'de> Deserialize<'de> for Latencies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut latencies = Latencies::default();
        for saved in Vec::<SavedCell>::deserialize(deserializer)? {
            let operation = OPERATION_NAMES.iter().position(|name| *name == saved.operation);
            let (Some(operation), Some(size)) = (operation, SizeClass::up_to(saved.max_bytes)) else {
                return Err(D::Error::custom(format!(
                    "unknown histogram: {} up to {:?} bytes",
                    saved.operation, saved.max_bytes
                )));
            };
            let mut cell =
                Cell { bytes: saved.bytes, sum_ns: saved.sum_ns, max_ns: saved.max_ns, ..Cell::new() };
            for (ns, count) in saved.counts {
                cell.histogram.record_n(ns, count).map_err(D::Error::custom)?;
            }
            latencies.cells[index_of(operation, size)].merge(&cell);
        }
        Ok(latencies)
    }
}
