//! How configuration is read: policy axes, documents, overrides, and errors
//! that name a place and suggest a remedy.

mod axis;
mod choices;
mod error;
mod merge;
mod node;
mod origin;
mod preset;
mod read;
mod reference;
mod suggest;

pub use axis::{AXIS, KEYED_AXIS, axis_schema, keyed_axis_schema, names_where, no_such_kind, no_such_policy};
pub use error::ConfigError;
pub use node::{Kind, Node};
pub use origin::Origin;
pub use preset::{preset_layer, preset_name};
pub use reference::{Axis, axes, reference};
pub use suggest::{did_you_mean, nearest};

#[doc(hidden)]
pub mod macro_support {
    pub use crate::read::read_anew;
    pub use schemars;
    pub use serde;
    pub use serde_json;
}
