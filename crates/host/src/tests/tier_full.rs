//! What a tier does where its upper is full, or fails.

use flashkeel_engine::{
    Arena, Completion, LOGICAL_PAGE_SECTORS, Ledger, Operation, Outbox, Request, Span, Stage, Status, Stream,
    Time,
};

use super::request;
use super::tier::{Coin, FRAMES, NVM, SSD, plan};
use crate::tier::placement::Placement;
use crate::tier::{Plan, Tier};

/// Sends writes of a page to the NVM.
#[derive(Clone)]
struct Small;

impl Placement for Small {
    fn takes(&mut self, _now: Time, write: &Request) -> bool {
        u64::from(write.sectors) == LOGICAL_PAGE_SECTORS
    }
}

/// A tier, and what it wants done.
struct Bench {
    tier: Tier,
    outbox: Outbox,
    data: Arena,
    next: u64,
}

impl Bench {
    fn new(plan: Plan) -> Bench {
        Bench { tier: Tier::new(plan), outbox: Outbox::default(), data: Arena::new(), next: 0 }
    }

    /// Writes pages; returns the requests to the devices that follow at once.
    fn write(&mut self, page: u64, pages: u32) -> Vec<(usize, Operation, u32)> {
        let write = request(self.next, 0, Operation::Write, page, pages);
        self.next += 1;
        let _ = self.tier.submit(Time(self.next), &write, &mut self.data, &mut self.outbox);
        let wanted = self.outbox.requests.iter();
        wanted.map(|(child, request)| (*child, request.operation, request.sectors / 8)).collect()
    }

    /// Serves all, as `status` says of each; returns how the host's requests have ended.
    fn serve(&mut self, mut status: impl FnMut(usize, &Request) -> Status) -> Vec<Status> {
        let now = Time(self.next);
        let mut ended = Vec::new();
        while !self.outbox.requests.is_empty() {
            for (child, request) in std::mem::take(&mut self.outbox.requests) {
                let status = status(child, &request);
                let mut end = Completion { id: request.id, time: now, status, ledger: Ledger::ZERO };
                if self.tier.completed(now, child, &mut end, &mut self.data, &mut self.outbox) {
                    ended.push(end.status);
                }
            }
            ended.extend(self.outbox.completions.drain(..).map(|end| end.status));
        }
        ended
    }
}

fn all_is_well(_child: usize, _request: &Request) -> Status {
    Status::Ok
}

#[test]
fn nothing_leaves_the_nvm_for_a_write_to_the_ssd() {
    let coin = Coin(Stream::new(1, "coin"), 1.0);
    let mut bench =
        Bench::new(Plan { placement: Box::new(Small), ..plan(coin, 100, Span::from_secs(1), true) });
    for page in 0..FRAMES {
        bench.write(page, 1);
        bench.serve(all_is_well);
    }
    let before = bench.tier.report();
    assert!(before.modified_pages_evicted > 0, "it keeps a frame free");
    assert_eq!(bench.write(50, 8), [(SSD, Operation::Write, 8)]);
    bench.serve(all_is_well);
    let after = bench.tier.report();
    assert_eq!(after.modified_pages_evicted, before.modified_pages_evicted);
    assert_eq!(bench.tier.upper_pages(), FRAMES - 1);
}

#[test]
fn what_belongs_to_the_ssd_does_not_lack_room_in_the_nvm() {
    let coin = Coin(Stream::new(1, "coin"), 1.0);
    let mut bench =
        Bench::new(Plan { placement: Box::new(Small), ..plan(coin, 100, Span::from_secs(1), false) });
    (0..FRAMES).for_each(|page| assert_eq!(bench.write(page, 1).last(), Some(&(NVM, Operation::Write, 1))));
    assert_eq!(bench.write(50, 8).last(), Some(&(SSD, Operation::Write, 8)));
    assert_eq!(bench.tier.report().writes_without_room, 0);
    assert_eq!(bench.write(60, 1).last(), Some(&(SSD, Operation::Write, 1)));
    assert_eq!(bench.tier.report().writes_without_room, 1);
}

/// A write of more pages than a unit names, of which the first unit fails and the next does not.
#[test]
fn what_the_journal_has_half_of_is_not_acknowledged() {
    let coin = Coin(Stream::new(1, "coin"), 1.0);
    let mut plan = Plan { journal: true, ..plan(coin, 100, Span::from_secs(1), false) };
    plan.upper.sectors = 100 * LOGICAL_PAGE_SECTORS;
    let mut bench = Bench::new(plan);
    bench.write(0, 40);
    let mut units = 0;
    let ended = bench.serve(|child, request| {
        let is_unit = child == NVM && request.sectors == 1;
        units += u32::from(is_unit);
        if is_unit && units == 1 { Status::MediaError } else { Status::Ok }
    });
    assert_eq!((ended, units), (vec![Status::MediaError], 1));
    assert_eq!(bench.tier.upper_pages(), 0, "it holds none of it");
    bench.write(0, 40);
    assert_eq!(bench.serve(all_is_well), [Status::Ok]);
    assert_eq!(bench.tier.upper_pages(), 40);
}
