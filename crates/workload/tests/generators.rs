//! Generators have the distributions they promise, and the same seed gives the
//! same requests.

mod common;

use common::*;
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Operation, Span};
use flashkeel_workload::generators::arrivals::{bursts::Bursts, constant::Constant, poisson::Poisson};
use flashkeel_workload::generators::patterns::{hot_cold::HotCold, sequential::Sequential, zipf::Zipf};
use flashkeel_workload::generators::{ArrivalProcess, BlockSize, Pattern, Synthetic};
use flashkeel_workload::pacing::Closed;
use flashkeel_workload::{Arrival, Basis, Pacing, SourceConfig, WorkloadConfig};

fn generate(synthetic: Synthetic, requests: u64, device_sectors: u64, seed: u64) -> Vec<Arrival> {
    let workload = WorkloadConfig {
        pacing: match synthetic.arrivals {
            Some(_) => Pacing::default(),
            None => Pacing::Closed(Closed { depth: 1, low: None }),
        },
        requests: Some(requests),
        ..workload(SourceConfig::Synthetic(synthetic))
    };
    let mut source = workload.open(device_sectors, seed).unwrap();
    assert_eq!(source.basis(), Basis::Synthetic);
    let mut batch = Vec::new();
    source.fill(&mut batch, usize::MAX).unwrap();
    assert_eq!(source.counts().delivered, batch.len() as u64);
    assert!(batch.iter().all(|a| a.lba.0 + u64::from(a.sectors) <= device_sectors));
    batch
}

fn pattern(pattern: Pattern) -> Synthetic {
    Synthetic { pattern, ..Synthetic::default() }
}

/// Requests per place of 4 KiB.
fn per_place(arrivals: &[Arrival], places: usize) -> Vec<u64> {
    let mut counts = vec![0; places];
    for arrival in arrivals {
        counts[arrival.lba.0 as usize / 8] += 1;
    }
    counts
}

/// Pearson's statistic over its degrees of freedom; near 1 for a good fit.
fn misfit(counts: &[u64], expected: impl Fn(usize) -> f64) -> f64 {
    let sum: f64 = (0..).zip(counts).map(|(i, &n)| (n as f64 - expected(i)).powi(2) / expected(i)).sum();
    sum / (counts.len() - 1) as f64
}

#[test]
fn the_seed_decides_everything() {
    let synthetic = || Synthetic {
        read_fraction: 0.5,
        pattern: Pattern::Zipf(Zipf::default()),
        arrivals: Some(ArrivalProcess::Poisson(Poisson::default())),
        ..Synthetic::default()
    };
    let once = generate(synthetic(), 1000, DEVICE_SECTORS, 7);
    assert_eq!(once, generate(synthetic(), 1000, DEVICE_SECTORS, 7));
    assert_ne!(once, generate(synthetic(), 1000, DEVICE_SECTORS, 8));
    // Another mix changes no address and no time.
    let mixed = generate(Synthetic { read_fraction: 0.1, ..synthetic() }, 1000, DEVICE_SECTORS, 7);
    assert!(once.iter().zip(&mixed).all(|(a, b)| (a.time, a.lba) == (b.time, b.lba)));
}

#[test]
fn uniform_reaches_every_place_alike() {
    let counts = per_place(&generate(Synthetic::default(), 100_000, 1000 * 8, 1), 1000);
    let misfit = misfit(&counts, |_| 100.0);
    assert!((0.8..1.2).contains(&misfit), "{misfit}");
}

#[test]
fn zipf_follows_the_power_law() {
    for theta in [0.5, 0.99, 1.0, 1.5] {
        let requests = 200_000;
        let mut counts =
            per_place(&generate(pattern(Pattern::Zipf(Zipf { theta })), requests, 500 * 8, 3), 500);
        // Ranks are scattered by a step near the golden section; undo it.
        let step = (309..).find(|step| (2..=*step).all(|d| step % d != 0 || 500 % d != 0)).unwrap();
        counts = (0..500).map(|rank| counts[rank * step % 500]).collect();
        let norm: f64 = (1..=500).map(|k| f64::from(k).powf(-theta)).sum();
        let expected = |i: usize| requests as f64 * ((i + 1) as f64).powf(-theta) / norm;
        let misfit = misfit(&counts, expected);
        assert!((0.75..1.25).contains(&misfit), "theta {theta}: {misfit}");
    }
}

