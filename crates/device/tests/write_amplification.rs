//! Write amplification of cleaning policies against the closed form of FIFO
//! cleaning, against the mean field of d choices, and against each other.

mod support;

use std::ops::ControlFlow;

use flashkeel_device::{DeviceConfig, Ssd, VictimConfig};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Completion, Operation, Request, Stream};
use serde_json::{Value, json};
use support::*;

/// Pages of a block where it does not matter, and of the device. A flash page
/// is a mapping unit, so that nothing is padded, and there are so many blocks
/// that one more or less is nothing.
const PAGES: u32 = 32;
const PHYSICAL: u64 = 4096 * PAGES as u64;

/// A device with `pages` in a block.
fn device(victim: impl Into<Value>, pages: u32, logical_pages: u64) -> DeviceConfig {
    let mut config = tiny();
    config.geometry.channels = 2;
    config.geometry.chips_per_channel = 2;
    config.geometry.blocks_per_plane = PHYSICAL as u32 / pages / 4;
    config.geometry.pages_per_block = pages;
    config.geometry.page_size = Bytes(4096);
    config.logical_capacity = Bytes(logical_pages * 4096);
    config.gc.victim = policy(victim);
    config.buffer.size = Bytes(64 << 10);
    // Host writes wait while garbage is collected, so that free blocks never
    // run out and the policy always has its way.
    config.gc.invocation = policy("foreground");
    config.gc.concurrent_victims = 1;
    config.gc.start_below = 8;
    config.gc.stop_above = 8;
    config.scheduler = policy("fifo");
    config
}

/// Principal branch of Lambert's W between -1/e and 0, by Newton's method.
fn lambert_w(x: f64) -> f64 {
    (0..100).fold(-0.5, |w: f64, _| w - (w * w.exp() - x) / (w.exp() * (w + 1.0)))
}

/// Pages programmed per page written under uniform random writes when the
/// oldest block is always cleaned and `alpha` is physical over logical space.
fn fifo_law(alpha: f64) -> f64 {
    alpha / (alpha + lambert_w(-alpha * (-alpha).exp()))
}

/// Pages programmed per page written under uniform random writes when the best
/// of `d` blocks drawn at random is cleaned, and there are infinitely many; of all
/// blocks where `d` is infinite (Van Houdt, SIGMETRICS 2013).
///
/// Let a share s(j) of the blocks hold at least j valid pages, and a block with j
/// lose one at `rate` j per victim. As many blocks come to hold fewer than j as
/// are chosen among those: rate j (s(j) - s(j + 1)) = 1 - s(j)^d. The rate follows
/// from the sum of all s(j): the valid pages of a block in the mean.
fn mean_field(alpha: f64, pages: u32, d: f64) -> f64 {
    let valid = |rate: f64| {
        let (mut above, mut sum) = (0.0, 0.0);
        for j in (1..=pages).rev() {
            let falls = |share: f64| rate * f64::from(j) * (share - above);
            above = root(above, 1.0, |share| falls(share) + share.powf(d) - 1.0);
            sum += above;
        }
        sum
    };
    let mean = f64::from(pages) / alpha;
    let rate = root(0.0, alpha, |rate| mean - valid(rate));
    // A victim's pages are all programmed again, rate * mean of them for the host.
    alpha / rate
}

/// Where a rising function is zero, by bisection.
fn root(mut below: f64, mut above: f64, function: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..60 {
        let middle = (below + above) / 2.0;
        *(if function(middle) < 0.0 { &mut below } else { &mut above }) = middle;
    }
    below
}

