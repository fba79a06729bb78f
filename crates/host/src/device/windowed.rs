//! `windowed`: a device that knows no windows, with deterministic ones that software
//! imposes.

use flashkeel_config::{ConfigError, Node};
use flashkeel_engine::{Leaf, Stack, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Build, Composed, Device, DeviceKind, HasWindows, Held, Maker, Size, Unmade};
use crate::part::Part;
use crate::windowed::{WindowSettings, Windowed};

/// A device whose changes are held back in windows that are commanded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WindowedConfig {
    /// What is behind it: any kind that does not obey windows itself.
    pub device: DeviceKind,
    /// What a deterministic window lasts for, and what passes in it.
    #[serde(default)]
    pub window: WindowSettings,
}

impl Build for WindowedConfig {
    fn expand(settings: &mut Node, key: &str, ground: Option<&Node>) -> Result<(), ConfigError> {
        match settings.get_mut("device") {
            Some(device) => DeviceKind::expand(device, &format!("{key}.device"), ground),
            None => Ok(()),
        }
    }

    fn check(&self) -> Result<Size, String> {
        self.window.validate().map_err(|message| format!("window.{message}"))?;
        let size = self.device.check().map_err(|message| format!("device.{message}"))?;
        if size.windows != HasWindows::None {
            return Err(
                "device: it obeys windows itself; name it without \"windowed\", or set its window to \
                        \"none\""
                    .into(),
            );
        }
        let windows = HasWindows::Commanded { longest: Some(self.window.time_maximum) };
        Ok(Size { sectors: size.sectors, windows, ..Size::over([&size]) })
    }

    fn within(&self) -> Vec<(String, &DeviceKind)> {
        vec![("device".to_owned(), &self.device)]
    }

    fn build(&self, maker: &mut Maker<'_>) -> Result<Box<dyn Device>, Unmade> {
        let device = self.device.build(maker)?;
        let windowed = Windowed::new(&self.window, device.limits());
        Ok(Box::new(Stack::new(windowed, vec![device])))
    }
}

impl Composed for Windowed {
    fn part(&self) -> Option<&dyn Part> {
        Some(self)
    }

    fn reset_counters(&mut self, now: Time) {
        Windowed::reset_counters(self, now);
    }

    fn held(&self) -> Held {
        Held { requests: Windowed::held(self).0 as u64, ..Held::default() }
    }
}

impl Part for Windowed {
    fn kind(&self) -> &'static str {
        "windowed"
    }

    fn report(&self) -> Value {
        json!(Windowed::report(self))
    }

    fn counters(&self) -> Vec<u64> {
        let report = Windowed::report(self);
        vec![report.windows_begun, report.deterministic_ns, report.changes_held, report.direct_writes]
    }

    fn gauge_names(&self) -> Vec<String> {
        vec!["deterministic".into(), "held_bytes".into()]
    }

    fn gauges(&self, values: &mut Vec<u64>) {
        values.clear();
        values.extend([u64::from(self.is_deterministic()), Windowed::held(self).1]);
    }
}
