//! What is seen of a drive while it is served: counts since the start, and who owned the
//! latency of the last minute.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use flashkeel_engine::{Cause, Completion, Ledger, Operation, Request, Span, Status, Time};
use flashkeel_stats::{Asked, MeasureConfig, Recorder, Summary};

/// The last minute is so many spans of its own,
const SPANS: usize = 12;
/// each so long.
const SPAN: Span = Span::from_secs(5);
/// Whoever looks ends the present one, so that nothing is copied, while there are fewer than this: each
/// takes memory.
const MOST_PARTS: usize = 2 * SPANS;

/// The upper bounds of the classes in which latencies are counted, in ns; there is one
/// class more, for those above.
pub const BOUNDS_NS: [u64; 19] = {
    let mut bounds = [0; 19];
    let mut at = 0;
    while at < bounds.len() {
        bounds[at] = [10_000, 20_000, 50_000][at % 3] * 10u64.pow(at as u32 / 3);
        at += 1;
    }
    bounds
};

/// What requests are counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Flushes.
    Flush,
    /// Trims and writes of zeros.
    Discard,
}

impl Counted {
    /// All of them.
    pub const ALL: [Counted; 4] = [Counted::Read, Counted::Write, Counted::Flush, Counted::Discard];

    /// What a request is counted as.
    fn of(operation: Operation) -> Counted {
        match operation {
            Operation::Read => Counted::Read,
            Operation::Write => Counted::Write,
            Operation::Flush => Counted::Flush,
            _ => Counted::Discard,
        }
    }
}

/// Requests of one sort since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Those that ended well.
    pub count: u64,
    /// Those that did not.
    pub failed: u64,
    /// Their bytes.
    pub bytes: u64,
    /// By the cause that owned most of a request, how many took so long at most, by
    /// [`BOUNDS_NS`].
    pub latencies: [[u64; BOUNDS_NS.len() + 1]; Cause::COUNT],
    /// What those requests took in all.
    pub took_ns: [u64; Cause::COUNT],
    /// What each cause owned of all of them.
    pub owned_ns: [u64; Cause::COUNT],
}

impl Tally {
    const NONE: Tally = Tally {
        count: 0,
        failed: 0,
        bytes: 0,
        latencies: [[0; BOUNDS_NS.len() + 1]; Cause::COUNT],
        took_ns: [0; Cause::COUNT],
        owned_ns: [0; Cause::COUNT],
    };

    fn record(&mut self, bytes: u64, latency: Span, ledger: &Ledger) {
        self.count += 1;
        self.bytes += bytes;
        let mut owner = (0, Cause::OwnFlash);
        for (cause, ns) in ledger.iter() {
            self.owned_ns[cause as usize] += ns;
            owner = if ns > owner.0 { (ns, cause) } else { owner };
        }
        let class = BOUNDS_NS.partition_point(|&bound| bound < latency.0);
        self.latencies[owner.1 as usize][class] += 1;
        self.took_ns[owner.1 as usize] += latency.0;
    }
}

/// What is seen of a drive.
pub(crate) struct Seen {
    tallies: Box<[Tally; Counted::ALL.len()]>,
    /// Requests that no device was asked for, as they cannot be served.
    refused: [u64; Counted::ALL.len()],
    /// The last spans, the oldest first, with their beginnings. Those who look share them; only the
    /// last changes.
    spans: VecDeque<(Time, Arc<Recorder>)>,
}

fn recorder() -> Arc<Recorder> {
    // There is nothing to see in a series of one span.
    let config = MeasureConfig { series_window: Span::from_secs(1 << 20), ..MeasureConfig::default() };
    Arc::new(Recorder::new(&config, Span::ZERO, &[]))
}

impl Seen {
    /// Nothing yet.
    pub fn new(now: Time) -> Seen {
        Seen {
            tallies: Box::new([Tally::NONE; Counted::ALL.len()]),
            refused: [0; Counted::ALL.len()],
            spans: VecDeque::from([(now, recorder())]),
        }
    }

