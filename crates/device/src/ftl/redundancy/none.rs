//! `none`: no page protects another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Redundancy;

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Redundancy for None {}
