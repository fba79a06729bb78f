//! A coordinator between hosts and a device with deterministic windows, which says how many
//! reads each host may make in a window: those beyond wait for the next
//! non-deterministic one, or go to a copy that is in one (PLMC and PLMLC, chapters 4 and 5 of
//! the dissertation on predictable latency).

pub mod allocation;
mod control;
mod counts;
pub mod demand;
mod foresight;
mod report;
mod stage;
mod tails;

use flashkeel_engine::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use foresight::Foresight;
pub use report::{CoordinatorReport, HostReport};
pub use stage::{Coordinator, Windows};

use crate::claim::{Claim, Priority};
use crate::limits;
use crate::windowed::SHORTEST_WINDOW;
use allocation::CountAllocationConfig;
use demand::DemandConfig;

/// The share of the counts, 0 to 1, that a host of each class may use from the first moment
/// of a window on, before it has heard of the coordinator, and is given first where they do
/// not suffice for all. Where they do it is given what it is expected to need, be that less.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Minimum {
    /// Of a host of urgent priority; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urgent: Option<f64>,
    /// Of a host of high priority; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Of a host of medium priority; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub medium: Option<f64>,
    /// Of a host of low priority; none if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
}

impl Minimum {
    /// With their keys and classes.
    fn each(&self) -> [(&'static str, Priority, Option<f64>); 4] {
        [
            ("urgent", Priority::Urgent, self.urgent),
            ("high", Priority::High, self.high),
            ("medium", Priority::Medium, self.medium),
            ("low", Priority::Low, self.low),
        ]
    }

    /// The share of a class.
    fn of(&self, class: Priority) -> f64 {
        self.each().iter().find(|each| each.1 == class).and_then(|each| each.2).unwrap_or(0.0)
    }
}

/// How a coordinator shares deterministic windows out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoordinationConfig {
    /// Reads of 4 KiB that all hosts together may make in a deterministic window. If absent
    /// nobody is held to anything: windows follow the clock, on any device, and what each
    /// host does in them is measured, as what coordination is held against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// How many each host is expected to need.
    #[serde(default)]
    pub demand: DemandConfig,
    /// Who gets what where they do not suffice for all.
    #[serde(default)]
    pub allocation: CountAllocationConfig,
    /// What each host has until the coordinator has answered, and first where counts do not
    /// suffice for all.
    #[serde(default)]
    pub minimum: Minimum,
    /// Whether a host that needs more than it was given may ask for what is left in the
    /// same window.
    #[serde(default)]
    pub top_ups: bool,
    /// How long a message between a host and the coordinator takes, at most 1 h.
    #[serde(default = "message_delay")]
    pub message_delay: Span,
    /// Whether the storage server holds back what a host reads beyond its count although
    /// it was told.
    #[serde(default = "bounds")]
    pub bounds: bool,
    /// Longest deterministic window, 100 ms if absent. Not for a mirror, whose copies
    /// take turns by themselves. At most 1 h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Span>,
    /// Time for background work between two of them, 20 ms if absent, at most 1 h. Not for a mirror.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<Span>,
}

/// Ours: two ways within a data centre, and some work at both ends.
fn message_delay() -> Span {
    Span::from_us(20)
}

fn bounds() -> bool {
    true
}

impl CoordinationConfig {
    /// The windows that it commands itself, the dissertation's length (configuration 1) with
    /// a time for background work of our choice.
    pub fn windows(&self) -> (Span, Span) {
        (self.window.unwrap_or(Span::from_ms(100)), self.rest.unwrap_or(Span::from_ms(20)))
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub fn validate(&self) -> Result<(), String> {
        if self.count == Some(0) {
            return Err("count is 0; a window has some reads to share out".into());
        }
        for (key, _, share) in self.minimum.each() {
            if let Some(share) = share.filter(|share| !(0.0..=1.0).contains(share)) {
                return Err(format!(
                    "minimum.{key} is {share}; a host's share of count must lie between 0 and 1"
                ));
            }
        }
        if self.count.is_none() {
            let idle = [
                ("minimum", self.has_minimum()),
                ("top_ups", self.top_ups),
                ("rest", self.rest.is_some()),
                ("demand", self.demand != DemandConfig::default()),
                ("allocation", self.allocation != CountAllocationConfig::default()),
                ("message_delay", self.message_delay != message_delay()),
                ("bounds", self.bounds != bounds()),
            ];
            if let Some((key, _)) = idle.iter().find(|(_, is_given)| *is_given) {
                return Err(format!("{key} is given, but without count nobody is held to anything"));
            }
        }
        for (key, span) in [("window", self.window), ("rest", self.rest)] {
            let Some(span) = span else { continue };
            if span < SHORTEST_WINDOW {
                return Err(format!("{key} is {span}; at least {SHORTEST_WINDOW}"));
            }
            limits::wait(key, span)?;
        }
        limits::wait("message_delay", self.message_delay)
    }

    /// Refuses minima of classes that no host has, and such as are more than there is, for
    /// hosts with such claims.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub fn suits(&self, claims: &[Claim]) -> Result<(), String> {
        for (key, class, share) in self.minimum.each() {
            if share.is_some() && !claims.iter().any(|claim| claim.priority == class) {
                return Err(format!("minimum.{key} is given, but no tenant has the priority {key:?}"));
            }
        }
        let sum: f64 = claims.iter().map(|claim| self.minimum.of(claim.priority)).sum();
        // Thirds may add up to a little more than a whole.
        if sum <= 1.0 + 1e-9 {
            return Ok(());
        }
        let largest = self.minimum.each().into_iter().filter_map(|(key, _, share)| Some((key, share?)));
        let (key, _) = largest.max_by(|a, b| a.1.total_cmp(&b.1)).expect("the sum is above 0");
        Err(format!(
            "minimum.{key}: the minima of the {} hosts are {sum:.4} of count together, but at most 1 in all is \
             there to share, as each host of a class has its share",
            claims.len()
        ))
    }

    /// Whether some class has a minimum.
    fn has_minimum(&self) -> bool {
        self.minimum.each().iter().any(|each| each.2.is_some())
    }

    /// Whether that of some class is a read at least.
    pub fn lets_some_in(&self) -> bool {
        let count = self.count.unwrap_or(0) as f64;
        self.minimum.each().iter().any(|each| each.2.is_some_and(|share| share * count >= 1.0))
    }
}
