//! The tier against a plain map: nothing is lost, whatever the order in which
//! the devices serve and acknowledge.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{
    Arena, Cause, Completion, Durable, FoundPages, Keeper, Keeping, LOGICAL_PAGE_BYTES, Ledger, Limits,
    Operation, Outbox, PageBytes, Request, Span, Stage, Status, Stream, Submit, Time,
};

use super::request;
use crate::tier::admission::AdmissionConfig;
use crate::tier::budget::Ratings;
use crate::tier::eviction::{self, EvictionConfig};
use crate::tier::overflow::OverflowConfig;
use crate::tier::placement::Placement;
use crate::tier::writeback::periodic::Periodic;
use crate::tier::writeback::{Happened, View, Writeback, WritebackConfig};
use crate::tier::{Plan, Tier};

const PAGES: u64 = 40;
pub(super) const FRAMES: u64 = 16;
pub(super) const SSD: usize = 0;
pub(super) const NVM: usize = 1;

/// Sends writes to the NVM by chance.
#[derive(Clone)]
pub(super) struct Coin(pub Stream, pub f64);

impl Placement for Coin {
    fn takes(&mut self, _now: Time, _write: &Request) -> bool {
        self.0.chance(self.1)
    }
}

/// Where a request to a device comes from.
#[derive(Clone, Copy)]
enum Origin {
    Host(u64),
    /// The background, which has just read this.
    Background(u64),
}

/// A request at a device. It is served at some time before it ends.
struct Job {
    request: Request,
    origin: Origin,
    /// The host's pages, where it comes from the host.
    pages: Vec<u64>,
    /// What a write carries, page by page; what a read has found.
    data: Vec<u64>,
    is_served: bool,
}

/// A write or zeroing of a page by the host, which is named by the request's number.
#[derive(Clone, Copy)]
struct Written {
    by: u64,
    submitted: Time,
    acknowledged: Time,
}

/// Plays host, router and both devices.
struct World {
    tier: Tier,
    random: Stream,
    now: Time,
    outbox: Outbox,
    stored: [Vec<u64>; 2],
    jobs: [Vec<Job>; 2],
    /// The host's requests in flight, with the time of their submission and,
    /// for reads, what they have found.
    open: BTreeMap<u64, (Request, Time, BTreeMap<u64, u64>)>,
    history: Vec<Vec<Written>>,
    reads_checked: u64,
}

fn pages_of(request: &Request) -> std::ops::Range<u64> {
    let first = request.lba.0 / 8;
    first..first + u64::from(request.sectors) / 8
}

/// A tier of which some parts matter.
fn tier(placement: Coin, lower_pages: u64, period: Span, is_lru: bool) -> Tier {
    Tier::new(plan(placement, lower_pages, period, is_lru))
}

pub(super) fn plan(placement: Coin, lower_pages: u64, period: Span, is_lru: bool) -> Plan {
    let limits = |pages: u64| Limits {
        sectors: pages * 8,
        block_sectors: 8,
        preferred_sectors: 8,
        durable: Durable::Acknowledged,
    };
    let lru = EvictionConfig::Lru(eviction::lru::Lru::default());
    let eviction = if is_lru { lru } else { EvictionConfig::default() };
    Plan {
        lower: limits(lower_pages),
        upper: limits(FRAMES),
        placement: Box::new(placement),
        takes_any: true,
        admission: AdmissionConfig::default().policy().build(),
        fills: false,
        eviction: eviction.policy().build(),
        demotes: false,
        writeback: WritebackConfig::Periodic(Periodic { period, batch: Bytes(16 << 10) }).policy().build(),
        ratings: Ratings::default(),
        overflow: OverflowConfig::default(),
        journal: false,
        kept: None,
    }
}

impl World {
    fn new(seed: u64, nvm_share: f64, is_lru: bool) -> World {
        let placement = Coin(Stream::new(seed, "coin"), nvm_share);
        let fresh = Written { by: 0, submitted: Time::ZERO, acknowledged: Time::ZERO };
        World {
            tier: tier(placement, PAGES, Span(40), is_lru),
            random: Stream::new(seed, "world"),
            now: Time(1),
            outbox: Outbox::default(),
            stored: [vec![0; PAGES as usize], vec![0; FRAMES as usize]],
            jobs: [Vec::new(), Vec::new()],
            open: BTreeMap::new(),
            history: vec![vec![fresh]; PAGES as usize],
            reads_checked: 0,
        }
    }

