//! Making copies agree: after a power cut, a failure, or when a spare stands in.

use std::ops::Range;

use flashkeel_engine::units::{Bytes, Rate};
use flashkeel_engine::{
    Arena, Completion, FoundPages, Keeper, LOGICAL_PAGE_BYTES, LOGICAL_PAGE_SECTORS, Operation, Outbox,
    Payload, Request, Status, Time, Wake,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agreement::Agreement;
use super::each;
use super::pieces::{Work, of_pages};
use super::restoring::Restoring;
use super::stage::Mirror;
use super::windowing::SHORTEST_RETRY;
use crate::books::Books;

/// How often pages are tried in vain before they are left until the next change.
const TRIES: u64 = 32;

/// How the copies of a mirror are made to agree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResyncConfig {
    /// How fast at most, beside the host's requests.
    pub rate: Rate,
    /// Data read and written at a time.
    pub batch: Bytes,
    /// What the log of intended writes has one mark for: after a power cut all of
    /// it has to be made to agree.
    pub region: Bytes,
}

impl Default for ResyncConfig {
    /// The rate is the most that Linux's md takes while others want the drives too
    /// (`sync_speed_max`, 200 MB/s); batch and region are ours.
    fn default() -> Self {
        ResyncConfig { rate: Rate(200_000_000), batch: Bytes(256 << 10), region: Bytes(1 << 20) }
    }
}

impl ResyncConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    pub fn validate(&self) -> Result<(), String> {
        if self.rate.0 == 0 {
            return Err("resync.rate is 0B/s; copies would never agree".into());
        }
        for (key, bytes) in [("batch", self.batch), ("region", self.region)] {
            if bytes.0 == 0 || !bytes.0.is_multiple_of(LOGICAL_PAGE_BYTES) || bytes.0 > 1 << 30 {
                return Err(format!("resync.{key} is {bytes}; a multiple of 4KiB up to 1GiB is needed"));
            }
        }
        Ok(())
    }
}

/// Where it stands.
#[derive(Clone, Debug)]
pub(super) struct Resync {
    rate: Rate,
    batch: usize,
    /// The page to go on from.
    cursor: usize,
    next: Time,
    job: Option<Job>,
    /// Pages that could not be read together: they are copied one by one.
    singly: Range<usize>,
    /// Pages that were tried in vain since the last that was not.
    barren: u64,
    /// There is nothing that can be done until the host changes something.
    is_idle: bool,
    /// A request waits for the next pages.
    is_hurried: bool,
}

/// Pages that are being copied.
#[derive(Clone, Debug)]
struct Job {
    first: usize,
    pages: usize,
    /// The copy that gets again what it has; `None` if those do that lack it.
    again: Option<usize>,
    /// Copies whose writes have not ended, a bit each.
    writing: u8,
    payload: Payload,
}

impl Job {
    fn range(&self) -> Range<usize> {
        self.first..self.first + self.pages
    }

    fn request(&self, operation: Operation) -> Request {
        Request { payload: self.payload, ..of_pages(operation, self.range()) }
    }
}

impl Resync {
    pub fn new(config: &ResyncConfig) -> Resync {
        let batch = (config.batch.0 / LOGICAL_PAGE_BYTES) as usize;
        Resync {
            rate: config.rate,
            batch,
            cursor: 0,
            next: Time::ZERO,
            job: None,
            singly: 0..0,
            barren: 0,
            is_idle: false,
            is_hurried: false,
        }
    }

    pub fn next_event(&self, agreement: &Agreement) -> Wake {
        let has_work = self.job.is_none() && agreement.stale_pairs() > 0 && !self.is_idle;
        has_work.then_some(self.next).into()
    }

    /// What could not be done may be possible now.
    pub fn try_again(&mut self) {
        (self.is_idle, self.barren) = (false, 0);
    }

    /// Whether pages have been tried since the last that was not in vain.
    pub fn has_tried_in_vain(&self) -> bool {
        self.barren > 0
    }

