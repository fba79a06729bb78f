//! `deadline`: reads before writes, each in batches by rising address, unless
//! the oldest has waited past its deadline. After Linux's mq-deadline, whose
//! defaults these are (`block/mq-deadline.c`).

use std::collections::{BTreeSet, VecDeque};

use flashkeel_engine::{Lba, Operation, Predictor, Request, RequestId, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Build, IoScheduler};
use crate::claim::{Claim, TenantClass, index_of};
use crate::limits;

/// Settings of `deadline`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Deadline {
    /// How long a read may be passed over.
    pub read_expire: Span,
    /// How long a write may be passed over.
    pub write_expire: Span,
    /// Batches of reads that may go before writes that wait.
    pub writes_starved: u32,
    /// Requests in a batch, at least 1.
    pub fifo_batch: u32,
    /// How long a request may wait for those of higher classes.
    pub prio_aging_expire: Span,
}

impl Default for Deadline {
    fn default() -> Self {
        Deadline {
            read_expire: Span::from_ms(500),
            write_expire: Span::from_secs(5),
            writes_starved: 2,
            fifo_batch: 16,
            prio_aging_expire: Span::from_secs(10),
        }
    }
}

impl Build for Deadline {
    fn build(&self, claims: &[Claim], _predictor: Option<Box<dyn Predictor>>) -> Box<dyn IoScheduler> {
        let level = || Level {
            directions: [Direction::new(self.read_expire), Direction::new(self.write_expire)],
            writes_starved: self.writes_starved,
            starved: 0,
            fifo_batch: self.fifo_batch,
            batched: 0,
            current: READ,
        };
        Box::new(Scheduler {
            classes: claims.iter().map(|claim| claim.class).collect(),
            levels: [level(), level(), level()],
            aging: self.prio_aging_expire,
        })
    }

    fn validate(&self) -> Result<(), String> {
        if self.fifo_batch == 0 {
            return Err("fifo_batch is 0; a batch has at least 1 request".into());
        }
        limits::wait("read_expire", self.read_expire)?;
        limits::wait("write_expire", self.write_expire)?;
        limits::wait("prio_aging_expire", self.prio_aging_expire)
    }
}

const READ: usize = 0;
const WRITE: usize = 1;

#[derive(Clone)]
struct Scheduler {
    /// Each tenant's.
    classes: Vec<TenantClass>,
    /// By class.
    levels: [Level; 3],
    aging: Span,
}

/// The requests of one class.
#[derive(Clone)]
struct Level {
    directions: [Direction; 2],
    writes_starved: u32,
    /// Batches of reads since writes began to wait.
    starved: u32,
    fifo_batch: u32,
    /// Requests of the current batch so far.
    batched: u32,
    current: usize,
}

/// The reads, or the writes with everything else.
#[derive(Clone)]
struct Direction {
    expire: Span,
    /// In order of arrival, with deadlines; those that are not in `sorted` any
    /// more have gone.
    fifo: VecDeque<(Time, Request)>,
    /// Whatever a workload asks in an open loop waits here, which may be millions.
    sorted: BTreeSet<(Lba, RequestId)>,
    /// Where the batch goes on.
    position: (Lba, RequestId),
}

impl Direction {
    fn new(expire: Span) -> Direction {
        Direction { expire, fifo: VecDeque::new(), sorted: BTreeSet::new(), position: (Lba(0), RequestId(0)) }
    }

    /// With its deadline.
    fn oldest(&mut self) -> Option<(Time, Request)> {
        while let Some((_, request)) = self.fifo.front() {
            if self.sorted.contains(&(request.lba, request.id)) {
                break;
            }
            self.fifo.pop_front();
        }
        self.fifo.front().copied()
    }

    /// The next by address.
    fn following(&self) -> Option<(Lba, RequestId)> {
        self.sorted.range(self.position..).next().copied()
    }

    fn take(&mut self, place: (Lba, RequestId)) -> Request {
        let has_waited = self.sorted.remove(&place);
        debug_assert!(has_waited, "what goes has waited");
        self.position = place;
        let at = self.fifo.binary_search_by_key(&place.1, |(_, request)| request.id);
        self.fifo[at.expect("what is sorted is in the queue")].1
    }
}

impl Level {
    /// Where a new batch begins.
    fn begin(&mut self, now: Time) -> Option<(Lba, RequestId)> {
        let [reads, writes] = &self.directions;
        let (reads, writes) = (!reads.sorted.is_empty(), !writes.sorted.is_empty());
        self.current = match (reads, writes) {
            (true, true) if self.starved < self.writes_starved => {
                self.starved += 1;
                READ
            }
            (true, false) => READ,
            _ => {
                self.starved = 0;
                WRITE
            }
        };
        let direction = &mut self.directions[self.current];
        let (deadline, oldest) = direction.oldest()?;
        let following = direction.following().filter(|_| deadline > now);
        Some(following.unwrap_or((oldest.lba, oldest.id)))
    }

    /// When the oldest arrived.
    fn since(&mut self) -> Option<Time> {
        let arrived = |direction: &mut Direction| {
            let (deadline, _) = direction.oldest()?;
            Some(Time(deadline.0 - direction.expire.0))
        };
        self.directions.iter_mut().filter_map(arrived).min()
    }

    fn add(&mut self, now: Time, request: &Request) {
        let direction = if request.operation == Operation::Read { READ } else { WRITE };
        let direction = &mut self.directions[direction];
        direction.fifo.push_back((now + direction.expire, *request));
        direction.sorted.insert((request.lba, request.id));
    }

    fn next(&mut self, now: Time) -> Option<Request> {
        let goes_on = (0 < self.batched && self.batched < self.fifo_batch)
            .then(|| self.directions[self.current].following())
            .flatten();
        let place = match goes_on {
            Some(place) => place,
            None => {
                self.batched = 0;
                self.begin(now)?
            }
        };
        self.batched += 1;
        Some(self.directions[self.current].take(place))
    }
}

impl IoScheduler for Scheduler {
    fn add(&mut self, now: Time, request: &Request) {
        let class = self.classes[index_of(request.tenant, self.classes.len())];
        self.levels[class as usize].add(now, request);
    }

    fn cut_power(&mut self, _now: Time) {
        for direction in self.levels.iter_mut().flat_map(|level| &mut level.directions) {
            direction.fifo.clear();
            direction.sorted.clear();
        }
    }

    fn next(&mut self, now: Time) -> Option<Request> {
        // Who has waited too long for higher classes goes before them.
        let aged = (1..self.levels.len())
            .find(|&level| self.levels[level].since().is_some_and(|since| since + self.aging <= now));
        if let Some(level) = aged {
            return self.levels[level].next(now);
        }
        self.levels.iter_mut().find_map(|level| level.next(now))
    }
}