/// What a run of random writes came to: write amplification, and the ratio of
/// physical space in use to logical space.
fn measured(ssd: &mut Ssd, logical: u64, serve: impl FnOnce(&mut Ssd, See<'_>)) -> (f64, f64) {
    ssd.reset_counters();
    let (mut unwritten, mut samples) = (0, 0);
    serve(ssd, &mut |ssd, completion| {
        if completion.id.0 % 64 == 0 {
            let (free, open) = ssd.unwritten_pages();
            unwritten += free + open;
            samples += 1;
        }
    });
    let used = PHYSICAL as f64 - unwritten as f64 / f64::from(samples);
    (ssd.report().waf.expect("the host has written"), used / logical as f64)
}

/// Sees each completion, and the device after it.
type See<'a> = &'a mut dyn FnMut(&Ssd, &Completion);

fn run(ssd: &mut Ssd, logical: u64, requests: impl Iterator<Item = Request>) -> (f64, f64) {
    measured(ssd, logical, |ssd, see| closed_loop_with(ssd, 16, requests, see))
}

fn uniform(victim: &str, pages: u32, logical: u64, count: u64) -> (f64, f64) {
    let mut ssd = ready(&device(victim, pages, logical), 1);
    run(&mut ssd, logical, random_pages(Operation::Write, logical, count, 5))
}

/// Logical pages that leave `alpha` times as much physical space.
fn logical(alpha: f64) -> u64 {
    (PHYSICAL as f64 / alpha) as u64
}

fn follows_the_law(waf: f64, effective: f64) {
    let law = fifo_law(effective);
    assert!((waf / law - 1.0).abs() < 0.01, "{waf} instead of {law} at {effective}");
}

#[test]
fn fifo_cleaning_follows_its_closed_form_in_a_run() {
    for alpha in [1.15, 1.28, 1.5, 2.0] {
        let (waf, effective) = uniform("fifo", PAGES, logical(alpha), 250_000);
        follows_the_law(waf, effective);
    }
}

#[test]
fn fifo_cleaning_follows_its_closed_form_in_preconditioning() {
    const SEEDS: u64 = 2;
    for alpha in [1.15, 1.28, 1.6] {
        let logical = logical(alpha);
        let layout = device("fifo", PAGES, logical).validate().expect("a valid device");
        let (mut waf, mut effective) = (0.0, 0.0);
        // Its end is one sample of the unwritten space; several make a mean.
        for seed in 0..SEEDS {
            let mut ssd = Ssd::new(&layout, seed);
            let state = ssd.precondition(&mut |_| ControlFlow::Continue(())).continue_value();
            let state = state.flatten().expect("written at random");
            let (free, open) = ssd.unwritten_pages();
            waf += state.write_amplification / SEEDS as f64;
            effective += (PHYSICAL - free - open) as f64 / logical as f64 / SEEDS as f64;
        }
        follows_the_law(waf, effective);
    }
}

/// Blocks drawn, of which the best is cleaned; the last is `greedy`.
const DRAWN: [f64; 4] = [1.0, 2.0, 10.0, f64::INFINITY];

/// The victim policy that takes the best of `d` blocks.
fn choice_of(d: f64) -> Value {
    if d.is_finite() { json!({ "policy": "d-choices", "d": d as u32 }) } else { json!("greedy") }
}

#[test]
fn the_mean_field_of_d_choices_has_its_known_values() {
    let alpha = 1.28;
    for (d, known) in DRAWN.into_iter().zip([alpha / (alpha - 1.0), 3.245, 2.471, 2.404]) {
        let waf = mean_field(alpha, 64, d);
        assert!((waf / known - 1.0).abs() < 0.001, "{waf} instead of {known} with {d} choices");
    }
}

/// A device in which the mean field applies: collection goes on beside the host,
/// with one victim at a time. Several would be chosen on one state of the blocks,
/// and take up space that no model counts.
fn mean_field_device(d: f64, logical: u64) -> DeviceConfig {
    let mut config = device(choice_of(d), 64, logical);
    config.gc.invocation = policy("task");
    config
}

fn follows_its_mean_field(serve: fn(&mut Ssd, &mut dyn Iterator<Item = Request>, See<'_>)) {
    for (alpha, d) in [1.15, 1.28, 1.5].into_iter().flat_map(|alpha| DRAWN.map(|d| (alpha, d))) {
        let logical = logical(alpha);
        let mut ssd = ready(&mean_field_device(d, logical), 1);
        let mut requests = random_pages(Operation::Write, logical, 300_000, 5);
        let (waf, effective) = measured(&mut ssd, logical, |ssd, see| serve(ssd, &mut requests, see));
        let law = mean_field(effective, 64, d);
        assert!((waf / law - 1.0).abs() < 0.01, "{waf} instead of {law} at {effective} with {d} choices");
        assert_eq!(ssd.counters().victims_by_greedy, 0);
    }
}

#[test]
fn a_choice_of_d_blocks_follows_its_mean_field_at_leisure() {
    follows_its_mean_field(|ssd, requests, see| open_loop_with(ssd, 10_000_000, requests, see));
}

#[test]
fn a_choice_of_d_blocks_follows_its_mean_field_when_saturated() {
    follows_its_mean_field(|ssd, requests, see| closed_loop_with(ssd, 8, requests, see));
}

#[test]
fn a_choice_of_one_is_none_in_preconditioning_with_few_free_blocks() {
    let mut config = mean_field_device(1.0, logical(1.28));
    config.gc.start_below = 0;
    config.gc.stop_above = 0;
    let mut ssd = Ssd::new(&config.validate().expect("a valid device"), 1);
    let state = ssd.precondition(&mut |_| ControlFlow::Continue(())).continue_value();
    let (waf, law) = (state.flatten().expect("written at random").write_amplification, 1.28 / 0.28);
    assert!((waf / law - 1.0).abs() < 0.02, "{waf} instead of {law}");
}

#[test]
fn a_choice_of_one_is_none_however_many_victims_wait_for_room() {
    let logical = logical(1.28);
    let mut config = mean_field_device(1.0, logical);
    config.gc.concurrent_victims = 16;
    let mut ssd = ready(&config, 1);
    let (waf, effective) = run(&mut ssd, logical, random_pages(Operation::Write, logical, 300_000, 5));
    let law = mean_field(effective, 64, 1.0);
    assert!((waf / law - 1.0).abs() < 0.02, "{waf} instead of {law} at {effective}");
}

#[test]
fn greedy_cleaning_costs_least_and_a_choice_of_few_lies_between() {
    // The larger the block, the less the blocks differ: these are small.
    let logical = logical(1.28);
    let [fifo, choices, greedy] =
        ["fifo", "d-choices", "greedy"].map(|victim| uniform(victim, 16, logical, 100_000).0);
    assert!(greedy < choices * 0.98 && choices < fifo * 0.98, "{greedy}, {choices}, {fifo}");
}

#[test]
fn no_policy_costs_less_than_the_best_or_more_than_chance() {
    const ALPHA: f64 = 1.28;
    let wafs: Vec<(&str, f64)> = VictimConfig::NAMES
        .iter()
        .map(|&victim| (victim, uniform(victim, 16, logical(ALPHA), 100_000).0))
        .collect();
    let greedy = wafs.iter().find(|(victim, _)| *victim == "greedy").expect("it is built in").1;
    // A block drawn at random is as full as the device; what is in use is less than the device.
    let chance = 1.05 * ALPHA / (ALPHA - 1.0);
    for (victim, waf) in wafs {
        assert!((greedy..chance).contains(&waf), "{victim}: {waf}, not from {greedy} to {chance}");
    }
}

#[test]
fn cost_benefit_cleaning_profits_from_hot_and_cold_pages() {
    let logical = logical(1.28);
    let [fifo, cost_benefit] = ["fifo", "cost-benefit"].map(|victim| {
        let mut ssd = ready(&device(victim, PAGES, logical), 1);
        let mut stream = Stream::new(9, "test workload");
        // Nine of ten writes go to a tenth of the pages.
        let requests = (0..200_000).map(|id| {
            let hot = logical / 10;
            let page = if stream.chance(0.9) { stream.below(hot) } else { hot + stream.below(logical - hot) };
            request(id, Operation::Write, page, 1)
        });
        run(&mut ssd, logical, requests).0
    });
    assert!(cost_benefit < fifo * 0.9, "{cost_benefit} against {fifo}");
}

/// Parity alone makes more of every round, also while free space lasts.
#[test]
fn preconditioning_goes_on_until_blocks_are_collected_with_parity_too() {
    let mut config = tiny();
    config.redundancy = policy("physical");
    // Rounds of many pages, so that parity is as good as the same part of each.
    (config.geometry.blocks_per_plane, config.geometry.pages_per_block) = (64, 64);
    config.logical_capacity = Bytes(128 << 20);
    config.precondition.fill = 0.4;
    let mut ssd = Ssd::new(&config.validate().expect("a valid device"), 1);
    let _ = ssd.precondition(&mut |_| ControlFlow::Continue(()));
    assert!(ssd.erase_counts().any(|erases| erases > 0));
}
