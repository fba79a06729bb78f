//! A profile comes back from `trace info` with its published figures, in full
//! and in parts, and says everywhere that it is synthetic.

mod common;

use common::*;
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Operation, Span};
use flashkeel_workload::profiles::{self, Characteristics, Profile, ProfileName, RANGE_BYTES};
use flashkeel_workload::{
    Arrival, Basis, SourceConfig, Stopped, Trace, TraceInfo, WorkloadConfig, WriterName, convert, save,
};

fn profile(name: &str) -> WorkloadConfig {
    profile_at(name, 1.0)
}

fn profile_at(name: &str, intensity: f64) -> WorkloadConfig {
    let name = ProfileName::parse(name).unwrap();
    workload(SourceConfig::Profile(Profile { intensity, ..Profile::new(name) }))
}

fn first(requests: u64, workload: WorkloadConfig) -> WorkloadConfig {
    WorkloadConfig { requests: Some(requests), ..workload }
}

/// The requests of a workload, as `trace info` sees them in a file.
fn info_of(workload: &WorkloadConfig, seed: u64) -> TraceInfo {
    let path = file("p.synthetic.mqsim", "");
    let mut source = workload.open(DEVICE_SECTORS, seed).unwrap();
    // Of the formats that can be written, the one with the finest clock.
    save(&mut *source, WriterName::parse("mqsim").unwrap(), &path, &mut go_on).unwrap();
    let info = info(&Trace::new(&path)).unwrap();
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    info
}

/// Refuses a figure that is neither within 2 % of the published one nor rounds
/// to it.
fn check(what: &str, got: f64, published: f64, decimals: i32) {
    let unit = 10f64.powi(decimals);
    let is_near = (got / published - 1.0).abs() <= 0.02;
    assert!(is_near || (got * unit).round() == (published * unit).round(), "{what}: {got} for {published}");
}

fn check_rates(profile: &Characteristics, info: &TraceInfo) {
    let (name, terms) = (profile.name, &info.terms);
    let near = |what: &str, got: f64, published: f64| {
        assert!((got / published - 1.0).abs() <= 0.02, "{name}: {what} is {got}, published {published}");
    };
    near("write size", terms.write_kb.unwrap(), profile.write_kb);
    near("read size", terms.read_kb.unwrap(), profile.read_kb);
    near("mean gap", terms.inter_arrival_mean_ms.unwrap(), profile.inter_arrival_mean_ms);
    near("median gap", terms.inter_arrival_median_ms.unwrap(), profile.inter_arrival_median_ms);
    near("random share", terms.random_percent.unwrap(), profile.random_percent);
    near("write share", terms.write_percent.unwrap(), profile.write_fraction() * 100.0);
}

/// The first stretches of every profile, in whole decks of gaps; its length and
/// counts follow from them and the number of requests.
#[test]
fn every_profile_comes_back_with_its_published_figures() {
    for profile in profiles::all() {
        let info = info_of(&first(24 * 2048 + 1, crate::profile(profile.name)), 1);
        check_rates(profile, &info);
        let requests = profile.requests() as f64;
        let write_share = info.terms.write_percent.unwrap() / 100.0;
        check(profile.name, requests * write_share / 1e6, profile.writes_millions, 1);
        check(profile.name, requests * (1.0 - write_share) / 1e6, profile.reads_millions, 1);
        if let Some(hours) = profile.hours {
            check(profile.name, requests * info.terms.inter_arrival_mean_ms.unwrap() / 3.6e6, hours, 1);
        }
    }
}

#[test]
fn a_whole_profile_has_length_and_counts_too() {
    for name in ["build-server", "dap-ps"] {
        let profile = ProfileName::parse(name).unwrap().characteristics();
        let info = info_of(&crate::profile(name), 7);
        check_rates(profile, &info);
        check("writes", info.terms.writes_millions, profile.writes_millions, 1);
        check("reads", info.terms.reads_millions, profile.reads_millions, 1);
        check("hours", info.terms.hours, profile.hours.unwrap_or(info.terms.hours), 1);
        assert_eq!(info.requests, profile.requests());
    }
}

