//! The protocol, byte by byte: what clients say, and what hostile ones do.

mod protocol;

use flashkeel_serve::nbd::{Closed, Export, Failure, Kind, Session};
use proptest::prelude::*;
use protocol::*;

/// Takes what has gone out of a session.
fn sent(session: &mut Session) -> Vec<u8> {
    let bytes = session.output().to_vec();
    session.sent(bytes.len());
    bytes
}

/// A session that has been negotiated, its answers forgotten.
fn open(export: Export) -> Session {
    let mut session = Session::new(export);
    session.receive(&negotiation());
    assert_eq!(session.next_ask(), Ok(None));
    assert!(session.is_open());
    sent(&mut session);
    session
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// The kinds of the answers to options, and what each carries.
fn answers(mut bytes: &[u8]) -> Vec<(u32, u32, Vec<u8>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(number(&bytes[..8]), 0x0003_E889_0455_65A9);
        let length = number(&bytes[16..20]) as usize;
        let kind = (number(&bytes[8..12]) as u32, number(&bytes[12..16]) as u32);
        found.push((kind.0, kind.1, bytes[20..20 + length].to_vec()));
        bytes = &bytes[20 + length..];
    }
    found
}

#[test]
fn an_export_is_chosen_with_what_it_can_do() {
    let mut session = Session::new(export());
    assert_eq!(sent(&mut session), b"NBDMAGICIHAVEOPT\0\x03");
    session.receive(&negotiation());
    assert_eq!(session.next_ask(), Ok(None));
    let answers = answers(&sent(&mut session));
    let kinds: Vec<_> = answers.iter().map(|(option, reply, _)| (*option, *reply)).collect();
    assert_eq!(kinds, [(8, 1), (10, 4), (10, 1), (7, 3), (7, 3), (7, 1)]);
    let told = &answers[3].2;
    assert_eq!((number(&told[..2]), number(&told[2..10])), (0, 64 * MIB));
    // Flags, flush, FUA, trim, zeroes, no fragments, several connections.
    assert_eq!(number(&told[10..12]), 0b1_1110_1101);
    assert_eq!(answers[4].2[2..], [0u32, 4096, 16384, 32 << 20].map(u32::to_be_bytes).concat()[4..]);
}

#[test]
fn a_client_of_the_first_fixed_newstyle_gets_its_zeroes() {
    let mut session = Session::new(Export { is_read_only: true, ..export() });
    sent(&mut session);
    session.receive(&[&1u32.to_be_bytes()[..], &option(1, b"disk")].concat());
    assert_eq!(session.next_ask(), Ok(None));
    let told = sent(&mut session);
    assert_eq!((told.len(), number(&told[..8])), (8 + 2 + 124, 64 * MIB));
    assert_eq!(number(&told[8..10]), 0b1_0000_0111, "read-only");
    // Simple replies were agreed on, which are never in fragments.
    session.receive(&request(1 << 2, 0, 6, 4096, 4096, b""));
    assert_eq!(session.next_ask(), Ok(None));
    assert_eq!(number(&sent(&mut session)[4..8]), 22);
    session.receive(&request(0, 0, 7, 4096, 4096, b""));
    let ask = session.next_ask().expect("a request").expect("a request");
    assert_eq!((ask.kind, ask.from, ask.length), (Kind::Read, 4096, 4096));
    session.read(7, 4096, &[5; 4096]);
    let told = sent(&mut session);
    assert_eq!((number(&told[..4]), number(&told[4..8]), number(&told[8..16])), (0x6744_6698, 0, 7));
    assert_eq!(told[16..], [5; 4096]);
    session.receive(&request(0, 1, 8, 0, 4096, &[1; 4096]));
    assert_eq!(session.next_ask(), Ok(None), "it takes no writes");
    assert_eq!(number(&sent(&mut session)[4..8]), 1);
}

#[test]
fn options_are_refused_one_by_one_and_others_go_on() {
    let asked = [
        (option(3, b""), vec![(3, 2), (3, 1)]),
        (option(3, b"x"), vec![(3, (1 << 31) + 3)]),
        (option(5, b""), vec![(5, (1 << 31) + 1)]),
        (option(99, &[7; 300]), vec![(99, (1 << 31) + 1)]),
        (option(6, &named("another")), vec![(6, (1 << 31) + 6)]),
        (option(7, b"\0\0\xFF\xFFx"), vec![(7, (1 << 31) + 3)]),
        (option(6, &named("")), vec![(6, 3), (6, 3), (6, 1)]),
        (option(10, &queries("disk", &["base:allocation"])), vec![(10, (1 << 31) + 3)]),
        (option(6, &[0; 20_000]), vec![(6, (1 << 31) + 9)]),
        (option(8, b""), vec![(8, 1)]),
        (option(9, &queries("disk", &[])), vec![(9, 4), (9, 1)]),
        (option(9, &queries("disk", &["base:", "qemu:dirty-bitmap:x"])), vec![(9, 4), (9, 1)]),
        (option(10, &queries("disk", &["qemu:x"])), vec![(10, 1)]),
    ];
    let mut session = Session::new(export());
    session.receive(&3u32.to_be_bytes());
    assert_eq!(session.next_ask(), Ok(None));
    sent(&mut session);
    for (asked, expected) in asked {
        session.receive(&asked);
        assert_eq!(session.next_ask(), Ok(None));
        let kinds: Vec<_> = answers(&sent(&mut session)).iter().map(|each| (each.0, each.1)).collect();
        assert_eq!(kinds, expected);
    }
    session.receive(&option(2, b""));
    assert_eq!(session.next_ask(), Err(Closed::Done));
    assert_eq!(session.next_ask(), Err(Closed::Done), "and is not answered twice");
    assert_eq!(answers(session.output()).len(), 1);
    assert_eq!(answers(session.output())[0].1, 1);
}

