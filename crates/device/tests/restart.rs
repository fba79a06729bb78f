//! Devices that are found again after a restart.

mod support;

use flashkeel_device::{Cycle, FillPattern};
use flashkeel_engine::{Arena, Leaf, Operation, Time};
use support::{closed_loop, policy, random_pages, restarted, settle, tiny};

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
