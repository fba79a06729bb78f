//! `plane-blocking`: valid pages are copied back within the chip; other chips
//! have the channel meanwhile (ttFlash, "Plane-blocking GC"). What is copied
//! back is not checked by the controller's ECC. Pages that are valid in part
//! pass through the controller; their transfers are counted in the chip's time,
//! and not as load of the channel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Inside, Manner, Movement};
use crate::sched::Purpose;

/// Settings of `plane-blocking`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlaneBlocking {}

impl Movement for PlaneBlocking {
    fn manner(&self) -> Manner {
        Manner::Inside(Inside { purpose: Purpose::GcCopyback, pages: u32::MAX, yields: false })
    }
}
