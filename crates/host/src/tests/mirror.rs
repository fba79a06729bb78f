//! Mirrors over drives that serve in any order, fail, are pulled and lose power:
//! nothing that was acknowledged is lost, and the copies agree again.

use std::collections::{BTreeMap, BTreeSet};

use flashkeel_engine::units::{Bytes, Rate};
use flashkeel_engine::{
    Answer, Arena, Command, Completion, Filling, Leaf, Limits, Operation, Place, Prediction, Predictor,
    Request, Span, Stack, Status, Stream, Submit, Time,
};

use super::drive::{Drive, PAGES, value_of};
use super::request;
use crate::mirror::acknowledge::AcknowledgeConfig;
use crate::mirror::hedge::HedgeConfig;
use crate::mirror::read::ReadConfig;
use crate::mirror::{Mirror, MirrorParts, MirrorReport, RangeConfig, ResyncConfig};

const PAGE: usize = 4096;

/// Finds about one in ten slow, and its buffer as full as any other that got as much.
#[derive(Clone)]
struct Guess {
    written: u32,
}

impl Predictor for Guess {
    fn predict(&mut self, now: Time, _ahead: &[Request], request: &Request) -> Prediction {
        let is_slow = (now.0 + request.lba.0).is_multiple_of(10);
        Prediction { latency: Span(if is_slow { 4000 } else { 200 }), chance: 0.0, is_slow }
    }

    fn filling(&self, _write: &Request) -> Option<Filling> {
        Some(Filling { pages: self.written % 8, of: 8 })
    }

    fn submitted(&mut self, _now: Time, request: &Request) {
        if request.operation == Operation::Write {
            self.written += request.sectors / 8;
        }
    }

    fn observe(&mut self, _now: Time, _completion: &Completion) {}

    fn cut_power(&mut self, _now: Time) {}
}

/// How a mirror is tried.
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    copies: usize,
    spares: usize,
    is_volatile: bool,
    failing: f64,
    /// Whether copies are pulled.
    are_pulled: bool,
    /// Whether the second is read-only at times.
    refuses: bool,
    has_ranges: bool,
    acknowledge: &'static str,
    hedge: &'static str,
    read: &'static str,
}

/// A page, as the host knows it.
#[derive(Clone, Default)]
struct Page {
    /// What has been written, in order; the number of a write that cannot be found any more is `None`.
    versions: Vec<Option<u64>>,
    /// The newest that was acknowledged, and the newest that survives a power cut.
    acknowledged: usize,
    durable: usize,
}

struct World {
    case: Case,
    stack: Stack<Mirror, Drive>,
    random: Stream,
    data: Arena,
    now: Time,
    pages: Vec<Page>,
    /// Requests inside, with the time of submission, the version that each page gets
    /// or had at least, and whether it was before the last power cut.
    inside: BTreeMap<u64, (Request, Time, Vec<usize>)>,
    next: u64,
    was_cut: bool,
}

/// A policy by its name, or with its settings.
fn axis<T: serde::de::DeserializeOwned>(text: &str) -> T {
    let value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
    serde_json::from_value(value).expect("a policy")
}

impl World {
    fn new(case: Case) -> World {
        let drive = |index: usize| {
            let mut drive = Drive::new(case.seed * 8 + index as u64);
            drive.is_volatile = case.is_volatile;
            // One copy alone fails, so that nothing is lost.
            drive.failing = if index == 1 { case.failing } else { 0.0 };
            drive
        };
        let drives: Vec<Drive> = (0..case.copies + case.spares).map(drive).collect();
        let limits: Vec<Limits> = drives.iter().map(Leaf::limits).collect();
        let predictors =
            drives.iter().map(|_| Box::new(Guess { written: 0 }) as Box<dyn Predictor>).collect();
        let ranges = [RangeConfig { from: Bytes(20 << 12), length: Bytes(24 << 12) }];
        let sets = vec![1; limits.len()];
        let parts = MirrorParts {
            turns: None,
            sets: &sets,
            reader: axis::<ReadConfig>(case.read).policy().build(predictors),
            hedge: axis::<HedgeConfig>(case.hedge).policy().build(),
            acknowledge: axis::<AcknowledgeConfig>(case.acknowledge),
            ranges: if case.has_ranges { &ranges } else { &[] },
            resync: &ResyncConfig {
                rate: Rate(20_000_000_000),
                batch: Bytes(16 << 10),
                region: Bytes(32 << 10),
            },
        };
        let mut mirror = Mirror::new(parts, &limits, case.copies).expect("a mirror");
        mirror.keep_data();
        let stack = Stack::new(mirror, drives);
        let pages = stack.limits().sectors as usize / 8;
        let page = Page { versions: vec![Some(0)], ..Page::default() };
        World {
            case,
            stack,
            random: Stream::new(case.seed, "world"),
            data: Arena::new(),
            now: Time::ZERO,
            pages: vec![page; pages],
            inside: BTreeMap::new(),
            next: 1,
            was_cut: false,
        }
    }

