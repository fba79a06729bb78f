//! Checkpoints of the map: what a scan after a power cut would read with them
//! and without, and what they cost.

mod support;

use flashkeel_device::{Activity, DeviceConfig, Layout, MapCacheSize, SchedulerConfig, Ssd};
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{
    Answer, Arena, Cause, Command, Completion, Leaf, Operation, Place, Span, Submit, Time,
};
use support::{closed_loop, policy, random_pages, ready, request, settle};

/// 4 KiB pages of a flash page.
const UNITS: u64 = 4;
/// Flash pages that the host's data fill, and those of its map.
const DATA: u64 = 8192;
const MAP: u64 = 8;

/// Four chips with 12288 flash pages, of which the host's data fill two thirds:
/// 32 map pages of 4 KiB.
fn device(enabled: bool) -> DeviceConfig {
    let mut config = support::exact();
    config.geometry.blocks_per_plane = 96;
    config.geometry.pages_per_block = 32;
    config.logical_capacity = Bytes(128 << 20);
    config.checkpoint.enabled = enabled;
    config.checkpoint.period = Span::from_ms(20);
    config
}

fn to_scan(ssd: &Ssd) -> u64 {
    let mut values = Vec::new();
    ssd.gauges(&mut values);
    values[Ssd::gauge_names().iter().position(|name| name == "pages_to_scan").expect("a gauge")]
}

/// Writes whole flash pages, one each millisecond, and lets everything settle;
/// what a scan would have read at each event, from the first.
fn write(ssd: &mut Ssd, flash_pages: u64) -> Vec<u64> {
    let (mut scans, mut done) = (Vec::new(), Vec::new());
    for index in 0..flash_pages {
        let at = Time(index * 1_000_000);
        while let Some(next) = ssd.next_event().time().filter(|&next| next < at) {
            ssd.advance(next, &mut Arena::new(), &mut done);
            scans.push(to_scan(ssd));
        }
        assert_eq!(
            ssd.submit(at, &request(index, Operation::Write, index * UNITS, UNITS as u32), &mut Arena::new()),
            Submit::Accepted
        );
    }
    settle(ssd, &mut done);
    assert_eq!(done.len() as u64, flash_pages);
    scans.push(to_scan(ssd));
    ssd.check();
    scans
}

#[test]
fn without_checkpoints_a_scan_reads_whatever_holds_anything() {
    let mut ssd = ready(&device(false), 1);
    assert_eq!(to_scan(&ssd), DATA);
    let scans = write(&mut ssd, 300);
    assert!(scans.is_sorted());
    assert_eq!(scans.last(), Some(&(DATA + 300)));
    assert_eq!(ssd.counters().operations(Activity::Checkpoint.program()), 0);
}

#[test]
fn with_checkpoints_a_scan_reads_what_is_programmed_in_a_period() {
    let mut ssd = ready(&device(true), 1);
    // The device starts with its map in flash.
    assert_eq!(to_scan(&ssd), 0);
    assert_eq!(ssd.unwritten_pages().0 + ssd.unwritten_pages().1, (12_288 - DATA - MAP) * UNITS);
    let scans = write(&mut ssd, 300);
    // Twenty of the host until the next begins. Until that is complete, less than
    // a millisecond later, one or two more, one on its way when the former began,
    // and a page of the map in each of them.
    let most = *scans.iter().max().expect("scans");
    assert!((20..=20 + 2 + 1 + 2).contains(&most), "{most}");
    // The pages written lie in two map pages, and fifteen periods end.
    assert_eq!(ssd.counters().operations(Activity::Checkpoint.program()), 15);
    // The last checkpoint was written after it began.
    assert_eq!(scans.last(), Some(&1));
}

#[test]
fn a_limit_in_pages_does_not_wait_for_the_period() {
    let mut config = device(true);
    config.checkpoint.period = Span::from_secs(3600);
    config.checkpoint.after_pages = Some(10 * UNITS as u32);
    let mut ssd = ready(&config, 1);
    let done_at = |ssd: &Ssd| ssd.counters().operations(Activity::Checkpoint.program());
    let (mut done, mut most) = (Vec::new(), 0);
    for index in 0..100 {
        let at = Time(index * 1_000_000);
        ssd.advance(at, &mut Arena::new(), &mut done);
        most = most.max(to_scan(&ssd));
        assert_eq!(
            ssd.submit(at, &request(index, Operation::Write, index * UNITS, UNITS as u32), &mut Arena::new()),
            Submit::Accepted
        );
    }
    assert!((10..=15).contains(&most), "{most}");
    assert!((8..=10).contains(&done_at(&ssd)), "{}", done_at(&ssd));
}