    fn submit(&mut self, id: u64) {
        let operation = match self.random.below(20) {
            0..9 => Operation::Read,
            9..18 => Operation::Write,
            _ => Operation::WriteZeroes,
        };
        let pages = self.random.between(1, 4);
        let request = request(id, 0, operation, self.random.below(PAGES - pages + 1), pages as u32);
        if operation != Operation::Read {
            let written = Written { by: id, submitted: self.now, acknowledged: Time::MAX };
            pages_of(&request).for_each(|page| self.history[page as usize].push(written));
        }
        self.open.insert(id, (request, self.now, BTreeMap::new()));
        assert_eq!(
            self.tier.submit(self.now, &request, &mut Arena::new(), &mut self.outbox),
            Submit::Accepted
        );
        self.route(Origin::Host(id));
    }

    /// Takes up what the tier wants done. The parts of a host's request come in
    /// the order of its pages.
    fn route(&mut self, origin: Origin) {
        let mut next_page = match origin {
            Origin::Host(id) => self.open[&id].0.lba.0 / 8,
            Origin::Background(_) => 0,
        };
        for (child, request) in std::mem::take(&mut self.outbox.requests) {
            let origin = match origin {
                Origin::Host(id) if !self.is_of(id, next_page, &request) => Origin::Background(0),
                origin => origin,
            };
            let count = pages_of(&request).count() as u64;
            let pages = (next_page..next_page + count).collect();
            if matches!(origin, Origin::Host(_)) {
                next_page += count;
            }
            let data = match (request.operation, origin) {
                (Operation::Read, _) => Vec::new(),
                (_, Origin::Host(id)) => vec![id; count as usize],
                (_, Origin::Background(data)) => {
                    assert_eq!((child, count), (SSD, 1), "the background writes pages to the SSD");
                    vec![data]
                }
            };
            self.jobs[child].push(Job { request, origin, pages, data, is_served: false });
        }
        for completion in std::mem::take(&mut self.outbox.completions) {
            assert_eq!(completion.ledger.total(), completion.time.since(self.open[&completion.id.0].1));
            self.end(completion.id.0);
        }
    }

    /// Whether what the tier wants done when it gets a request of the host is part of
    /// that, the next of which is a page; the background may take up something too.
    fn is_of(&self, id: u64, next_page: u64, request: &Request) -> bool {
        let whole = &self.open[&id].0;
        next_page < pages_of(whole).end && request.operation == whole.operation
    }

    /// A request of the host has ended.
    fn end(&mut self, id: u64) {
        let (request, submitted, found) = self.open.remove(&id).expect("a request ends once");
        for page in pages_of(&request) {
            if request.operation == Operation::Read {
                self.check(page, found[&page], submitted);
                self.reads_checked += 1;
            } else {
                let written = self.history[page as usize].iter_mut().find(|written| written.by == id);
                written.expect("the write was noted").acknowledged = self.now;
            }
        }
    }

    /// A read that began at `since` has found the data of write `by`: no other
    /// write may lie wholly between the two.
    fn check(&self, page: u64, by: u64, since: Time) {
        let history = &self.history[page as usize];
        let found = history.iter().find(|written| written.by == by).expect("somebody wrote it");
        let newer = history.iter().find(|w| w.submitted > found.acknowledged && w.acknowledged < since);
        assert!(
            newer.is_none(),
            "page {page} holds write {by}, but write {} was acknowledged since",
            newer.map_or(0, |newer| newer.by)
        );
    }

    fn serve(&mut self, child: usize, index: usize) {
        let job = &mut self.jobs[child][index];
        if std::mem::replace(&mut job.is_served, true) {
            return;
        }
        for (offset, place) in pages_of(&job.request).enumerate() {
            match job.request.operation {
                Operation::Read => job.data.push(self.stored[child][place as usize]),
                _ => self.stored[child][place as usize] = job.data[offset],
            }
        }
    }