    fn submit(&mut self) {
        let operation = match self.random.below(24) {
            0..10 => Operation::Read,
            10..20 => Operation::Write,
            20 => Operation::WriteZeroes,
            21 => Operation::Trim,
            _ => Operation::Flush,
        };
        let count = self.random.between(1, 5);
        let first = self.random.below(self.pages.len() as u64 - count + 1);
        let id = self.next;
        self.next += 1;
        let mut new = request(id, 0, operation, first, count as u32);
        let is_inside = |(other, ..): &(Request, Time, Vec<usize>)| {
            let end = other.lba.0 + u64::from(other.sectors);
            other.operation.is_change() && other.lba.0 < (first + count) * 8 && first * 8 < end
        };
        if self.case.has_ranges && operation.is_change() && self.inside.values().any(is_inside) {
            // Nobody orders changes of what has no copies.
            return;
        }
        let range = first as usize..(first + count) as usize;
        let mut noted = Vec::new();
        match operation {
            Operation::Flush => {
                (new.sectors, new.lba.0) = (0, 0);
                noted = self.pages.iter().map(|page| page.acknowledged).collect();
            }
            Operation::Read => {
                new.payload = self.data.take(new.sectors);
                self.data.write(new.payload, new.sectors).expect("bytes").fill(0xA5);
                noted = self.pages[range].iter().map(|page| page.acknowledged).collect();
            }
            _ => {
                let value = if operation == Operation::Write { id } else { 0 };
                new.fua = operation == Operation::Write && self.random.chance(0.1);
                if operation == Operation::Write {
                    new.payload = self.data.take(new.sectors);
                    let bytes = self.data.write(new.payload, new.sectors).expect("bytes");
                    bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&id.to_le_bytes()));
                }
                for page in &mut self.pages[range] {
                    page.versions.push(Some(value));
                    noted.push(page.versions.len() - 1);
                }
            }
        }
        self.inside.insert(id, (new, self.now, noted));
        assert_eq!(self.stack.submit(self.now, &new, &mut self.data), Submit::Accepted);
    }

    fn advance(&mut self, to: Time) {
        let mut done = Vec::new();
        self.stack.advance(to, &mut self.data, &mut done);
        self.now = to;
        for completion in done {
            self.end(&completion);
        }
    }

    fn end(&mut self, completion: &Completion) {
        let (request, submitted, noted) = self.inside.remove(&completion.id.0).expect("inside, once");
        assert_eq!(completion.ledger.total(), completion.time.since(submitted), "{:?}", self.case);
        let first = request.lba.0 as usize / 8;
        let range = first..first + request.sectors as usize / 8;
        if completion.status != Status::Ok {
            let is_cut = completion.status == Status::Aborted;
            assert!(is_cut || self.may_fail(), "{:?}: {completion:?} {request:?}", self.case);
            self.data.give_back(request.payload);
            return;
        }
        match request.operation {
            Operation::Flush => {
                for (page, durable) in self.pages.iter_mut().zip(noted) {
                    page.durable = page.durable.max(durable);
                }
            }
            Operation::Read => {
                for (index, (page, least)) in range.zip(noted).enumerate() {
                    let found =
                        value_of(&Request { operation: Operation::Write, ..request }, index, &self.data);
                    let known = &self.pages[page].versions[least..];
                    assert!(
                        known.contains(&Some(found)),
                        "{:?}: page {page} holds {found}, not one of {known:?}",
                        self.case
                    );
                }
            }
            _ => {
                for (page, version) in range.zip(noted) {
                    let page = &mut self.pages[page];
                    page.acknowledged = page.acknowledged.max(version);
                    if request.fua || !self.case.is_volatile {
                        page.durable = page.durable.max(version);
                    }
                }
            }
        }
        self.data.give_back(request.payload);
    }

    /// Whether something may be lost: it had no copy, or was, when power was cut, on
    /// the one alone that fails or is pulled.
    fn may_fail(&self) -> bool {
        let Case { failing, are_pulled, .. } = self.case;
        let is_hasty = self.case.acknowledge == "any" && (failing > 0.0 || are_pulled);
        self.case.has_ranges || is_hasty && self.was_cut
    }

    fn cut_power(&mut self) {
        self.was_cut = true;
        self.stack.cut_power(self.now, &mut self.data);
        let mut done = Vec::new();
        self.stack.advance(self.now, &mut self.data, &mut done);
        done.iter().for_each(|completion| self.end(completion));
        assert!(self.inside.is_empty());
        for page in &mut self.pages {
            page.acknowledged = page.durable;
        }
        // Whatever is found now stays.
        for page in 0..self.pages.len() {
            self.pin(page);
        }
    }

    /// Reads a page after a power cut: it holds what is found until it is written.
    fn pin(&mut self, page: usize) {
        let id = self.next;
        self.next += 1;
        let payload = self.data.take(8);
        let read = Request { payload, ..request(id, 0, Operation::Read, page as u64, 1) };
        assert_eq!(self.stack.submit(self.now, &read, &mut self.data), Submit::Accepted);
        let mut done = Vec::new();
        while done.is_empty() {
            let limit = self.now + Span::from_secs(1);
            self.now = self.stack.advance_to_completion(limit, &mut self.data, &mut done).expect("it ends");
        }
        let found = value_of(&Request { operation: Operation::Write, ..read }, 0, &self.data);
        self.data.give_back(read.payload);
        let known = &mut self.pages[page];
        if done[0].status == Status::Ok {
            let kept = &known.versions[known.durable..];
            assert!(kept.contains(&Some(found)), "{:?}: page {page}: {found} of {kept:?}", self.case);
            *known = Page { versions: vec![Some(found)], ..Page::default() };
        } else {
            assert!(self.may_fail(), "{:?}: {done:?}", self.case);
        }
    }

    /// The second copy takes no more writes, or takes them again.
    fn refuse(&mut self, is_read_only: bool) {
        let command = Command::ReadOnly(is_read_only);
        let answer = self.stack.command(self.now, &Place(vec![1]), &command, &mut self.data);
        assert_eq!(answer, Ok(Answer::Done));
    }

    /// Writes one page, by which a mirror sees that a copy takes writes again.
    fn write_one(&mut self) {
        self.refuse(false);
        let id = self.next;
        self.next += 1;
        let change = request(id, 0, Operation::WriteZeroes, self.pages.len() as u64 - 1, 1);
        let page = self.pages.last_mut().expect("there are some");
        page.versions.push(Some(0));
        self.inside.insert(id, (change, self.now, vec![page.versions.len() - 1]));
        assert_eq!(self.stack.submit(self.now, &change, &mut self.data), Submit::Accepted);
    }

    /// Waits for all that is inside, and until the copies are made to agree.
    fn come_to_rest(&mut self) {
        if self.case.refuses {
            self.write_one();
        }
        let begun = self.now;
        // Copies that were asked second may answer after the host has been.
        while !self.inside.is_empty() || self.stack.next_event().time().is_some() {
            self.advance(self.now + Span(500));
            let patience = Span(2_000_000);
            assert!(self.now < begun + patience, "{:?}: {:?} are left", self.case, self.inside);
        }
        assert_eq!(self.data.taken(), 0, "{:?}", self.case);
        let copied = if self.case.has_ranges { 24 } else { PAGES };
        let present: Vec<&Drive> = {
            let Ok(Answer::State(state)) =
                self.stack.clone().command(self.now, &Place::default(), &Command::State, &mut self.data)
            else {
                panic!("a mirror tells its state")
            };
            let used = self.case.copies + self.case.spares
                - state.iter().find(|(n, _)| n == "spares").unwrap().1 as usize;
            self.stack.children().take(used).filter(|drive| !drive.is_removed).collect()
        };
        assert!(present.len() > 1 || self.case.are_pulled);
        for page in 0..copied {
            let held: BTreeSet<u64> = present.iter().map(|drive| drive.held(page)).collect();
            let is_lost = self.may_fail() && present.iter().any(|drive| drive.bad.contains(&page));
            assert!(held.len() == 1 || is_lost, "{:?}: copies differ at {page}: {held:?}", self.case);
        }
    }
}

