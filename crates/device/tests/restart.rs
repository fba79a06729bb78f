//! Devices that are found again after a restart.

mod support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use flashkeel_device::{BlockId, Cycle, FillPattern, Found, Lpn, Medium, Page, Place, Ppn, Ssd};
use flashkeel_engine::{Arena, Leaf, Operation, Request, Status, Stream, Submit, Time};
use support::{closed_loop, policy, random_pages, request, restarted, settle, tiny};

/// What a lane holds when it is found is known to whoever flushes the fullest.
#[test]
fn a_buffer_that_is_flushed_above_a_watermark_goes_on() {
    for allocation in ["dynamic", "striped"] {
        let mut config = tiny();
        config.allocation = policy(allocation);
        config.buffer.flush = vec![policy("watermark")];
        config.precondition.pattern = FillPattern::None;
        // All that there is room for.
        let mut ssd = restarted(&config, 64, |_| Cycle::default());
        for _ in 0..2 {
            assert_eq!(closed_loop(&mut ssd, 8, random_pages(Operation::Write, 1_000, 500, 1)).len(), 500);
            settle(&mut ssd, &mut Vec::new());
            ssd.check();
            // What is left below the mark stays, as power is cut.
            ssd.cut_power(Time::ZERO, &mut Arena::new());
        }
    }
}

/// A medium in memory.
struct Remembering {
    pages: Arc<Mutex<BTreeMap<u32, Page>>>,
    units_per_block: u32,
}

impl Medium for Remembering {
    fn read(&self, ppn: Ppn) -> Option<Page> {
        Some(self.pages.lock().expect("nobody panics").get(&ppn.0).copied().unwrap_or([0; _]))
    }

    fn matches(&self, ppn: Ppn, page: &Page) -> bool {
        self.read(ppn) == Some(*page)
    }

    fn program(&mut self, ppn: Ppn, _place: Place, page: Option<&Page>) {
        let former = self.pages.lock().expect("nobody panics").insert(ppn.0, *page.unwrap_or(&[0; _]));
        assert!(former.is_none(), "{ppn:?} has not been erased");
    }

    fn copy(&mut self, from: Ppn, to: Ppn, place: Place) {
        let page = self.read(from);
        self.program(to, place, page.as_ref());
    }

    fn hold(&mut self, _entry: u32, _place: Place, _page: Option<&Page>) {}

    fn release(&mut self, _entry: u32) {}

    fn trim(&mut self, _lpn: Lpn, _sequence: u64) {}

    fn erase(&mut self, block: BlockId, _cycle: Cycle) {
        let units = block.0 * self.units_per_block..(block.0 + 1) * self.units_per_block;
        self.pages.lock().expect("nobody panics").retain(|ppn, _| !units.contains(ppn));
    }
}

/// What a read of a page finds, or what a write leaves.
fn served(ssd: &mut Ssd, now: &mut Time, operation: Operation, page: u64, given: &Page) -> Page {
    let (mut data, mut done) = (Arena::new(), Vec::new());
    let payload = data.take(8);
    data.write(payload, 8).expect("a buffer").copy_from_slice(given);
    let request = Request { payload, ..request(page, operation, page, 1) };
    assert_eq!(ssd.submit(*now, &request, &mut data), Submit::Accepted);
    *now = ssd.advance_to_completion(Time::MAX, &mut data, &mut done).expect("it ends");
    assert_eq!(done[0].status, Status::Ok);
    data.read(payload, 8).expect("a buffer").try_into().expect("a page")
}

/// Blocks whose last program is broken off are read out, erased and programmed again.
#[test]
fn pages_that_lie_in_a_medium_outlast_a_power_cut() {
    let mut config = tiny();
    config.precondition.pattern = FillPattern::None;
    let mut ssd = Ssd::new(&config.validate().expect("a device"), 1);
    let shape = ssd.media()[0];
    let found = Found {
        places: vec![None; shape.ppns as usize],
        cycles: vec![Cycle::default(); (shape.ppns / shape.units_per_block) as usize],
        ..Found::default()
    };
    let medium = Remembering { pages: Arc::default(), units_per_block: shape.units_per_block };
    ssd.recover(Time::ZERO, vec![(Box::new(medium), found)]);
    let (mut now, mut random, mut versions) = (Time::ZERO, Stream::new(1, "pages"), vec![0; 1_024]);
    for round in 1..=8 {
        for _ in 0..300 {
            let page = random.below(1_024);
            versions[page as usize] = round;
            served(&mut ssd, &mut now, Operation::Write, page, &[round; _]);
        }
        ssd.cut_power(now, &mut Arena::new());
        ssd.check();
        for (page, &version) in versions.iter().enumerate() {
            assert_eq!(served(&mut ssd, &mut now, Operation::Read, page as u64, &[9; _])[..4], [version; 4]);
        }
    }
}