    fn finish(&mut self, child: usize, index: usize) {
        self.serve(child, index);
        let job = self.jobs[child].swap_remove(index);
        if let (Origin::Host(id), Operation::Read) = (job.origin, job.request.operation) {
            let (_, _, found) = self.open.get_mut(&id).expect("the read is in flight");
            found.extend(job.pages.iter().copied().zip(job.data.iter().copied()));
        }
        let mut completion =
            Completion { id: job.request.id, time: self.now, status: Status::Ok, ledger: Ledger::ZERO };
        let (data, outbox) = (&mut Arena::new(), &mut self.outbox);
        if self.tier.completed(self.now, child, &mut completion, data, outbox) {
            self.outbox.completions.push(completion);
        }
        self.route(Origin::Background(job.data[0]));
    }

    /// Power is cut: of what the devices had not ended, they may have served some.
    fn cut_power(&mut self) {
        for child in [SSD, NVM] {
            for index in 0..self.jobs[child].len() {
                if self.random.chance(0.5) {
                    self.serve(child, index);
                }
            }
            self.jobs[child].clear();
        }
        self.tier.cut_power(self.now, &mut Arena::new(), &mut self.outbox);
        assert!(self.outbox.requests.is_empty());
        for completion in std::mem::take(&mut self.outbox.completions) {
            let open = self.open.remove(&completion.id.0);
            let (_, submitted, _) = open.expect("a request ends once");
            assert_eq!((completion.status, completion.time), (Status::Aborted, self.now));
            assert_eq!(completion.ledger.total(), completion.time.since(submitted));
        }
        assert!(self.open.is_empty(), "every request ends");
    }

    /// Lets time pass.
    fn tick(&mut self) {
        self.now += Span(1);
        while let Some(due) = self.tier.next_event().time().filter(|&due| due <= self.now) {
            assert_eq!(due, self.now, "timers lie ahead");
            self.tier.advance(due, &mut Arena::new(), &mut self.outbox);
            self.route(Origin::Background(0));
        }
    }

    /// Lets a device serve or end something.
    fn step(&mut self) {
        self.tick();
        let child = if self.random.chance(0.5) { SSD } else { NVM };
        let jobs = self.jobs[child].len() as u64;
        if jobs == 0 {
            return;
        }
        let index = self.random.below(jobs) as usize;
        if self.random.chance(0.5) {
            self.serve(child, index);
        } else {
            self.finish(child, index);
        }
    }
}

#[test]
fn nothing_is_lost_and_reads_find_the_newest_copy() {
    let cases = [(1, 0.5), (2, 1.0), (3, 0.9), (4, 0.1), (5, 0.7)];
    for ((seed, nvm_share), is_lru) in cases.into_iter().flat_map(|case| [(case, false), (case, true)]) {
        let mut world = World::new(seed, nvm_share, is_lru);
        for id in 1..=6_000 {
            while world.open.len() >= 6 || world.random.chance(0.6) {
                world.step();
            }
            world.tick();
            world.submit(id);
            if world.random.chance(0.003) {
                world.cut_power();
            }
        }
        for _ in 0..20_000 {
            world.step();
        }
        assert!(world.open.is_empty() && (is_lru || world.tier.upper_pages() == 0));
        assert!(world.reads_checked > 3_000);
        for page in 0..PAGES {
            world.check(page, world.stored[SSD][page as usize], world.now);
        }
        let report = world.tier.report();
        assert!(report.drained_bytes > 0 && report.host_bytes_to_nvm > 0);
        assert!(nvm_share == 1.0 || report.host_bytes_to_ssd > 0);
        assert!(report.pages_read_from_nvm > 0, "{report:?}");
    }
}

/// Counts the pages that are said to miss.
#[derive(Clone)]
struct Heard(Arc<AtomicU64>);

impl Writeback for Heard {
    fn hear(&mut self, _now: Time, happened: Happened) {
        if let Happened::WriteMissed { pages } = happened {
            self.0.fetch_add(pages, Ordering::Relaxed);
        }
    }

