//! Documents of a small device and what it is asked.

pub const DEVICE: &str = "\
[device]
logical_capacity = \"64MiB\"
map_cache = \"all\"
scheduler = \"fifo\"
partition_bits = [14]
gc = { start_below = 8, stop_above = 12, concurrent_victims = 4 }
buffer = { size = \"256KiB\" }
geometry = { channels = 2, chips_per_channel = 2, planes_per_chip = 1, blocks_per_plane = 64, pages_per_block = 32 }
";

pub const WORKLOAD: &str = "\
[workload]
duration = \"200ms\"
warm_up = \"20ms\"
[workload.source]
policy = \"synthetic\"
read_fraction = 0.5
[workload.pacing]
policy = \"closed\"
depth = 4
";
