//! Drives drawn at random from what the device model can do: strangers, on which
//! diagnosis and prediction are tried that must not know a drive beforehand.

use flashkeel_engine::units::{Bytes, Rate};
use flashkeel_engine::{LOGICAL_PAGE_BYTES, Span, Stream};

use crate::config::{DeviceConfig, MapCacheSize};
use crate::flash::{GeometryConfig, SuspensionConfig, TimingConfig};
use crate::front::buffer::{BufferConfig, BufferKind, Rewrite, Trigger};
use crate::front::power::{PowerConfig, idle_sleep::IdleSleep};
use crate::ftl::allocation::AllocationConfig;
use crate::ftl::gc::{
    GcConfig, InvocationConfig, MovementConfig, VictimConfig, invocation, movement, victim,
};
use crate::ftl::settings::{CheckpointConfig, ScrubConfig, WearLevellingConfig};
use crate::ftl::{LPNS_PER_MAP_PAGE, SlcConfig, slc::fold::Fold};
use crate::machine::Delay;
use crate::sched::SchedulerConfig;

/// Logical pages of every volume come in whole periods of the highest bit that may
/// select one, bit 18 of the 512-byte LBA.
const PERIOD_PAGES: u64 = 1 << 16;

/// The drive of this number: always the same, and always one that
/// [`DeviceConfig::validate`] accepts.
///
/// It holds a quarter of a GiB to one GiB, so that steady state and collection come soon.
/// What is drawn, and how often, is ours: no survey of real drives says it.
pub fn stranger(number: u64) -> DeviceConfig {
    let mut random = Stream::new(number, "stranger");
    loop {
        let config = draw(&mut random);
        if config.validate().is_ok() {
            return config;
        }
    }
}

/// Numbers whose logarithms are uniform.
fn spread(random: &mut Stream, low: f64, high: f64) -> f64 {
    low * libm::exp(random.unit() * libm::log(high / low))
}

fn span(random: &mut Stream, low_us: f64, high_us: f64) -> Span {
    Span::from_us(spread(random, low_us, high_us) as u64)
}

/// One of these, each as likely as its weight.
fn one_of<T>(random: &mut Stream, choices: impl IntoIterator<Item = (u64, T)>) -> T {
    let choices: Vec<(u64, T)> = choices.into_iter().collect();
    let mut left = random.below(choices.iter().map(|&(weight, _)| weight).sum());
    for (weight, choice) in choices {
        match left.checked_sub(weight) {
            Some(rest) => left = rest,
            None => return choice,
        }
    }
    unreachable!("the weights cover it")
}

fn draw(random: &mut Stream) -> DeviceConfig {
    let bits = volume_bits(random);
    let volumes = 1u64 << bits.len();
    let chips_per_volume = 1u64 << random.below(4);
    let geometry = geometry(random, volumes * chips_per_volume);
    let timing = timing(random);
    let units = geometry.page_size.0 / LOGICAL_PAGE_BYTES
        * if geometry.multi_plane { u64::from(geometry.planes_per_chip) } else { 1 };
    let lpns = PERIOD_PAGES * random.between(1, 4);
    let gc = gc(random, chips_per_volume);
    let geometry = provisioned(random, geometry, &gc, lpns, volumes);
    let map_bytes = lpns / u64::from(LPNS_PER_MAP_PAGE) * LOGICAL_PAGE_BYTES;
    let slc_cache = slc_cache(random, &timing);
    let (scrub, wear_levelling, checkpoint) = background(random);
    DeviceConfig {
        buffer: buffer(random, volumes, units),
        map_cache: map_cache(random, map_bytes, volumes),
        logical_capacity: Bytes(lpns * LOGICAL_PAGE_BYTES),
        partition_bits: bits,
        allocation: one_of(
            random,
            [
                (7, AllocationConfig::Dynamic(Default::default())),
                (3, AllocationConfig::Striped(Default::default())),
            ],
        ),
        suspension: random
            .chance(0.25)
            .then(|| SuspensionConfig { limit: random.between(1, 10) as u32, ..SuspensionConfig::default() }),
        power: power(random),
        scheduler: one_of(
            random,
            [
                (4, SchedulerConfig::Fifo(Default::default())),
                (1, SchedulerConfig::Priority(Default::default())),
                (1, SchedulerConfig::ReadsFirst(Default::default())),
                (2, SchedulerConfig::Fair(Default::default())),
                (2, SchedulerConfig::Debit(Default::default())),
            ],
        ),
        host_link: random.chance(0.8).then(|| Rate(spread(random, 3e8, 3.5e9) as u64)),
        slc_cache,
        scrub,
        wear_levelling,
        checkpoint,
        geometry,
        timing,
        gc,
        ..DeviceConfig::default()
    }
}