#[test]
fn zipf_values_are_stable() {
    let got: Vec<u64> = generate(pattern(Pattern::Zipf(Zipf { theta: 0.99 })), 6, 1 << 28, 42)
        .iter()
        .map(|a| a.lba.0 / 8)
        .collect();
    assert_eq!(got, [15_715_365, 441_414, 0, 26_788_977, 3_563_424, 9_165_521]);
}

#[test]
fn sequential_goes_round() {
    let arrivals = generate(pattern(Pattern::Sequential(Sequential {})), 7, 3 * 8, 1);
    assert_eq!(arrivals.iter().map(|a| a.lba.0).collect::<Vec<_>>(), [0, 8, 16, 0, 8, 16, 0]);
}

#[test]
fn hot_and_cold_get_their_shares() {
    let hot_cold = HotCold { hot_space: 0.1, hot_accesses: 0.7 };
    let counts = per_place(&generate(pattern(Pattern::HotCold(hot_cold)), 200_000, 1000 * 8, 1), 1000);
    let misfit = misfit(&counts, |place| if place < 100 { 1400.0 } else { 60_000.0 / 900.0 });
    assert!((0.8..1.2).contains(&misfit), "{misfit}");
}

#[test]
fn what_is_longer_than_a_place_does_not_gather_at_the_end() {
    let hot_cold = || Pattern::HotCold(HotCold { hot_space: 0.1, hot_accesses: 0.7 });
    for shape in [hot_cold(), Pattern::Zipf(Zipf { theta: 0.01 })] {
        let is_hot_cold = shape == hot_cold();
        let sizes = [4 << 10, 1 << 20].map(|bytes| BlockSize { size: Bytes(bytes), weight: 1 }).into();
        let synthetic = Synthetic { block_sizes: sizes, ..pattern(shape) };
        let mut large = generate(synthetic, 400_000, 1000 * 8, 1);
        large.retain(|arrival| arrival.sectors == 2048);
        let counts = per_place(&large, 1000);
        let each = large.len() as f64 / 1000.0;
        let (hot, last) = (counts[..100].iter().sum::<u64>() as f64 / 1e2, counts[744] as f64);
        assert!(counts[745..].iter().all(|&count| count == 0));
        if is_hot_cold {
            assert!((hot / (7.0 * each) - 1.0).abs() < 0.03, "{hot} of {each}");
        }
        assert!(last < 2.0 * each, "{last} at the last place, {each} in the mean");
    }
}

#[test]
fn zeros_are_written_where_nothing_is_read_or_trimmed() {
    for zero_fraction in [0.0, 0.5, 1.0] {
        let synthetic = Synthetic { read_fraction: 0.0, zero_fraction, ..Synthetic::default() };
        let arrivals = generate(synthetic, 10_000, DEVICE_SECTORS, 1);
        let zeros = arrivals.iter().filter(|arrival| arrival.operation == Operation::WriteZeroes).count();
        assert!((zeros as f64 / 1e4 - zero_fraction).abs() < 0.02, "{zeros} at {zero_fraction}");
    }
}

