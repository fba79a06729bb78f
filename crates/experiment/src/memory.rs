//! Whether this machine can hold what is to be run.

use flashkeel_config::{ConfigError, Node};

/// Refuses devices whose tables, `needed` bytes, exceed the machine's memory.
///
/// # Errors
/// At the key that makes them so large.
pub(crate) fn check(needed: u64, tree: &Node) -> Result<(), ConfigError> {
    match machine_bytes() {
        Some(machine) => check_within(needed, machine, tree),
        // Where the machine does not tell, the allocator will.
        None => Ok(()),
    }
}

fn check_within(needed: u64, machine: u64, tree: &Node) -> Result<(), ConfigError> {
    if needed <= machine {
        return Ok(());
    }
    let place = if tree.get("stack.devices.0").is_some() { "stack.devices" } else { "device.geometry" };
    let gibibytes = |bytes: u64| format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64);
    Err(tree.error_at(
        place,
        format!(
            "the tables of all flash take {} of memory, and this machine has {}; lower channels, chips_per_channel, \
             planes_per_chip, blocks_per_plane, pages_per_block or page_size",
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
    fn devices_larger_than_memory_are_refused_where_they_are_written() {
        let one = "\n[device]\ngeometry.channels = 4\n";
        let several = "[device]\n[[stack.devices]]\nssd = {}\n[[stack.devices]]\nssd = {}\n";
        for (text, place) in
            [(one, "exp.toml:3: device.geometry: "), (several, "exp.toml:2: stack.devices: ")]
        {
            let tree = Node::parse(text, "exp.toml").expect("a document");
            assert_eq!(check_within(1 << 29, 1 << 29, &tree), Ok(()));
            let error = check_within(1 << 29, (1 << 29) - 1, &tree).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{place}the tables of all flash take 0.5 GiB of memory")),
                "{error}"
            );
        }
    }
}
