//! `none`: no cell is used with one bit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Policy;

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Policy for None {}
