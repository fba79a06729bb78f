//! How configuration is read: policy axes, documents, overrides, and errors
//! that name a place and suggest a remedy.

mod axis;
mod suggest;

pub use axis::{Choice, pick_schema, split};
pub use suggest::{did_you_mean, nearest};

#[doc(hidden)]
pub mod macro_support {
    pub use schemars;
    pub use serde;
    pub use serde_json;
}
