//! Quantities with their unit in configuration and output: durations, sizes.
//!
//! Durations: `ns us ms s min h d w`. Sizes: `B KiB MiB GiB TiB` (powers of
//! two) and `KB MB GB TB` (powers of ten). Rates: a size followed by `/s`.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, Visitor},
};

use crate::Span;

/// A size in bytes, written `"16KiB"` in configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A bandwidth in bytes per second, written `"400MB/s"` in configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

const TIME_UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
    ("w", 604_800_000_000_000),
];

const SIZE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// Parses `text` as a number followed by one of `units`.
fn parse(text: &str, units: &[(&str, u64)], what: &str) -> Result<u64, String> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = (text[..split].replace('_', ""), text[split..].trim());
    let names =
        || units.iter().map(|(name, _)| *name).filter(|n| n.is_ascii()).collect::<Vec<_>>().join(", ");
    let refuse = |why: String| Err(format!("{why}; a {what} is a number and a unit ({})", names()));
    if text.starts_with('-') {
        return refuse(format!("{text:?} is negative"));
    }
    let Some(&(_, scale)) = units.iter().find(|(name, _)| *name == unit) else {
        return if unit.is_empty() {
            refuse(format!("{text:?} has no unit"))
        } else {
            refuse(format!("{unit:?} in {text:?} is not a unit of {what}"))
        };
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let digits = |s: &str| if s.is_empty() { Ok(0) } else { s.parse::<u64>() };
    if number.is_empty() || number == "." || fraction.len() > 9 {
        return refuse(format!("{text:?} is not a number this tool can hold"));
    }
    let (Ok(whole), Ok(part)) = (digits(whole), digits(fraction)) else {
        return refuse(format!("{text:?} is not a number this tool can hold"));
    };
    let denominator = 10u128.pow(fraction.len() as u32);
    let scaled = u128::from(part) * u128::from(scale);
    if scaled % denominator != 0 {
        return refuse(format!("{text:?} is not a whole number of the smallest unit"));
    }
    let value = u128::from(whole) * u128::from(scale) + scaled / denominator;
    u64::try_from(value).or_else(|_| refuse(format!("{text:?} is too large")))
}

/// Writes `value` in the largest unit that divides it.
fn print(value: u64, units: &[(&str, u64)]) -> String {
    let fits = |&&(name, scale): &&(&str, u64)| {
        name.is_ascii() && value.is_multiple_of(scale) && (value > 0 || scale == 1)
    };
    let (name, scale) =
        units.iter().filter(fits).max_by_key(|(_, scale)| *scale).expect("a unit of 1 exists");
    format!("{}{name}", value / scale)
}

impl Span {
    /// Parses a duration with its unit.
    ///
    /// # Errors
    /// A sentence saying what is wrong and which units there are.
    pub fn parse(text: &str) -> Result<Span, String> {
        parse(text, TIME_UNITS, "duration").map(Span)
    }
}

impl Bytes {
    /// Parses a size with its unit.
    ///
    /// # Errors
    /// A sentence saying what is wrong and which units there are.
    pub fn parse(text: &str) -> Result<Bytes, String> {
        parse(text, SIZE_UNITS, "size").map(Bytes)
    }
}

impl Rate {
    /// Parses a bandwidth: a size followed by `/s`.
    ///
    /// # Errors
    /// A sentence saying what is wrong and which units there are.
    pub fn parse(text: &str) -> Result<Rate, String> {
        let Some(size) = text.trim().strip_suffix("/s") else {
            return Err(format!("{text:?} is not a bandwidth; write a size per second, such as \"400MB/s\""));
        };
        parse(size, SIZE_UNITS, "size").map(Rate)
    }

    /// Time to move `bytes` at this rate, rounded up to a nanosecond.
    #[inline]
    pub fn time_for(self, bytes: u64) -> Span {
        // Longer words take far longer to divide.
        match bytes.checked_mul(1_000_000_000) {
            Some(scaled) => Span(scaled.div_ceil(self.0)),
            None => Span((u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(self.0)) as u64),
        }
    }
}

/// Deserializes what is written as a string.
///
/// # Errors
/// The sentence of `parse`; for anything but a string that `expected` is, such
/// as `a size such as "16KiB"`.
pub fn read_text<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
    parse: fn(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    struct Text<T> {
        expected: &'static str,
        parse: fn(&str) -> Result<T, String>,
    }

    impl<T> Visitor<'_> for Text<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.expected)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            (self.parse)(text).map_err(E::custom)
        }
    }

    deserializer.deserialize_str(Text { expected, parse })
}

macro_rules! quantity {
    ($type:ident, $name:literal, $print:expr, $pattern:literal, $example:literal, $expected:literal) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let print: fn(u64) -> String = $print;
                f.write_str(&print(self.0))
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read_text(deserializer, $expected, $type::parse)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "examples": [$example] })
            }
        }
    };
}

quantity!(
    Span,
    "Duration",
    |ns| print(ns, TIME_UNITS),
    r"^[0-9._]+ ?(ns|us|µs|ms|s|min|h|d|w)$",
    "50us",
    "a duration such as \"50us\""
);
quantity!(
    Bytes,
    "Size",
    |bytes| print(bytes, SIZE_UNITS),
    r"^[0-9._]+ ?([KMGT]i?)?B$",
    "16KiB",
    "a size such as \"16KiB\""
);
quantity!(
    Rate,
    "Bandwidth",
    |rate| format!("{}/s", print(rate, SIZE_UNITS)),
    r"^[0-9._]+ ?([KMGT]i?)?B/s$",
    "400MB/s",
    "a bandwidth such as \"400MB/s\""
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_round_trip() {
        for text in ["0ns", "50us", "5ms", "1500ms", "2h", "1w"] {
            assert_eq!(Span::parse(text).unwrap().to_string(), text);
        }
        for text in ["0B", "512B", "16KiB", "200GB", "256GiB"] {
            assert_eq!(Bytes::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Rate::parse("400MB/s").unwrap(), Rate(400_000_000));
        assert_eq!(Rate(400_000_000).to_string(), "400MB/s");
        assert_eq!(Span::parse("0.5us").unwrap(), Span(500));
        assert_eq!(Span::parse("1.5s").unwrap(), Span(1_500_000_000));
    }

    #[test]
    fn errors_name_the_text_and_the_units() {
        for (text, part) in [
            ("50", "no unit"),
            ("50 parsecs", "\"parsecs\""),
            ("0.5ns", "whole number"),
            ("-3us", "negative"),
            ("99999999999w", "too large"),
            ("", "no unit"),
        ] {
            let error = Span::parse(text).unwrap_err();
            assert!(error.contains(part) && error.contains("ms"), "{text}: {error}");
        }
        assert!(Rate::parse("400MB").unwrap_err().contains("per second"));
    }

    #[test]
    fn transfer_time_rounds_up() {
        assert_eq!(Rate(400_000_000).time_for(16_384), Span(40_960));
        assert_eq!(Rate(3).time_for(1), Span(333_333_334));
    }
}
