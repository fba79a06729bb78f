//! A number per cause, by the cause's name in results.

use std::{fmt, ops::Index};

use flashkeel_engine::Cause;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, Visitor},
};

/// One number per [`Cause`]; a map from [`Cause::label`] in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseTotals(pub(crate) [u64; Cause::COUNT]);

impl CauseTotals {
    /// All zero.
    pub const ZERO: CauseTotals = CauseTotals([0; Cause::COUNT]);

    /// (cause, number) pairs in ledger order, zeros included.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        Cause::ALL.iter().copied().zip(self.0)
    }

    /// Sum over all causes.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }

    pub(crate) fn add(&mut self, other: &CauseTotals) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// Serialises without the zeros, for tables with many rows.
    pub(crate) fn serialize_sparse<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().filter(|(_, n)| *n > 0).map(|(cause, n)| (cause.label(), n)))
    }
}

impl Index<Cause> for CauseTotals {
    type Output = u64;

    fn index(&self, cause: Cause) -> &u64 {
        &self.0[cause as usize]
    }
}

impl Serialize for CauseTotals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(cause, n)| (cause.label(), n)))
    }
}

impl<'de> Deserialize<'de> for CauseTotals {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Named;

        impl<'de> Visitor<'de> for Named {
            type Value = CauseTotals;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from causes to numbers")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<CauseTotals, M::Error> {
                let mut totals = CauseTotals::ZERO;
                while let Some(name) = map.next_key::<String>()? {
                    let cause = Cause::ALL.iter().find(|cause| cause.label() == name).ok_or_else(|| {
                        M::Error::custom(format!(
                            "unknown cause {name:?}: this result was written by another version"
                        ))
                    })?;
                    totals.0[*cause as usize] = map.next_value()?;
                }
                Ok(totals)
            }
        }

        deserializer.deserialize_map(Named)
    }
}
