//! Devices by name. To add one: write its file, add its line.

/// (name, TOML of a [`DeviceConfig`](crate::DeviceConfig)).
pub const PRESETS: &[(&str, &str)] = &[
    ("autossd", include_str!("presets/autossd.toml")),
    ("tlc-modern", include_str!("presets/tlc-modern.toml")),
    ("ttflash", include_str!("presets/ttflash.toml")),
];
