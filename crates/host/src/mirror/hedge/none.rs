//! `none`: a read goes to one copy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Hedge};

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Build for None {
    fn build(&self) -> Option<Box<dyn Hedge>> {
        Option::None
    }
}
