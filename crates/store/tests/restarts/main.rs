//! A device over a store, ended at any moment and found again: what was acknowledged
//! outlasts its process, and what was flushed its host.

mod drives;
mod erases;
mod failures;
mod film;
mod keepers;
mod lives;
mod settings;
mod world;

use std::ops::ControlFlow;

use drives::{DEVICES, Drive, device};
use film::End;
use flashkeel_device::DeviceConfig;
use flashkeel_engine::{Holds, Operation, Status, Stream};
use flashkeel_store::{Disk, Refused};
use world::{Subject, World};

/// Restarts of a device of the list.
fn restarts(name: &str, config: &DeviceConfig, seed: u64) {
    World::of(config).live(&mut Stream::new(seed, name), 8, false);
}

/// Rounds of `make soak` try other seeds.
fn seed() -> u64 {
    std::env::var("FLASHKEEL_SOAK_ROUND").ok().and_then(|round| round.parse().ok()).unwrap_or(0)
}

#[test]
fn what_was_acknowledged_outlasts_the_process_and_what_was_flushed_its_host() {
    for name in DEVICES {
        for case in 0..3 {
            restarts(name, &device(name), 100 * seed() + case);
        }
    }
}

#[test]
fn so_it_does_however_soon_the_next_process_ends() {
    for name in DEVICES {
        for case in 0..4 {
            let seed = 100 * seed() + case;
            World::of(&device(name)).live_briefly(&mut Stream::new(seed, name), 20, case % 2 == 0);
        }
    }
}

#[test]
fn so_it_does_while_what_was_written_is_being_synchronised() {
    for name in DEVICES {
        for case in 0..2 {
            let random = &mut Stream::new(100 * seed() + case, name);
            let mut world = World::slow(&device(name));
            world.live(random, 4, false);
            world.live_briefly(random, 10, case == 0);
        }
    }
}

#[test]
fn a_drive_that_begins_full_and_used_is_found_full_with_holes_where_it_was_trimmed() {
    for name in DEVICES {
        let mut world = World::of(&device(name));
        world.submit(Operation::Write, 10..20, false);
        world.submit(Operation::Trim, 15..30, false);
        world.drain();
        let before = world.holds();
        let count = |holds| before.iter().filter(|each| **each == holds).count();
        let counted = [Holds::Data, Holds::Nothing, Holds::Zeros].map(count);
        assert_eq!(counted, [5, 15, world.pages() - 20], "{name}");
        world.restart(End::Killed, &mut Stream::new(1, name));
        assert!(world.holds() == before, "{name}");
    }
}

#[test]
fn reading_a_file_is_told_of_and_can_be_broken_off() {
    let config = device("plain");
    let film = World::of(&config).film().left(End::Killed, &mut Stream::new(1, "watched"));
    let mut told = Vec::new();
    let go_on = &mut |phase, fraction| {
        assert_eq!(phase, "scan");
        told.push(fraction);
        ControlFlow::Continue(())
    };
    assert!(drives::open_watched(&film, &config, go_on).is_ok());
    assert!(told.is_sorted() && told[0] > 0.0 && told[told.len() - 1] == 1.0, "{told:?}");
    let Err(Refused::Failed(error)) =
        drives::open_watched(&film, &config, &mut |_, _| ControlFlow::Break(()))
    else {
        panic!("it goes on");
    };
    assert_eq!(error.kind(), std::io::ErrorKind::Interrupted);
    assert!(drives::open(&film, &config).is_ok());
}