    /// A request that was asked for at `asked` has ended.
    pub fn record(&mut self, request: &Request, asked: Time, completion: &Completion) {
        let tally = &mut self.tallies[Counted::of(request.operation) as usize];
        match completion.status {
            Status::Ok => tally.record(request.bytes(), completion.time.since(asked), &completion.ledger),
            _ => tally.failed += 1,
        }
        self.turn(completion.time);
        let Some((begun, recorder)) = self.spans.back_mut() else { return };
        // Each span counts its own time; what was asked for before ends in it.
        let base = begun.0.min(asked.0);
        let shifted = Completion { time: Time(completion.time.0 - base), ..*completion };
        let Request { operation, lba, sectors, tenant, .. } = *request;
        let arrived = Time(asked.0 - base);
        let asked = Asked { operation, lba, sectors, asked_sectors: sectors, arrived, tenant };
        Arc::make_mut(recorder).record(&asked, &shifted);
    }

    /// So many requests cannot be served, by what they are counted as; others count as nothing.
    pub fn refuse(&mut self, requests: &[u64]) {
        self.refused.iter_mut().zip(requests).for_each(|(all, more)| *all += more);
    }

    /// Begins another span where the last one is over.
    fn turn(&mut self, now: Time) {
        while let Some(&(begun, _)) = self.spans.back()
            && begun + SPAN <= now
        {
            // Spans in which nothing has happened are no trouble, however many.
            let passed = now.since(begun).0 / SPAN.0;
            let skipped = passed.saturating_sub(SPANS as u64).max(1);
            self.begin(begun + Span(SPAN.0 * skipped));
        }
    }

    /// Begins another span; those go that have ended before the last minute.
    fn begin(&mut self, now: Time) {
        self.spans.push_back((now, recorder()));
        while now.since(self.spans[1].0).0 >= (SPANS as u64 - 1) * SPAN.0 {
            self.spans.pop_front();
        }
    }

    /// Counts since the start.
    pub fn tallies(&self) -> Box<[Tally; Counted::ALL.len()]> {
        let mut tallies = self.tallies.clone();
        tallies.iter_mut().zip(&self.refused).for_each(|(tally, refused)| tally.failed += refused);
        tallies
    }

    /// Requests that the device ended with an error.
    pub fn failed(&self) -> u64 {
        self.tallies.iter().map(|tally| tally.failed).sum()
    }

    /// The last minute, up to `now`.
    pub fn recent(&mut self, now: Time) -> Recent {
        self.turn(now);
        if self.spans.len() < MOST_PARTS && self.spans.back().is_some_and(|&(begun, _)| begun < now) {
            self.begin(now);
        }
        Recent { spans: self.spans.iter().cloned().collect(), now, summary: OnceLock::new() }
    }
}

/// The last minute of a drive.
pub struct Recent {
    spans: Vec<(Time, Arc<Recorder>)>,
    now: Time,
    /// What has been measured, once somebody has asked.
    summary: OnceLock<Option<Summary>>,
}