#[test]
fn short_stretches_keep_the_figures() {
    for profile in profiles::all() {
        let (arrivals, _) = run(&first(40_960, crate::profile(profile.name))).unwrap();
        // Decks of gaps have 2048.
        for part in arrivals.windows(8193).step_by(8192) {
            let mean_ms = (part[8192].time.0 - part[0].time.0) as f64 / 8192e6;
            let ratio = mean_ms / profile.inter_arrival_mean_ms;
            assert!((ratio - 1.0).abs() < 0.02, "{}: {ratio}", profile.name);
            let writes = part.iter().filter(|a| a.operation == Operation::Write).count();
            let off = writes as f64 / 8193.0 - profile.write_fraction();
            assert!(off.abs() < 0.01, "{}: {off}", profile.name);
        }
    }
}

/// Short gaps follow short ones, over about 128 requests and no more than a
/// deck.
#[test]
fn gaps_come_in_bursts() {
    let (arrivals, _) = run(&first(200_001, profile("rad-as"))).unwrap();
    let gaps: Vec<f64> =
        arrivals.windows(2).map(|pair| ((pair[1].time.0 - pair[0].time.0) as f64).ln()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let covariance = |lag: usize| {
        let products = gaps.iter().zip(&gaps[lag..]).map(|(a, b)| (a - mean) * (b - mean));
        products.sum::<f64>() / (gaps.len() - lag) as f64
    };
    for (lag, low, high) in [(1, 0.40, 0.55), (128, 0.08, 0.16), (2000, -0.05, 0.05)] {
        let correlation = covariance(lag) / covariance(0);
        assert!((low..high).contains(&correlation), "lag {lag}: {correlation}");
    }
}

#[test]
fn the_seed_decides_everything() {
    let arrivals =
        |seed| drain(&mut *first(5000, profile("msn-befs")).open(DEVICE_SECTORS, seed).unwrap()).unwrap();
    assert_eq!(arrivals(3), arrivals(3));
    assert_ne!(arrivals(3), arrivals(4));
}

#[test]
fn values_are_stable() {
    let (arrivals, _) = run(&first(4, profile("lm-tbe"))).unwrap();
    let got: Vec<_> = arrivals.iter().map(|a| (a.time.0, a.operation as u8, a.lba.0, a.sectors)).collect();
    assert_eq!(
        got,
        [
            (0, 0, 192_235_720, 64),
            (491_271, 0, 192_235_784, 8),
            (3_706_575, 1, 299_304_848, 256),
            (5_384_625, 0, 117_516_576, 128)
        ]
    );
}

#[test]
fn intensity_divides_every_time() {
    let times = |intensity| -> Vec<u64> {
        run(&first(5000, profile_at("dtrs", intensity))).unwrap().0.iter().map(|a| a.time.0).collect()
    };
    assert!(times(1.0).iter().zip(times(2.0)).all(|(once, twice)| once.abs_diff(2 * twice) <= 2));
}

#[test]
fn it_ends_by_itself_by_count_or_by_time() {
    assert_eq!(run(&first(10, profile("web"))).unwrap().0.len(), 10);
    let minute = WorkloadConfig { duration: Some(Span::from_ms(60_000)), ..profile("web") };
    let (arrivals, _) = run(&minute).unwrap();
    assert!(arrivals.last().unwrap().time.0 < 60_000_000_000);
    assert!((58_000..62_000).contains(&arrivals.len()), "{}", arrivals.len());
    let (arrivals, counts) = run(&profile("build-server")).unwrap();
    assert_eq!((arrivals.len(), counts.read), (600_000, 600_000));
}

#[test]
fn random_places_are_skewed_and_lie_in_the_range() {
    let (arrivals, _) = run(&first(100_000, profile("tpce"))).unwrap();
    assert!(
        arrivals.iter().all(|a| (a.lba.0 + u64::from(a.sectors)) * 512 <= RANGE_BYTES && a.lba.0 % 8 == 0)
    );
    let mut per_extent = vec![0u64; (RANGE_BYTES >> 20) as usize];
    for Arrival { lba, .. } in &arrivals {
        per_extent[(lba.0 >> 11) as usize] += 1;
    }
    per_extent.sort_unstable_by(|a, b| b.cmp(a));
    let most: u64 = per_extent[..100].iter().sum();
    // Of a Zipf distribution of exponent 0.9 over 190,734 extents the first
    // hundred have 26.4 %.
    assert!((25_700..27_100).contains(&most), "{most}");
}

#[test]
fn a_small_device_is_filled_and_the_change_is_told() {
    for (sectors, told) in [(1 << 21, true), (DEVICE_SECTORS, false)] {
        let mut source = first(20_000, profile("lm-tbe")).open(sectors, 1).unwrap();
        let arrivals = drain(&mut *source).unwrap();
        assert!(arrivals.iter().all(|a| a.lba.0 + u64::from(a.sectors) <= sectors));
        assert_eq!(
            source.notes().iter().any(|note| note.contains("instead of")),
            told,
            "{:?}",
            source.notes()
        );
    }
    let error = profile("lm-tbe").open(100, 1).err().unwrap().to_string();
    assert!(error.contains("a device of at least 1MiB"), "{error}");
}

#[test]
fn it_says_what_it_rests_on_wherever_it_goes() {
    let workload = first(100, profile("rad-as"));
    let mut source = workload.open(DEVICE_SECTORS, 1).unwrap();
    assert_eq!(source.basis(), Basis::Synthetic);
    assert!(source.notes()[0].starts_with("profile rad-as is synthetic, no recorded trace: after AutoSSD"));
    let (csv, log) = (file("p.csv", ""), file("p.log", ""));
    let format = |name| WriterName::parse(name).unwrap();
    let written = save(&mut *source, format("msr"), &csv, &mut go_on).unwrap();
    assert_eq!((written.basis, written.notes.len()), (Basis::Synthetic, 1));
    let found = info(&Trace::new(&csv)).unwrap();
    assert_eq!((found.basis, found.devices[0].name.as_str()), (Basis::Synthetic, "synthetic.0"));
    // From there on, in other formats and in replays.
    let written = convert(&Trace::new(&csv), format("fio"), &log, &mut go_on).unwrap();
    assert_eq!(written.basis, Basis::Synthetic);
    let mut replay = common::workload(SourceConfig::Trace(Trace::new(&log))).open(DEVICE_SECTORS, 1).unwrap();
    drain(&mut *replay).unwrap();
    assert_eq!(replay.basis(), Basis::Synthetic);
    let mut again = workload.open(DEVICE_SECTORS, 1).unwrap();
    let Err(Stopped::Wrong(error)) = save(&mut *again, format("mqsim"), &csv, &mut go_on) else {
        panic!("nothing would say that it is synthetic")
    };
    assert!(error.to_string().contains("choose a name with \"synthetic\" in it"), "{error}");
    let named = file("p.synthetic.mqsim", "");
    convert(&Trace::new(&csv), format("mqsim"), &named, &mut go_on).unwrap();
    let mut replay =
        common::workload(SourceConfig::Trace(Trace::new(&named))).open(DEVICE_SECTORS, 1).unwrap();
    assert_eq!(
        (replay.basis(), info(&Trace::new(&named)).unwrap().basis),
        (Basis::Synthetic, Basis::Synthetic)
    );
    drain(&mut *replay).unwrap();
    convert(&Trace::new(&named), format("msr"), &csv, &mut go_on).unwrap();
    assert_eq!(info(&Trace::new(&csv)).unwrap().devices[0].name, "synthetic.0");
}

/// A busy, a moderate and a low day write what they are said to, in sizes from a sector
/// to 128 KB.
#[test]
fn days_of_virtual_desktops_write_what_they_should() {
    for (name, gb) in [("systor-busy", 220.0), ("systor-moderate", 160.0), ("systor-low", 60.0)] {
        let day = ProfileName::parse(name).unwrap().characteristics();
        let written = day.requests() as f64 * day.write_fraction() * day.write_kb * 1024.0;
        assert!((written / 1e9 / gb - 1.0).abs() < 0.01, "{name}: {written}");
        let (arrivals, _) = run(&first(24 * 2048, profile(name))).unwrap();
        let asked = || arrivals.iter().map(|arrival| arrival.asked_sectors);
        assert_eq!((asked().min(), asked().max()), (Some(1), Some(256)), "{name}");
        assert!(arrivals.iter().all(|a| a.sectors == a.asked_sectors.next_multiple_of(8)));
    }
}

#[test]
fn range_skew_and_size_of_writes_can_be_set() {
    let own = Profile::new(ProfileName::parse("systor-busy").unwrap());
    let arrivals =
        |profile: &Profile| run(&first(20_000, workload(SourceConfig::Profile(profile.clone())))).unwrap().0;
    let range = 1 << 30;
    let near = arrivals(&Profile { range: Some(Bytes(range)), zipf_theta: Some(0.0), ..own.clone() });
    assert!(near.iter().all(|a| (a.lba.0 + u64::from(a.sectors)) * 512 <= range));
    let most_visited = |arrivals: &[Arrival]| {
        let mut extents = vec![0u32; 1024];
        arrivals.iter().for_each(|a| extents[(a.lba.0 >> 11) as usize] += 1);
        extents.into_iter().max().unwrap()
    };
    let skewed = arrivals(&Profile { range: Some(Bytes(range)), zipf_theta: Some(1.2), ..own.clone() });
    assert!(most_visited(&skewed) > 20 * most_visited(&near));
    let long = arrivals(&Profile { write_magnification: 16, ..own.clone() });
    for (before, after) in arrivals(&own).iter().zip(&long) {
        assert_eq!((before.time, before.operation), (after.time, after.operation));
        let times = if before.operation == Operation::Write { 16 } else { 1 };
        assert_eq!(after.asked_sectors, times * before.asked_sectors);
    }
}

#[test]
fn bad_settings_are_refused() {
    let wrong = |json| serde_json::from_value::<WorkloadConfig>(json).unwrap_err().to_string();
    let name = wrong(serde_json::json!({"source": {"policy": "profile", "name": "rad-sa"}}));
    assert!(
        name.contains("unknown profile \"rad-sa\"") && name.contains("did you mean \"rad-as\""),
        "{name}"
    );
    let missing = wrong(serde_json::json!({"source": "profile"}));
    assert!(missing.contains("name"), "{missing}");
    for intensity in [0.0, -1.0, f64::NAN, 1e9] {
        let error = profile_at("web", intensity).open(DEVICE_SECTORS, 1).err().unwrap().to_string();
        assert!(error.starts_with("workload.source.intensity: "), "{error}");
    }
    let own = Profile::new(ProfileName::parse("web").unwrap());
    let refused = |settings: Profile| {
        workload(SourceConfig::Profile(settings)).open(DEVICE_SECTORS, 1).err().unwrap().to_string()
    };
    for theta in [-0.1, f64::NAN, 11.0] {
        let error = refused(Profile { zipf_theta: Some(theta), ..own.clone() });
        assert!(error.starts_with("workload.source.zipf_theta: "), "{error}");
    }
    for times in [0, 65] {
        let error = refused(Profile { write_magnification: times, ..own.clone() });
        assert!(error.starts_with("workload.source.write_magnification: "), "{error}");
    }
    let error = refused(Profile { range: Some(Bytes(4096)), ..own });
    assert!(error.contains("workload.source.range: 4KiB is too small; at least 1MiB"), "{error}");
}

#[test]
fn names_are_unique_and_every_profile_says_what_it_assumes() {
    let mut names: Vec<_> = profiles::all().map(|profile| profile.name).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!((names.len(), all), (23, 23));
    assert!(profiles::all().all(|profile| !profile.assumed.is_empty() && !profile.source.is_empty()));
}

#[test]
fn whoever_watches_may_interrupt() {
    let mut source = profile("web").open(DEVICE_SECTORS, 1).unwrap();
    let path = file("p.csv", "");
    let mut calls = 0;
    let stopped = save(&mut *source, WriterName::parse("msr").unwrap(), &path, &mut |fraction| {
        calls += 1;
        assert!((0.0..=1.0).contains(&fraction));
        if calls == 3 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
    });
    assert_eq!(stopped.unwrap_err(), flashkeel_workload::Stopped::Interrupted);
    assert_eq!(std::fs::read(&path).unwrap(), b"");
    assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 1);
}
