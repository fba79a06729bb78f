//! Sets of policies by name, for a tier and what is below it. To add one: write its
//! file, add its line.

/// (name, TOML over which a tier's settings are written).
pub const PRESETS: &[(&str, &str)] = &[
    ("write-back", include_str!("presets/write-back.toml")),
    ("hybrid-pas", include_str!("presets/hybrid-pas.toml")),
    ("base", include_str!("presets/base.toml")),
    ("oc", include_str!("presets/oc.toml")),
    ("nlcwoip", include_str!("presets/nlcwoip.toml")),
    ("nlcwip", include_str!("presets/nlcwip.toml")),
];
