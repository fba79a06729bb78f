//! Diagnosis of drives whose volumes no bits tell apart: then none are told, or with a doubt.

mod support;

use std::ops::ControlFlow;

use flashkeel_ssdcheck::{DeviceModel, probe};
use support::joined::Joined;
use support::{preset, ready};

fn diagnose(drives: &[&str], chunk: Option<u64>, seed: u64) -> DeviceModel {
    let ready = |(index, name): (usize, &&str)| ready(&preset(name), index as u64 + 1);
    let mut joined = Joined::new(drives.iter().enumerate().map(ready).collect(), chunk);
    probe(&mut joined, None, seed, None, &mut |_| ControlFlow::Continue(())).expect("it serves").model
}

fn doubts(model: &DeviceModel, key: &str) -> bool {
    model.undetermined.iter().any(|reason| reason.starts_with(key))
}

/// Once three had volumes by two or three bits, others with each seed, and none was doubted.
#[test]
fn a_stripe_over_drives_that_are_no_power_of_two_has_no_volume_bits() {
    let cases = [(3, 128, vec![2, 3, 5]), (3, 32, vec![3, 5]), (5, 128, vec![1]), (6, 128, vec![1])];
    for (drives, chunk, seeds) in cases {
        for seed in seeds {
            let drive = if drives == 3 { "ssd-a" } else { "ssd-b" };
            let model = diagnose(&vec![drive; drives], Some(chunk), seed);
            let told = format!("{drives} drives, {chunk} sectors, seed {seed}: {model:?}");
            assert!(doubts(&model, "volume_bits"), "{told}");
            assert_eq!(model.gc_volume_bits, None, "{told}");
        }
    }
}

/// Once the second's buffers, half as large, were neither seen nor doubted.
#[test]
fn the_buffer_of_one_of_two_unlike_drives_is_not_that_of_both() {
    for seed in [1, 2, 3] {
        let model = diagnose(&["ssd-a", "ssd-d"], None, seed);
        assert!(doubts(&model, "volume_bits") || doubts(&model, "write_buffer"), "seed {seed}: {model:?}");
    }
}

#[test]
fn like_drives_whose_number_is_a_power_of_two_are_told_by_their_bits() {
    let of = |drives: &[&str], chunk| diagnose(drives, chunk, 1);
    for (model, bits) in [
        (of(&["ssd-a"; 2], Some(128)), vec![7]),
        (of(&["ssd-a"; 4], Some(128)), vec![7, 8]),
        (of(&["ssd-a"; 3], None), vec![22, 23]),
    ] {
        assert_eq!(model.volume_bits, bits, "{model:?}");
        assert!(!doubts(&model, "volume_bits") && !doubts(&model, "write_buffer"), "{model:?}");
    }
}
