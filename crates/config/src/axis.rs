//! Policy axes: one list of policies becomes a configuration type.

use schemars::{Schema, json_schema};
use serde::{Deserializer, de::Error};
use serde_json::{Map, Value};

use crate::did_you_mean;

/// A policy chosen in configuration: its name and its own settings.
pub struct Choice {
    /// The value of the `policy` key.
    pub policy: String,
    /// Every other key of the table.
    pub settings: Value,
}

/// Reads a choice: either the bare name of a policy, or a table with a
/// `policy` key and that policy's own keys.
///
/// # Errors
/// If the value is neither, or names no policy in `names`.
pub fn split<'de, D: Deserializer<'de>>(
    deserializer: D,
    axis: &str,
    names: &[&str],
) -> Result<Choice, D::Error> {
    let value: Value = serde::Deserialize::deserialize(deserializer)?;
    let (policy, settings) = match value {
        Value::String(policy) => (policy, Map::new()),
        Value::Object(mut table) => match table.remove("policy") {
            Some(Value::String(policy)) => (policy, table),
            Some(other) => {
                return Err(D::Error::custom(format!("the {axis}'s policy must be a name, not {other}")));
            }
            None => {
                return Err(D::Error::custom(format!(
                    "the {axis} has no policy; one of {}",
                    names.join(", ")
                )));
            }
        },
        other => {
            return Err(D::Error::custom(format!(
                "the {axis} must be a name or a table with a policy, not {other}"
            )));
        }
    };
    if !names.contains(&policy.as_str()) {
        let hint = did_you_mean(&policy, names.iter().copied());
        return Err(D::Error::custom(format!(
            "unknown {axis} {policy:?}, expected one of {}{hint}",
            names.join(", ")
        )));
    }
    Ok(Choice { policy, settings: Value::Object(settings) })
}

/// The JSON Schema of an axis: a bare name, or a table per policy.
pub fn pick_schema(policies: Vec<(&str, Schema)>) -> Schema {
    let names: Vec<&str> = policies.iter().map(|(name, _)| *name).collect();
    let mut options = vec![serde_json::json!({ "enum": names })];
    for (name, schema) in policies {
        let mut table = schema.to_value();
        let object = table.as_object_mut().expect("a policy's settings are a table");
        let properties = object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        properties["policy"] = serde_json::json!({ "const": name });
        object.insert("required".into(), serde_json::json!(["policy"]));
        options.push(table);
    }
    json_schema!({ "anyOf": options })
}

/// Defines a policy axis from its list of policies.
///
/// Each line `Variant(module::Settings) = "name"` is one policy: `Settings`
/// derives serde and schemars traits with `deny_unknown_fields` and defaults
/// for every key, and implements the axis's trait (named after the colon). The
/// axis then reads `key = "name"` or a table `{ policy = "name", … }`, `NAMES`
/// lists it, and `policy()` gives the chosen settings as the trait, which is
/// how a policy is built without a `match` anywhere.
#[macro_export]
macro_rules! axis {
    (
        $(#[$doc:meta])*
        pub enum $Axis:ident as $label:literal: $Policy:path {
            $( $(#[$variant_doc:meta])* $Variant:ident($Settings:ty) = $name:literal ),+ $(,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $Axis { $( $(#[$variant_doc])* $Variant($Settings) ),+ }

        impl $Axis {
            /// Every policy's name, in the order of the list.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The chosen policy's name.
            pub fn name(&self) -> &'static str {
                match self { $($Axis::$Variant(_) => $name),+ }
            }

            /// The chosen policy's settings, as what they have in common.
            pub fn policy(&self) -> &dyn $Policy {
                match self { $($Axis::$Variant(settings) => settings),+ }
            }
        }

        impl<'de> $crate::macro_support::serde::Deserialize<'de> for $Axis {
            fn deserialize<D: $crate::macro_support::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                use $crate::macro_support::serde::de::Error as _;
                let choice = $crate::split(deserializer, $label, Self::NAMES)?;
                match choice.policy.as_str() {
                    $($name => <$Settings as $crate::macro_support::serde::Deserialize>::deserialize(choice.settings).map($Axis::$Variant).map_err(D::Error::custom),)+
                    _ => unreachable!("split checked the name"),
                }
            }
        }

        impl $crate::macro_support::serde::Serialize for $Axis {
            fn serialize<S: $crate::macro_support::serde::Serializer>(
                &self,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                use $crate::macro_support::{serde::ser::Error as _, serde_json};
                let mut value = match self {
                    $($Axis::$Variant(settings) => serde_json::to_value(settings).map_err(S::Error::custom)?),+
                };
                value["policy"] = self.name().into();
                value.serialize(serializer)
            }
        }

        impl $crate::macro_support::schemars::JsonSchema for $Axis {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Axis).into()
            }

            fn json_schema(
                generator: &mut $crate::macro_support::schemars::SchemaGenerator,
            ) -> $crate::macro_support::schemars::Schema {
                $crate::pick_schema(vec![$(($name, <$Settings as $crate::macro_support::schemars::JsonSchema>::json_schema(generator))),+])
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Plain {}

    pub trait Weigh {
        fn weight(&self, by: u32) -> u32;
    }

    impl Weigh for Plain {
        fn weight(&self, by: u32) -> u32 {
            by
        }
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Fancy {
        depth: u32,
    }

    impl Default for Fancy {
        fn default() -> Self {
            Fancy { depth: 3 }
        }
    }

    impl Weigh for Fancy {
        fn weight(&self, by: u32) -> u32 {
            by * self.depth
        }
    }

    axis! {
        /// Test axis.
        pub enum Shape as "shape": Weigh {
            /// Plain.
            Plain(Plain) = "plain",
            /// Fancy.
            Fancy(Fancy) = "fancy",
        }
    }

    fn read(json: &str) -> Result<Shape, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_choice_is_a_name_or_a_table() {
        assert_eq!(read(r#""fancy""#).unwrap(), Shape::Fancy(Fancy { depth: 3 }));
        let deep = read(r#"{"policy": "fancy", "depth": 5}"#).unwrap();
        assert_eq!(deep.policy().weight(2), 10);
        assert_eq!(read(&serde_json::to_string(&deep).unwrap()).unwrap(), deep);
    }

    #[test]
    fn a_wrong_choice_is_refused_with_a_suggestion() {
        assert!(read(r#""fncy""#).unwrap_err().contains("did you mean \"fancy\""));
        assert!(read(r#"{"policy": "plain", "depth": 5}"#).unwrap_err().contains("unknown field `depth`"));
        assert!(read("3").unwrap_err().contains("must be a name"));
    }
}