fn volume_bits(random: &mut Stream) -> Vec<u32> {
    let count = one_of(random, [(4, 0), (3, 1), (2, 2), (1, 3)]);
    let mut bits: Vec<u32> = Vec::new();
    while bits.len() < count {
        let bit = random.between(3, 18) as u32;
        if !bits.contains(&bit) {
            bits.push(bit);
        }
    }
    bits.sort_unstable();
    bits
}

/// So many chips; how many blocks they have is decided later.
fn geometry(random: &mut Stream, chips: u64) -> GeometryConfig {
    // At most four chips share a channel.
    let shared = 1 << random.below(3).min(u64::from(chips.trailing_zeros()));
    let planes_per_chip = one_of(random, [(3, 1), (1, 2)]);
    GeometryConfig {
        channels: (chips / shared) as u32,
        chips_per_channel: shared as u32,
        planes_per_chip,
        multi_plane: planes_per_chip > 1 && random.chance(0.5),
        blocks_per_plane: 0,
        pages_per_block: 16 << random.below(4),
        page_size: Bytes(LOGICAL_PAGE_BYTES << random.below(3)),
    }
}

/// With 12 to 60 % more flash than the host sees, and what collection keeps free.
fn provisioned(
    random: &mut Stream,
    geometry: GeometryConfig,
    gc: &GcConfig,
    lpns: u64,
    volumes: u64,
) -> GeometryConfig {
    let planes = u64::from(geometry.channels * geometry.chips_per_channel * geometry.planes_per_chip);
    let block_pages = u64::from(geometry.pages_per_block) * geometry.page_size.0 / LOGICAL_PAGE_BYTES;
    let blocks = spread(random, 1.12, 1.6) * lpns as f64 / (planes * block_pages) as f64;
    let kept = (u64::from(gc.stop_above) * volumes).div_ceil(planes) + 10;
    GeometryConfig { blocks_per_plane: (blocks as u64 + kept) as u32, ..geometry }
}

/// Times of one bit a cell to four, or of a medium that hardly takes longer to write
/// than to read, as an NVM.
fn timing(random: &mut Stream) -> TimingConfig {
    let channel_rate = Rate(spread(random, 2e8, 1.6e9) as u64);
    if random.chance(0.1) {
        return TimingConfig {
            read: vec![span(random, 4.0, 12.0)],
            program: vec![span(random, 8.0, 40.0)],
            erase: Span::from_us(1),
            channel_rate,
        };
    }
    let kinds = one_of(random, [(2, 1), (3, 2), (3, 3), (1, 4)]);
    let read_us = spread(random, 25.0, 45.0) * f64::from(kinds);
    let program_us = spread(random, 200.0, 500.0) * f64::from(kinds);
    // Pages of a cell differ, those read last by a half and more.
    let times = |random: &mut Stream, us: f64, most: f64| -> Vec<Span> {
        let widest = spread(random, 1.0, most);
        let each = |kind| us * (1.0 + (widest - 1.0) * f64::from(kind) / f64::from(kinds.max(2) - 1));
        (0..kinds).map(|kind| Span::from_us(each(kind) as u64)).collect()
    };
    TimingConfig {
        read: times(random, read_us, 1.6),
        program: times(random, program_us, 2.0),
        erase: span(random, 1_500.0, 10_000.0),
        channel_rate,
    }
}

/// Each volume holds 64 KiB to 2 MiB.
fn buffer(random: &mut Stream, volumes: u64, units: u64) -> BufferConfig {
    use Trigger::{Full, Page, Read, Timeout, Watermark};
    let back = || BufferKind::Back(Default::default());
    let fore = || BufferKind::Fore(Default::default());
    let (kind, flush) = one_of(
        random,
        [
            (45, (back(), vec![Full])),
            (10, (back(), vec![Full, Timeout])),
            (6, (back(), vec![Full, Read])),
            (10, (fore(), vec![Full])),
            (12, (fore(), vec![Full, Read])),
            (6, (back(), vec![Page, Timeout])),
            (5, (back(), vec![Watermark, Timeout])),
            (3, (BufferKind::Stripe(Default::default()), vec![Page, Timeout])),
            (3, (BufferKind::None(Default::default()), vec![Page, Timeout])),
        ],
    );
    let coalesces = !matches!(kind, BufferKind::None(_)) && random.chance(0.15);
    let pages = (spread(random, 16.0, 512.0) as u64).max(units);
    BufferConfig {
        kind,
        flush,
        size: Bytes(pages * LOGICAL_PAGE_BYTES * volumes),
        rewrite: if coalesces { Rewrite::Coalesce } else { Rewrite::Append },
        timeout: Some(span(random, 5_000.0, 500_000.0)),
        watermark: spread(random, 0.3, 0.95),
        ..BufferConfig::default()
    }
}

