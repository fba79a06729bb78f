//! Presets: documents by name that others are laid over.

use crate::{ConfigError, Node, did_you_mean};

/// The preset of `presets` (name, TOML) that `node`, which was found at `key`,
/// names. Presets that have much in common may have one text: what it has in the table
/// `variants` under the name is laid over the rest of it.
///
/// # Errors
/// If there is none of that name.
pub fn preset_layer(
    node: &Node,
    key: &str,
    presets: &[(&'static str, &'static str)],
) -> Result<Node, ConfigError> {
    let refuse = |message: String| ConfigError::new(Some(node.origin.clone()), key, message);
    let names = || presets.iter().map(|(name, _)| *name);
    let known = || names().collect::<Vec<_>>().join(", ");
    let Some(name) = node.as_str() else {
        return Err(refuse(format!("expected the name of a preset, one of {}", known())));
    };
    let Some((_, text)) = presets.iter().find(|(known, _)| *known == name) else {
        let hint = did_you_mean(name, names());
        return Err(refuse(format!("unknown preset {name:?}, expected one of {}{hint}", known())));
    };
    let mut preset = Node::parse(text, &format!("preset {name}"))?;
    if let Some(variant) = preset.remove("variants").and_then(|mut variants| variants.remove(name)) {
        preset.merge(variant)?;
    }
    Ok(preset)
}