impl Recent {
    /// What has been measured in it.
    pub fn summary(&self) -> Option<&Summary> {
        let ends = self.spans.iter().skip(1).map(|&(begun, _)| begun).chain([self.now]);
        let of_span = |((begun, recorder), end): (&(Time, Arc<Recorder>), Time)| {
            Recorder::clone(recorder).finish(Time(SPAN.0.min(end.since(*begun).0)), &[]).summary
        };
        let all = || {
            self.spans.iter().zip(ends).map(of_span).reduce(|mut all, each| {
                all.merge(&each);
                all
            })
        };
        self.summary.get_or_init(all).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::{Lba, RequestId};

    use super::*;

    fn read(seen: &mut Seen, asked: Time, latency: Span, cause: Cause) {
        let request = Request::new(RequestId(0), Operation::Read, Lba(0), 8);
        let mut ledger = Ledger::ZERO;
        ledger.charge(cause, latency);
        let completion = Completion { id: request.id, time: asked + latency, status: Status::Ok, ledger };
        seen.record(&request, asked, &completion);
    }

    #[test]
    fn bounds_go_from_ten_microseconds_to_ten_seconds() {
        assert_eq!(BOUNDS_NS[..4], [10_000, 20_000, 50_000, 100_000]);
        assert_eq!(BOUNDS_NS[BOUNDS_NS.len() - 1], 10_000_000_000);
    }

    #[test]
    fn what_cannot_be_served_has_failed_but_not_in_the_device() {
        let mut seen = Seen::new(Time::ZERO);
        (0..2).for_each(|_| seen.refuse(&[1, 0, 0, 3, 7]));
        assert_eq!(seen.tallies().map(|tally| tally.failed), [2, 0, 0, 6]);
        assert_eq!(seen.failed(), 0);
    }

    #[test]
    fn the_last_minute_is_what_has_ended_in_it() {
        let mut seen = Seen::new(Time::ZERO);
        let second = 1_000_000_000;
        for at in 0..200 {
            read(&mut seen, Time(at * second), Span(100_000), Cause::OwnFlash);
        }
        // It began long before its span.
        read(&mut seen, Time(150 * second), Span(50 * second), Cause::SchedulerHold);
        let recent = seen.recent(Time(200 * second));
        let summary = recent.summary().expect("there are spans");
        // Eleven whole spans and what there is of the twelfth.
        assert_eq!(summary.read.count, 55 + 1);
        assert_eq!(summary.read.max_ns.map(|ns| ns / second), Some(50));
        let tally = &seen.tallies()[Counted::Read as usize];
        assert_eq!((tally.count, tally.bytes), (201, 201 * 4096));
        assert_eq!(tally.latencies[Cause::OwnFlash as usize][3], 200);
        assert_eq!(tally.latencies[Cause::SchedulerHold as usize][BOUNDS_NS.len()], 1);
        assert_eq!(tally.took_ns[Cause::OwnFlash as usize], 200 * 100_000);
        assert_eq!(tally.owned_ns[Cause::SchedulerHold as usize], 50 * second);
    }

    #[test]
    fn a_long_silence_leaves_nothing_of_before() {
        let mut seen = Seen::new(Time::ZERO);
        read(&mut seen, Time::ZERO, Span(1_000), Cause::OwnFlash);
        let later = Time(1 << 50);
        assert_eq!(seen.recent(later).summary().map(|summary| summary.requests), Some(0));
        read(&mut seen, later, Span(1_000), Cause::OwnFlash);
        assert_eq!(seen.recent(later).summary().map(|summary| summary.requests), Some(1));
    }

    #[test]
    fn who_looks_copies_nothing_and_keeps_little_however_often() {
        let mut seen = Seen::new(Time::ZERO);
        let millisecond = 1_000_000;
        for at in 1..=100_000 {
            let now = Time(at * millisecond);
            read(&mut seen, now, Span(1_000), Cause::OwnFlash);
            let recent = seen.recent(now + Span(1_000));
            assert!(seen.spans.len() < MOST_PARTS + SPANS);
            // All are those of the drive itself.
            assert!(recent.spans.iter().zip(&seen.spans).all(|(one, other)| Arc::ptr_eq(&one.1, &other.1)));
            if at % 10_000 == 0 {
                let requests = recent.summary().map_or(0, |summary| summary.requests);
                assert!((at.min(55_000)..=at.min(60_000)).contains(&requests), "{requests} at {at}");
            }
        }
        // A look ends what is recorded, and is not changed by what comes after.
        let mut seen = Seen::new(Time::ZERO);
        read(&mut seen, Time::ZERO, Span(1_000), Cause::OwnFlash);
        let looks = [1, 2, 3].map(|at| {
            let recent = seen.recent(Time(at * millisecond));
            read(&mut seen, Time(at * millisecond), Span(1_000), Cause::OwnFlash);
            recent
        });
        assert_eq!(
            looks.map(|look| look.summary().map(|summary| summary.requests)),
            [Some(1), Some(2), Some(3)]
        );
        assert_eq!(seen.spans.iter().filter(|(_, span)| Arc::strong_count(span) == 1).count(), 4);
    }
}
