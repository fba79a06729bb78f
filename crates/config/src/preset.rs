//! Presets: documents by name that others are laid over.

use crate::{ConfigError, Kind, Node, did_you_mean};

/// The preset of `presets` (name, TOML) that `node`, which was found at `key`,
/// names; of several in an array each is laid over those before it. Presets that
/// have much in common may have one text: what it has in the table `variants` under
/// the name is laid over the rest of it.
///
/// # Errors
/// If there is none of that name.
pub fn preset_layer(
    node: &Node,
    key: &str,
    presets: &[(&'static str, &'static str)],
) -> Result<Node, ConfigError> {
    let Kind::Array(several) = &node.kind else { return one(node, key, presets) };
    let mut layers = several.iter().map(|node| one(node, key, presets));
    let Some(first) = layers.next() else {
        return Err(ConfigError::new(Some(node.origin.clone()), key, "names no preset"));
    };
    layers.try_fold(first?, |mut base, layer| {
        base.merge(layer?)?;
        Ok(base)
    })
}

/// What [`preset_layer`] reads, as one name: those of an array are joined by `+`.
pub fn preset_name(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Array(several) => {
            several.iter().map(preset_name).collect::<Option<Vec<_>>>().map(|it| it.join("+"))
        }
        _ => node.as_str().map(str::to_owned),
    }
}

fn one(node: &Node, key: &str, presets: &[(&'static str, &'static str)]) -> Result<Node, ConfigError> {
    let refuse = |message: String| ConfigError::new(Some(node.origin.clone()), key, message);
    let names = || presets.iter().map(|(name, _)| *name);
    let known = || names().collect::<Vec<_>>().join(", ");
    let Some(name) = node.as_str() else {
        return Err(refuse(format!("expected the name of a preset, or several in an array, of {}", known())));
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

#[cfg(test)]
mod tests {
    use super::*;

    const PRESETS: &[(&str, &str)] =
        &[("drive", "size = 1\n[gc]\nstart = 1\nstop = 2"), ("policies", "[gc]\nstart = 3")];

    fn layer(text: &str) -> Result<(Node, Option<String>), ConfigError> {
        let node = Node::parse(text, "t").expect("TOML").remove("preset").expect("a preset");
        preset_layer(&node, "preset", PRESETS).map(|layer| (layer, preset_name(&node)))
    }

    #[test]
    fn each_preset_is_laid_over_those_before_it() {
        let (found, name) = layer("preset = [\"drive\", \"policies\"]").expect("known");
        let at = |path: &str| found.get(path).map(|node| node.kind.clone());
        assert_eq!(at("size"), Some(Kind::Integer(1)));
        assert_eq!((at("gc.start"), at("gc.stop")), (Some(Kind::Integer(3)), Some(Kind::Integer(2))));
        assert_eq!(name.as_deref(), Some("drive+policies"));
        assert_eq!(layer("preset = \"drive\"").expect("known").1.as_deref(), Some("drive"));
    }

    #[test]
    fn an_unknown_preset_among_several_is_named() {
        let message = |text: &str| layer(text).expect_err("refused").to_string();
        let unknown = message("preset = [\"drive\", \"policy\"]");
        assert!(unknown.contains("unknown preset \"policy\""), "{unknown}");
        assert!(message("preset = []").contains("names no preset"));
        assert!(message("preset = [1]").contains("expected the name of a preset"));
    }
}
