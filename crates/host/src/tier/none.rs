//! `none`: there is no NVM.

use flashkeel_engine::{Predictor, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, Placement};

/// Settings of `none`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct None {}

impl Build for None {
    fn build(&self, _predictor: Option<Box<dyn Predictor>>, _random: Stream) -> Option<Box<dyn Placement>> {
        Option::None
    }

    fn needs_nvm(&self) -> bool {
        false
    }
}
