//! NVM devices by name. To add one: write its file, add its line.

/// (name, TOML of an [`NvmConfig`](crate::NvmConfig)).
pub const PRESETS: &[(&str, &str)] = &[
    ("optane-p4800x", include_str!("presets/optane-p4800x.toml")),
    ("optane-memory-32gb", include_str!("presets/optane-memory-32gb.toml")),
];
