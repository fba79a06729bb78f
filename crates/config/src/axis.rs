//! Policy axes: one list of policies becomes a configuration type.

use schemars::{Schema, json_schema};
use serde_json::{Map, Value};

use crate::error::unknown;

/// The name under which an axis asks a deserialiser for its policy. A
/// [`Node`](crate::Node) knows it and keeps the place of every setting; any
/// other format hands over the value as it is.
pub const AXIS: &str = "flashkeel axis";

/// The name under which an axis whose kinds are keys asks a deserialiser for its
/// kind, as [`AXIS`] for others.
pub const KEYED_AXIS: &str = "flashkeel keyed axis";

/// What is wrong with a kind that is not in `names`; it is empty where a table
/// has no key or several.
pub fn no_such_kind(axis: &str, name: &str, names: &[&str]) -> String {
    if name.is_empty() {
        format!("a {axis} is a table with exactly one key, its kind: {}", names.join(", "))
    } else {
        unknown(axis, name, names)
    }
}

/// The JSON Schema of an axis whose kinds are keys, given as (name, description,
/// schema of the settings).
pub fn keyed_axis_schema(axis: &str, description: &str, kinds: Vec<(&str, &str, Schema)>) -> Schema {
    let options = kinds.into_iter().map(|(name, description, schema)| {
        serde_json::json!({
            "description": description.trim(),
            "type": "object",
            "properties": { name: schema.to_value() },
            "required": [name],
            "additionalProperties": false,
        })
    });
    let options: Vec<Value> = options.collect();
    json_schema!({ "description": description.trim(), "x-axis": axis, "anyOf": options })
}

/// Those policies of an axis, with their defaults, for which something holds, as a
/// message recommends them: `"back", "fore" or "stripe"`.
pub fn names_where<P: serde::de::DeserializeOwned>(names: &[&str], holds: impl Fn(P) -> bool) -> String {
    let holds = |name: &&&str| serde_json::from_value(Value::from(**name)).is_ok_and(&holds);
    let named: Vec<String> = names.iter().filter(holds).map(|name| format!("{name:?}")).collect();
    match named.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => named.concat(),
    }
}

/// What is wrong with a policy's name that is not in `names`.
pub fn no_such_policy(axis: &str, name: &str, names: &[&str]) -> String {
    if name.is_empty() {
        format!("the {axis} has no policy; one of {}", names.join(", "))
    } else {
        unknown(axis, name, names)
    }
}

/// The JSON Schema of an axis: a bare name, or a table per policy, given as
/// (name, description, schema of the settings).
pub fn axis_schema(axis: &str, description: &str, policies: Vec<(&str, &str, Schema)>) -> Schema {
    let names: Vec<&str> = policies.iter().map(|(name, ..)| *name).collect();
    let mut options = vec![serde_json::json!({ "enum": names })];
    for (name, description, schema) in policies {
        let mut table = schema.to_value();
        let object = table.as_object_mut().expect("a policy's settings are a table");
        let properties = object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        properties[crate::merge::POLICY] = serde_json::json!({ "const": name });
        let required = object.entry("required").or_insert_with(|| Value::Array(Vec::new()));
        required.as_array_mut().expect("a list of keys").push(crate::merge::POLICY.into());
        object.insert("description".into(), description.trim().into());
        options.push(table);
    }
    json_schema!({ "description": description.trim(), "x-axis": axis, "anyOf": options })
}

