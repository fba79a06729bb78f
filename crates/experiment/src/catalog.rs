//! What is built in: experiments, presets, policies.

use flashkeel_config::{Axis, axes, did_you_mean};
use flashkeel_device::PRESETS;

use crate::{Error, schema};

/// The built-in experiments: name and TOML document.
pub const EXPERIMENTS: &[(&str, &str)] = &[("demo", include_str!("../experiments/demo.toml"))];

/// Kinds of things that [`list`] knows.
const KINDS: &[&str] = &["presets", "policies", "experiments"];

/// The names of one kind; a policy is named with its axis, `scheduler fifo`.
///
/// # Errors
/// If `kind` is none of `presets`, `policies`, `experiments`.
pub fn list(kind: &str) -> Result<Vec<String>, Error> {
    let names = |entries: &[(&str, &str)]| entries.iter().map(|(name, _)| name.to_string()).collect();
    match kind {
        "presets" => Ok(names(PRESETS)),
        "experiments" => Ok(names(EXPERIMENTS)),
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

/// The TOML document of a built-in experiment or of a preset.
///
/// # Errors
/// If nothing has that name.
pub fn show(name: &str) -> Result<&'static str, Error> {
    let entries = || EXPERIMENTS.iter().chain(PRESETS);
    match entries().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok(text),
        None => {
            let names = entries().map(|(name, _)| *name);
            let hint = did_you_mean(name, names.clone());
            let names = names.collect::<Vec<_>>().join(", ");
            Err(Error::Input(format!("no experiment or preset is named {name:?}; there are {names}{hint}")))
        }
    }
}
