//! Power cuts of the named sets of tiers, with bytes: what is found again, and how much
//! is lost.
//!
//! Cases come from seeds, with two cuts each: 200 cuts in the suite, 10,000 in each round
//! of `make soak`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use flashkeel_device::{DeviceConfig, Ssd};
use flashkeel_engine::{
    Arena, Completion, Lba, Leaf, Operation, Request, RequestId, SECTOR_BYTES, Status, Stream, Submit, Time,
};
use flashkeel_experiment::resolve;
use flashkeel_host::device::{Device, Maker, Unmade};
use flashkeel_host::reports;

/// Sectors of a page, and pages of the SSD.
const PAGE: u64 = 8;
const PAGES: u64 = 1024;
/// Half of all requests meet in so many.
const NEAR: u64 = 150;

const DEVICE: &str = r#"
[device]
logical_capacity = "4MiB"
map_cache = "all"
gc = { start_below = 8, stop_above = 12, concurrent_victims = 4 }
buffer = { size = "256KiB", volatile = false }
geometry = { channels = 2, chips_per_channel = 2, planes_per_chip = 1, blocks_per_plane = 24, pages_per_block = 8 }
[workload]
source = "synthetic"
pacing = "closed"
requests = 1
[[stack.devices]]
"#;

fn device(tier: &str) -> Box<dyn Device> {
    let plans = resolve(&format!("{DEVICE}{tier}"), "cuts", &[], None).expect("it is right");
    let stack = plans[0].config.stack.clone().expect("it has one");
    let mut precondition = |config: &DeviceConfig, seed: u64| -> Result<Ssd, Unmade> {
        let mut ssd = Ssd::new(&config.validate()?, seed);
        let _ = ssd.precondition(&mut |_| ControlFlow::Continue(()));
        Ok(ssd)
    };
    let mut device = stack.devices[0].build(&mut Maker::new(1, &mut precondition)).expect("it can be made");
    device.keep_data();
    device
}

/// A page as it may be found.
#[derive(Clone, Debug, Default)]
struct Page {
    /// What was acknowledged, oldest first; 0 before the first.
    acknowledged: Vec<u64>,
    /// What is being written.
    coming: Option<u64>,
}

/// One who writes and reads, and remembers.
struct Host {
    device: Box<dyn Device>,
    random: Stream,
    data: Arena,
    now: Time,
    next_id: u64,
    inside: BTreeMap<RequestId, Request>,
    pages: Vec<Page>,
    /// Writes that a cut has ended, with what was in their pages before.
    ended: Vec<(u64, std::ops::Range<u64>)>,
}

fn range(request: &Request) -> std::ops::Range<u64> {
    request.lba.0 / PAGE..(request.lba.0 + u64::from(request.sectors)) / PAGE
}

