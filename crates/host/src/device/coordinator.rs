//! `coordinator`: a device with deterministic windows that hosts share by counts.

use flashkeel_config::{ConfigError, Node};
use flashkeel_engine::{Leaf, Span, Stack, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Build, Composed, Device, DeviceKind, HasWindows, Held, Maker, Size, Unmade};
use crate::claim::{Claim, Priority};
use crate::coordinator::{CoordinationConfig, Coordinator, Foresight, Windows};
use crate::part::Part;

/// A device whose deterministic windows are shared out to hosts, which are the tenants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoordinatorConfig {
    /// What the hosts share: where they are given counts, an SSD whose windows are
    /// commanded, or a mirror whose copies take turns and whose reads go by windows.
    pub device: DeviceKind,
    /// How it is shared.
    pub share: CoordinationConfig,
}

impl CoordinatorConfig {
    /// Whose windows are shared out.
    fn windows(&self, size: &Size) -> Result<Windows, String> {
        match size {
            _ if self.share.count.is_none() => Ok(Windows::Clock),
            Size { windows: HasWindows::InTurn(_), .. } => Ok(Windows::InTurn),
            Size { windows: HasWindows::Commanded { .. }, sets: 1, .. } => Ok(Windows::Commanded),
            Size { windows: HasWindows::Commanded { .. }, .. } => {
                Err("device: it has several NVM sets; put a mirror over them, or leave one".into())
            }
            Size { windows: HasWindows::None, .. } => {
                Err("device: it has no deterministic windows to share out; an SSD \
                 has with window = \"commanded\", any device as { windowed = { device = … } }, a mirror with windows = \
                 \"alternate\" and read = \"window\""
                    .into())
            }
        }
    }

    /// Refuses windows longer than those of the device.
    fn keeps_to(&self, longest: Option<Span>) -> Result<(), String> {
        let (window, _) = self.share.windows();
        match longest.filter(|&longest| window > longest) {
            Some(longest) => Err(format!(
                "share.window is {window}, but the device ends a window after {longest} (window.time_maximum)"
            )),
            None => Ok(()),
        }
    }

    /// Refuses windows that are over before hosts hear of them.
    fn hears_in_time(&self, window: Span) -> Result<(), String> {
        let delay = self.share.message_delay;
        if window > Span(delay.0.saturating_mul(2)) || self.share.lets_some_in() {
            return Ok(());
        }
        Err(format!(
            "share.message_delay is {delay}, so that a window of {window} is over when its hosts hear what they \
             were given, and without a minimum of a read at least none reads in it"
        ))
    }
}

impl Build for CoordinatorConfig {
    fn expand(settings: &mut Node, key: &str, ground: Option<&Node>) -> Result<(), ConfigError> {
        match settings.get_mut("device") {
            Some(device) => DeviceKind::expand(device, &format!("{key}.device"), ground),
            None => Ok(()),
        }
    }

    fn check(&self) -> Result<Size, String> {
        self.share.validate().map_err(|message| format!("share.{message}"))?;
        let size = self.device.check().map_err(|message| format!("device.{message}"))?;
        let windows = self.windows(&size)?;
        let given = [("window", self.share.window), ("rest", self.share.rest)];
        if windows == Windows::InTurn
            && let Some((key, _)) = given.iter().find(|(_, span)| span.is_some())
        {
            return Err(format!(
                "share.{key}: the copies of a mirror take turns by themselves; leave it out"
            ));
        }
        if windows == Windows::Commanded {
            let (window, rest) = self.share.windows();
            size.has_time_to_erase("share.rest", rest)?;
            self.hears_in_time(window)?;
        }
        if let HasWindows::Commanded { longest } = size.windows
            && windows == Windows::Commanded
        {
            self.keeps_to(longest)?;
        }
        if let HasWindows::InTurn(turn) = size.windows
            && windows == Windows::InTurn
        {
            self.hears_in_time(turn)?;
        }
        if let Some(rate) = size.reads_per_s.filter(|_| windows == Windows::Commanded) {
            let (window, _) = self.share.windows();
            let most = (rate as f64 * window.as_secs_f64()) as u64;
            if let Some(count) = self.share.count.filter(|&count| count > most) {
                return Err(format!(
                    "share.count is {count}, but in a window of {window} this flash reads {most} times 4 KiB at most"
                ));
            }
        }
        let over = Size::over([&size]);
        Ok(Size {
            sectors: size.sectors,
            foresees: over.foresees || self.share.demand.policy().foresees(),
            ..over
        })
    }

    fn within(&self) -> Vec<(String, &DeviceKind)> {
        vec![("device".to_owned(), &self.device)]
    }

    fn suits(&self, claims: &[Claim]) -> Result<(), String> {
        self.share.suits(claims).map_err(|message| format!("share.{message}"))?;
        self.device.suits(claims).map_err(|message| format!("device.{message}"))
    }

    fn build(&self, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        let windows = self.windows(&self.device.check()?)?;
        let device = self.device.build(maker)?;
        let coordinator = Coordinator::new(&self.share, maker.claims(), windows, device.limits());
        Ok(Box::new(Stack::new(coordinator, vec![device])))
    }
}

impl Composed for Coordinator {
    fn part(&self) -> Option<&dyn Part> {
        Some(self)
    }

    fn foresee(&mut self, foresight: &Foresight) {
        Coordinator::foresee(self, foresight);
    }

    fn reset_counters(&mut self, _now: Time) {
        Coordinator::reset_counters(self);
    }

    fn held(&self) -> Held {
        Held { requests: self.waiting() as u64, ..Held::default() }
    }
}

impl Part for Coordinator {
    fn kind(&self) -> &'static str {
        "coordinator"
    }

    fn report(&self) -> Value {
        json!(Coordinator::report(self))
    }

    fn counters(&self) -> Vec<u64> {
        Coordinator::counters(self)
    }

    fn gauge_names(&self) -> Vec<String> {
        let each = |(class, _): (Priority, _)| {
            ["given", "used"].map(|what| format!("counts_{what}_{}", class.label()))
        };
        self.by_class().flat_map(each).collect()
    }

    fn gauges(&self, values: &mut Vec<u64>) {
        values.clear();
        values.extend(self.by_class().flat_map(|(_, given_and_used)| given_and_used));
    }
}
