//! `all`: every clean copy is taken.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Admission, Build, Offer};

/// Settings of `all`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct All {}

impl Build for All {
    fn build(&self) -> Box<dyn Admission> {
        Box::new(Everything)
    }
}

#[derive(Clone)]
struct Everything;

impl Admission for Everything {
    fn takes(&mut self, _offer: Offer<'_>) -> bool {
        true
    }
}
