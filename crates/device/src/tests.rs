//! What can be seen only from within: policies of a test's own in a device, functions
//! compiled twice, and ways that are the same but longer.

mod missing_blocks;
mod short_path;

use flashkeel_engine::{Arena, Hint, Lba, Leaf, Operation, Request, RequestId, Span, Submit, Time};

use crate::front::throttle::{Passed, Stretch, Throttle};
use crate::{DeviceConfig, Ssd, processor};

/// Holds what is of one class.
#[derive(Clone)]
struct OfClass(Hint, Span);

impl Throttle for OfClass {
    fn delay(&mut self, _now: Time, _bytes: u64, hint: Hint) -> Span {
        if hint == self.0 { self.1 } else { Span::ZERO }
    }

    fn stretch(&mut self, stretch: &Stretch, _tell: &mut dyn FnMut(f64, f64)) -> Passed {
        stretch.pass(stretch.gap_ns)
    }
}

#[test]
fn a_throttle_may_go_by_the_hint() {
    let mut ssd = Ssd::new(&DeviceConfig::default().validate().expect("a device"), 1);
    ssd.throttle = Some(Box::new(OfClass(Hint(3), Span::from_ms(70))));
    let mut data = Arena::new();
    for id in 0..4u16 {
        let write = Request::new(RequestId(id.into()), Operation::Write, Lba(u64::from(id) * 8), 8);
        let request = Request { hint: Hint(id), ..write };
        assert_eq!(ssd.submit(Time(0), &request, &mut data), Submit::Accepted);
    }
    let mut done = Vec::new();
    ssd.advance(Time(0) + Span::from_ms(60), &mut data, &mut done);
    let mut early: Vec<u64> = done.iter().map(|end| end.id.0).collect();
    early.sort_unstable();
    assert_eq!(early, [0, 1, 2], "the one of class 3 is held");
    ssd.advance(Time(0) + Span::from_ms(80), &mut data, &mut done);
    assert_eq!(done.len(), 4);
}

#[test]
fn reads_of_a_rebuild_take_what_their_pages_take() {
    let config: DeviceConfig =
        serde_json::from_value(serde_json::json!({ "timing": { "read": ["45us", "60us", "75us"] } }))
            .expect("a device");
    let ssd = Ssd::new(&config.validate().expect("a device that has room"), 1);
    let transfer = ssd.machine.dispatcher.timing().transfer(2);
    assert_eq!(ssd.time_of_reads(0, &[1, 2, 5], 2).0, 210_000 + 3 * transfer.0);
}

/// A device in its steady state, after writes that keep collection busy, and how often it
/// has come by a copy for AVX2.
fn written() -> (Vec<u8>, String, u64) {
    let config: DeviceConfig = serde_json::from_value(serde_json::json!({
        "geometry": {
            "channels": 2, "chips_per_channel": 2, "planes_per_chip": 1, "blocks_per_plane": 200,
            "pages_per_block": 16, "page_size": "4KiB",
        },
        "logical_capacity": "38MiB",
        "map_cache": "all",
        "buffer": { "size": "256KiB" },
        "gc": { "start_below": 40, "stop_above": 48 },
    }))
    .expect("a device");
    let mut ssd = Ssd::new(&config.validate().expect("a device that has room"), 1);
    processor::copies::taken();
    let _ = ssd.precondition(&mut |_| std::ops::ControlFlow::Continue(()));
    let mut image = Vec::new();
    ssd.save(&mut image).expect("memory takes what is written");
    let mut data = Arena::new();
    for number in 0..3000 {
        let now = Time(number * 400_000);
        ssd.advance(now, &mut data, &mut Vec::new());
        let page = number * 7919 % (ssd.sectors() / 8);
        let _ =
            ssd.submit(now, &Request::new(RequestId(number), Operation::Write, Lba(page * 8), 8), &mut data);
    }
    (image, format!("{:?}", ssd.counters()), processor::copies::taken())
}

#[test]
fn both_copies_do_the_same() {
    let (image, counters, by_wide) = written();
    let (portable_image, portable_counters, none) = processor::copies::portably(written);
    assert!(image == portable_image);
    assert_eq!(counters, portable_counters);
    assert_eq!(none, 0);
    #[cfg(target_arch = "x86_64")]
    assert_eq!(by_wide > 0, processor::is_wide());
    let _ = by_wide;
}
