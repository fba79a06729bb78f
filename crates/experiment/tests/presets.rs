//! Presets: all are valid, and the technologies compare as they should.

use flashkeel_device::DeviceConfig;
use flashkeel_experiment::resolve;

/// Technologies by bits of a cell, from one.
const TECHNOLOGIES: [&str; 5] = ["slc", "mlc", "tlc", "qlc", "plc"];
const PROCESSES: [&str; 3] = ["3xnm", "2xnm", "1xnm"];

const WORKLOAD: &str = "\
[workload]
requests = 1
[workload.source]
policy = \"synthetic\"
arrivals = \"poisson\"
";

fn preset(name: &str) -> DeviceConfig {
    let document = format!("[device]\npreset = \"{name}\"\n{WORKLOAD}");
    let mut plans =
        resolve(&document, "exp.toml", &[], None).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    plans.remove(0).config.device
}

fn cycles(name: &str) -> u32 {
    preset(name).wear.policy().rated_cycles().expect("rated cycles")
}

#[test]
fn every_preset_is_a_valid_device() {
    for (name, _) in flashkeel_device::PRESETS {
        preset(name).validate().unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for (name, _) in flashkeel_nvm::PRESETS {
        let document = format!(
            "[device]\npreset = \"qlc\"\n[stack]\ntier = \"write-back\"\nnvm.preset = \"{name}\"\n{WORKLOAD}"
        );
        resolve(&document, "exp.toml", &[], None).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    }
}

#[test]
fn technologies_have_the_same_cells_and_so_many_bits_in_each() {
    for (index, name) in TECHNOLOGIES.iter().enumerate() {
        let device = preset(name);
        let bits = index as u64 + 1;
        assert_eq!(device.logical_capacity.0, bits * (233 << 30), "{name}");
        assert_eq!(u64::from(device.geometry.pages_per_block), bits * 384, "{name}");
        assert_eq!(device.geometry.blocks_per_plane, preset("slc").geometry.blocks_per_plane);
    }
}

#[test]
fn cycles_fall_with_the_bits_of_a_cell_and_with_the_process() {
    for process in PROCESSES {
        let all = TECHNOLOGIES.map(|technology| cycles(&format!("{technology}-{process}")));
        assert!(all.is_sorted_by(|a, b| a > b), "{process}: {all:?}");
        let bytes: Vec<u64> = all.iter().zip(1..).map(|(&cycles, bits)| u64::from(cycles) * bits).collect();
        assert!(bytes.is_sorted_by(|a, b| a > b), "{process}: what may be written in all is {bytes:?}");
    }
    for technology in TECHNOLOGIES {
        let all = PROCESSES.map(|process| cycles(&format!("{technology}-{process}")));
        assert!(all.is_sorted_by(|a, b| a > b), "{technology}: {all:?}");
        assert_eq!(cycles(technology), all[0]);
    }
}

/// Of a variant only the cycles are its own.
#[test]
fn a_variant_is_its_technology_otherwise() {
    let mut device = preset("qlc-1xnm");
    assert_ne!(device, preset("qlc"));
    device.wear = preset("qlc").wear;
    assert_eq!(device, preset("qlc"));
}
