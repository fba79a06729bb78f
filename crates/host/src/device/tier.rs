//! `tier`: an upper device in front of a lower one. What was written to the
//! upper is moved to the lower in the background.

use flashkeel_config::{ConfigError, Node};
use flashkeel_engine::{Leaf, Stack, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Build, Device, DeviceKind, Held, Maker, Size, Unmade};
use crate::measured::Part;
use crate::predictor::PredictorConfig;
use crate::tier::{DrainConfig, Tier, TierConfig};

/// Two devices as one, of the lower one's size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TieredConfig {
    /// Which writes go to the upper device.
    pub placement: TierConfig,
    /// The upper device, the faster one.
    pub upper: DeviceKind,
    /// The lower device, where everything has its place.
    pub lower: DeviceKind,
    /// How the background moves data from the upper to the lower.
    #[serde(default)]
    pub drain: DrainConfig,
    /// Who predicts the lower device, for a placement that asks.
    #[serde(default)]
    pub predictor: PredictorConfig,
}

impl Build for TieredConfig {
    fn expand(settings: &mut Node, key: &str, ground: Option<&Node>) -> Result<(), ConfigError> {
        for place in ["upper", "lower"] {
            if let Some(device) = settings.get_mut(place) {
                DeviceKind::expand(device, &format!("{key}.{place}"), ground)?;
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<Size, String> {
        if !self.placement.policy().needs_nvm() {
            return Err(format!(
                "placement is {:?}, which leaves the upper device unused; name the lower one alone",
                self.placement.name()
            ));
        }
        self.drain.validate()?;
        self.upper.check().map_err(|message| format!("upper.{message}"))?;
        self.lower.check().map_err(|message| format!("lower.{message}"))
    }

    fn build(&self, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        let lower = self.lower.build(maker)?;
        let upper = self.upper.build(maker)?;
        let placement = self.placement.policy();
        let asks = placement.needs_predictor();
        // A tier gives the lower device as much as comes.
        let predictor = asks.then(|| self.predictor.policy().build(&*lower, usize::MAX)).transpose()?;
        let random = Stream::new(maker.seed_for("tier"), "tier");
        let placement = placement.build(predictor, random).ok_or("a tier needs a placement".to_owned())?;
        let tier = Tier::new(placement, lower.limits(), upper.limits(), &self.drain);
        Ok(Box::new(Stack::new(tier, vec![lower, upper])))
    }
}

impl Device for Stack<Tier, Box<dyn Device>> {
    fn parts<'a>(&'a self, parts: &mut Vec<&'a dyn Part>) {
        self.children().for_each(|device| device.parts(parts));
        parts.push(self.stage());
    }

    fn keep_data(&mut self) {
        self.children_mut().for_each(|device| device.keep_data());
    }

    fn reset_counters(&mut self) {
        self.stage_mut().reset_counters();
        self.children_mut().for_each(|device| device.reset_counters());
    }

    fn watch(&mut self, from: Time, to: Time) {
        self.children_mut().for_each(|device| device.watch(from, to));
    }

    fn held(&self) -> Option<Held> {
        let own = Held { upper_pages: self.stage().nvm_pages(), ..Held::default() };
        Some(own.over(self.children()))
    }
}

impl Part for Tier {
    fn kind(&self) -> &'static str {
        "tier"
    }

    fn report(&self) -> Value {
        json!(Tier::report(self))
    }

    fn counters(&self) -> Vec<u64> {
        let report = Tier::report(self);
        vec![report.host_bytes_to_nvm, report.drained_bytes]
    }
}
