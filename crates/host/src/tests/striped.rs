//! Requests that go to several devices: where their parts lie, and which hurry.

use flashkeel_engine::{
    Arena, Completion, Durable, Lba, Leaf, Ledger, Limits, Operation, Request, RequestId, Span, Stack,
    Status, Stream, Submit, Time, Wake,
};
use serde_json::json;

use super::request;
use crate::urgency::UrgencyConfig;
use crate::volume::{VolumeConfig, VolumeManager};

const LIMITS: Limits =
    Limits { sectors: 1 << 16, block_sectors: 8, preferred_sectors: 8, durable: Durable::Flushed };

/// Takes as long for each request as the test says, however many there are.
#[derive(Default)]
struct Steady {
    hurried: Span,
    unhurried: Span,
    inside: Vec<(Time, RequestId)>,
    asked: Vec<Request>,
}

impl Leaf for Steady {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        let takes = if request.is_unhurried { self.unhurried } else { self.hurried };
        self.inside.push((now + takes, request.id));
        self.asked.push(*request);
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        self.inside.iter().map(|(time, _)| *time).min().into()
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, completions: &mut Vec<Completion>) {
        self.inside.sort();
        while let Some(&(time, id)) = self.inside.first().filter(|(time, _)| *time <= now) {
            self.inside.remove(0);
            completions.push(Completion { id, time, status: Status::Ok, ledger: Ledger::ZERO });
        }
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {
        self.inside.clear();
    }
}

/// Two devices that take so many microseconds for what hurries, and what does not.
fn over(urgency: &serde_json::Value, times_us: [[u64; 2]; 2]) -> Stack<VolumeManager, Steady> {
    let urgency: UrgencyConfig = serde_json::from_value(urgency.clone()).expect("settings");
    let urgency = urgency.policy().build(2).expect("two devices");
    let volumes: VolumeConfig =
        serde_json::from_value(json!({ "policy": "striped", "chunk": "8KiB" })).expect("settings");
    let volumes = volumes.policy().build(&[LIMITS.sectors; 2], 1).expect("volumes");
    let devices = times_us.map(|[hurried, unhurried]| Steady {
        hurried: Span::from_us(hurried),
        unhurried: Span::from_us(unhurried),
        ..Steady::default()
    });
    Stack::new(VolumeManager::new(volumes, urgency, &[LIMITS; 2], 1), devices.into())
}

/// Asks so many requests of four pages, on both devices, one after the other; returns how
/// many of their parts on each did not hurry.
fn ask(stack: &mut Stack<VolumeManager, Steady>, now: &mut Time, count: u64) -> Vec<usize> {
    let before: Vec<usize> = stack.children().map(|device| device.asked.len()).collect();
    let mut done = Vec::new();
    for id in 0..count {
        let request = request(id, 0, Operation::Read, id % 100 * 4, 4);
        assert_eq!(stack.submit(*now, &request, &mut Arena::new()), Submit::Accepted);
        while let Some(time) = stack.next_event().time() {
            *now = time;
            stack.advance(time, &mut Arena::new(), &mut done);
        }
    }
    assert_eq!(done.len() as u64, count, "each ends once");
    let parts = stack.children().zip(before);
    parts.map(|(device, from)| device.asked[from..].iter().filter(|part| part.is_unhurried).count()).collect()
}

#[test]
fn every_sector_has_a_place_of_its_own_and_runs_end_with_chunks() {
    for (sizes, chunk_kib, volumes) in [(vec![100, 64, 81], 8, 1), (vec![64, 64], 12, 3), (vec![640], 4, 2)] {
        let config = json!({ "policy": "striped", "chunk": format!("{chunk_kib}KiB") });
        let config: VolumeConfig = serde_json::from_value(config).expect("settings");
        let striped = config.policy().build(&sizes, volumes).expect("it fits");
        let mut seen = std::collections::BTreeSet::new();
        for volume in 0..volumes {
            let mut lba = 0;
            while lba < striped.sectors() {
                let place = striped.place(volume, Lba(lba));
                assert!(place.run >= 1 && place.run <= chunk_kib * 2 && lba + place.run <= striped.sectors());
                for step in 0..place.run {
                    let each = striped.place(volume, Lba(lba + step));
                    assert_eq!((each.device, each.lba.0), (place.device, place.lba.0 + step));
                    assert!(each.lba.0 < sizes[each.device], "it lies on the device");
                    assert!(seen.insert((each.device, each.lba)), "nothing else lies there");
                }
                lba += place.run;
            }
        }
        assert_eq!(seen.len() as u64, striped.sectors() * volumes as u64);
    }
}

#[test]
fn fixed_spares_the_devices_that_are_named_where_another_has_a_part() {
    let mut stack = over(&json!({ "policy": "fixed", "quick": [1] }), [[100, 100], [10, 10]]);
    assert_eq!(ask(&mut stack, &mut Time(0), 50), [0, 50]);
    // One within a chunk goes to one device, and hurries there.
    let alone = request(99, 0, Operation::Read, 2, 1);
    assert_eq!(stack.submit(Time(1 << 40), &alone, &mut Arena::new()), Submit::Accepted);
    stack.advance(Time(1 << 40), &mut Arena::new(), &mut Vec::new());
    let on_quick = stack.children().nth(1).expect("two");
    assert_eq!((on_quick.asked.len(), on_quick.asked[50].is_unhurried), (51, false));
}

#[test]
fn by_load_spares_what_is_back_before_another_even_so() {
    let by_load = json!("by-load");
    let now = &mut Time(0);
    // The first device is slow, whatever hurries.
    let mut stack = over(&by_load, [[100, 100], [10, 90]]);
    ask(&mut stack, now, 2_000);
    let [slow, quick] = ask(&mut stack, now, 2_000)[..] else { panic!("two devices") };
    assert_eq!(quick, 2_000);
    assert!(slow < 200, "{slow}");

    // It gets loaded: what does not hurry takes longer than the slow one.
    stack.children_mut().nth(1).expect("two").unhurried = Span::from_us(150);
    ask(&mut stack, now, 20_000);
    let [_, loaded] = ask(&mut stack, now, 20_000)[..] else { panic!("two devices") };
    assert!(loaded < 400, "{loaded} of 20,000");

    // And is free again: it is found out.
    stack.children_mut().nth(1).expect("two").unhurried = Span::from_us(50);
    ask(&mut stack, now, 20_000);
    assert_eq!(ask(&mut stack, now, 1_000)[1], 1_000);
}

#[test]
fn by_load_spares_few_parts_of_devices_that_are_alike() {
    let mut stack = over(&json!("by-load"), [[50, 50], [50, 50]]);
    // Which of them ends a request is a matter of chance.
    let mut random = Stream::new(3, "alike");
    let (mut spared, now) = ([0, 0], &mut Time(0));
    for _ in 0..20_000 {
        for device in stack.children_mut() {
            let takes = Span::from_us(20 + random.below(60));
            (device.hurried, device.unhurried) = (takes, takes);
        }
        let each = ask(&mut stack, now, 1);
        spared = [spared[0] + each[0], spared[1] + each[1]];
    }
    assert!(spared.iter().all(|&spared| spared < 1_000), "{spared:?} of 20,000");
}