/// Defines a policy axis from its list of policies.
///
/// Each line `Variant(Settings) in module = "name"` is one policy. It makes the
/// module, whose file lies beside the list; without `in module` the settings
/// are in scope already. `Settings` derives serde and schemars traits with `deny_unknown_fields` and defaults
/// for every key, and implements the axis's trait (named after the colon). The
/// axis then reads `key = "name"` or a table `{ policy = "name", … }`, `NAMES`
/// lists it, and `policy()` gives the chosen settings as the trait, which is
/// how a policy is built without a `match` anywhere.
///
/// The trait has `fn validate(&self) -> Result<(), String>`, which checks what
/// types cannot say and names the key first: `"depth is 0; …"`. Reading calls it,
/// so that no policy is read unchecked, and the error has the place of that key.
/// An axis that is made in code is checked by `checked()`.
///
/// With `by key` after the label the choice is the only key of a table,
/// `{ name = { … } }`, which suits kinds of things that hold one another. The
/// trait then has `fn expand(settings: &mut Node, key: &str, ground: Option<&Node>)
/// -> Result<(), ConfigError> where Self: Sized` too, which puts presets and
/// whatever else it builds on under what was written; the axis has an `expand`
/// that calls that of the kind written. What has been expanded is read, and thereby
/// checked, as of any other axis.
#[macro_export]
macro_rules! axis {
    (
        $(#[doc = $doc:literal])*
        pub enum $Axis:ident as $label:literal: $Policy:path {
            $( $(#[doc = $variant_doc:literal])* $Variant:ident($Settings:ident) $(in $module:ident)? = $name:literal ),+ $(,)?
        }
    ) => {
        $($(pub mod $module;)?)+

        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $Axis { $( $(#[doc = $variant_doc])* $Variant($($module::)? $Settings) ),+ }

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

            /// The axis, if its policy accepts its settings.
            ///
            /// # Errors
            /// A sentence that begins with the key at fault.
            #[allow(dead_code, reason = "for axes that are made in code")]
            pub fn checked(self) -> ::std::result::Result<Self, String> {
                self.policy().validate().map(|()| self)
            }
        }

        impl<'de> $crate::macro_support::serde::Deserialize<'de> for $Axis {
            fn deserialize<D: $crate::macro_support::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::std::result::Result<Self, D::Error> {
                use $crate::macro_support::serde::de::{EnumAccess, Error, VariantAccess, Visitor};
                struct Choose;
                impl<'de> Visitor<'de> for Choose {
                    type Value = $Axis;

                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str(concat!("the name of a ", $label, " or a table with a policy"))
                    }

                    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> ::std::result::Result<$Axis, A::Error> {
                        let (policy, settings) = access.variant::<String>()?;
                        let chosen = match policy.as_str() {
                            $($name => settings.newtype_variant::<$($module::)? $Settings>().map($Axis::$Variant)?,)+
                            _ => return Err(Error::custom($crate::no_such_policy($label, &policy, $Axis::NAMES))),
                        };
                        chosen.checked().map_err(Error::custom)
                    }

                    fn visit_newtype_struct<D: $crate::macro_support::serde::Deserializer<'de>>(
                        self,
                        deserializer: D,
                    ) -> ::std::result::Result<$Axis, D::Error> {
                        $crate::macro_support::read_anew(deserializer)
                    }
                }
                deserializer.deserialize_newtype_struct($crate::AXIS, Choose)
            }
        }

        impl $crate::macro_support::serde::Serialize for $Axis {
            fn serialize<S: $crate::macro_support::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::std::result::Result<S::Ok, S::Error> {
                use $crate::macro_support::{serde::ser::Error as _, serde_json};
                let mut value = match self {
                    $($Axis::$Variant(settings) => serde_json::to_value(settings).map_err(S::Error::custom)?),+
                };
                value["policy"] = self.name().into();
                value.serialize(serializer)
            }
        }

        impl $crate::macro_support::schemars::JsonSchema for $Axis {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($Axis).into()
            }

            fn json_schema(
                generator: &mut $crate::macro_support::schemars::SchemaGenerator,
            ) -> $crate::macro_support::schemars::Schema {
                $crate::axis_schema($label, concat!($($doc, "\n"),*), vec![$(($name, concat!($($variant_doc, "\n"),*), <$($module::)? $Settings as $crate::macro_support::schemars::JsonSchema>::json_schema(generator))),+])
            }
        }
    };
    (
        $(#[doc = $doc:literal])*
        pub enum $Axis:ident as $label:literal by key: $Policy:path {
            $( $(#[doc = $variant_doc:literal])* $Variant:ident($Settings:ident) in $module:ident = $name:literal ),+ $(,)?
        }
    ) => {
        $(pub mod $module;)+

        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $Axis { $( $(#[doc = $variant_doc])* $Variant(Box<$module::$Settings>) ),+ }

        impl $Axis {
            /// Every kind's name, in the order of the list.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The kind's name.
            pub fn name(&self) -> &'static str {
                match self { $($Axis::$Variant(_) => $name),+ }
            }

            /// The kind's settings, as what they have in common.
            pub fn policy(&self) -> &dyn $Policy {
                match self { $($Axis::$Variant(settings) => &**settings),+ }
            }

            /// Puts what a kind builds on under what was written at `key`.
            ///
            /// # Errors
            /// If it names something that is not there.
            pub fn expand(
                node: &mut $crate::Node,
                key: &str,
                ground: Option<&$crate::Node>,
            ) -> ::std::result::Result<(), $crate::ConfigError> {
                $(
                    if let Some(settings) = node.get_mut($name) {
                        <$module::$Settings as $Policy>::expand(settings, &format!("{key}.{}", $name), ground)?;
                    }
                )+
                Ok(())
            }
        }

        impl<'de> $crate::macro_support::serde::Deserialize<'de> for $Axis {
            fn deserialize<D: $crate::macro_support::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::std::result::Result<Self, D::Error> {
                use $crate::macro_support::serde::de::{EnumAccess, Error, VariantAccess, Visitor};
                struct Choose;
                impl<'de> Visitor<'de> for Choose {
                    type Value = $Axis;

                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str(concat!("a table with the kind of a ", $label))
                    }

                    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> ::std::result::Result<$Axis, A::Error> {
                        let (kind, settings) = access.variant::<String>()?;
                        let chosen = match kind.as_str() {
                            $($name => settings.newtype_variant().map($Axis::$Variant)?,)+
                            _ => return Err(Error::custom($crate::no_such_kind($label, &kind, $Axis::NAMES))),
                        };
                        match chosen.policy().validate() {
                            Ok(()) => Ok(chosen),
                            Err(message) => Err(Error::custom(format!("{kind}.{message}"))),
                        }
                    }

                    fn visit_newtype_struct<D: $crate::macro_support::serde::Deserializer<'de>>(
                        self,
                        deserializer: D,
                    ) -> ::std::result::Result<$Axis, D::Error> {
                        $crate::macro_support::read_anew(deserializer)
                    }
                }
                deserializer.deserialize_newtype_struct($crate::KEYED_AXIS, Choose)
            }
        }

        impl $crate::macro_support::serde::Serialize for $Axis {
            fn serialize<S: $crate::macro_support::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::std::result::Result<S::Ok, S::Error> {
                use $crate::macro_support::serde::ser::SerializeMap;
                let mut table = serializer.serialize_map(Some(1))?;
                match self { $($Axis::$Variant(settings) => table.serialize_entry($name, settings)?),+ }
                table.end()
            }
        }

        impl $crate::macro_support::schemars::JsonSchema for $Axis {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($Axis).into()
            }

            fn json_schema(
                generator: &mut $crate::macro_support::schemars::SchemaGenerator,
            ) -> $crate::macro_support::schemars::Schema {
                $crate::keyed_axis_schema($label, concat!($($doc, "\n"),*), vec![$(($name, concat!($($variant_doc, "\n"),*), generator.subschema_for::<$module::$Settings>())),+])
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

        fn validate(&self) -> Result<(), String> {
            Ok(())
        }
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

        fn validate(&self) -> Result<(), String> {
            if self.depth == 0 { Err("depth is 0; at least 1".into()) } else { Ok(()) }
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
    fn policies_are_recommended_by_what_they_do() {
        let named =
            |least| crate::names_where(Shape::NAMES, |shape: Shape| shape.policy().weight(1) >= least);
        assert_eq!([1, 2, 4].map(named), ["\"plain\" or \"fancy\"", "\"fancy\"", ""]);
    }

    #[test]
    fn what_the_policy_refuses_is_not_read() {
        assert_eq!(read(r#"{"policy": "fancy", "depth": 0}"#).unwrap_err(), "depth: is 0; at least 1");
        assert!(Shape::Fancy(Fancy { depth: 0 }).checked().is_err());
    }

    #[test]
    fn a_wrong_choice_is_refused_with_a_suggestion() {
        assert!(read(r#""fncy""#).unwrap_err().contains("did you mean \"fancy\""));
        assert!(
            read(r#"{"policy": "plain", "depth": 5}"#)
                .unwrap_err()
                .contains("depth: unknown key; there are no keys here")
        );
        assert!(read("3").unwrap_err().contains("expected the name of a policy, found the integer 3"));
        assert!(read("{}").unwrap_err().contains("the shape has no policy; one of plain, fancy"));
    }
}