    /// A request waits for pages that are in doubt: they come next, at once.
    pub fn hurry(&mut self, now: Time, page: usize) {
        if self.job.is_none() {
            (self.next, self.cursor, self.is_idle, self.is_hurried) = (now, page, false, true);
        }
    }

    /// Where there was nothing to do, times for it have passed.
    pub fn not_before(&mut self, now: Time) {
        self.next = self.next.max(now);
    }

    /// What was on its way is forgotten; it goes on a batch later.
    pub fn cut_power(&mut self, now: Time, data: &mut Arena) {
        if let Some(job) = self.job.take() {
            data.give_back(job.payload);
        }
        self.next = now + self.rate.time_for(self.batch as u64 * LOGICAL_PAGE_BYTES);
        self.try_again();
    }
}

impl Mirror {
    /// What not every copy has is kept from now on.
    pub fn keep_in(&mut self, keeper: Box<dyn Keeper>) {
        self.has_bytes = true;
        self.books = Some(Books::new(keeper));
    }

    /// Its copies are found after a restart, of which nothing is known but that each has what
    /// was acknowledged, except for `pages`: they are made to agree, all of them, but for those
    /// that are damaged there, which none of them may have.
    pub fn doubt(&mut self, now: Time, pages: FoundPages) {
        self.has_bytes = true;
        self.agreement.doubt_all();
        self.resync.not_before(now);
        let FoundPages { whole, damaged } = pages;
        damaged.into_iter().for_each(|page| self.agreement.damage(page as usize));
        self.restoring = (!whole.is_empty()).then(|| Restoring::new(now, whole));
    }

    /// Begins to copy the next pages that some copies lack, if there are any.
    pub(super) fn agree(&mut self, now: Time, data: &mut Arena, outbox: &mut Outbox) {
        let Resync { rate, batch, cursor, .. } = self.resync;
        let Some(mut range) = self.agreement.to_agree(cursor, batch, self.refusing) else {
            // What is left is being changed, is nowhere, or is refused.
            (self.resync.is_idle, self.resync.barren) = (true, 0);
            return;
        };
        if self.resync.singly.contains(&range.start) {
            range.end = range.start + 1;
        }
        let bytes = range.len() as u64 * LOGICAL_PAGE_BYTES;
        let time = rate.time_for(bytes);
        let (present, valid) = (self.agreement.present(), self.agreement.valid(range.start));
        let is_hurried = std::mem::take(&mut self.resync.is_hurried);
        // It waits as a write of the host's does.
        let write = of_pages(Operation::Write, range.clone());
        if !is_hurried && self.windowing.holds(now, present, present & !valid, &write) {
            self.resync.next = now + time.max(SHORTEST_RETRY);
            return;
        }
        self.resync.cursor = range.end;
        self.resync.next = now + time;
        let sources = each(valid);
        let source = sources.min_by_key(|&copy| self.queued[copy]).expect("some copy has it");
        self.copy(now, source, range, None, data, outbox);
    }

    /// Writes pages again to a copy that has them, unless others are being copied.
    pub(super) fn write_again(
        &mut self,
        now: Time,
        copy: usize,
        range: Range<usize>,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let has_it = self.agreement.valid_all(range.clone()) & !self.refusing;
        let is_free = self.resync.job.is_none() && !self.agreement.is_locked(range.clone());
        if is_free && has_it >> copy & 1 == 1 && !self.agreement.is_in_doubt(range.clone()) {
            self.copy(now, copy, range, Some(copy), data, outbox);
        }
    }

    fn copy(
        &mut self,
        now: Time,
        source: usize,
        range: Range<usize>,
        again: Option<usize>,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        self.agreement.lock(range.clone());
        let sectors = (range.len() as u64 * LOGICAL_PAGE_SECTORS) as u32;
        let payload = if self.has_bytes { data.take(sectors) } else { Payload::NONE };
        let job = Job { first: range.start, pages: range.len(), again, writing: 0, payload };
        let request = job.request(Operation::Read);
        self.resync.job = Some(job);
        self.give(now, source, Work::Agree, &request, Payload::NONE, outbox);
    }