    fn wants(&mut self, _now: Time, _view: View) -> u64 {
        0
    }
}

/// Once a write of many pages was one miss, beside evicted pages that were counted one by one.
#[test]
fn writes_miss_by_the_page() {
    let heard = Arc::new(AtomicU64::new(0));
    let coin = Coin(Stream::new(1, "coin"), 1.0);
    let writeback = Box::new(Heard(Arc::clone(&heard)));
    let mut tier = Tier::new(Plan { writeback, ..plan(coin, PAGES, Span::from_secs(1), true) });
    let (mut arena, mut outbox) = (Arena::new(), Outbox::default());
    let missed: Vec<u64> = [(4, 0), (4, 0), (8, 2)]
        .into_iter()
        .enumerate()
        .map(|(id, (pages, first))| {
            let write = request(id as u64, 0, Operation::Write, first, pages);
            let _ = tier.submit(Time(id as u64), &write, &mut arena, &mut outbox);
            serve(&mut tier, Time(id as u64), &mut outbox, Status::Ok);
            heard.load(Ordering::Relaxed)
        })
        .collect();
    assert_eq!(missed, [4, 4, 10]);
}

#[test]
fn a_full_nvm_sends_writes_to_the_ssd() {
    let mut tier = tier(Coin(Stream::new(1, "coin"), 1.0), 100, Span::from_secs(1), false);
    let mut outbox = Outbox::default();
    for id in 0..20 {
        let write = request(id, 0, Operation::Write, id, 1);
        assert_eq!(tier.submit(Time(0), &write, &mut Arena::new(), &mut outbox), Submit::Accepted);
    }
    let children: Vec<usize> = outbox.requests.iter().map(|&(child, _)| child).collect();
    assert_eq!(children, [vec![NVM; 16], vec![SSD; 4]].concat());
    assert_eq!(tier.report().writes_without_room, 4);
    // A page that has a frame is written there again.
    outbox.requests.clear();
    let again = request(20, 0, Operation::Write, 3, 1);
    assert_eq!(tier.submit(Time(0), &again, &mut Arena::new(), &mut outbox), Submit::Accepted);
    assert_eq!(outbox.requests[0].0, NVM);
}

/// Serves what a tier wants done until it wants nothing more; the lower ends writes so.
/// Returns how many it got.
fn serve(tier: &mut Tier, now: Time, outbox: &mut Outbox, status: Status) -> usize {
    let mut writes = 0;
    while !outbox.requests.is_empty() {
        for (child, request) in std::mem::take(&mut outbox.requests) {
            let is_write = (child, request.operation) == (SSD, Operation::Write);
            writes += usize::from(is_write);
            let status = if is_write { status } else { Status::Ok };
            let mut end = Completion { id: request.id, time: now, status, ledger: Ledger::ZERO };
            tier.completed(now, child, &mut end, &mut Arena::new(), outbox);
        }
    }
    writes
}

#[test]
fn what_the_lower_does_not_take_is_not_tried_for_ever() {
    for status in [Status::ReadOnly, Status::NoSpace, Status::Gone] {
        let mut tier = tier(Coin(Stream::new(1, "coin"), 1.0), 100, Span(40), true);
        let (mut outbox, data) = (Outbox::default(), &mut Arena::new());
        for id in 0..6 {
            let _ = tier.submit(Time(1), &request(id, 0, Operation::Write, id, 1), data, &mut outbox);
            assert_eq!(serve(&mut tier, Time(1), &mut outbox, Status::Ok), 0);
        }
        tier.advance(Time(40), data, &mut outbox);
        assert!(serve(&mut tier, Time(40), &mut outbox, status) > 0);
        assert_eq!(tier.next_event().time(), None, "{status:?}");
        // One page with each change, none with a read.
        let _ = tier.submit(Time(90), &request(6, 0, Operation::Read, 0, 1), data, &mut outbox);
        assert_eq!(serve(&mut tier, Time(90), &mut outbox, status), 0);
        for id in 7..9 {
            let _ = tier.submit(Time(90), &request(id, 0, Operation::Write, id, 1), data, &mut outbox);
            assert_eq!(serve(&mut tier, Time(90), &mut outbox, status), 1);
            assert_eq!(tier.next_event().time(), None);
        }
        // It takes writes again, and then all of them.
        let _ = tier.submit(Time(91), &request(9, 0, Operation::Write, 9, 1), data, &mut outbox);
        assert_eq!(serve(&mut tier, Time(91), &mut outbox, Status::Ok), 1);
        assert_eq!(tier.next_event().time(), Some(Time(120)));
        while let Some(due) = tier.next_event().time() {
            tier.advance(due, data, &mut outbox);
            serve(&mut tier, due, &mut outbox, Status::Ok);
        }
        let drained = tier.report().drained_bytes / LOGICAL_PAGE_BYTES;
        assert_eq!(drained, 9, "all that was written");
    }
}

