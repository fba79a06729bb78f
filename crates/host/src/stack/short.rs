//! The short way to write a tier over each SSD of a stack.

use std::collections::BTreeMap;

use flashkeel_config::{ConfigError, Kind, Node, did_you_mean};
use flashkeel_nvm::NvmConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::device::Build;
use crate::tier::placement::PlacementConfig;
use crate::tier::writeback::WritebackConfig;

/// Keys of a `[stack]` that put an NVM in front of each of its SSDs. When they
/// are read, each SSD becomes a `tier` of the two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TierShort {
    /// In short for a `tier` over each SSD: which writes go to the NVM.
    pub tier: PlacementConfig,
    /// The NVM of such a tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvm: Option<NvmConfig>,
    /// When what it holds is written to the SSD.
    pub writeback: WritebackConfig,
}

const KEYS: [&str; 3] = ["tier", "nvm", "writeback"];

impl TierShort {
    /// Turns the short way, if it was used in the `stack` of a document, into
    /// the long one.
    ///
    /// # Errors
    /// Where it is wrong, or does not fit the devices.
    pub fn lengthen(stack: &mut Node) -> Result<(), ConfigError> {
        refuse_misspelt(stack)?;
        if let Some(nvm) = stack.get_mut("nvm") {
            NvmConfig::expand(nvm, "stack.nvm", None)?;
        }
        let written = KEYS.iter().filter_map(|key| Some(((*key).to_owned(), stack.get(key)?.clone())));
        let mut written: BTreeMap<String, Node> = written.collect();
        let node = Node { kind: Kind::Table(written.clone()), origin: stack.origin.clone() };
        let short: TierShort = node.read().map_err(|error| error.within("stack"))?;
        let wrong = |key: &str, message: &str| Err(node.error_in(key, message).within("stack"));
        match &short.nvm {
            Some(nvm) => {
                if let Err(message) = nvm.validate() {
                    return wrong("nvm", &message);
                }
            }
            None if short.tier.policy().takes_any() => {
                let name = short.tier.name();
                return wrong("", &format!("tier is {name:?}, which needs an NVM; name it in nvm"));
            }
            None => {}
        }
        let idle = ["nvm", "writeback"].into_iter().find(|key| written.contains_key(*key));
        if let Some(key) = idle.filter(|_| !written.contains_key("tier")) {
            return wrong(
                key,
                "is for a tier, and there is none; choose a tier, such as tier = \"write-back\"",
            );
        }
        for key in KEYS {
            stack.remove(key);
        }
        if !short.tier.policy().takes_any() {
            return Ok(());
        }
        let table = |entries: Vec<(&str, Node)>| {
            let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            Node { kind: Kind::Table(entries), origin: node.origin.clone() }
        };
        let mut settings = vec![];
        settings.extend(written.remove("tier").map(|tier| ("placement", tier)));
        settings.extend(written.remove("nvm").map(|nvm| ("upper", table(vec![("nvm", nvm)]))));
        settings.extend(written.remove("writeback").map(|writeback| ("writeback", writeback)));
        settings.extend(stack.get("predictor").map(|predictor| ("predictor", predictor.clone())));
        let Kind::Table(keys) = &mut stack.kind else { return Ok(()) };
        let devices = keys.entry("devices".to_owned()).or_insert_with(|| table(vec![]));
        if !matches!(&devices.kind, Kind::Array(devices) if !devices.is_empty()) {
            devices.kind = Kind::Array(vec![table(vec![("ssd", table(vec![]))])]);
        }
        let Kind::Array(devices) = &mut devices.kind else { return Ok(()) };
        for (index, device) in devices.iter_mut().enumerate() {
            if device.get("ssd").is_none() {
                return wrong("", &format!("tier is for SSDs, but devices.{index} is none"));
            }
            let lower = std::mem::replace(device, table(vec![]));
            let tier = settings.iter().cloned().chain([("lower", lower)]).collect();
            *device = table(vec![("tier", table(tier))]);
        }
        Ok(())
    }
}

/// A slip in one of these keys, which the stack itself does not know.
fn refuse_misspelt(stack: &Node) -> Result<(), ConfigError> {
    let Kind::Table(keys) = &stack.kind else { return Ok(()) };
    let slip = keys.keys().filter(|key| !KEYS.contains(&key.as_str())).find_map(|key| {
        let hint = did_you_mean(key, KEYS);
        (!hint.is_empty()).then(|| stack.error_at(key, format!("unknown key{hint}")).within("stack"))
    });
    slip.map_or(Ok(()), Err)
}