#[test]
fn contexts_that_are_asked_for_at_too_great_length_leave_none() {
    let many = ["base:allocation"; 1000];
    let mut session = Session::new(export());
    session.receive(&3u32.to_be_bytes());
    session.receive(&option(8, b""));
    session.receive(&option(10, &queries("disk", &["base:allocation"])));
    session.receive(&option(10, &queries("disk", &many)));
    session.receive(&option(7, &named("disk")));
    assert_eq!(session.next_ask(), Ok(None));
    let kinds: Vec<_> = answers(&sent(&mut session)[18..]).iter().map(|each| (each.0, each.1)).collect();
    assert_eq!(kinds[1..4], [(10, 4), (10, 1), (10, (1 << 31) + 9)]);
    session.receive(&request(0, 7, 1, 0, 4096, b""));
    assert_eq!(session.next_ask(), Ok(None), "no context has been agreed on");
    assert_eq!(number(&sent(&mut session)[20..24]), 22);
}

#[test]
fn requests_are_taken_whole_and_answered_in_any_order() {
    let mut session = open(export());
    session.receive(&request(1, 1, 1, 8192, 4096, &[9; 4096]));
    session.receive(&request(0, 0, 2, 0, 8192, b""));
    session.receive(&request(0, 3, 3, 0, 0, b""));
    session.receive(&request(2, 6, 4, 4096, 64 << 20 >> 1, b""));
    session.receive(&request(8, 7, 5, 0, 1 << 20, b""));
    // Force unit access changes nothing for what changes nothing.
    session.receive(&request(1, 0, 6, 0, 4096, b""));
    session.receive(&request(1, 3, 7, 0, 0, b""));
    session.receive(&request(1, 4, 8, 0, 4096, b""));
    let mut seen = Vec::new();
    while let Some(ask) = session.next_ask().expect("no fault") {
        seen.push((ask.cookie, ask.kind, ask.fua, ask.data.len()));
    }
    let expected = [
        (1, Kind::Write, true, 4096),
        (2, Kind::Read, false, 0),
        (3, Kind::Flush, false, 0),
        (4, Kind::WriteZeroes, false, 0),
        (5, Kind::Status(true), false, 0),
        (6, Kind::Read, false, 0),
        (7, Kind::Flush, false, 0),
        (8, Kind::Trim, true, 0),
    ];
    assert_eq!(seen, expected);
    assert_eq!(session.inside(), 8);
    session.done(3);
    session.read(2, 0, &[3; 8192]);
    session.fail(1, false, Failure::NoSpace);
    let told = sent(&mut session);
    assert_eq!((number(&told[..4]), number(&told[8..16])), (0x6744_6698, 3));
    let read = &told[16..];
    assert_eq!((number(&read[..4]), number(&read[4..6]), number(&read[6..8])), (0x668E_33EF, 1, 1));
    assert_eq!((number(&read[16..20]), number(&read[20..28])), (8 + 8192, 0));
    assert_eq!(number(&told[16 + 28 + 8192 + 4..][..4]), 28);
    assert_eq!(session.inside(), 5);
}

#[test]
fn what_cannot_be_served_is_answered_and_the_next_is_not_disturbed() {
    let mut session = open(export());
    let end = 64 * MIB;
    let refused = [
        (request(0, 0, 1, 512, 4096, b""), 22),
        (request(0, 0, 1, 0, 0, b""), 22),
        (request(0, 0, 1, end, 4096, b""), 22),
        (request(0, 0, 1, u64::MAX - 4095, 4096, b""), 22),
        (request(0, 0, 1, 0, (32 << 20) + 4096, b""), 22),
        (request(1 << 9, 0, 1, 0, 4096, b""), 22),
        (request(0, 1, 1, end - 4096, 8192, &[0; 8192]), 28),
        (request(0, 4, 1, end, 4096, b""), 22),
        (request(0, 99, 1, 0, 4096, b""), 22),
        (request(0, 5, 1, 0, 4096, b""), 22),
    ];
    for (bytes, error) in refused {
        session.receive(&bytes);
        session.receive(&request(0, 3, 2, 0, 0, b""));
        assert_eq!(session.next_ask().expect("no fault").expect("the flush").cookie, 2);
        let told = sent(&mut session);
        let is_structured = number(&told[..4]) == 0x668E_33EF;
        assert_eq!(number(if is_structured { &told[20..24] } else { &told[4..8] }), error);
        session.done(2);
        sent(&mut session);
    }
    assert_eq!(session.inside(), 0);
}

