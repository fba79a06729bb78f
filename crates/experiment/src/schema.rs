//! The configuration's JSON Schema and the reference generated from it.

use flashkeel_host::stack::TierShort;
use serde_json::{Value, json};

use crate::Experiment;

/// The JSON Schema of an experiment document.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Experiment).to_value();
    let names = flashkeel_device::PRESETS.iter().map(|(name, _)| name).collect::<Vec<_>>();
    let preset = json!({
        "description": "Preset the device is based on, or several in an array, each set over those before it, \
                        as `[\"tlc-modern\", \"keel\"]`; other keys are set over it.",
        "anyOf": [
            { "type": "string", "enum": names },
            { "type": "array", "items": { "type": "string" } },
        ],
    });
    schema["$defs"]["DeviceConfig"]["properties"]["preset"] = preset;
    schema["$defs"]["NvmConfig"]["properties"]["preset"] = json!({
        "description": "Preset the NVM is based on; other keys are set over it.",
        "type": "string",
        "default": flashkeel_nvm::PRESETS[0].0,
        "enum": flashkeel_nvm::PRESETS.iter().map(|(name, _)| name).collect::<Vec<_>>(),
    });
    schema["$defs"]["TieredConfig"]["properties"]["preset"] = json!({
        "description": "Set of policies that the tier, and one below it, are based on; other keys are set over it.",
        "type": "string",
        "enum": flashkeel_host::tier::PRESETS.iter().map(|(name, _)| name).collect::<Vec<_>>(),
    });
    // Presets, and the experiment's own tables, make up for what is missing.
    let left_out =
        [("NvmConfig", None), ("TenantConfig", Some("workload")), ("TieredConfig", Some("placement"))];
    for (table, keys) in left_out {
        if let Some(required) = schema["$defs"][table]["required"].as_array_mut() {
            required.retain(|key| keys.is_some_and(|left_out| key != left_out));
        }
    }
    // The short way to write a tier, of which nothing is left when it has been read.
    let short = schemars::schema_for!(TierShort).to_value();
    let copy = |from: &Value, to: &mut Value| {
        for (key, value) in from.as_object().into_iter().flatten() {
            to[key] = value.clone();
        }
    };
    copy(&short["properties"], &mut schema["$defs"]["StackConfig"]["properties"]);
    schema
}

/// The configuration reference in Markdown.
pub fn reference() -> String {
    let intro = "\
# Configuration reference

Generated from the types that read the configuration; do not edit.

An experiment is a TOML document. Quantities carry their unit in the value: durations `\"50us\"` (ns, us, ms, s, \
min, h, d, w), sizes `\"16KiB\"` (B, KiB, MiB, GiB, TiB, KB, MB, GB, TB), bandwidths `\"400MB/s\"`. A policy is \
chosen by its name, `scheduler = \"fifo\"`, or by a table with settings of its own, `scheduler = { policy = \
\"debit\", … }`. Later layers win: defaults, the preset named by `device.preset`, the document, a run's `set`, \
`--set path=value`. Choosing another policy drops the settings of the former.

";
    format!("{intro}{}", flashkeel_config::reference(&schema()))
}