    /// A device has ended a request for it.
    pub(super) fn agree_ended(
        &mut self,
        now: Time,
        copy: usize,
        is_read: bool,
        completion: &Completion,
        data: &mut Arena,
        outbox: &mut Outbox,
    ) {
        let job = self.resync.job.as_mut().expect("a job lasts until its requests have ended");
        let range = job.range();
        let is_done = completion.status == Status::Ok;
        if is_read {
            // No flush of the host's would be for it, where it is not there already.
            let request = Request { fua: job.again.is_none(), ..job.request(Operation::Write) };
            let valid = self.agreement.valid(range.start);
            let wanted = job.again.map_or(!valid, |copy| 1 << copy);
            job.writing = if is_done { self.agreement.present() & wanted } else { 0 };
            let writing = job.writing;
            for copy in each(writing) {
                self.give(now, copy, Work::Agree, &request, Payload::NONE, outbox);
            }
            if !is_done && matches!(completion.status, Status::MediaError | Status::Lost) {
                if range.len() > 1 {
                    // One of them may be at fault.
                    (self.resync.singly, self.resync.cursor) = (range.clone(), range.start);
                } else if valid & !(1 << copy) != 0 || self.agreement.is_in_doubt(range.clone()) {
                    // Another copy has it.
                    self.agreement.behind(range.clone(), 1 << copy);
                } else {
                    self.resync.barren += 1;
                }
            }
        } else {
            job.writing &= !(1 << copy);
            if job.again.is_some() {
                if is_done {
                    self.report.rewritten_bytes += range.len() as u64 * LOGICAL_PAGE_BYTES;
                } else if completion.status != Status::ReadOnly {
                    self.agreement.behind(range.clone(), 1 << copy);
                    self.resync.try_again();
                }
            } else if is_done {
                self.report.resynced_bytes += range.len() as u64 * LOGICAL_PAGE_BYTES;
                self.agreement.caught_up(range.clone(), copy);
                self.hand_over(range.clone());
                self.books.iter_mut().for_each(|books| books.agreed(range.clone()));
                self.resync.barren = 0;
            } else {
                // It is known now which copy counts.
                self.agreement.decide(range.clone());
                self.resync.barren += range.len() as u64;
            }
        }
        let job = self.resync.job.as_ref().expect("still there");
        if job.writing == 0 {
            data.give_back(job.payload);
            self.resync.job = None;
            self.resync.is_idle = self.resync.barren > TRIES * self.agreement.stale_pairs();
            self.agreement.unlock(range.clone());
            self.held.wake(range);
            self.may_release = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::{Durable, Lba, Ledger, Limits, RequestId, Span, Stage, Wake};

    use super::*;
    use crate::mirror::MirrorParts;
    use crate::mirror::acknowledge::AcknowledgeConfig;
    use crate::mirror::read::ReadConfig;

    /// A mirror of two copies that end all they are asked at once.
    struct Bench {
        mirror: Mirror,
        data: Arena,
        outbox: Outbox,
    }

    impl Bench {
        fn new() -> Bench {
            let durable = Durable::Acknowledged;
            let limits = Limits { sectors: 1 << 12, block_sectors: 8, preferred_sectors: 8, durable };
            let parts = MirrorParts {
                reader: ReadConfig::default().policy().build(Vec::new()),
                hedge: None,
                acknowledge: AcknowledgeConfig::default(),
                ranges: &[],
                resync: &ResyncConfig::default(),
                turns: None,
                sets: &[1, 1],
            };
            let mirror = Mirror::new(parts, &[limits, limits], 2).expect("a mirror");
            Bench { mirror, data: Arena::new(), outbox: Outbox::default() }
        }

        /// Changes a page, which ends so on each copy.
        fn change(&mut self, operation: Operation, page: u64, statuses: [Status; 2]) {
            let Bench { mirror, data, outbox } = self;
            let request = Request::new(RequestId(page), operation, Lba(8 * page), 8);
            let _ = mirror.submit(Time::ZERO, &request, data, outbox);
            for (copy, Request { id, .. }) in std::mem::take(&mut outbox.requests) {
                let (time, status, ledger) = (Time::ZERO, statuses[copy], Ledger::ZERO);
                let mut end = Completion { id, time, status, ledger };
                mirror.completed(Time::ZERO, copy, &mut end, data, outbox);
            }
            assert_eq!(std::mem::take(&mut outbox.completions).len(), 1);
        }
    }

    #[test]
    fn a_change_has_pages_looked_for_only_where_some_may_be_found() {
        let mut bench = Bench::new();
        bench.change(Operation::Write, 0, [Status::Ok, Status::ReadOnly]);
        assert_eq!(bench.mirror.next_event(), Wake::NEVER);
        // What is looked for from now on is seen before it has not been found.
        let later = Time::ZERO + Span::from_ms(1);
        bench.mirror.resync.not_before(later);
        bench.change(Operation::Write, 1, [Status::Ok, Status::ReadOnly]);
        assert_eq!(bench.mirror.next_event(), Wake::NEVER);
        bench.change(Operation::Write, 2, [Status::MediaError, Status::ReadOnly]);
        assert_eq!(bench.mirror.next_event(), Wake::NEVER);
        bench.change(Operation::Write, 3, [Status::Ok, Status::Ok]);
        assert_eq!(bench.mirror.next_event(), Wake::at(later));
    }

    #[test]
    fn a_copy_takes_writes_again_once_it_has_not_refused_one() {
        let mut bench = Bench::new();
        let (ok, none) = (Status::Ok, []);
        bench.change(Operation::Write, 0, [ok, Status::ReadOnly]);
        // A drive that is read-only flushes, and nobody knows what became of what was given up.
        bench.change(Operation::Flush, 0, [ok, ok]);
        assert_eq!(bench.outbox.requests, none);
        bench.change(Operation::Write, 1, [ok, Status::Aborted]);
        assert_eq!((bench.mirror.refusing, &bench.outbox.requests[..]), (0b10, &none[..]));
        bench.change(Operation::Write, 2, [ok, ok]);
        let [(0, read)] = bench.outbox.requests[..] else { panic!("{:?}", bench.outbox.requests) };
        assert_eq!((read.operation, read.lba, read.sectors), (Operation::Read, Lba(0), 16));
    }

    /// Once what was on its way was forgotten, and nobody was served ever after.
    #[test]
    fn pages_are_restored_anew_after_a_power_cut_that_ends_what_waits_for_them() {
        let Bench { mut mirror, mut data, mut outbox } = Bench::new();
        let whole = (0..3).map(|page| (page, Box::new([page as u8; 4096]))).collect();
        mirror.doubt(Time::ZERO, FoundPages { whole, damaged: Default::default() });
        let read = Request::new(RequestId(7), Operation::Read, Lba(0), 8);
        let _ = mirror.submit(Time::ZERO, &read, &mut data, &mut outbox);
        assert_eq!(std::mem::take(&mut outbox.requests).len(), 6, "three pages to two copies");
        mirror.cut_power(Time(10), &mut data, &mut outbox);
        let [ended] = &std::mem::take(&mut outbox.completions)[..] else { panic!("one waits") };
        assert_eq!((ended.id, ended.status), (read.id, Status::Aborted));
        assert_eq!((mirror.next_event(), outbox.requests.len()), (Wake::at(Time(11)), 0));
        mirror.advance(Time(11), &mut data, &mut outbox);
        let writes = std::mem::take(&mut outbox.requests);
        assert_eq!(writes.len(), 6, "{writes:?}");
        for (copy, Request { id, lba, payload, .. }) in writes {
            assert_eq!(data.read(payload, 8).expect("bytes")[0], (lba.0 / 8) as u8);
            let (time, status, ledger) = (Time(20), Status::Ok, Ledger::ZERO);
            mirror.completed(
                time,
                copy,
                &mut Completion { id, time, status, ledger },
                &mut data,
                &mut outbox,
            );
        }
        let _ = mirror.submit(Time(30), &read, &mut data, &mut outbox);
        let [(_, served)] = outbox.requests[..] else { panic!("{:?}", outbox.requests) };
        assert_eq!(served.operation, Operation::Read);
    }
}
