//! A network between hosts and a target: two directions with a bandwidth each,
//! latency by chance, and messages that are lost and sent again.

pub mod order;
mod stage;

use flashkeel_engine::Span;
use flashkeel_engine::units::Rate;
pub use flashkeel_nvm::LatencyConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use stage::{Network, NetworkReport};

use crate::limits;
use order::OrderConfig;

/// With more, next to nothing would arrive.
const MOST_LOST: f64 = 0.99;

/// How messages travel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LegConfig {
    /// What a message takes one way once its last byte has been sent, by quantiles.
    pub latency: LatencyConfig,
    /// From the hosts to the target: requests, and data to write.
    pub request_bandwidth: Rate,
    /// From the target to the hosts: completions, and data that were read.
    pub response_bandwidth: Rate,
    /// Share of messages that are lost, 0 to 0.99; each is sent again, which takes time and no
    /// bandwidth.
    pub loss: f64,
    /// After how long a lost message is sent again, at most 1 h.
    pub retransmit_after: Span,
    /// Which message goes next where several wait for a direction.
    pub order: OrderConfig,
}

impl Default for LegConfig {
    /// Ours: 25 Gbit/s and some microseconds a way, as within a data centre.
    fn default() -> Self {
        let us = Span::from_us;
        LegConfig {
            latency: LatencyConfig { min: us(4), p50: us(5), p99: us(15), p99_999: us(100) },
            request_bandwidth: Rate(3_125_000_000),
            response_bandwidth: Rate(3_125_000_000),
            loss: 0.0,
            retransmit_after: Span::from_ms(1),
            order: OrderConfig::default(),
        }
    }
}

impl LegConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub fn validate(&self) -> Result<(), String> {
        for (key, rate) in
            [("request_bandwidth", self.request_bandwidth), ("response_bandwidth", self.response_bandwidth)]
        {
            if rate.0 == 0 {
                return Err(format!("{key} is 0B/s; nothing would ever arrive"));
            }
        }
        if self.latency.min == Span::ZERO {
            return Err("latency.min is 0ns; a message takes some time".into());
        }
        if !(0.0..=MOST_LOST).contains(&self.loss) {
            return Err(format!("loss is {}; a share from 0 to {MOST_LOST}", self.loss));
        }
        if self.loss > 0.0 && self.retransmit_after == Span::ZERO {
            return Err("retransmit_after is 0ns; it must be longer".into());
        }
        limits::wait("retransmit_after", self.retransmit_after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_not_lost_than_lets_messages_arrive() {
        let with = |loss| LegConfig { loss, ..LegConfig::default() }.validate();
        assert!(with(0.99).is_ok());
        for loss in [0.999_999_999_9, 1.0, -0.1, f64::NAN] {
            assert!(with(loss).expect_err("refused").starts_with("loss is "));
        }
    }

    #[test]
    fn what_is_lost_is_sent_again_within_an_hour() {
        let with = |s| LegConfig { retransmit_after: Span::from_secs(s), ..LegConfig::default() }.validate();
        assert!(with(3600).is_ok());
        assert!(with(18_446_744_073).expect_err("refused").starts_with("retransmit_after is "));
    }
}
