//! The one error of configuration: where, which key, what is wrong.

use std::fmt::{self, Display};

use serde::de::{self, Expected, Unexpected};
use serde_json::Value;

use crate::{Origin, choices::choices, did_you_mean, nearest};

/// What is wrong with a configuration, at which key, written where.
///
/// Displays as `exp.toml:7: device.timing.read: "50" has no unit; …`. On the
/// command line it ends the program with exit status 2.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigError {
    origin: Option<Origin>,
    /// Keys from the innermost outwards, as they are met while unwinding.
    keys: Vec<String>,
    message: String,
    /// The key that is not there, if that is what is wrong.
    missing: Option<&'static str>,
}

impl ConfigError {
    /// An error about the value of key `path` (dotted; may be empty).
    pub fn new(origin: Option<Origin>, path: &str, message: impl Into<String>) -> Self {
        let keys = path.rsplit('.').filter(|key| !key.is_empty()).map(str::to_owned).collect();
        ConfigError { origin, keys, message: message.into(), missing: None }
    }

    /// Adds the key that encloses what the error is about so far.
    #[must_use]
    pub fn within(mut self, key: impl Into<String>) -> Self {
        self.keys.push(key.into());
        self
    }

    /// Sets the place, unless a more exact one is known.
    #[must_use]
    pub fn or_at(mut self, origin: &Origin) -> Self {
        self.origin.get_or_insert_with(|| origin.clone());
        self
    }

    /// Says which names a missing key chooses among, if it does by the schema of the document.
    #[must_use]
    pub fn with_choices(mut self, schema: &Value) -> Self {
        if let Some(key) = self.missing {
            let names = choices(schema, &format!("{}.{key}", self.path()));
            if !names.is_empty() {
                self.message += &format!("; one of {}", names.join(", "));
            }
        }
        self
    }

    /// The dotted path of the key at fault; empty for the document as a whole.
    pub fn path(&self) -> String {
        self.keys.iter().rev().cloned().collect::<Vec<_>>().join(".")
    }

    /// What is wrong, without place and key.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Some(Origin::Override) if !self.keys.is_empty() => write!(f, "{} ", Origin::Override)?,
            Some(origin) => write!(f, "{origin}: ")?,
            None => {}
        }
        if !self.keys.is_empty() {
            write!(f, "{}: ", self.path())?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}

impl de::Error for ConfigError {
    fn custom<T: Display>(message: T) -> Self {
        ConfigError::new(None, "", message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let mut wanted = plain(&expected.to_string());
        if wanted == ARRAY {
            // One of what may be several is most likely meant to be the only one.
            match found {
                Unexpected::Str(it) => wanted += &format!(" such as [{it:?}]"),
                Unexpected::Unsigned(it) => wanted += &format!(" such as [{it}]"),
                Unexpected::Signed(it) => wanted += &format!(" such as [{it}]"),
                Unexpected::Float(it) => wanted += &format!(" such as [{it}]"),
                _ => {}
            }
        }
        Self::custom(format!("expected {wanted}, found {}", describe(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::custom(format!("expected {}, found {length} elements", plain(&expected.to_string())))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::custom(unknown("value", variant, expected))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        // The field itself is the last key of the error's path.
        let hint = match nearest(field, expected.iter().copied()) {
            Some(near) => format!("did you mean {near:?}?"),
            None if expected.is_empty() => "there are no keys here".into(),
            None => format!("expected one of {}", expected.join(", ")),
        };
        Self::custom(format!("unknown key; {hint}"))
    }

    fn missing_field(field: &'static str) -> Self {
        let error = Self::custom(format!("the key {field:?} is missing"));
        ConfigError { missing: Some(field), ..error }
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::custom(format!("the key {field:?} is given twice"))
    }
}

/// `unknown scheduler "fncy", expected one of …; did you mean …?`
pub(crate) fn unknown(what: &str, name: &str, names: &[&str]) -> String {
    let hint = did_you_mean(name, names.iter().copied());
    format!("unknown {what} {name:?}, expected one of {}{hint}", names.join(", "))
}

const ARRAY: &str = "an array";

/// What serde says it expected, in words a user knows.
fn plain(expected: &str) -> String {
    let text = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => ARRAY,
        "a map" => "a table",
        text if text.starts_with("a nonzero u") => "a whole number above 0",
        text if text.starts_with("struct ") => "a table",
        text if text.starts_with("enum ") => "a name",
        text => text,
    };
    text.to_owned()
}

fn describe(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => format!("{value}"),
        Unexpected::Unsigned(value) => format!("the integer {value}"),
        Unexpected::Signed(value) => format!("the integer {value}"),
        Unexpected::Float(value) => format!("the number {value}"),
        Unexpected::Str(value) => format!("the string {value:?}"),
        Unexpected::Seq => "an array".into(),
        Unexpected::Map => "a table".into(),
        Unexpected::Unit | Unexpected::Option => "nothing".into(),
        other => other.to_string(),
    }
}