#[test]
fn a_fault_closes() {
    let mut session = open(export());
    session.receive(&[0; 28]);
    assert!(matches!(session.next_ask(), Err(Closed::Fault(_))));
    let mut session = open(export());
    session.receive(&request(0, 1, 1, 0, u32::MAX, b""));
    assert!(matches!(session.next_ask(), Err(Closed::Fault(_))), "too long to be waited for");
    let mut session = open(export());
    session.receive(&request(0, 2, 1, 0, 0, b""));
    assert_eq!(session.next_ask(), Err(Closed::Done));
    let mut session = Session::new(export());
    session.receive(&0u32.to_be_bytes());
    assert!(matches!(session.next_ask(), Err(Closed::Fault(_))), "newstyle, but not fixed");
}

/// Everything that is asked and answered when bytes come in such pieces. Whatever is
/// asked is answered at once.
fn told(bytes: &[u8], pieces: &[usize]) -> (Vec<u64>, Vec<u8>, Option<Closed>) {
    let mut session = Session::new(export());
    let (mut asked, mut out, mut rest) = (Vec::new(), Vec::new(), bytes);
    let mut pieces = pieces.iter().cycle();
    let mut bound = 200 * bytes.len() + 1024;
    while !rest.is_empty() {
        let count = (*pieces.next().expect("a piece")).clamp(1, rest.len());
        session.receive(&rest[..count]);
        rest = &rest[count..];
        loop {
            let (cookie, kind, from, length) = match session.next_ask() {
                Ok(Some(ask)) => (ask.cookie, ask.kind, ask.from, ask.length),
                Ok(None) => break,
                Err(closed) => {
                    out.extend(sent(&mut session));
                    return (asked, out, Some(closed));
                }
            };
            asked.push(cookie);
            match kind {
                Kind::Read => {
                    bound += length as usize;
                    session.read(cookie, from, &vec![1; length as usize]);
                }
                Kind::Status(_) => session.fail(cookie, true, Failure::Io),
                _ => session.done(cookie),
            }
        }
        out.extend(sent(&mut session));
        assert!(out.len() <= bound, "answers are bounded by what is asked");
    }
    (asked, out, None)
}

/// A conversation, whole.
fn conversation() -> Vec<u8> {
    [
        negotiation(),
        request(0, 1, 1, 0, 4096, &[2; 4096]),
        request(0, 0, 2, 0, 4096, b""),
        request(0, 7, 3, 0, 4096, b""),
        request(0, 4, 4, 0, 4096, b""),
        request(0, 9, 5, 0, 4096, b""),
        request(0, 3, 6, 0, 0, b""),
        request(0, 2, 7, 0, 0, b""),
    ]
    .concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn pieces_make_no_difference(pieces in prop::collection::vec(1usize..600, 1..20)) {
        let whole = told(&conversation(), &[usize::MAX]);
        prop_assert_eq!(&whole.0, &[1, 2, 3, 4, 6]);
        prop_assert_eq!(told(&conversation(), &pieces), whole);
    }

    #[test]
    fn whatever_comes_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..600), pieces in prop::collection::vec(1usize..50, 1..5)) {
        told(&bytes, &pieces);
        let begun: Vec<u8> = negotiation().into_iter().chain(bytes).collect();
        told(&begun, &pieces);
    }

    #[test]
    fn bytes_that_are_changed_are_survived(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = conversation();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        told(&bytes, &[64]);
    }
}

#[test]
fn requests_that_cannot_be_served_are_counted() {
    let mut session = open(Export { is_read_only: true, ..export() });
    // Beyond the end, read-only, and unknown.
    let asked = [(0, 1 << 40), (1, 0), (4, 0), (6, 0), (99, 0), (3, 0)];
    for (kind, from) in asked {
        let data = vec![0; if kind == 1 { 4096 } else { 0 }];
        session.receive(&request(0, kind, 1, from, 4096, &data));
    }
    assert_eq!(session.next_ask().map(|ask| ask.map(|ask| ask.kind)), Ok(Some(Kind::Flush)));
    assert_eq!(session.take_refused(), [1, 1, 0, 2, 1]);
    assert_eq!(session.take_refused(), [0; 5]);
}
