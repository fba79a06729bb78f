//! `none`: no clean copy is taken.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Admission, Build, Offer};

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Build for None {
    fn build(&self) -> Box<dyn Admission> {
        Box::new(Nothing)
    }

    fn takes_any(&self) -> bool {
        false
    }
}

#[derive(Clone)]
struct Nothing;

impl Admission for Nothing {
    fn takes(&mut self, _offer: Offer<'_>) -> bool {
        false
    }
}