#[test]
fn mix_and_sizes_follow_their_weights() {
    let size = |kib: u64, weight| BlockSize { size: Bytes(kib << 10), weight };
    let synthetic = Synthetic {
        read_fraction: 0.6,
        trim_fraction: 0.1,
        zero_fraction: 0.05,
        block_sizes: vec![size(4, 70), size(64, 20), size(128, 10)],
        ..Synthetic::default()
    };
    let arrivals = generate(synthetic, 100_000, DEVICE_SECTORS, 1);
    let share = |is: &dyn Fn(&Arrival) -> bool| arrivals.iter().filter(|a| is(a)).count() as f64 / 1e5;
    for (got, expected) in [
        (share(&|a| a.operation == Operation::Read), 0.6),
        (share(&|a| a.operation == Operation::Trim), 0.1),
        (share(&|a| a.operation == Operation::WriteZeroes), 0.05),
        (share(&|a| a.operation == Operation::Write), 0.25),
        (share(&|a| a.sectors == 8), 0.7),
        (share(&|a| a.sectors == 128), 0.2),
        (share(&|a| a.sectors == 256), 0.1),
    ] {
        assert!((got - expected).abs() < 0.006, "{got} instead of {expected}");
    }
    assert!(arrivals.iter().all(|a| a.lba.0 % 8 == 0));
    for (fraction, operation) in [(0.0, Operation::Write), (1.0, Operation::Read)] {
        let pure = generate(Synthetic { read_fraction: fraction, ..Synthetic::default() }, 10_000, 8000, 1);
        assert!(pure.iter().all(|a| a.operation == operation));
    }
}

#[test]
fn shares_that_add_up_to_all_requests_are_taken() {
    // Their sum in binary is 1.0000000000000002.
    let mix = |read_fraction, trim_fraction, zero_fraction| {
        let synthetic = Synthetic { read_fraction, trim_fraction, zero_fraction, ..Synthetic::default() };
        generate(synthetic, 10_000, DEVICE_SECTORS, 1)
    };
    for arrivals in [mix(0.34, 0.56, 0.1), mix(0.34, 0.1, 0.56)] {
        assert!(arrivals.iter().all(|arrival| arrival.operation != Operation::Write));
    }
}

#[test]
fn writes_may_have_sizes_of_their_own() {
    let size = |kib: u64, weight| BlockSize { size: Bytes(kib << 10), weight };
    let alike = Synthetic { read_fraction: 0.5, zero_fraction: 0.1, ..Synthetic::default() };
    let writes = Some(vec![size(64, 3), size(16, 1)]);
    let apart = Synthetic { block_sizes: vec![size(8, 1)], write_block_sizes: writes, ..alike.clone() };
    let arrivals = generate(apart.clone(), 100_000, DEVICE_SECTORS, 1);
    let mut shares = [0u64; 2];
    for arrival in &arrivals {
        match arrival.operation {
            Operation::Write | Operation::WriteZeroes => {
                shares[usize::from(arrival.sectors == 128)] += 1;
                assert!([32, 128].contains(&arrival.sectors));
            }
            _ => assert_eq!(arrival.sectors, 16),
        }
        assert_eq!(arrival.lba.0 % 16, 0, "they begin at multiples of the smallest");
    }
    let of_64 = shares[1] as f64 / (shares[0] + shares[1]) as f64;
    assert!((of_64 - 0.75).abs() < 0.006, "{of_64}");
    // The mix is the same whatever the sizes.
    let operations = |arrivals: &[Arrival]| arrivals.iter().map(|a| a.operation).collect::<Vec<_>>();
    assert_eq!(operations(&arrivals), operations(&generate(alike, 100_000, DEVICE_SECTORS, 1)));
    let only = Synthetic { block_sizes: vec![size(16, 1)], write_block_sizes: None, ..apart.clone() };
    let twice = Synthetic { write_block_sizes: Some(vec![size(16, 1)]), ..only.clone() };
    assert_eq!(generate(only, 1000, DEVICE_SECTORS, 1), generate(twice, 1000, DEVICE_SECTORS, 1));
}

#[test]
fn a_region_bounds_the_requests() {
    let synthetic = Synthetic {
        region_offset: Bytes(1 << 20),
        region_size: Some(Bytes(1 << 20)),
        ..Synthetic::default()
    };
    let arrivals = generate(synthetic, 10_000, DEVICE_SECTORS, 1);
    let lbas = || arrivals.iter().map(|a| a.lba.0);
    assert_eq!((lbas().min(), lbas().max()), (Some(2048), Some(4096 - 8)));
}

