//! What is issued at once ends as if it had waited in a queue: devices drawn at random,
//! with the short path and without, complete the same requests at the same times.

use std::ops::ControlFlow;

use flashkeel_engine::{Arena, Completion, Lba, Leaf, Operation, Request, RequestId, Stream, Submit, Time};

use crate::{Ssd, stranger};

const DEVICES: u64 = 24;
const REQUESTS: u64 = 3_000;

/// Requests of one to six pages, and when each is submitted: by themselves, and in bursts.
fn requests(span: u64, random: &mut Stream) -> Vec<(Time, Request)> {
    let mut now = Time::ZERO;
    let mean_gap_ns = 1 << random.between(12, 20);
    let gap = |random: &mut Stream| {
        if random.chance(0.3) { 0 } else { random.below(2 * mean_gap_ns) }
    };
    let request = |id, random: &mut Stream| {
        let operation = match random.below(16) {
            0..8 => Operation::Read,
            8..15 => Operation::Write,
            _ => Operation::Trim,
        };
        let pages = random.between(1, 6);
        Request::new(RequestId(id), operation, Lba(random.below(span - pages) * 8), pages as u32 * 8)
    };
    let one = |id| {
        now = Time(now.0 + gap(random));
        (now, request(id, random))
    };
    (0..REQUESTS).map(one).collect()
}

/// Serves them all.
fn serve(ssd: &mut Ssd, requests: &[(Time, Request)]) -> Vec<Completion> {
    let (mut bytes, mut all) = (Arena::new(), Vec::new());
    for (at, request) in requests {
        while let Some(next) = ssd.next_event().time().filter(|next| next <= at) {
            ssd.advance(next, &mut bytes, &mut all);
        }
        assert_eq!(ssd.submit(*at, request, &mut bytes), Submit::Accepted);
    }
    while all.len() < requests.len() {
        let next = ssd.next_event().time().expect("a device with requests inside has something to do");
        ssd.advance(next, &mut bytes, &mut all);
    }
    all
}

#[test]
fn what_is_issued_at_once_ends_as_if_it_had_been_queued() {
    let mut at_once = 0;
    for number in 0..DEVICES {
        let layout = stranger(number).validate().expect("a stranger is valid");
        let mut short = Ssd::new(&layout, number);
        let _ = short.precondition(&mut |_| ControlFlow::Continue(()));
        let mut long = short.clone();
        long.machine.dispatcher.at_once = None;
        let requests = requests(short.sectors() / 8, &mut Stream::new(number, "short path"));
        let (ours, theirs) = (serve(&mut short, &requests), serve(&mut long, &requests));
        assert_eq!(ours, theirs, "stranger {number}");
        assert_eq!(short.counters(), long.counters(), "stranger {number}");
        at_once += short.machine.dispatcher.at_once.expect("it may be taken");
    }
    assert!(at_once > DEVICES * REQUESTS / 4, "only {at_once} operations were issued at once");
}