/// Serves writes and reads at random, eight at a time; the completions.
fn serve(config: &DeviceConfig) -> (Ssd, Vec<Completion>) {
    let mut ssd = ready(config, 1);
    let writes = random_pages(Operation::Write, DATA * UNITS, 6_000, 1);
    let reads = random_pages(Operation::Read, DATA * UNITS, 6_000, 2);
    let both = writes.zip(reads).flat_map(|(write, read)| [write, read]).enumerate();
    let numbered = both.map(|(id, each)| request(id as u64, each.operation, each.lba.0 / 8, 1));
    let done = closed_loop(&mut ssd, 8, numbered);
    settle(&mut ssd, &mut Vec::new());
    ssd.check();
    (ssd, done)
}

#[test]
fn checkpoints_are_counted_and_those_who_wait_behind_them_told() {
    let behind = |done: &[Completion]| -> u64 {
        done.iter().map(|completion| completion.ledger.ns(Cause::BehindMap)).sum()
    };
    let (off, done) = serve(&device(false));
    assert_eq!(behind(&done), 0);
    let (on, done) = serve(&device(true));
    assert!(behind(&done) > 0);
    let programs = |ssd: &Ssd, activity: Activity| ssd.counters().operations(activity.program());
    assert!(programs(&on, Activity::Checkpoint) >= MAP);
    let counted: u64 =
        [Activity::Host, Activity::Gc, Activity::Checkpoint].map(|each| programs(&on, each)).iter().sum();
    assert_eq!(on.report().programmed_bytes, counted * UNITS * 4096);
    assert!(on.report().waf > off.report().waf);
}

#[test]
fn a_cached_map_is_checkpointed_too_under_every_scheduler() {
    for scheduler in SchedulerConfig::NAMES {
        let mut config = device(true);
        config.map_cache = MapCacheSize::Size(Bytes(8 * 4096));
        config.scheduler = policy(*scheduler);
        let (ssd, _) = serve(&config);
        assert!(ssd.counters().operations(Activity::Checkpoint.program()) > 0);
        // Nothing is changing any more: no more than the last of them wrote, and
        // map pages that were written back meanwhile.
        assert!(to_scan(&ssd) <= 4 * MAP, "{scheduler}: {}", to_scan(&ssd));
    }
}

#[test]
fn a_restored_device_knows_its_checkpoint() {
    let config = device(true);
    let layout: Layout = config.validate().expect("valid");
    let mut image = Vec::new();
    let mut fresh = ready(&config, 1);
    fresh.save(&mut image).expect("memory takes what is written");
    let mut restored = Ssd::new(&layout, 1);
    restored.restore(&mut image.as_slice()).expect("the image was just made");
    assert_eq!(to_scan(&restored), 0);
    assert_eq!(write(&mut restored, 50), write(&mut fresh, 50));
}

/// Writes so many flash pages, one each millisecond, until the power is cut in the
/// middle; what a scan would have to read then, and what recovery says that it read.
fn cut(config: &DeviceConfig, flash_pages: u64, keeps_data: bool) -> (u64, u64) {
    let mut ssd = ready(config, 1);
    if keeps_data {
        ssd.keep_data();
    }
    let mut done = Vec::new();
    for index in 0..flash_pages {
        let at = Time(index * 1_000_000);
        ssd.advance(at, &mut Arena::new(), &mut done);
        let request = request(index, Operation::Write, index * UNITS, UNITS as u32);
        assert_eq!(ssd.submit(at, &request, &mut Arena::new()), Submit::Accepted);
    }
    let at = Time(flash_pages * 1_000_000);
    ssd.advance(at, &mut Arena::new(), &mut done);
    let expected = to_scan(&ssd);
    ssd.cut_power(at, &mut Arena::new());
    ssd.check();
    let Ok(Answer::State(readings)) = ssd.command(at, &Place::default(), &Command::State, &mut Arena::new())
    else {
        panic!("a device answers")
    };
    let read = readings.iter().find(|(name, _)| name == "pages_scanned").expect("a reading").1;
    (expected, read)
}

#[test]
fn recovery_reads_what_is_programmed_in_a_period_and_all_without_checkpoints() {
    for keeps_data in [false, true] {
        for flash_pages in [100, 1_000, 3_000] {
            let (expected, read) = cut(&device(false), flash_pages, keeps_data);
            assert_eq!(read, expected);
            assert!(read >= DATA + flash_pages - 1, "{read}");
            let (expected, read) = cut(&device(true), flash_pages, keeps_data);
            assert_eq!(read, expected);
            assert!(read <= 20 + 2 + 1 + 2, "{read} after {flash_pages}");
        }
    }
}
