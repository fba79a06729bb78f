//! Mutated conversations: whatever a client says, its session ends or goes on, holds no more
//! than is bounded, says no more than it was asked for, and says the same in whatever pieces
//! it was told.
//!
//! Mutations are drawn from a seed, which a failure names; each round of `make soak` tries
//! others. What is worth keeping stands in `tests/found`, in hexadecimal, one conversation a
//! file, and is tried every time.

mod protocol;

use std::path::Path;

use flashkeel_engine::{Holds, Stream};
use flashkeel_serve::nbd::{Closed, Extent, Failure, Kind, Session};
use protocol::*;

/// Seeds tried by a test, and in a round of `make soak`.
const SEEDS: u64 = 3_000;
const SOAKED: u64 = 300_000;
/// A conversation is no longer than this.
const LONGEST: usize = 8192;
/// The longest answer that is not data: a list of exports, or a description.
const LONGEST_ANSWER: usize = 1024;

/// Conversations of every phase.
fn corpus() -> Vec<Vec<u8>> {
    let flags = 3u32.to_be_bytes().to_vec();
    let open = |rest: &[Vec<u8>]| [vec![negotiation()], rest.to_vec()].concat().concat();
    vec![
        [flags.clone(), option(3, b""), option(6, &named("disk")), option(2, b"")].concat(),
        [1u32.to_be_bytes().to_vec(), option(1, b"disk"), request(0, 0, 1, 0, 4096, b"")].concat(),
        [flags, option(8, b""), option(9, &queries("disk", &["base:"])), option(99, &[7; 40])].concat(),
        open(&[request(0, 1, 1, 8192, 4096, &[2; 4096]), request(1, 1, 2, 0, 512, &[3; 512])]),
        open(&[request(0, 0, 1, 0, 4096, b""), request(0, 3, 2, 0, 0, b""), request(0, 2, 3, 0, 0, b"")]),
        open(&[request(0, 4, 1, 0, 1 << 20, b""), request(2, 6, 2, 4096, 1 << 24, b"")]),
        open(&[request(8, 7, 1, 0, 1 << 20, b""), request(0, 7, 2, 1 << 20, 1 << 21, b"")]),
    ]
}

/// What numbers go wrong at, in network order.
const HUGE: [u64; 6] = [0, 1, u64::MAX, u32::MAX as u64, 1 << 31, 1 << 25];

fn mutate(bytes: &mut Vec<u8>, other: &[u8], draws: &mut Stream) {
    let mut at = |len: usize| draws.below(len as u64 + 1) as usize;
    let place = at(bytes.len());
    let end = (place + at(40)).min(bytes.len());
    match at(6) {
        0 if place < bytes.len() => bytes[place] ^= 1 << at(7),
        1 => bytes.truncate(place),
        2 => drop(bytes.drain(place..end)),
        3 => {
            let (from, to) = (at(other.len()), at(other.len()));
            bytes.splice(place..place, other[from.min(to)..from.max(to)].iter().copied());
        }
        4 => {
            let copy = bytes[place..end].to_vec();
            bytes.splice(place..place, copy);
        }
        _ => {
            let number = HUGE[at(HUGE.len() - 1)].to_be_bytes();
            let width = [2, 4, 8][at(2)].min(bytes.len() - place);
            bytes[place..place + width].copy_from_slice(&number[8 - width..]);
        }
    }
    bytes.truncate(LONGEST);
}

/// What a session was asked, what it said, and how it ended.
type Told = (Vec<(u64, Kind)>, Vec<u8>, Option<Closed>);

/// Tells a session something in pieces; whatever it asks is answered at once.
fn told(bytes: &[u8], mut piece: impl FnMut() -> usize) -> Told {
    let mut session = Session::new(export());
    let (mut asked, mut said, mut rest) = (Vec::new(), Vec::new(), bytes);
    let mut data = 0;
    while !rest.is_empty() && session.wants_more() {
        let (now, later) = rest.split_at(piece().clamp(1, rest.len()));
        rest = later;
        session.receive(now);
        let closed = loop {
            let (cookie, kind, from, length) = match session.next_ask() {
                Ok(Some(ask)) => (ask.cookie, ask.kind, ask.from, ask.length),
                Ok(None) => break None,
                Err(closed) => break Some(closed),
            };
            asked.push((cookie, kind));
            let is_inside = from + u64::from(length) <= export().bytes;
            assert!(is_inside && (length > 0 || kind == Kind::Flush), "{kind:?} {from} {length}");
            match kind {
                Kind::Read => {
                    data += length as usize;
                    session.read(cookie, from, &vec![1; length as usize]);
                }
                Kind::Status(_) => session.status(cookie, &[Extent { length, holds: Holds::Data }]),
                Kind::Trim => session.fail(cookie, false, Failure::Io),
                _ => session.done(cookie),
            }
        };
        said.extend_from_slice(session.output());
        session.sent(session.output().len());
        if let Some(closed) = closed {
            assert!(session.next_ask() == Err(closed), "it stays closed");
            return (asked, said, Some(closed));
        }
        assert!(session.inside() == 0);
    }
    let answers = bytes.len() / 16 + 2;
    assert!(said.len() <= data + answers * LONGEST_ANSWER, "answers are bounded by what is asked");
    (asked, said, None)
}

/// However it comes, the same is asked and said.
fn survive(bytes: &[u8], draws: &mut Stream) {
    let whole = told(bytes, || usize::MAX);
    assert!(told(bytes, || 1 + draws.below(64) as usize) == whole, "pieces make a difference");
}

#[test]
fn mutated_conversations_are_survived() {
    let round = std::env::var("FLASHKEEL_SOAK_ROUND").ok().map(|text| text.parse::<u64>().expect("a round"));
    let seeds = round.map_or(0..SEEDS, |round| (round + 1) * SOAKED..(round + 2) * SOAKED);
    let corpus = corpus();
    for seed in seeds {
        let mut draws = Stream::new(seed, "fuzz");
        let mut pick = |len: usize| draws.below(len as u64) as usize;
        let (mut bytes, other) = (corpus[pick(corpus.len())].clone(), &corpus[pick(corpus.len())]);
        for _ in 0..1 + pick(4) {
            mutate(&mut bytes, other, &mut draws);
        }
        let outcome = std::panic::catch_unwind(|| survive(&bytes, &mut Stream::new(seed, "pieces")));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

#[test]
fn what_was_found_is_survived() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found");
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let digits: String = std::fs::read_to_string(&path).unwrap().split_whitespace().collect();
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
        let outcome = std::panic::catch_unwind(|| survive(&bytes, &mut Stream::new(1, "pieces")));
        assert!(outcome.is_ok(), "{}", path.display());
    }
}

#[test]
fn conversations_of_the_corpus_are_served() {
    for (number, bytes) in corpus().iter().enumerate() {
        let (_, said, closed) = told(bytes, || usize::MAX);
        assert!(said.len() > 18 && !matches!(closed, Some(Closed::Fault(_))), "{number}: {closed:?}");
    }
}