#[test]
fn arrivals_come_at_their_rate() {
    let timed = |process| Synthetic { arrivals: Some(process), ..Synthetic::default() };
    let times = |process| -> Vec<u64> {
        generate(timed(process), 100_000, DEVICE_SECTORS, 1).iter().map(|a| a.time.0).collect()
    };
    let constant = times(ArrivalProcess::Constant(Constant { iops: 30_000.0 }));
    assert!((0..).zip(&constant).all(|(n, &t)| t.abs_diff((f64::from(n) * 1e9 / 3e4) as u64) <= 1));

    let poisson = times(ArrivalProcess::Poisson(Poisson { iops: 50_000.0 }));
    let gaps: Vec<f64> = poisson.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((mean / 20_000.0 - 1.0).abs() < 0.015, "{mean}");
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "an exponential's deviation is its mean");

    let (on, off) = (Span::from_ms(10), Span::from_ms(90));
    let bursts = times(ArrivalProcess::Bursts(Bursts { iops: 50_000.0, on, off }));
    assert!(bursts.iter().all(|t| t % 100_000_000 < 10_000_000), "nothing arrives between bursts");
    let rate = 1e5 / (*bursts.last().unwrap() as f64 / 1e9);
    assert!((rate / 5_000.0 - 1.0).abs() < 0.02, "{rate}");
}

#[test]
fn a_duration_ends_a_generator() {
    let synthetic = Synthetic {
        arrivals: Some(ArrivalProcess::Constant(Constant { iops: 1000.0 })),
        ..Synthetic::default()
    };
    let workload =
        WorkloadConfig { duration: Some(Span::from_ms(50)), ..workload(SourceConfig::Synthetic(synthetic)) };
    let (arrivals, _) = run(&workload).unwrap();
    assert_eq!(arrivals.len(), 50);
}

#[test]
fn arrivals_that_the_clock_cannot_count_are_refused() {
    // A gap of 10^18 ns fits nine times.
    let rarely = |requests, duration| {
        let constant = ArrivalProcess::Constant(Constant { iops: 1e-9 });
        let synthetic = Synthetic { arrivals: Some(constant), ..Synthetic::default() };
        run(&WorkloadConfig { requests, duration, ..workload(SourceConfig::Synthetic(synthetic)) })
    };
    assert_eq!(rarely(Some(10), None).unwrap().0.len(), 10);
    assert_eq!(rarely(None, Some(Span(u64::MAX))).unwrap_err().subject, "workload");
    let refused = rarely(Some(11), None).unwrap_err().to_string();
    assert!(refused.contains("beyond the 292 years that can be simulated"), "{refused}");
    assert_eq!(rarely(Some(20), Some(Span(5 * 10u64.pow(18)))).unwrap().0.len(), 5);
    // A duration ends it before an arrival that the clock cannot count.
    let constant = ArrivalProcess::Constant(Constant { iops: 1e-11 });
    let synthetic = Synthetic { arrivals: Some(constant), ..Synthetic::default() };
    let duration = Some(Span::from_ms(1000));
    let ended = run(&WorkloadConfig { duration, ..workload(SourceConfig::Synthetic(synthetic)) });
    assert_eq!(ended.unwrap().0.len(), 1);
}

#[test]
fn block_sizes_are_written_as_fio_does() {
    let json = r#"{"policy": "synthetic", "block_sizes": ["4KiB/70", "64KiB"], "pattern": "zipf"}"#;
    let SourceConfig::Synthetic(synthetic) = serde_json::from_str(json).unwrap() else { panic!() };
    let size = |kib: u64, weight| BlockSize { size: Bytes(kib << 10), weight };
    assert_eq!(synthetic.block_sizes, [size(4, 70), size(64, 1)]);
    assert_eq!(
        serde_json::to_value(&synthetic.block_sizes).unwrap(),
        serde_json::json!(["4KiB/70", "64KiB"])
    );
    let wrong = serde_json::from_str::<BlockSize>("\"4KiB/x\"").unwrap_err().to_string();
    assert!(wrong.contains("\"x\" in \"4KiB/x\" is not a weight"), "{wrong}");
}