#[test]
fn a_request_that_waits_for_the_lower_is_the_lower_s() {
    let mut tier = tier(Coin(Stream::new(1, "coin"), 1.0), 100, Span::from_secs(1), true);
    let (mut outbox, data) = (Outbox::default(), &mut Arena::new());
    // Pages 0 and 2 are in the upper: of four pages two each, and page 2 alone.
    let asked = [
        (Operation::Write, 0, 1),
        (Operation::Write, 2, 1),
        (Operation::Read, 0, 4),
        (Operation::Read, 2, 1),
    ];
    for (id, (operation, page, pages)) in asked.into_iter().enumerate() {
        let _ = tier.submit(Time(0), &request(id as u64, 0, operation, page, pages), data, &mut outbox);
        for (child, request) in std::mem::take(&mut outbox.requests) {
            let now = if child == NVM { Time(10) } else { Time(100) };
            let mut end = Completion { id: request.id, time: now, status: Status::Ok, ledger: Ledger::ZERO };
            end.ledger.charge(Cause::OwnFlash, now.since(Time::ZERO));
            tier.completed(now, child, &mut end, data, &mut outbox);
        }
    }
    let report = tier.report();
    let [reads, writes] =
        [report.reads, report.writes].map(|of| [of.upper_share, of.upper_ns, of.lower_ns, of.mean_ns]);
    assert_eq!(reads, [Some(0.5), Some(10.0), Some(100.0), Some(55.0)]);
    assert_eq!(writes, [Some(1.0), Some(10.0), None, Some(10.0)]);
}

/// Keeps nothing.
struct Nowhere;

impl Keeper for Nowhere {
    fn keep(&mut self, _page: u32, _bytes: Option<&PageBytes>) {}

    fn clear(&mut self, _page: u32) {}

    fn hand_over(&mut self, _page: u32) {}

    fn agreed(&mut self, _pages: Range<u32>) {}

    fn shown(&mut self, _pages: Range<u32>) {}

    fn has(&self, _page: u32) -> bool {
        false
    }
}

/// What it did not write while it was not there is no budget of its own.
#[test]
fn days_and_weeks_begin_with_the_tier_after_a_restart() {
    let seconds = |count| Time(Span::from_secs(count).0);
    let rating = serde_json::json!({ "per_day": "40KiB", "day": "1s", "week": "2s", "budget": "anchored" });
    let ratings = Ratings { lower: Some(serde_json::from_value(rating).expect("a rating")), upper: None };
    let keeping = Keeping { keeper: Box::new(Nowhere), found: FoundPages::default(), now: seconds(1_000) };
    let plan = plan(Coin(Stream::new(1, "coin"), 0.0), 100, Span::from_secs(1), true);
    let mut tier = Tier::new(Plan { ratings, kept: Some(keeping), ..plan });
    let write = request(0, 0, Operation::Write, 0, 1);
    let _ = tier.submit(seconds(1_000), &write, &mut Arena::new(), &mut Outbox::default());
    let report = tier.report();
    let days: Vec<u64> = report.lower.days.iter().map(|day| day.safe_bytes).collect();
    assert_eq!((days, report.lower.week_budgets_bytes), (vec![4 << 10], vec![f64::from(80 << 10)]));
}