fn run(case: Case) -> MirrorReport {
    let mut world = World::new(case);
    let mut pulled = 0;
    for step in 0..1500 {
        let pause = Span(world.random.between(1, 120));
        world.advance(world.now + pause);
        world.submit();
        if world.random.chance(0.004) {
            world.cut_power();
        }
        if case.are_pulled && step % 500 == 300 && pulled + 1 < case.copies + case.spares {
            // The first still there, so that it has been a source.
            let place = Place(vec![pulled]);
            let answer = world.stack.command(world.now, &place, &Command::Remove, &mut world.data);
            assert_eq!(answer, Ok(Answer::Done));
            pulled += 1;
        }
        if case.refuses && world.random.chance(0.02) {
            let is_read_only = world.random.chance(0.5);
            world.refuse(is_read_only);
        }
        if step % 400 == 399 {
            world.come_to_rest();
        }
    }
    world.come_to_rest();
    world.stack.stage().report().clone()
}

#[test]
fn copies_agree_whatever_happens_and_nothing_acknowledged_is_lost() {
    let plain = Case {
        seed: 0,
        copies: 2,
        spares: 0,
        is_volatile: false,
        failing: 0.0,
        are_pulled: false,
        refuses: false,
        has_ranges: false,
        acknowledge: "all",
        hedge: "none",
        read: "shortest-queue",
    };
    let mut seed = 0;
    for acknowledge in AcknowledgeConfig::NAMES {
        for is_volatile in [false, true] {
            for case in [
                plain,
                Case { copies: 3, hedge: "percentile", read: "round-robin", ..plain },
                Case { failing: 0.05, hedge: "percentile", ..plain },
                Case { copies: 3, failing: 0.05, read: "monitor", ..plain },
                Case { has_ranges: true, ..plain },
            ] {
                let mut sums = (0, 0);
                for _ in 0..3 {
                    seed += 1;
                    let report = run(Case { seed, acknowledge, is_volatile, ..case });
                    sums = (sums.0 + report.resynced_bytes, sums.1 + report.hedges_won);
                }
                let (resynced, won) = sums;
                assert!(resynced > 0, "{case:?}, {acknowledge}, {is_volatile}: nothing had to be copied");
                assert_eq!(won > 0, case.hedge == "percentile", "{case:?}, {acknowledge}, {is_volatile}");
            }
        }
    }
}

