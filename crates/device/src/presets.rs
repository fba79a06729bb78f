//! Devices by name. To add one: write its file, add its line.

/// (name, TOML of a [`DeviceConfig`](crate::DeviceConfig)).
pub const PRESETS: &[(&str, &str)] = &[
    ("autossd", include_str!("presets/autossd.toml")),
    ("ssd-a", include_str!("presets/ssd-a.toml")),
    ("ssd-b", include_str!("presets/ssd-b.toml")),
    ("ssd-c", include_str!("presets/ssd-c.toml")),
    ("ssd-d", include_str!("presets/ssd-d.toml")),
    ("ssd-e", include_str!("presets/ssd-e.toml")),
    ("ssd-f", include_str!("presets/ssd-f.toml")),
    ("ssd-g", include_str!("presets/ssd-g.toml")),
    ("tlc-modern", include_str!("presets/tlc-modern.toml")),
    ("ttflash", include_str!("presets/ttflash.toml")),
];
