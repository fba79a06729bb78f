//! What is built in: experiments, presets of devices and of tiers, policies, profiles.

use flashkeel_config::{Axis, axes, did_you_mean};
use flashkeel_device::PRESETS;
use flashkeel_host::tier::PRESETS as TIERS;
use flashkeel_workload::profiles;

use crate::{Error, schema};

/// The built-in experiments: name and TOML document.
pub const EXPERIMENTS: &[(&str, &str)] = &[
    ("demo", include_str!("../experiments/demo.toml")),
    ("ttflash", include_str!("../experiments/ttflash.toml")),
    ("keel", include_str!("../experiments/keel.toml")),
    ("composition", include_str!("../experiments/composition.toml")),
    ("autossd-systems", include_str!("../experiments/autossd-systems.toml")),
    ("tiers", include_str!("../experiments/tiers.toml")),
    ("mirrors", include_str!("../experiments/mirrors.toml")),
    ("windows", include_str!("../experiments/windows.toml")),
    ("plmc", include_str!("../experiments/plmc.toml")),
    ("plmlight", include_str!("../experiments/plmlight.toml")),
];

/// Kinds of things that [`list`] knows.
const KINDS: &[&str] = &["presets", "tiers", "policies", "profiles", "experiments"];

/// The names of one kind; a policy is named with its axis, `scheduler fifo`.
///
/// # Errors
/// If `kind` is none of `presets`, `tiers`, `policies`, `profiles`, `experiments`.
pub fn list(kind: &str) -> Result<Vec<String>, Error> {
    let names = |entries: &[(&str, &str)]| -> Vec<String> {
        entries.iter().map(|(name, _)| name.to_string()).collect()
    };
    match kind {
        "presets" => Ok([names(PRESETS), names(flashkeel_nvm::PRESETS)].concat()),
        "tiers" => Ok(names(TIERS)),
        "experiments" => Ok(names(EXPERIMENTS)),
        "profiles" => Ok(profiles::all().map(|profile| profile.name.to_owned()).collect()),
        "policies" => {
            let names =
                |axis: Axis| axis.policies.into_iter().map(move |policy| format!("{} {policy}", axis.axis));
            Ok(axes(&schema()).into_iter().flat_map(names).collect())
        }
        _ => {
            let hint = did_you_mean(kind, KINDS.iter().copied());
            Err(Error::Input(format!(
                "nothing to list is called {kind:?}; one of {}{hint}",
                KINDS.join(", ")
            )))
        }
    }
}

/// The TOML document of a built-in experiment, of a preset of devices or tiers, or of an
/// experiment that uses a profile.
///
/// # Errors
/// If nothing has that name.
pub fn show(name: &str) -> Result<String, Error> {
    if let Some(profile) = profiles::all().find(|profile| profile.name == name) {
        return Ok(profile.document());
    }
    let entries = || EXPERIMENTS.iter().chain(PRESETS).chain(flashkeel_nvm::PRESETS).chain(TIERS);
    match entries().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok((*text).to_owned()),
        None => {
            let names = entries().map(|(name, _)| *name).chain(profiles::all().map(|profile| profile.name));
            let hint = did_you_mean(name, names.clone());
            let names = names.collect::<Vec<_>>().join(", ");
            Err(Error::Input(format!(
                "no experiment, preset or profile is named {name:?}; there are {names}{hint}"
            )))
        }
    }
}
