//! What is said beside the figures of a run.

mod support;

use std::ops::ControlFlow;

use flashkeel_experiment::{resolve, run};
use support::{DEVICE, WORKLOAD};

fn notes(document: &str) -> Vec<String> {
    let plans = resolve(document, "exp.toml", &[], None).unwrap_or_else(|error| panic!("{error}"));
    run(&plans[0], 1, None, &mut |_, _| ControlFlow::Continue(())).unwrap().outcome.notes
}

#[test]
fn a_note_about_some_tenants_names_them() {
    let path = std::env::temp_dir().join(format!("flashkeel-notes-{}.csv", std::process::id()));
    std::fs::write(&path, "10,usr,0,Write,4096,4096,0\n20,usr,0,Read,0,8192,0\n").unwrap();
    let noted = |magnifications: &[u32]| {
        let tenants = magnifications.iter().enumerate().map(|(number, times)| {
            format!(
                "[[stack.tenants]]\nname = \"t{number}\"\n[stack.tenants.workload.source]\npolicy = \"trace\"\n\
                 path = {path:?}\nwrite_magnification = {times}\n"
            )
        });
        let document = format!("{DEVICE}[stack]\n{}", tenants.collect::<String>());
        notes(&document)
    };
    assert_eq!(noted(&[2]), ["writes are magnified 2 times"]);
    assert_eq!(noted(&[2, 2]), ["writes are magnified 2 times"]);
    assert_eq!(
        noted(&[2, 1, 3, 3]),
        ["tenant t0: writes are magnified 2 times", "tenants t2, t3: writes are magnified 3 times"]
    );
    let [note] = &noted(&[1, 2, 2, 2, 2, 2])[..] else { panic!("one note") };
    assert_eq!(note, "tenants t1, t2, t3 and 2 others: writes are magnified 2 times");
    std::fs::remove_file(path).unwrap();
}

/// Once they were left out in silence.
#[test]
fn what_belongs_to_no_volume_is_said() {
    let two = "[[stack.tenants]]\nname = \"a\"\n[[stack.tenants]]\nname = \"b\"\n";
    let noted = |volumes: &str| {
        let device = DEVICE.replace("64MiB", "56MiB").replace("[14]", "[]");
        notes(&format!("{device}{WORKLOAD}[stack]\nvolumes = {volumes}\n{two}"))
    };
    // 32 MiB are the last whole period of bit 15; two of four volumes are of nobody.
    for (bits, left) in [("[15]", "24MiB"), ("[14, 5]", "32MiB")] {
        let noted = noted(&format!("{{ policy = \"va-lvm\", bits = {bits} }}"));
        let of = format!("{left} of the devices' 56MiB belong to no volume");
        assert!(noted.iter().any(|note| note.starts_with(&of)), "{bits}: {noted:?}");
    }
    assert_eq!(noted("\"linear\""), Vec::<String>::new());
}

#[test]
fn windows_that_were_broken_and_blocks_that_are_worn_out_are_said() {
    let device = "[device]\nlogical_capacity = \"4MiB\"\nmap_cache = \"all\"\n\
        gc = { start_below = 8, stop_above = 12, concurrent_victims = 4 }\nbuffer = { size = \"256KiB\" }\n\
        geometry = { channels = 2, chips_per_channel = 2, planes_per_chip = 1, blocks_per_plane = 24, \
        pages_per_block = 8 }\n";
    let noted = |setting: &str, read_fraction: f64| {
        let source = format!("{{ policy = \"synthetic\", read_fraction = {read_fraction} }}");
        let workload = format!("[workload]\nsource = {source}\npacing = \"closed\"\nrequests = 20000\n");
        notes(&format!("{device}{setting}\n{workload}"))
    };
    let window = "window = { policy = \"periodic\", deterministic = \"1000h\", non_deterministic = \"5ms\" }";
    let [broken] = &noted(window, 0.0)[..] else { panic!("one note") };
    assert!(broken.starts_with("deterministic windows of SSD 0 were broken: "), "{broken}");
    assert_eq!(noted(window, 1.0), Vec::<String>::new());
    let wears = |cycles: u32| format!("wear = {{ policy = \"rated\", rated_cycles = {cycles} }}");
    assert_eq!(noted(&wears(2), 0.0), ["blocks of SSD 0 have worn by more cycles than are rated, see wear"]);
    assert_eq!(noted(&wears(100_000), 0.0), Vec::<String>::new());
}

/// Once such a device was one without windows, and nothing said so.
#[test]
fn windows_that_nobody_commands_are_said() {
    let noted = |share: &str| {
        let small = DEVICE.replace("[device]", "[stack.devices.coordinator.device.windowed.device.ssd]");
        let alone = small.replace(".coordinator.device", "");
        let (device, share) = match share {
            "" => (alone, String::new()),
            _ => (small, format!("[stack.devices.coordinator.share]\n{share}\n")),
        };
        notes(&format!("[[stack.devices]]\n{device}{share}{WORKLOAD}"))
    };
    let [note] = &noted("")[..] else { panic!("one note: {:?}", noted("")) };
    assert!(note.starts_with("no deterministic window of the windowed device 0 began: "), "{note}");
    let of_it = |note: &String| note.contains("windowed");
    assert!(!noted("count = 100\nwindow = \"1ms\"\nrest = \"1ms\"").iter().any(of_it));
}