impl Host {
    fn new(device: &(dyn Device + 'static), seed: u64) -> Host {
        Host {
            device: dyn_clone::clone_box(device),
            random: Stream::new(seed, "cuts"),
            data: Arena::new(),
            now: Time::ZERO,
            next_id: 1,
            inside: BTreeMap::new(),
            pages: vec![Page { acknowledged: vec![0], coming: None }; PAGES as usize],
            ended: Vec::new(),
        }
    }

    fn ask(&mut self) {
        let room = if self.random.chance(0.5) { NEAR } else { PAGES };
        let first = self.random.below(room);
        let pages =
            if self.random.chance(0.1) { 1 + self.random.below(60) } else { 1 + self.random.below(5) };
        let pages = first..(first + pages).min(PAGES);
        let is_write = self.random.chance(0.6);
        let is_taken =
            |request: &Request| range(request).start < pages.end && pages.start < range(request).end;
        if is_write && self.inside.values().any(is_taken) {
            return;
        }
        let operation = if is_write { Operation::Write } else { Operation::Read };
        let sectors = ((pages.end - pages.start) * PAGE) as u32;
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let payload = self.data.take(sectors);
        let request = Request { payload, ..Request::new(id, operation, Lba(pages.start * PAGE), sectors) };
        if is_write {
            let bytes = self.data.write(payload, sectors).expect("a buffer of its own");
            bytes.chunks_mut(8).for_each(|word| word.copy_from_slice(&id.0.to_le_bytes()));
            pages.for_each(|page| self.pages[page as usize].coming = Some(id.0));
        }
        while self.device.submit(self.now, &request, &mut self.data) == Submit::Busy {
            self.progress();
        }
        self.inside.insert(id, request);
    }

    /// Runs what happens next.
    fn progress(&mut self) -> bool {
        let Some(next) = self.device.next_event().time() else { return false };
        self.advance(next.max(self.now));
        true
    }

    fn advance(&mut self, to: Time) {
        let mut done = Vec::new();
        self.now = to;
        self.device.advance(to, &mut self.data, &mut done);
        done.into_iter().for_each(|completion| self.end(completion));
    }

    fn end(&mut self, completion: Completion) {
        let request = self.inside.remove(&completion.id).expect("it is inside");
        for page in range(&request) {
            if request.operation != Operation::Write {
                continue;
            }
            let page = &mut self.pages[page as usize];
            if completion.status == Status::Ok {
                page.coming = None;
                page.acknowledged.push(request.id.0);
            }
        }
        if completion.status == Status::Aborted && request.operation == Operation::Write {
            self.ended.push((request.id.0, range(&request)));
        }
        self.data.give_back(request.payload);
    }

    fn finish(&mut self) {
        while !self.inside.is_empty() {
            assert!(self.progress(), "{} requests are stuck", self.inside.len());
        }
    }

    /// Nothing happens by itself any more, or not for a while.
    fn rest(&mut self) {
        self.finish();
        let end = Time(self.now.0 + 1_000_000_000);
        while self.device.next_event().time().is_some_and(|next| next < end) && self.progress() {}
    }

    /// Bytes that a power cut would take now.
    fn at_risk(&self) -> u64 {
        let reports = reports(&*self.device);
        let tiers = reports["tiers"].as_object().expect("a table");
        tiers.values().map(|tier| tier["bytes_at_risk"].as_u64().expect("a number")).sum()
    }

    /// Cuts the power and reads everything; returns how many pages do not hold what was
    /// acknowledged last, nor what was being written.
    fn cut(&mut self) -> u64 {
        self.device.cut_power(self.now, &mut self.data);
        self.advance(self.now);
        assert!(self.inside.is_empty(), "a cut ends everything");
        let mut lost = 0;
        let found: Vec<u64> = (0..PAGES).map(|page| self.read(page)).collect();
        for (number, &held) in found.iter().enumerate() {
            let page = &mut self.pages[number];
            let newest = *page.acknowledged.last().expect("the first");
            if held != newest && Some(held) != page.coming {
                assert!(page.acknowledged.contains(&held), "page {number} holds {held}: {page:?}");
                lost += 1;
            }
            *page = Page { acknowledged: vec![held], coming: None };
        }
        lost
    }

    /// What a page holds: one word again and again.
    fn read(&mut self, page: u64) -> u64 {
        let payload = self.data.take(PAGE as u32);
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let read = Request { payload, ..Request::new(id, Operation::Read, Lba(page * PAGE), PAGE as u32) };
        assert_eq!(self.device.submit(self.now, &read, &mut self.data), Submit::Accepted);
        let mut done = Vec::new();
        while done.is_empty() {
            let next = self.device.next_event().time().expect("a read is inside");
            self.now = next.max(self.now);
            self.device.advance(self.now, &mut self.data, &mut done);
        }
        assert_eq!((done.len(), done[0].id, done[0].status), (1, id, Status::Ok));
        let bytes = self.data.read(payload, PAGE as u32).expect("a buffer");
        let word = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
        assert!(bytes.chunks(8).all(|each| each == word.to_le_bytes()), "page {page} is torn");
        self.data.give_back(payload);
        word
    }
}

/// Seeds of the cases.
fn cases() -> std::ops::Range<u64> {
    match std::env::var("FLASHKEEL_SOAK_ROUND") {
        Ok(round) => {
            let first = round.parse::<u64>().expect("a number") << 32;
            first..first + 5000
        }
        Err(_) => 0..100,
    }
}

/// Cuts the power of a tier, twice in each case. `after` sees what a cut found.
fn cut_often(tier: &str, mut after: impl FnMut(&mut Host, u64, u64, bool)) {
    let device = device(tier);
    for seed in cases() {
        let mut host = Host::new(&*device, seed);
        for _ in 0..2 {
            let steps = host.random.below(120);
            for _ in 0..steps {
                while host.inside.len() > 6 {
                    host.progress();
                }
                match host.random.below(4) {
                    0 => {
                        let pause = host.random.below(300_000);
                        host.advance(Time(host.now.0 + pause));
                    }
                    _ => host.ask(),
                }
            }
            let rests = host.random.chance(0.3);
            if rests {
                host.rest();
            }
            let at_risk = host.at_risk() / (PAGE * SECTOR_BYTES);
            let lost = host.cut();
            after(&mut host, at_risk, lost, rests);
            host.ended.clear();
        }
    }
}

fn set(name: &str) -> String {
    format!(
        "tier.preset = {name:?}\ntier.upper.dram = {{ capacity = \"128KiB\" }}\n\
         tier.lower.tier.upper.nvm = {{ capacity = \"512KiB\" }}\ntier.lower.tier.lower.ssd = {{}}\n"
    )
}

#[test]
fn where_writes_are_persisted_at_once_nothing_acknowledged_is_lost() {
    let budgets = "tier.lower.tier.ratings.lower = { per_day = \"256KiB\", day = \"1ms\", week = \"4ms\", budget = \
                   \"anchored\" }\n";
    for tier in [set("nlcwip"), set("nlcwip") + budgets] {
        cut_often(&tier, |_, at_risk, lost, _| assert_eq!((at_risk, lost), (0, 0)));
    }
}

#[test]
fn where_memory_keeps_writes_exactly_those_are_lost() {
    let base = "tier.preset = \"base\"\ntier.upper.dram = { capacity = \"256KiB\" }\ntier.lower.ssd = {}\n";
    for tier in [base.to_owned(), set("oc"), set("nlcwoip")] {
        let mut all = 0;
        cut_often(&tier, |_, at_risk, lost, rests| {
            assert!(lost <= at_risk, "{lost} pages are lost, {at_risk} were at risk");
            if rests {
                assert_eq!(lost, at_risk);
            }
            all += lost;
        });
        assert!(all > 0);
    }
}

#[test]
fn a_write_to_the_upper_is_done_as_a_whole_or_not_at_all() {
    for unit in ["512B", "4KiB"] {
        let tier = format!(
            "tier.placement = \"write-back\"\ntier.journal = true\n\
             tier.upper.nvm = {{ capacity = \"3MiB\", atomic_unit = {unit:?} }}\ntier.lower.ssd = {{}}\n"
        );
        let mut ended = 0;
        cut_often(&tier, |host, _, lost, _| {
            assert_eq!(lost, 0);
            let fits = reports(&*host.device)["tiers"]["0"]["writes_without_room"] == 0;
            for (id, pages) in host.ended.iter().filter(|_| fits) {
                let mut done = pages.clone().map(|page| host.pages[page as usize].acknowledged[0] == *id);
                let first = done.next().expect("a page");
                assert!(done.all(|each| each == first), "write {id} of pages {pages:?} is done in part");
                ended += 1;
            }
        });
        assert!(ended > 100, "{ended} writes were cut short");
    }
}
