//! `none`: blocks are used for ever, however worn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Retirement;

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Retirement for None {
    fn retires(&self) -> bool {
        false
    }

    fn shrinks(&self) -> bool {
        false
    }
}
