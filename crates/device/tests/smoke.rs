//! The device runs: random writes with garbage collection under every
//! combination of policies, without deadlock, with every law of conservation
//! checked at the end.

mod support;

use flashkeel_device::{DeviceConfig, SchedulerConfig, VictimConfig};
use flashkeel_engine::Operation;
use support::{closed_loop, policy, random_pages, ready, tiny};

fn survives(config: &DeviceConfig) {
    let mut ssd = ready(config, 1);
    ssd.check();
    let pages = config.logical_capacity.0 / 4096;
    let completions = closed_loop(&mut ssd, 32, random_pages(Operation::Write, pages, 20_000, 1));
    assert_eq!(completions.len(), 20_000);
    ssd.check();
    let report = ssd.report();
    assert!(report.erases > 100, "garbage collection has run: {report:?}");
    assert!(report.waf.expect("the host has written") > 1.0);
}

#[test]
fn every_victim_policy_runs() {
    for &victim in VictimConfig::NAMES {
        let mut config = tiny();
        config.gc.victim = policy(victim);
        survives(&config);
    }
}

#[test]
fn every_scheduler_runs() {
    for &scheduler in SchedulerConfig::NAMES {
        let mut config = tiny();
        config.scheduler = policy(scheduler);
        survives(&config);
    }
}