#[test]
fn wear_and_time_go_on_after_a_restart() {
    let mut config = device("plain");
    config.wear = serde_json::from_str(r#"{ "policy": "rated", "rated_cycles": 1000 }"#).expect("a law");
    let mut world = World::of(&config);
    let mut random = Stream::new(3, "wear");
    let mut last = (0.0, world.now());
    for round in 0..6 {
        for _ in 0..300 {
            let first = random.below(world.pages() as u64 - 8) as usize;
            world.submit(Operation::Write, first..first + 8, false);
        }
        world.submit(Operation::Flush, 0..0, false);
        world.drain();
        let before = (world.worn(), world.now());
        let is_closed = round % 2 == 0;
        if is_closed {
            world.close();
        }
        world.end_and_open(End::PowerLost, &mut random);
        let found = (world.worn(), world.now());
        world.end_and_open(End::PowerLost, &mut random);
        assert_eq!((world.worn(), world.now()), found);
        let after = (world.worn(), world.now());
        world.find();
        // An erase is written down once what it rests on is durable.
        let lost = before.0 - after.0;
        assert!(
            if is_closed { lost.abs() < 1e-9 } else { (0.0..64.0).contains(&lost) },
            "{before:?} {after:?}"
        );
        assert!(last.0 < after.0 && last.1 < after.1, "{last:?} {before:?} {after:?}");
        last = after;
    }
}

#[test]
fn a_damaged_page_is_an_error_where_it_lies_and_nowhere_else() {
    let mut world = World::of(&device("plain"));
    let total = world.pages();
    for first in (0..total).step_by(8) {
        world.submit(Operation::Write, first..first + 8, false);
    }
    world.submit(Operation::Flush, 0..0, false);
    world.drain();
    let mut random = Stream::new(1, "rot");
    let mut hit = 0;
    for _ in 0..40 {
        hit += world.rot(&mut random);
    }
    assert!(hit > 0, "some of forty places hold a page");
}

#[test]
fn whatever_rots_costs_no_more_than_itself() {
    for name in DEVICES {
        println!("{name}");
        let case =
            |case| World::of(&device(name)).live(&mut Stream::new(100 * seed() + case, name), 10, true);
        let cases = [case(0), case(1)];
        assert!(cases.iter().any(|&(damaged, _)| damaged > 0), "{name}: nothing has been damaged");
        // Parity may bring all of it back.
        let is_lost = cases.iter().any(|&(_, lost)| lost > 0);
        assert!(is_lost || name.contains("logical"), "{name}: nothing has been lost");
    }
}

#[test]
fn what_is_damaged_in_the_write_buffer_cannot_be_read_until_it_is_written_or_trimmed() {
    for name in DEVICES.into_iter().filter(|name| !["in flash", "fore"].contains(name)) {
        let mut world = World::of(&device(name));
        let random = &mut Stream::new(1, name);
        // What is in flash is older.
        (0..8).for_each(|_| (0..64).for_each(|page| world.submit(Operation::Write, page..page + 1, false)));
        (0..2).for_each(|_| world.submit(Operation::Write, 3..5, false));
        world.drain();
        world.damage(3..5, random);
        let said = world.store.damage().said;
        assert!(
            said.len() == 2 && said.iter().all(|said| said.contains("of a write buffer")),
            "{name}: {said:?}"
        );
        assert!(world.holds()[3..5].iter().all(|holds| *holds == Holds::Data), "{name}");
        // They stay so, whatever else is written.
        (5..64).for_each(|page| world.submit(Operation::Write, page..page + 1, false));
        world.submit(Operation::Read, 3..4, false);
        world.submit(Operation::Flush, 0..0, false);
        world.drain();
        for end in [End::Killed, End::PowerLost, End::Killed] {
            assert_eq!(world.lost(), [3, 4], "{name}");
            world.restart(end, random);
            assert_eq!(world.store.damage().said.len(), 2);
        }
        world.submit(Operation::Trim, 4..5, false);
        world.submit(Operation::Write, 3..4, true);
        world.drain();
        world.restart(End::PowerLost, random);
        world.submit(Operation::Trim, 4..5, true);
        world.submit(Operation::Flush, 0..0, false);
        world.drain();
        world.restart(End::PowerLost, random);
        assert!(world.lost().is_empty() && world.store.damage().said.is_empty(), "{name}");
    }
}

#[test]
fn what_is_not_fit_is_refused_and_left_alone() {
    let world = World::of(&device("plain"));
    let says = |film: &film::Film, config: &DeviceConfig| match drives::open(film, config) {
        Err(Refused::Unfit(reason)) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was taken"),
    };
    let mut random = Stream::new(1, "unfit");
    let plain = device("plain");
    let whole = world.film();
    let ended = |change: &dyn Fn(&film::Film)| {
        let film = whole.left(End::Killed, &mut Stream::new(1, "unfit"));
        change(&film);
        film
    };
    let truncated = ended(&|film| film.truncate(1 << 20));
    assert!(says(&truncated, &plain).contains("truncated"));
    let short = ended(&|film| film.truncate(100));
    assert!(says(&short, &plain).contains("something else"));
    let foreign = film::Film::of_zeros(1 << 22);
    assert!(says(&foreign, &plain).contains("something else"));
    let header = ended(&|film| film.flip(40));
    assert!(says(&header, &plain).contains("damaged"));
    let place = world.sections_start() + 5;
    let record = ended(&|film| film.flip(place));
    assert!(says(&record, &plain).contains("damaged"));
    let mut other = plain.clone();
    other.geometry.blocks_per_plane *= 2;
    assert!(says(&whole.left(End::Killed, &mut random), &other).contains("another drive"));
}

#[test]
fn what_was_lost_beside_the_pages_is_refused_wherever_it_lay() {
    for name in ["plain", "logical", "partitions"] {
        let (config, random) = (device(name), &mut Stream::new(1, name));
        let mut world = World::of(&config);
        for _ in 0..600 {
            let page = random.below(world.pages() as u64 - 4) as usize;
            let operation = if random.below(8) == 0 { Operation::Trim } else { Operation::Write };
            world.submit(operation, page..page + 4, false);
        }
        world.drain();
        world.close();
        let records = world.records();
        assert!(records.len() > 8, "{name}");
        for place in records {
            let film = world.film().left(End::Killed, random);
            film.lose(place);
            let before = film.block(place);
            match drives::open(&film, &config) {
                Err(Refused::Unfit(said)) => assert!(said.contains("damaged"), "{name}: {said}"),
                Err(other) => panic!("{name}: {other}"),
                Ok(_) => panic!("{name}: without what lay at byte {place} it is taken"),
            }
            assert!(film.block(place) == before, "it is left as it is");
        }
    }
}

#[test]
fn what_was_broken_off_stays_in_a_file_that_is_refused() {
    let config = device("partitions");
    for case in 0..10 {
        let random = &mut Stream::new(case, "refused");
        let mut world = World::of(&config);
        (0..64).for_each(|page| world.submit(Operation::Write, page..page + 1, false));
        world.drain();
        let film = world.film().left(End::PowerLost, random);
        // The first record of the second section.
        film.flip(world.store.pages_at(0).end + 5);
        let all = |film: &film::Film| {
            let mut bytes = vec![0; film.bytes().expect("a length") as usize];
            film.read_at(&mut bytes, 0).expect("all of it");
            bytes
        };
        let before = all(&film);
        assert!(matches!(drives::open(&film, &config), Err(Refused::Unfit(_))));
        assert!(all(&film) == before, "case {case}");
    }
}

#[test]
fn parity_that_is_not_right_is_made_right_however_often_power_is_lost_before() {
    for name in ["logical", "sets, logical"] {
        for case in 0..60 {
            let random = &mut Stream::new(100 * seed() + case, name);
            let mut world = World::of(&device(name));
            for _ in 0..1 + random.below(3) {
                let page = random.below(world.pages() as u64) as usize;
                world.submit(Operation::Write, page..page + 1, false);
            }
            world.submit(Operation::Flush, 0..0, false);
            (0..random.below(40)).for_each(|_| world.progress());
            for _ in 0..20 {
                // Whoever takes over loses it, too, in the middle of that.
                let film = world.film().left(End::PowerLost, random);
                film.kill_after(random.below(6) as u32);
                drop(world.subject.find(&film));
                let (ssd, ..) = world.subject.find(&film.left(End::PowerLost, random));
                world.subject.check(&ssd);
            }
        }
    }
}

/// With stripes of three flash pages of data, in one partition or two, all of them written; it is at
/// rest, and its file is whole.
fn filled(sets: u32) -> World<Drive> {
    let mut config = device("sets, logical");
    (config.sets, config.geometry.channels) = (sets, 4 * sets);
    let mut world = World::of(&config);
    for _ in 0..2 {
        for first in (0..world.pages()).step_by(8) {
            world.submit(Operation::Write, first..first + 8, false);
        }
    }
    world.drain();
    world.submit(Operation::Flush, 0..0, false);
    world.drain();
    world.rest();
    world.close();
    world
}

#[test]
fn what_is_damaged_in_flash_is_rebuilt_where_there_is_parity() {
    for sets in [1, 2] {
        let (mut world, random) = (filled(sets), &mut Stream::new(1, "rebuilt"));
        // One of a stripe.
        let damaged: Vec<usize> = (0..world.pages() - 40).step_by(40).collect();
        world.rot_pages(&damaged, random);
        for &page in &damaged {
            // A read of its own, and then those of the rest of its stripe.
            let [rebuilt, read] = [page, page + 20].map(|page| {
                let before = world.now();
                assert_eq!(world.read(page).0, Status::Ok);
                let time = world.now().since(before);
                world.rest();
                time
            });
            assert!(rebuilt.0 * 2 > read.0 * 3, "{rebuilt:?} and {read:?}");
        }
        world.find();
        assert!(world.lost().is_empty());
        assert_eq!(world.store.damage().said.len(), damaged.len(), "it is said once of each");
    }
}

#[test]
fn what_is_damaged_in_flash_is_rebuilt_wherever_it_has_been_moved() {
    for sets in [1, 2] {
        let (mut world, random) = (filled(sets), &mut Stream::new(1, "rebuilt"));
        let damaged: Vec<usize> = (0..world.pages() - 40).step_by(40).collect();
        world.rot_pages(&damaged, random);
        let before = world.rotten_places(&damaged);
        // With what is written beside them.
        for _ in 0..3000 {
            let page = random.below(world.pages() as u64) as usize;
            if !damaged.contains(&page) {
                world.submit(Operation::Write, page..page + 1, false);
            }
        }
        world.drain();
        world.submit(Operation::Flush, 0..0, false);
        world.drain();
        let after = world.rotten_places(&damaged);
        let moved = before.iter().zip(&after).filter(|(before, after)| before != after);
        assert!(moved.count() > damaged.len() / 2);
        world.find();
        assert!(world.lost().is_empty());
    }
}

#[test]
fn what_has_been_rebuilt_is_programmed_again_so_that_more_of_its_stripe_can_be_damaged() {
    for sets in [1, 2] {
        let (mut world, random) = (filled(sets), &mut Stream::new(1, "anew"));
        // In the same place of their flash pages.
        for at in [0, 2] {
            let damaged: Vec<usize> = (at..world.pages()).step_by(48).collect();
            world.rot_pages(&damaged, random);
            for &page in &damaged {
                assert_eq!(world.read(page).0, Status::Ok);
                world.rest();
            }
            assert_eq!(world.store.damage().said.len(), damaged.len(), "the former are whole again");
            assert_eq!(world.device.counters().restored_pages, damaged.len() as u64);
            assert_eq!(world.device.lost_pages(), 0);
        }
        world.submit(Operation::Flush, 0..0, false);
        world.drain();
        world.restart(End::PowerLost, random);
        assert!(world.lost().is_empty() && world.store.damage().said.is_empty());
    }
}

#[test]
fn what_is_damaged_twice_in_a_stripe_is_not_rebuilt() {
    for sets in [1, 2] {
        let mut world = filled(sets);
        // In the same place of their flash pages.
        let damaged: Vec<usize> = (0..world.pages()).step_by(48).flat_map(|page| [page, page + 2]).collect();
        world.rot_pages(&damaged, &mut Stream::new(1, "twice"));
        world.find();
        assert_eq!(world.lost(), damaged);
        world.submit(Operation::Write, 2..3, false);
        world.drain();
        world.submit(Operation::Flush, 0..0, false);
        world.drain();
        world.find();
        assert_eq!(world.lost(), [&damaged[..1], &damaged[2..]].concat());
    }
}
