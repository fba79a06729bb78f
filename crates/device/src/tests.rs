//! Policies of a test's own in a device.

use flashkeel_engine::{Arena, Hint, Lba, Leaf, Operation, Request, RequestId, Span, Submit, Time};

use crate::front::throttle::{Passed, Stretch, Throttle};
use crate::{DeviceConfig, Ssd};

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