#[test]
fn copies_agree_with_every_read_choice_and_all_sorts_of_failures() {
    let mut random = Stream::new(0, "cases");
    let mut pick = |below: u64| random.below(below) as usize;
    for seed in 0..120 {
        let is_flawless = pick(3) == 0;
        run(Case {
            seed,
            copies: 2 + pick(2),
            spares: pick(2),
            is_volatile: pick(2) == 1,
            failing: if is_flawless { 0.0 } else { [0.002, 0.02, 0.1, 0.5][pick(4)] },
            are_pulled: is_flawless && pick(2) == 1,
            refuses: !is_flawless && pick(3) == 0,
            has_ranges: false,
            acknowledge: AcknowledgeConfig::NAMES[pick(AcknowledgeConfig::NAMES.len() as u64)],
            hedge: HedgeConfig::NAMES[pick(HedgeConfig::NAMES.len() as u64)],
            read: ReadConfig::NAMES[pick(ReadConfig::NAMES.len() as u64)],
        });
    }
}

#[test]
fn what_copies_get_again_changes_nothing_that_they_hold() {
    let mut rewritten = 0;
    for seed in 0..48 {
        let report = run(Case {
            seed,
            copies: 2 + seed as usize % 2,
            spares: 0,
            is_volatile: seed % 4 > 1,
            failing: if seed % 8 > 3 { 0.05 } else { 0.0 },
            are_pulled: seed % 8 < 2,
            refuses: seed % 8 == 5,
            has_ranges: false,
            acknowledge: AcknowledgeConfig::NAMES[seed as usize % AcknowledgeConfig::NAMES.len()],
            hedge: "none",
            read: r#"{ "policy": "staggered", "again": 1.0 }"#,
        });
        rewritten += report.rewritten_bytes;
    }
    assert!(rewritten > 100 * PAGE as u64, "{rewritten}");
}

#[test]
fn a_spare_stands_in_and_is_rebuilt_while_requests_go_on() {
    for (seed, acknowledge) in (100..).zip(["all", "any", "all", "any"]) {
        let case = Case {
            seed,
            copies: 2,
            spares: 1,
            is_volatile: seed % 4 > 1,
            failing: 0.0,
            are_pulled: true,
            refuses: false,
            has_ranges: false,
            acknowledge,
            hedge: "none",
            read: "shortest-queue",
        };
        assert!(run(case).resynced_bytes >= (PAGES * PAGE) as u64);
    }
}
