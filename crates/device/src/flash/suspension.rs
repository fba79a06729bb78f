//! Suspension: a program or an erase is broken off for reads, and taken up
//! again.

use flashkeel_engine::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::LONGEST;

/// Suspending programs, erases and copybacks for reads that arrive meanwhile.
/// Moves that hold the channel are not suspended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SuspensionConfig {
    /// From the command to suspend until the chip can read.
    pub latency: Span,
    /// What taking the operation up again adds to it.
    pub resume: Span,
    /// How often one operation may be suspended, or overtaken while it waits
    /// for the chip, by all reads there at that time. 0: chips that cannot suspend,
    /// whatever the budget.
    pub limit: u32,
    /// How long after its first suspension an operation may be suspended and
    /// overtaken again, however often: a bound in time beside `limit`, for erases
    /// during which more reads come than that. A time, or as long as so many erases
    /// take, as `"10 erases"`.
    pub budget: Budget,
}

impl Default for SuspensionConfig {
    /// Of the order that studies of suspension assume (Wu and He, "Reducing SSD
    /// Read Latency via NAND Flash Program and Erase Suspension", FAST 2012);
    /// the limit is ours.
    fn default() -> Self {
        SuspensionConfig {
            latency: Span::from_us(20),
            resume: Span::from_us(20),
            limit: 8,
            budget: Budget::Time(Span::ZERO),
        }
    }
}

impl SuspensionConfig {
    /// Checks the settings; what chips do whose erases take so long, `None` if they
    /// cannot suspend.
    ///
    /// # Errors
    /// A sentence naming the key and its range.
    pub fn resolve(&self, erase: Span) -> Result<Option<Suspension>, String> {
        let budget = match self.budget {
            Budget::Time(span) => span,
            Budget::Erases(count) => Span(erase.0.saturating_mul(u64::from(count))),
        };
        for (key, span) in [("latency", self.latency), ("resume", self.resume), ("budget", budget)] {
            if span > LONGEST {
                return Err(format!("suspension.{key} is {span}; at most {LONGEST}"));
            }
        }
        if self.limit > 1000 {
            return Err(format!("suspension.limit is {}; at most 1000", self.limit));
        }
        let &SuspensionConfig { latency, resume, limit, .. } = self;
        Ok((limit > 0).then_some(Suspension { latency, resume, limit, budget }))
    }
}

/// How chips suspend, in plain numbers.
#[derive(Clone, Copy, Debug)]
pub struct Suspension {
    pub latency: Span,
    pub resume: Span,
    limit: u32,
    budget: Span,
}

impl Suspension {
    /// Whether an operation that has been suspended or overtaken `times` times, the
    /// first time at `first`, may be once more.
    #[inline]
    pub fn allows(&self, times: u32, first: Time, now: Time) -> bool {
        times < self.limit || now.since(first) < self.budget
    }
}

/// A bound in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// So long.
    Time(Span),
    /// As long as so many erases of the flash.
    Erases(u32),
}

const ERASES: &str = " erases";

impl Serialize for Budget {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Budget::Time(span) => span.serialize(serializer),
            Budget::Erases(count) => serializer.serialize_str(&format!("{count}{ERASES}")),
        }
    }
}

impl<'de> Deserialize<'de> for Budget {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parsed = match text.strip_suffix(ERASES) {
            Some(count) => count.parse().map(Budget::Erases).map_err(|_| format!("{count:?} is no number")),
            None => Span::parse(&text).map(Budget::Time),
        };
        parsed.map_err(|why| serde::de::Error::custom(format!("{why}; a time, or as \"10 erases\"")))
    }
}

impl JsonSchema for Budget {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SuspensionBudget".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let span = generator.subschema_for::<Span>();
        let erases = schemars::json_schema!({ "type": "string", "pattern": "^[0-9]+ erases$", "examples": ["10 erases"] });
        schemars::json_schema!({ "anyOf": [span, erases] })
    }
}
