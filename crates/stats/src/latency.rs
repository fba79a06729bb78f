//! Latency histograms by operation and size.

use flashkeel_engine::{Operation, Span};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{
    Class, SizeClass,
    class::{OPERATION_NAMES, OPERATIONS},
    histogram::Histogram,
};

/// Latencies and bytes of one set of requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub histogram: Histogram,
    pub bytes: u64,
    /// Wide, because 10^8 requests that wait 500 s are more than 2^64 ns.
    pub sum_ns: u128,
    pub max_ns: u64,
}

impl Cell {
    #[inline]
    pub fn record(&mut self, latency: Span, bytes: u64) {
        let ns = latency.as_ns();
        self.histogram.record(ns);
        self.bytes += bytes;
        self.sum_ns += u128::from(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    pub fn merge(&mut self, other: &Cell) {
        self.histogram.merge(&other.histogram);
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
        Latencies { cells: vec![Cell::default(); OPERATIONS * SizeClass::COUNT] }
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
        let mut merged = Cell::default();
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
            .filter(|(_, cell)| cell.histogram.total() > 0)
            .map(|((op, size), cell)| (op, size, cell))
    }
}

/// A sum as JSON holds it: a number, or its digits where readers would round it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Sum {
    Number(u64),
    Digits(String),
}

impl From<u128> for Sum {
    fn from(sum: u128) -> Sum {
        u64::try_from(sum).map_or_else(|_| Sum::Digits(sum.to_string()), Sum::Number)
    }
}

impl Sum {
    fn value<E: serde::de::Error>(&self) -> Result<u128, E> {
        match self {
            Sum::Number(sum) => Ok((*sum).into()),
            Sum::Digits(digits) => digits.parse().map_err(|_| E::custom(format!("no sum: {digits:?}"))),
        }
    }
}

/// One cell as a result holds it.
#[derive(Serialize, Deserialize)]
struct SavedCell {
    operation: String,
    max_bytes: Option<u64>,
    bytes: u64,
    sum_ns: Sum,
    max_ns: u64,
    /// (largest latency of the bucket, requests in it), ascending.
    counts: Vec<(u64, u64)>,
}

impl Serialize for Latencies {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.filled().map(|(operation, size, cell)| SavedCell {
            operation: OPERATION_NAMES[operation].to_owned(),
            max_bytes: size.max_bytes(),
            bytes: cell.bytes,
            sum_ns: cell.sum_ns.into(),
            max_ns: cell.max_ns,
            counts: cell.histogram.iter().collect(),
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
            let SavedCell { bytes, sum_ns, max_ns, counts, .. } = saved;
            let sum_ns = sum_ns.value()?;
            let mut cell = Cell { histogram: Histogram::default(), bytes, sum_ns, max_ns };
            for (ns, count) in counts {
                cell.histogram.record_many(ns, count);
            }
            latencies.cells[index_of(operation, size)].merge(&cell);
        }
        Ok(latencies)
    }
}
