//! The small documents that policies are put into.

/// Each with its name. The last is no whole document: its device has no kind.
pub const BASES: [(&str, &str); 27] = [
    ("plain", include_str!("bases/plain.toml")),
    ("striped", include_str!("bases/striped.toml")),
    ("scarce", include_str!("bases/scarce.toml")),
    ("logical-stripes", include_str!("bases/logical_stripes.toml")),
    ("wear", include_str!("bases/wear.toml")),
    ("worn", include_str!("bases/worn.toml")),
    ("tenants", include_str!("bases/tenants.toml")),
    ("points", include_str!("bases/points.toml")),
    ("tier", include_str!("bases/tier.toml")),
    ("cache", include_str!("bases/cache.toml")),
    ("oc", include_str!("bases/oc.toml")),
    ("nlcwoip", include_str!("bases/nlcwoip.toml")),
    ("nlcwip", include_str!("bases/nlcwip.toml")),
    ("predicted", include_str!("bases/predicted.toml")),
    ("scheduled", include_str!("bases/scheduled.toml")),
    ("short-tier", include_str!("bases/short_tier.toml")),
    ("small-blocks", include_str!("bases/small_blocks.toml")),
    ("mirror", include_str!("bases/mirror.toml")),
    ("windows", include_str!("bases/windows.toml")),
    ("coordinator", include_str!("bases/coordinator.toml")),
    ("turns", include_str!("bases/turns.toml")),
    ("windowed", include_str!("bases/windowed.toml")),
    ("plmlight", include_str!("bases/plmlight.toml")),
    ("ranges", include_str!("bases/ranges.toml")),
    ("network", include_str!("bases/network.toml")),
    ("nested", include_str!("bases/nested.toml")),
    ("bare", include_str!("bases/bare.toml")),
];

/// Those of them that policies of a device are not put into: each has the same above it
/// as another, `tenants`, `nlcwip`, `scheduled` or `windows`, but for choices made there.
pub const OF_STACKS: [&str; 6] = ["points", "oc", "nlcwoip", "predicted", "coordinator", "turns"];

/// Documents that no policy is put into: they are tried as they are.
pub const ALONE: [(&str, &str); 3] = [
    ("volatile", include_str!("bases/volatile.toml")),
    ("volatile-tier", include_str!("bases/volatile_tier.toml")),
    ("dram-tier", include_str!("bases/dram_tier.toml")),
];
