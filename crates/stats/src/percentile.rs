//! The percentiles every distribution reports.

use serde::{Serialize, Serializer};

/// One of the fixed percentiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percentile(u8);

impl Percentile {
    /// Number of percentiles.
    pub const COUNT: usize = Self::PARTS_PER_MILLION.len();

    const PARTS_PER_MILLION: [u32; 12] = [
        500_000, 900_000, 950_000, 990_000, 995_000, 999_000, 999_500, 999_900, 999_950, 999_990, 999_995,
        999_999,
    ];

    /// Every percentile, lowest first.
    pub fn all() -> impl Iterator<Item = Percentile> {
        (0..Self::COUNT as u8).map(Percentile)
    }

    /// The percentile in parts per million: 999000 for p99.9.
    pub fn parts_per_million(self) -> u32 {
        Self::PARTS_PER_MILLION[self.index()]
    }

    /// The key in results, as fio writes it: `"99.900000"`.
    pub fn key(self) -> String {
        let ppm = self.parts_per_million();
        format!("{}.{:04}00", ppm / 10_000, ppm % 10_000)
    }

    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A value for every percentile; a map from [`Percentile::key`] in results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerPercentile<T>([T; Percentile::COUNT]);

impl<T> PerPercentile<T> {
    /// The value `f` gives for each percentile.
    pub fn from_fn(mut f: impl FnMut(Percentile) -> T) -> Self {
        PerPercentile(std::array::from_fn(|index| f(Percentile(index as u8))))
    }

    /// The value for one percentile.
    pub fn get(&self, percentile: Percentile) -> &T {
        &self.0[percentile.index()]
    }

    /// (percentile, value) pairs, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = (Percentile, &T)> {
        Percentile::all().zip(&self.0)
    }
}

impl<T: Serialize> Serialize for PerPercentile<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(percentile, value)| (percentile.key(), value)))
    }
}
