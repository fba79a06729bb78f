//! Files that are opened with other settings than those they were made with.

use flashkeel_device::DeviceConfig;
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Operation, Stream};
use flashkeel_store::Refused;

use crate::drives::{self, device};
use crate::film::End;
use crate::world::World;

fn changed(name: &str, change: impl FnOnce(&mut DeviceConfig)) -> DeviceConfig {
    let mut config = device(name);
    change(&mut config);
    config
}

/// With flash pages of another size, and as many in a block that it is as large.
fn of_pages(name: &str, size: u64) -> DeviceConfig {
    changed(name, |config| {
        let units = config.geometry.page_size.0 * u64::from(config.geometry.pages_per_block);
        config.geometry.page_size = Bytes(size);
        config.geometry.pages_per_block = (units / size) as u32;
    })
}

/// A drive with some of its pages written.
fn used(config: &DeviceConfig, random: &mut Stream) -> World<drives::Drive> {
    let mut world = World::of(config);
    for first in (0..world.pages() - 8).step_by(8) {
        world.submit(Operation::Write, first..first + 8, false);
    }
    for _ in 0..300 {
        let page = random.below(world.pages() as u64) as usize;
        world.submit(Operation::Write, page..page + 1, false);
    }
    world.submit(Operation::Trim, 20..30, false);
    world.drain();
    world
}

/// Once another drive was found, or parity that was none, where all numbers were the same.
#[test]
fn settings_under_which_addresses_lie_otherwise_are_refused_with_what_they_follow_from() {
    let partitions = device("partitions");
    let pairs = [
        (&partitions, changed("plain", |config| config.partition_bits = vec![6]), "partition_bits"),
        (&partitions, device("sets"), "sets"),
        (&partitions, device("plain"), "partition_bits"),
        (&device("logical"), of_pages("logical", 16384), "page_size"),
        (&device("logical"), changed("plain", |config| config.geometry.channels = 4), "redundancy"),
        (&device("plain"), device("retiring"), "geometry"),
        (&device("plain"), changed("plain", |config| config.buffer.size = Bytes(64 << 10)), "buffer.size"),
        (
            &device("plain"),
            changed("plain", |config| {
                config.geometry.pages_per_block /= 2;
                config.geometry.blocks_per_plane *= 2;
            }),
            "geometry.pages_per_block",
        ),
        (
            &device("plain"),
            changed("plain", |config| config.logical_capacity = Bytes(1 << 20)),
            "logical_capacity",
        ),
    ];
    for (one, other, key) in pairs {
        for (one, other) in [(one, &other), (&other, one)] {
            let random = &mut Stream::new(1, key);
            let film = used(one, random).film().left(End::Killed, random);
            match drives::open(&film, other) {
                Err(Refused::Unfit(reason)) => assert!(reason.contains(key), "{key}: {reason}"),
                Err(other) => panic!("{key}: {other}"),
                Ok(_) => panic!("{key}: it was taken"),
            }
        }
    }
}

#[test]
fn other_settings_of_the_same_drive_find_what_was_written() {
    let chips = |channels, chips_per_channel, planes_per_chip, blocks_per_plane| {
        changed("plain", |config| {
            config.geometry.channels = channels;
            config.geometry.chips_per_channel = chips_per_channel;
            config.geometry.planes_per_chip = planes_per_chip;
            config.geometry.blocks_per_plane = blocks_per_plane;
        })
    };
    let mut others = vec![chips(4, 1, 1, 28), chips(1, 2, 1, 56), chips(2, 2, 2, 14)];
    others.extend([of_pages("plain", 4096), of_pages("plain", 16384)]);
    let names = ["in flash", "fore", "coalescing", "slc cache", "volatile", "copied back", "wear levelling"];
    others.extend(names.map(device));
    for (case, other) in others.iter().enumerate() {
        for (one, other) in [(&device("plain"), other), (other, &device("plain"))] {
            let random = &mut Stream::new(case as u64, "settings");
            let mut world = used(one, random);
            world.subject.0 = other.clone();
            world.restart(End::PowerLost, random);
            world.live_briefly(random, 10, false);
        }
    }
}
