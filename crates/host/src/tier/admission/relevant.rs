//! `relevant`: a clean copy is taken if it has been used more often than what is
//! there (Roy, dissertation, §3.6.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Admission, Build, Offer};

/// Settings of `relevant`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Relevant {
    /// What a copy is compared with.
    pub than: Than,
}

/// What a copy has to have been used more often than. The dissertation says "than any
/// element", which can be read either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Than {
    /// The least used clean copy.
    #[default]
    Least,
    /// The most used one, so than all of them.
    Most,
}

impl Build for Relevant {
    fn build(&self) -> Box<dyn Admission> {
        Box::new(Comparison { than: self.than })
    }
}

#[derive(Clone)]
struct Comparison {
    than: Than,
}

impl Admission for Comparison {
    fn takes(&mut self, offer: Offer<'_>) -> bool {
        if offer.has_room {
            return true;
        }
        // With nothing clean there, there is nothing that it could take the place of.
        offer.clean.range().is_some_and(|(least, most)| {
            offer.uses
                > match self.than {
                    Than::Least => least,
                    Than::Most => most,
                }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tier::table::Uses;

    #[test]
    fn the_reading_decides_what_is_relevant() {
        let nothing = Uses::default();
        let mut clean = Uses::default();
        [2, 9].into_iter().for_each(|uses| clean.add(uses));
        let takes =
            |than, uses, has_room, clean| Relevant { than }.build().takes(Offer { uses, has_room, clean });
        for (uses, least, most) in [(2, false, false), (3, true, false), (9, true, false), (10, true, true)] {
            assert_eq!(takes(Than::Least, uses, false, &clean), least);
            assert_eq!(takes(Than::Most, uses, false, &clean), most);
            assert!(takes(Than::Most, uses, true, &clean));
            assert!(!takes(Than::Least, uses, false, &nothing));
        }
    }
}
