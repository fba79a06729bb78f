//! Block sizes with weights, written as fio's `bssplit` entries are.

use std::borrow::Cow;
use std::fmt;

use flashkeel_engine::units::{Bytes, read_text};
use flashkeel_engine::{SECTOR_BYTES, Stream};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::refuse;
use crate::WorkloadError;

/// A block size and how often it occurs relative to the others: `"4KiB/70"`,
/// or `"4KiB"` for a weight of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    /// Size of the requests.
    pub size: Bytes,
    /// Weight among all sizes, at least 1.
    pub weight: u32,
}

impl fmt::Display for BlockSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.weight {
            1 => write!(f, "{}", self.size),
            weight => write!(f, "{}/{weight}", self.size),
        }
    }
}

impl Serialize for BlockSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl BlockSize {
    fn parse(text: &str) -> Result<BlockSize, String> {
        let (size, weight) = match text.split_once('/') {
            None => (text, 1),
            Some((size, weight)) => {
                let weight = weight.trim().parse().map_err(|_| {
                    format!(
                        "{weight:?} in {text:?} is not a weight; write a size and a whole number, such as \"4KiB/70\""
                    )
                })?;
                (size, weight)
            }
        };
        Ok(BlockSize { size: Bytes::parse(size)?, weight })
    }
}

impl<'de> Deserialize<'de> for BlockSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_text(deserializer, "a block size such as \"4KiB\" or \"4KiB/70\"", BlockSize::parse)
    }
}

impl JsonSchema for BlockSize {
    fn schema_name() -> Cow<'static, str> {
        "BlockSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "pattern": r"^[0-9._]+ ?([KMGT]i?)?B(/[0-9]+)?$", "examples": ["4KiB", "4KiB/70"]
        })
    }
}

/// A size that is drawn.
#[derive(Clone, Copy)]
pub(super) struct Drawn {
    pub sectors: u32,
    /// Places it takes, of the generator's alignment each.
    pub places: u64,
}

/// Block sizes to draw from.
pub(super) struct Sizes {
    /// Sum of the weights up to and with this one, and what it is.
    cumulative: Vec<(u64, Drawn)>,
    total: u64,
}

impl Sizes {
    /// Those written under `key`.
    pub(super) fn new(key: &str, sizes: &[BlockSize], block: Bytes) -> Result<Sizes, WorkloadError> {
        let refuse = |message: String| Err(refuse(key, message));
        if sizes.is_empty() {
            return refuse("there is no block size".into());
        }
        let mut total = 0u64;
        let mut cumulative = Vec::new();
        for &BlockSize { size, weight } in sizes {
            let sectors = size.0 / SECTOR_BYTES;
            if sectors == 0 || size.0 % block.0 != 0 {
                return refuse(format!("{size} is not a multiple of {block}, the unit of the device"));
            }
            let Ok(sectors) = u32::try_from(sectors) else {
                return refuse(format!("{size} is longer than any request"));
            };
            if weight == 0 {
                return refuse(format!("the weight of {size} is 0; leave it out instead"));
            }
            total += u64::from(weight);
            cumulative.push((total, Drawn { sectors, places: 1 }));
        }
        Ok(Sizes { cumulative, total })
    }

    fn bytes(&self) -> impl Iterator<Item = Bytes> {
        self.cumulative.iter().map(|(_, drawn)| Bytes(u64::from(drawn.sectors) * SECTOR_BYTES))
    }

    pub(super) fn smallest(&self) -> Bytes {
        self.bytes().min().expect("there is a size")
    }

    pub(super) fn largest(&self) -> Bytes {
        self.bytes().max().expect("there is a size")
    }

    pub(super) fn mean_bytes(&self) -> f64 {
        let mut before = 0;
        let weighted = self.bytes().zip(&self.cumulative).map(|(bytes, &(upto, _))| {
            let weight = upto - std::mem::replace(&mut before, upto);
            bytes.0 as f64 * weight as f64
        });
        weighted.sum::<f64>() / self.total as f64
    }

    /// Counts the places that each takes, of so many sectors each.
    pub(super) fn count_places(&mut self, sectors: u64) {
        for (_, drawn) in &mut self.cumulative {
            drawn.places = u64::from(drawn.sectors).div_ceil(sectors);
        }
    }

    /// The next request's.
    #[inline]
    pub(super) fn draw(&self, stream: &mut Stream) -> Drawn {
        if let [(_, drawn)] = self.cumulative[..] {
            return drawn;
        }
        let at = stream.below(self.total);
        let index = self.cumulative.partition_point(|&(upto, _)| upto <= at);
        self.cumulative[index].1
    }
}
