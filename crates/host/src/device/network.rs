//! `network`: a device behind a network.

use flashkeel_config::{ConfigError, Node};
use flashkeel_engine::{Leaf, Stack, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Build, Composed, Device, DeviceKind, Maker, Size, Unmade};
use crate::network::{LegConfig, Network};
use crate::part::Part;

/// A target behind a network, as its hosts see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    /// What is behind it.
    pub device: DeviceKind,
    /// How messages travel.
    #[serde(default)]
    pub leg: LegConfig,
}

impl Build for NetworkConfig {
    fn expand(settings: &mut Node, key: &str, ground: Option<&Node>) -> Result<(), ConfigError> {
        match settings.get_mut("device") {
            Some(device) => DeviceKind::expand(device, &format!("{key}.device"), ground),
            None => Ok(()),
        }
    }

    fn check(&self) -> Result<Size, String> {
        self.leg.validate().map_err(|message| format!("leg.{message}"))?;
        let size = self.device.check().map_err(|message| format!("device.{message}"))?;
        Ok(Size { sectors: size.sectors, ..Size::over([&size]) })
    }

    fn within(&self) -> Vec<(String, &DeviceKind)> {
        vec![("device".to_owned(), &self.device)]
    }

    fn build(&self, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        let device = self.device.build(maker)?;
        let random = Stream::new(maker.seed_for("network"), "network");
        let network = Network::new(&self.leg, device.limits(), random)?;
        Ok(Box::new(Stack::new(network, vec![device])))
    }
}

impl Composed for Network {
    fn part(&self) -> Option<&dyn Part> {
        Some(self)
    }

    fn reset_counters(&mut self, _now: Time) {
        Network::reset_counters(self);
    }
}

impl Part for Network {
    fn kind(&self) -> &'static str {
        "network"
    }

    fn report(&self) -> Value {
        json!(Network::report(self))
    }

    fn counters(&self) -> Vec<u64> {
        let report = Network::report(self);
        vec![report.request_bytes, report.response_bytes, report.retransmissions]
    }
}
