//! Whether this machine can hold a device.

use flashkeel_config::{ConfigError, Node};
use flashkeel_device::Layout;

/// Refuses a device whose tables exceed the machine's memory.
///
/// # Errors
/// At the key of the geometry that makes it so large.
pub(crate) fn check(layout: &Layout, tree: &Node) -> Result<(), ConfigError> {
    match machine_bytes() {
        Some(machine) => check_within(layout, machine, tree),
        // Where the machine does not tell, the allocator will.
        None => Ok(()),
    }
}

fn check_within(layout: &Layout, machine: u64, tree: &Node) -> Result<(), ConfigError> {
    let needed = layout.memory_bytes();
    if needed <= machine {
        return Ok(());
    }
    let gibibytes = |bytes: u64| format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64);
    Err(tree.error_at(
        "device.geometry",
        format!(
            "a device of {} flash takes {} of memory, and this machine has {}; lower channels, chips_per_channel, \
             planes_per_chip, blocks_per_plane, pages_per_block or page_size",
            gibibytes(layout.geometry().units() * 4096),
            gibibytes(needed),
            gibibytes(machine)
        ),
    ))
}

/// Bytes of memory that the machine has.
fn machine_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_larger_than_memory_is_refused_at_its_geometry() {
        let text = "\n[device]\ngeometry.channels = 4\n";
        let tree = Node::parse(text, "exp.toml").expect("a document");
        let layout = flashkeel_device::DeviceConfig::default().validate().expect("the default device");
        assert_eq!(check_within(&layout, layout.memory_bytes(), &tree), Ok(()));
        let error = check_within(&layout, layout.memory_bytes() - 1, &tree).unwrap_err().to_string();
        assert!(
            error.starts_with("exp.toml:3: device.geometry: a device of 256.0 GiB flash takes 0.5 GiB"),
            "{error}"
        );
    }
}
