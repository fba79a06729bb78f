//! A read of a page that is lost, and a write of it meanwhile.

mod support;

use flashkeel_device::Fault;
use flashkeel_engine::units::Bytes;
use flashkeel_engine::{Arena, Completion, Leaf, Operation, Request, Status, Submit, Time};
use support::{ready, request};

/// What the write brings.
const NEW: [u8; 4096] = [7; 4096];

#[test]
fn a_read_of_what_is_lost_is_no_better_for_a_write_that_comes_meanwhile() {
    let mut config = support::exact();
    config.geometry.page_size = Bytes(4096);
    config.logical_capacity = Bytes(1 << 20);
    let mut ends = [0, 0];
    for delay in (0..80).map(|step| step * 1_000) {
        let (mut ssd, mut data) = (ready(&config, 3), Arena::new());
        ssd.keep_data();
        // Page 0 is lost, and page 1 lies on another chip.
        ssd.fail(Time::ZERO, Fault::Chip(0)).expect("the chip exists");
        let (read, written) = (data.take(16), data.take(8));
        data.write(written, 8).expect("a buffer").copy_from_slice(&NEW);
        let first = Request { payload: read, ..request(0, Operation::Read, 0, 2) };
        assert_eq!(ssd.submit(Time::ZERO, &first, &mut data), Submit::Accepted);
        let mut done: Vec<Completion> = Vec::new();
        ssd.advance(Time(delay), &mut data, &mut done);
        let second = Request { payload: written, ..request(1, Operation::Write, 0, 1) };
        assert_eq!(ssd.submit(Time(delay), &second, &mut data), Submit::Accepted);
        while done.iter().all(|completion| completion.id.0 != 0) {
            let next = ssd.next_event().time().expect("the read ends");
            ssd.advance(next, &mut data, &mut done);
        }
        let end = done.iter().find(|completion| completion.id.0 == 0).expect("just seen").status;
        let is_new = data.read(read, 8) == Some(&NEW[..]);
        assert_eq!(end, if is_new { Status::Ok } else { Status::MediaError }, "written after {delay} ns");
        ends[usize::from(is_new)] += 1;
    }
    assert!(ends[0] > 0, "{ends:?}");
}
