//! From a tree to a typed value, so that every error knows its key and line.

use std::collections::btree_map;

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, EnumAccess, Error as _, MapAccess, SeqAccess, Unexpected,
        VariantAccess, Visitor,
        value::{MapAccessDeserializer, StrDeserializer},
    },
    forward_to_deserialize_any,
};

use crate::{AXIS, ConfigError, KEYED_AXIS, Kind, Node, Origin, merge::POLICY};

impl Node {
    /// Turns the tree into a value of type `T`.
    ///
    /// # Errors
    /// Where the tree does not fit the type: the key, where it was written,
    /// what was expected and what was found.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        T::deserialize(self)
    }

    fn unexpected(&self) -> Unexpected<'_> {
        match &self.kind {
            Kind::Null => Unexpected::Unit,
            Kind::Boolean(value) => Unexpected::Bool(*value),
            Kind::Integer(value) => match (u64::try_from(*value), i64::try_from(*value)) {
                (Ok(value), _) => Unexpected::Unsigned(value),
                (_, Ok(value)) => Unexpected::Signed(value),
                _ => Unexpected::Other("an integer beyond 64 bits"),
            },
            Kind::Float(value) => Unexpected::Float(*value),
            Kind::String(text) => Unexpected::Str(text),
            Kind::Array(_) => Unexpected::Seq,
            Kind::Table(_) => Unexpected::Map,
        }
    }

    fn visit<'de, V: Visitor<'de>>(&'de self, visitor: V) -> Result<V::Value, ConfigError> {
        match &self.kind {
            Kind::Null => visitor.visit_unit(),
            Kind::Boolean(value) => visitor.visit_bool(*value),
            Kind::Integer(value) => match (u64::try_from(*value), i64::try_from(*value)) {
                (Ok(value), _) => visitor.visit_u64(value),
                (_, Ok(value)) => visitor.visit_i64(value),
                _ => Err(ConfigError::invalid_type(self.unexpected(), &visitor)),
            },
            Kind::Float(value) => visitor.visit_f64(*value),
            Kind::String(text) => visitor.visit_borrowed_str(text),
            Kind::Array(items) => visitor.visit_seq(Elements { items: items.iter(), index: 0 }),
            Kind::Table(entries) => visitor.visit_map(Entries::new(entries.iter(), false)),
        }
    }
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = ConfigError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        self.visit(visitor).map_err(|error| self.place(error))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ConfigError> {
        match self.kind {
            Kind::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ConfigError> {
        if name == AXIS {
            let policy = self.get(POLICY).unwrap_or(self);
            let chosen = Choice::policy(self).and_then(|choice| visitor.visit_enum(choice));
            chosen.map_err(|error| policy.place(self.name_key(error)))
        } else if name == KEYED_AXIS {
            let chosen = Choice::keyed(self).and_then(|choice| visitor.visit_enum(choice));
            chosen.map_err(|error| self.place(self.name_several(self.name_key(error))))
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigError> {
        let result = match &self.kind {
            Kind::String(name) => visitor.visit_enum(StrDeserializer::new(name)),
            Kind::Table(entries) if entries.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(Entries::new(entries.iter(), false)))
            }
            _ => Err(ConfigError::invalid_type(self.unexpected(), &visitor)),
        };
        result.map_err(|error| self.place(error))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

impl Node {
    /// Places an error at this value, unless it is placed or nobody wrote this.
    fn place(&self, error: ConfigError) -> ConfigError {
        if self.origin == Origin::Default { error } else { error.or_at(&self.origin) }
    }

    /// Gives what a policy's own check has refused the key that it begins with.
    fn name_key(&self, error: ConfigError) -> ConfigError {
        let first = error.message().split([':', ' ']).next().unwrap_or_default();
        if error.path().is_empty() && self.get(first).is_some() {
            self.error_in("", error.message())
        } else {
            error
        }
    }

    /// Says which keys a table has where a kind would be its only one: a preset may have
    /// put one there.
    fn name_several(&self, error: ConfigError) -> ConfigError {
        match &self.kind {
            Kind::Table(entries) if entries.len() > 1 => {
                let keys: Vec<&str> = entries.keys().map(String::as_str).collect();
                self.error_in("", &format!("{}; this one has {}", error.message(), keys.join(" and ")))
            }
            _ => error,
        }
    }
}

struct Elements<'de> {
    items: std::slice::Iter<'de, Node>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = ConfigError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ConfigError> {
        let Some(node) = self.items.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(node).map(Some).map_err(|error| node.place(error).within(index.to_string()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// The entries of a table, or of an axis's table without its policy.
struct Entries<'de> {
    entries: btree_map::Iter<'de, String, Node>,
    without_policy: bool,
    value: Option<(&'de String, &'de Node)>,
}

impl<'de> Entries<'de> {
    fn new(entries: btree_map::Iter<'de, String, Node>, without_policy: bool) -> Self {
        Entries { entries, without_policy, value: None }
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = ConfigError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ConfigError> {
        let skip = self.without_policy;
        self.value = self.entries.find(|(key, _)| !(skip && *key == POLICY));
        let Some((key, node)) = self.value else { return Ok(None) };
        let result = seed.deserialize(StrDeserializer::<ConfigError>::new(key));
        result.map(Some).map_err(|error| node.place(error).within(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ConfigError> {
        let (key, node) = self.value.take().expect("serde asks for a value after its key");
        seed.deserialize(node).map_err(|error| node.place(error).within(key))
    }
}

/// What is chosen of an axis, with its settings.
struct Choice<'de> {
    /// Empty where none is named, or several are; the axis refuses that.
    name: &'de str,
    settings: &'de Node,
    /// Whether the name is the key of the settings, not an entry among them.
    is_key: bool,
}

impl<'de> Choice<'de> {
    /// A policy: a bare name, or a table with a `policy`.
    fn policy(node: &'de Node) -> Result<Choice<'de>, ConfigError> {
        let name = match &node.kind {
            Kind::Table(entries) => entries.get(POLICY),
            _ => Some(node),
        };
        let name = match name.map(|node| (&node.kind, node)) {
            None => "",
            Some((Kind::String(text), _)) => text,
            Some((_, node)) => {
                return Err(ConfigError::invalid_type(node.unexpected(), &"the name of a policy"));
            }
        };
        Ok(Choice { name, settings: node, is_key: false })
    }

    /// A kind: the only key of a table.
    fn keyed(node: &'de Node) -> Result<Choice<'de>, ConfigError> {
        let Kind::Table(entries) = &node.kind else {
            return Err(ConfigError::invalid_type(node.unexpected(), &"a table with one key"));
        };
        let only = entries.first_key_value().filter(|_| entries.len() == 1);
        let (name, settings) = only.map_or(("", node), |(name, settings)| (name.as_str(), settings));
        Ok(Choice { name, settings, is_key: true })
    }
}

impl<'de> EnumAccess<'de> for Choice<'de> {
    type Error = ConfigError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), ConfigError> {
        let value = seed.deserialize(StrDeserializer::<ConfigError>::new(self.name))?;
        Ok((value, self))
    }
}

impl<'de> VariantAccess<'de> for Choice<'de> {
    type Error = ConfigError;

    fn unit_variant(self) -> Result<(), ConfigError> {
        self.newtype_variant_seed(std::marker::PhantomData)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ConfigError> {
        if self.is_key {
            let result = seed.deserialize(self.settings);
            return result.map_err(|error| self.settings.place(error).within(self.name));
        }
        let entries = match &self.settings.kind {
            Kind::Table(entries) => entries.iter(),
            _ => btree_map::Iter::default(),
        };
        let settings = MapAccessDeserializer::new(Entries::new(entries, true));
        seed.deserialize(settings).map_err(|error| self.settings.place(error))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ConfigError> {
        Err(ConfigError::invalid_type(Unexpected::TupleVariant, &visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ConfigError> {
        Err(ConfigError::invalid_type(Unexpected::StructVariant, &visitor))
    }
}

/// Reads a `T` out of a format that knows no axes, as out of a document.
pub fn read_anew<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Node::from_json(value, &Origin::Default).read().map_err(serde::de::Error::custom)
}
