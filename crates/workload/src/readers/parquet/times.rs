//! Times in nanoseconds, of numbers with decimals and of text.

use std::fmt::{Display, Write};

use crate::calendar::{calendar_ns, no_calendar_time};
use crate::readers::explain;
use crate::text::{quote, scaled};

/// Whole numbers below are as they are.
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// The time of a number, by the fewest digits that tell it from its neighbours, as text would have it:
/// what lies between them was never recorded. Parts of a nanosecond are left out. `text` is for it to
/// write in.
///
/// # Errors
/// A sentence about what is negative, too large or no number.
pub(super) fn decimal_ns<T: Copy + Display + Into<f64>>(
    value: T,
    unit_ns: u64,
    text: &mut String,
) -> Result<u64, String> {
    let number: f64 = value.into();
    if (0.0..TWO_TO_64).contains(&number)
        && number.fract() == 0.0
        && let Some(time_ns) = (number as u64).checked_mul(unit_ns)
    {
        return Ok(time_ns);
    }
    text.clear();
    write!(text, "{value}").expect("a string takes what is written");
    number_ns(text.as_bytes(), unit_ns).unwrap_or_else(|| Err(explain(text.as_bytes(), "number")))
}

/// The time of a text: a number if it is known what a whole one is, or one of a calendar. The column
/// has this name.
///
/// # Errors
/// As for [`decimal_ns`].
pub(super) fn text_ns(text: &[u8], unit_ns: Option<u64>, name: &str) -> Result<u64, String> {
    let number = unit_ns.and_then(|unit_ns| number_ns(text, unit_ns));
    number.unwrap_or_else(|| {
        calendar_ns(text).ok_or_else(|| match unit_ns {
            Some(_) => explain(text, "number"),
            None => no_calendar_time(text, name),
        })
    })
}

/// The time of a text that is a number.
fn number_ns(text: &[u8], unit_ns: u64) -> Option<Result<u64, String>> {
    let time_ns = scaled(text, unit_ns)?;
    Some(time_ns.ok_or_else(|| format!("{} is too large for a time in nanoseconds", quote(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<T: Copy + Display + Into<f64>>(value: T, unit_ns: u64) -> Result<u64, String> {
        decimal_ns(value, unit_ns, &mut String::new())
    }

    #[test]
    fn decimals_are_those_that_were_written() {
        for (value, unit_ns, expected) in [
            (0.0, 1_000_000_000, 0),
            (-0.0, 1_000_000_000, 0),
            (0.3, 1_000_000_000, 300_000_000),
            (350.731, 1_000, 350_731),
            // A double has no more than a quarter of a microsecond here, and microseconds come back.
            (1_600_000_000.123_457, 1_000_000_000, 1_600_000_000_123_457_000),
            (1e-10, 1_000_000_000, 0),
            (1e9, 1_000_000_000, 1_000_000_000_000_000_000),
            (9_007_199_254_740_994.0, 1, 9_007_199_254_740_994),
        ] {
            assert_eq!(of(value, unit_ns), Ok(expected), "{value}");
        }
        assert_eq!(of(0.1f32, 1_000_000_000), Ok(100_000_000));
    }

    #[test]
    fn what_is_no_time_is_told() {
        for (value, why) in [
            (f64::NAN, "\"NaN\" is not a whole number or one with decimals"),
            (f64::INFINITY, "\"inf\" is not a whole number or one with decimals"),
            (-1.5, "\"-1.5\" is negative"),
            (-2.0, "\"-2\" is negative"),
            (1.9e10, "\"19000000000\" is too large for a time in nanoseconds"),
            (1.8e19, "\"18000000000000000000\" is too large for a time in nanoseconds"),
        ] {
            assert_eq!(of(value, 1_000_000_000).unwrap_err(), why);
        }
        let why = text_ns(b"12", None, "time").unwrap_err();
        assert!(why.starts_with("\"12\" is no time such as 2024-03-01T12:00:00.25; of numbers"), "{why}");
    }
}