/// Of a map of so many bytes.
fn map_cache(random: &mut Stream, bytes: u64, volumes: u64) -> MapCacheSize {
    if random.chance(0.55) {
        return MapCacheSize::All;
    }
    let share = spread(random, 0.03, 1.0);
    let pages = (bytes as f64 * share) as u64 / LOGICAL_PAGE_BYTES;
    MapCacheSize::Size(Bytes(pages.max(volumes) * LOGICAL_PAGE_BYTES))
}

fn slc_cache(random: &mut Stream, timing: &TimingConfig) -> SlcConfig {
    if random.chance(0.6) {
        return SlcConfig::None(Default::default());
    }
    let slowest = timing.program.iter().copied().max().unwrap_or_default();
    SlcConfig::Fold(Fold {
        size: Bytes((spread(random, 1.0, 64.0) * 1_048_576.0) as u64),
        program: Span((slowest.0 as f64 * spread(random, 0.2, 0.8)) as u64),
        idle_after: span(random, 3_000.0, 200_000.0),
        start_above: 0.7 + 0.3 * random.unit(),
        stop_below: 0.2 + 0.5 * random.unit(),
    })
}

fn power(random: &mut Stream) -> PowerConfig {
    if random.chance(0.55) {
        return PowerConfig::None(Default::default());
    }
    let min = span(random, 200.0, 4_000.0);
    PowerConfig::IdleSleep(IdleSleep {
        after: span(random, 1_000.0, 2_000_000.0),
        wake: Delay { min, max: Span((min.0 as f64 * spread(random, 1.0, 1.6)) as u64) },
    })
}

fn background(random: &mut Stream) -> (ScrubConfig, WearLevellingConfig, CheckpointConfig) {
    let start_above = spread(random, 2_000.0, 100_000.0) as u32;
    let scrub = ScrubConfig {
        enabled: random.chance(0.5),
        start_above,
        stop_below: start_above,
        concurrent_blocks: random.between(1, 4) as u32,
        pages_in_flight: random.between(2, 16) as u32,
    };
    let wear_levelling = WearLevellingConfig {
        enabled: random.chance(0.3),
        threshold: spread(random, 20.0, 1_000.0) as u32,
        ..Default::default()
    };
    let checkpoint = CheckpointConfig {
        enabled: random.chance(0.15),
        period: span(random, 200_000.0, 5_000_000.0),
        ..Default::default()
    };
    (scrub, wear_levelling, checkpoint)
}

fn gc(random: &mut Stream, chips: u64) -> GcConfig {
    let start_below = chips * 2 + random.between(4, 12);
    GcConfig {
        start_below: start_below as u32,
        stop_above: (start_below + random.between(1, chips * 2)) as u32,
        victim: one_of(
            random,
            [
                (4, VictimConfig::Greedy(victim::greedy::Greedy::default())),
                (3, VictimConfig::CostBenefit(Default::default())),
                (1, VictimConfig::Fifo(Default::default())),
                (2, VictimConfig::DChoices(Default::default())),
            ],
        ),
        invocation: one_of(
            random,
            [
                (4, InvocationConfig::Foreground(invocation::foreground::Foreground::default())),
                (3, InvocationConfig::Task(Default::default())),
                (3, InvocationConfig::Deferred(Default::default())),
            ],
        ),
        movement: one_of(
            random,
            [
                (12, MovementConfig::Queued(movement::queued::Queued::default())),
                (1, MovementConfig::ChannelBlocking(Default::default())),
                (1, MovementConfig::SemiPreemptive(Default::default())),
                (1, MovementConfig::PlaneBlocking(Default::default())),
                (1, MovementConfig::PageCopyback(Default::default())),
            ],
        ),
        concurrent_victims: random.between(1, chips) as u32,
        ..GcConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_always_the_same_drive_and_the_family_is_wide() {
        assert_eq!(stranger(7), stranger(7));
        let drives: Vec<DeviceConfig> = (0..200).map(stranger).collect();
        let some = |has: fn(&DeviceConfig) -> bool| {
            let those = drives.iter().filter(|drive| has(drive)).count();
            assert!((2..=198).contains(&those), "{those} of 200");
        };
        some(|drive| drive.partition_bits.len() == 3);
        some(|drive| drive.slc_cache.policy().settings().is_some());
        some(|drive| drive.map_cache == MapCacheSize::All);
        some(|drive| drive.suspension.is_some());
        some(|drive| drive.power.name() == "idle-sleep");
        some(|drive| drive.timing.erase == Span::from_us(1));
        for name in BufferKind::NAMES {
            assert!(drives.iter().any(|drive| drive.buffer.kind.name() == *name), "no buffer {name}");
        }
        for name in VictimConfig::NAMES {
            assert!(drives.iter().any(|drive| drive.gc.victim.name() == *name), "no victim policy {name}");
        }
        for name in SchedulerConfig::NAMES {
            assert!(drives.iter().any(|drive| drive.scheduler.name() == *name), "no scheduler {name}");
        }
    }
}
