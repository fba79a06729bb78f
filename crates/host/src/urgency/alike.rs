//! `alike`: each part has the class of the whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Urgency};

/// Settings of `alike`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Alike {}

impl Build for Alike {
    fn build(&self, _devices: usize) -> Result<Option<Box<dyn Urgency>>, String> {
        Ok(None)
    }
}
