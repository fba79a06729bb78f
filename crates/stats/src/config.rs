//! What a run measures beyond the distributions every run has.

use flashkeel_engine::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// Settings of measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MeasureConfig {
    /// Length of a time series window. It doubles, merging neighbours, each
    /// time the series would exceed 65536 windows.
    #[serde(deserialize_with = "positive")]
    pub series_window: Span,
    /// Whether to keep one row per measured request.
    pub log_requests: bool,
    /// Most rows the request log keeps: in memory until the run ends, encoded, at 10 to 30 bytes
    /// each, and for a moment then up to three times as much. Requests beyond it are measured as
    /// ever, and counted as not logged.
    pub log_rows: u64,
    /// Keep what each chip does in a window of time, for `flashkeel map`;
    /// absent where nobody wants to see it.
    pub chip_log: Option<ChipLogConfig>,
}

/// The window in which chips are watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChipLogConfig {
    /// Its beginning, since the beginning of the run, warm-up included.
    pub from: Span,
    /// Its length, up to 10 s.
    #[serde(default = "one_second", deserialize_with = "watchable")]
    pub length: Span,
}

fn one_second() -> Span {
    Span::from_ms(1000)
}

fn watchable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    let span = Span::deserialize(deserializer)?;
    if span == Span::ZERO || span > Span::from_ms(10_000) {
        return Err(D::Error::custom(
            "chips are watched for more than 0 and at most 10 s; the default is \"1s\"",
        ));
    }
    Ok(span)
}

impl Default for MeasureConfig {
    fn default() -> Self {
        MeasureConfig {
            series_window: Span::from_ms(100),
            log_requests: false,
            log_rows: 20_000_000,
            chip_log: None,
        }
    }
}

fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    let span = Span::deserialize(deserializer)?;
    if span == Span::ZERO {
        return Err(D::Error::custom("a time series window must be longer than 0; the default is \"100ms\""));
    }
    Ok(span)
}
