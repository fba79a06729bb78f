//! `paced`: like `task`, but as many blocks are emptied at the same time as free ones are
//! missing: one just below `gc.stop_above`, as many as may be where
//! the host may open no further block, and in between in proportion. So collection takes
//! from the host what it needs, and more of that evenly, never all at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Invocation;

/// Settings of `paced`: none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Paced {}

impl Invocation for Paced {
    fn starts_by_itself(&self) -> bool {
        true
    }

    fn holds_host(&self) -> bool {
        false
    }

    fn jobs(&self, most: u32, missing: u32, range: u32) -> u32 {
        let share = u64::from(most) * u64::from(missing.min(range));
        share.div_ceil(u64::from(range.max(1))).max(1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collection_grows_with_what_is_missing() {
        let jobs = |missing| Paced {}.jobs(16, missing, 64);
        assert_eq!([0, 1, 4, 5, 32, 64, 100].map(jobs), [1, 1, 1, 2, 8, 16, 16]);
        assert_eq!(Paced {}.jobs(16, 3, 0), 1);
    }
}
