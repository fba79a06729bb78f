//! Issues requests to the drive and tells how long they took.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;

use flashkeel_engine::{
    Arena, Completion, LOGICAL_PAGE_SECTORS, Lba, Leaf, Operation, Outside, Request, RequestId, Span, Status,
    Stream, Submit, Time,
};

/// Pages that are written first and then read.
const POOL: usize = 24_576;
/// So many at a time, for so long.
const CHUNK: usize = 1_024;
const PREPARING: Span = Span::from_secs(10);
/// Writes outstanding meanwhile,
const FILLING: usize = 32;
/// and of a drive in real time: whoever serves one is late where many end at once, as those do
/// that wait for the same flush.
const FILLING_REAL: usize = 4;
/// Resting or measuring one figure takes no more than this part of the time given.
const PART: u64 = 16;

/// Why a drive could not be probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeError {
    /// It holds too little.
    TooSmall,
    /// It did not serve 4 KiB within its capacity: it has changed.
    Refused(Lba),
    /// It took a request and never completed it.
    Stuck,
    /// It waits for something outside the simulation, to which nobody listens.
    Unheard,
    /// Whoever watched broke off.
    Interrupted,
    /// The time given is over.
    OutOfTime,
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeError::TooSmall => write!(f, "the device is too small to probe; at least 16 MiB"),
            ProbeError::Refused(lba) => {
                let lba = lba.0;
                write!(
                    f,
                    "the drive does not serve 4 KiB at LBA {lba} (any longer): it is worn out, has become \
                     smaller, or is gone"
                )
            }
            ProbeError::Interrupted => write!(f, "interrupted"),
            ProbeError::OutOfTime => write!(f, "the time given ran out before anything was known"),
            ProbeError::Stuck => write!(f, "the device took a request and never completed it"),
            ProbeError::Unheard => {
                write!(f, "the device waits for something outside the simulation, to which nobody listens")
            }
        }
    }
}

/// Whoever is told how far a probe is, and may break it off.
pub(super) struct Told<'p> {
    fraction: Cell<f64>,
    progress: RefCell<&'p mut dyn FnMut(f64) -> ControlFlow<()>>,
}

impl<'p> Told<'p> {
    pub fn new(progress: &'p mut dyn FnMut(f64) -> ControlFlow<()>) -> Told<'p> {
        Told { fraction: Cell::new(0.0), progress: RefCell::new(progress) }
    }

    /// This fraction is done.
    pub fn reach(&self, fraction: f64) -> Result<(), ProbeError> {
        self.fraction.set(fraction);
        self.again()
    }

    /// No more is done than was.
    fn again(&self) -> Result<(), ProbeError> {
        match (self.progress.borrow_mut())(self.fraction.get()) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ProbeError::Interrupted),
        }
    }
}

/// The drive and the time on it.
pub(super) struct Runner<'a> {
    leaf: &'a mut dyn Leaf,
    /// What it may wait for.
    outside: Option<&'a mut dyn Outside>,
    /// Who may break off while it is waited for.
    pub told: Option<&'a Told<'a>>,
    sectors: u64,
    now: Time,
    /// When the time given is over.
    end: Time,
    next_id: u64,
    pub random: Stream,
    /// Pages of each request.
    pub request_pages: u64,
    /// Pages that hold data, as LBAs.
    pool: Vec<u64>,
    /// Submission time and address of requests from the oldest in flight on.
    flights: VecDeque<(Time, Lba)>,
    first: u64,
    data: Arena,
    completions: Vec<Completion>,
}

/// One request that has completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub id: u64,
    pub submitted: Time,
    pub time: Time,
}

impl<'a> Runner<'a> {
    pub fn new(
        leaf: &'a mut dyn Leaf,
        outside: Option<&'a mut dyn Outside>,
        sectors: u64,
        seed: u64,
        limit: Option<Span>,
    ) -> Result<Self, ProbeError> {
        if sectors < (16 << 20) / 512 {
            return Err(ProbeError::TooSmall);
        }
        Ok(Runner {
            leaf,
            outside,
            told: None,
            sectors: sectors / LOGICAL_PAGE_SECTORS * LOGICAL_PAGE_SECTORS,
            now: Time::ZERO,
            end: limit.map_or(Time::MAX, |limit| Time::ZERO + limit),
            next_id: 0,
            random: Stream::new(seed, "probe"),
            request_pages: 1,
            pool: Vec::new(),
            flights: VecDeque::new(),
            first: 0,
            data: Arena::new(),
            completions: Vec::new(),
        })
    }

    /// Whether its time is that of a machine that does other work, too.
    pub fn is_real(&self) -> bool {
        self.leaf.next_event().hears_outside()
    }

    pub fn now(&self) -> Time {
        self.now
    }

    pub fn requests(&self) -> u64 {
        self.next_id
    }

    /// Bits of the LBA that a 4 KiB request can differ in, and of which each
    /// value occurs in a good part of the drive.
    pub fn bits(&self) -> std::ops::Range<u32> {
        let top = 63 - self.sectors.leading_zeros();
        let is_whole = self.sectors == 1 << top;
        let top_part = self.sectors - (1 << top);
        3..if is_whole || top_part < self.sectors / 16 { top } else { top + 1 }
    }

    /// Pages of the drive.
    pub fn pages(&self) -> u64 {
        self.sectors / LOGICAL_PAGE_SECTORS
    }

    /// Whether the drive has the page at `lba`.
    pub fn holds(&self, lba: u64) -> bool {
        lba + LOGICAL_PAGE_SECTORS <= self.sectors
    }

    /// A random page.
    pub fn page(&mut self) -> u64 {
        self.random.below(self.pages()) * LOGICAL_PAGE_SECTORS
    }

    /// A random page whose `bits` are all 0.
    pub fn page_within(&mut self, bits: &[u32]) -> u64 {
        let mask = bits.iter().fold(0, |mask, bit| mask | 1u64 << bit);
        self.page() & !mask
    }

    /// Pages of the pool for which `keep` holds.
    pub fn pool_where(&self, keep: impl Fn(u64) -> bool) -> Vec<u64> {
        self.pool.iter().copied().filter(|&lba| keep(lba)).collect()
    }

    /// Writes the pool, so that its reads come from flash, and lets the drive
    /// come to rest.
    pub fn prepare(&mut self) -> Result<(), ProbeError> {
        let pages = self.pages() as usize;
        self.pool = (0..POOL.min(pages / 2)).map(|_| self.page()).collect();
        let mut pool = std::mem::take(&mut self.pool);
        let (begun, mut written) = (self.now, 0);
        let longest = self.at_most(PREPARING);
        let depth = if self.is_real() { FILLING_REAL } else { FILLING };
        for some in pool.chunks(CHUNK) {
            self.throughput(Operation::Write, some, some.len(), depth)?;
            written += some.len();
            // What a slow drive has not written by then does without.
            if self.now.since(begun) > longest {
                break;
            }
        }
        pool.truncate(written);
        self.pool = pool;
        self.rest()
    }

    /// `span`, or less where little time is given.
    pub fn at_most(&self, span: Span) -> Span {
        span.min(Span(self.end.0 / PART))
    }

    /// Lets the drive come to rest.
    pub fn rest(&mut self) -> Result<(), ProbeError> {
        self.wait(self.at_most(Span::from_secs(2)))
    }

    /// Lets time pass; nothing may be in flight.
    pub fn wait(&mut self, span: Span) -> Result<(), ProbeError> {
        let end = (self.now + span).min(self.end);
        while self.leaf.next_event().hears_outside() && self.now < end {
            self.listen(end)?;
        }
        self.now = end.max(self.now);
        self.leaf.advance(self.now, &mut self.data, &mut self.completions);
        if self.completions.is_empty() { Ok(()) } else { Err(ProbeError::Stuck) }
    }

    /// Waits until something happens outside, or is due here, at `limit` at the latest.
    #[cold]
    fn listen(&mut self, limit: Time) -> Result<(), ProbeError> {
        if let Some(told) = self.told {
            told.again()?;
        }
        let outside = self.outside.as_mut().ok_or(ProbeError::Unheard)?;
        let until = self.leaf.next_event().time().map_or(limit, |time| time.min(limit));
        self.now = outside.wait(Some(until).filter(|&until| until < Time::MAX)).max(self.now);
        self.leaf.advance(self.now, &mut self.data, &mut self.completions);
        Ok(())
    }

    /// Runs the drive until something completes; `None` if nothing does up to `limit`.
    fn run(&mut self, limit: Time) -> Result<Option<Time>, ProbeError> {
        while self.leaf.next_event().hears_outside() {
            self.listen(limit)?;
            if !self.completions.is_empty() {
                return Ok(Some(self.now));
            }
            if self.now >= limit {
                return Ok(None);
            }
        }
        Ok(self.leaf.advance_to_completion(limit, &mut self.data, &mut self.completions))
    }

    /// Submits a request at the present time, or later if the drive is busy.
    pub fn submit(
        &mut self,
        operation: Operation,
        lba: u64,
        done: &mut Vec<Done>,
    ) -> Result<u64, ProbeError> {
        if self.now >= self.end {
            return Err(ProbeError::OutOfTime);
        }
        let id = self.next_id;
        let request = Request::new(
            RequestId(id),
            operation,
            Lba(lba),
            (self.request_pages * LOGICAL_PAGE_SECTORS) as u32,
        );
        loop {
            match self.leaf.submit(self.now, &request, &mut self.data) {
                Submit::Accepted => break,
                Submit::Busy => self.next(Time(u64::MAX), done)?,
                Submit::Refused(_) => return Err(ProbeError::Refused(Lba(lba))),
            }
        }
        self.next_id += 1;
        self.flights.push_back((self.now, Lba(lba)));
        Ok(id)
    }

    /// Runs the drive until something completes, at `limit` at the latest;
    /// appends it to `done`. What is in flight when the time given is over is waited for no longer.
    pub fn next(&mut self, limit: Time, done: &mut Vec<Done>) -> Result<(), ProbeError> {
        self.completions.clear();
        match self.run(limit.min(self.end))? {
            Some(now) => self.now = now,
            None if limit.min(self.end) == Time::MAX => return Err(ProbeError::Stuck),
            None => self.now = limit.min(self.end).max(self.now),
        }
        if self.completions.is_empty() && self.now >= self.end {
            return Err(ProbeError::OutOfTime);
        }
        for completion in self.completions.drain(..) {
            let (submitted, lba) = self.flights[(completion.id.0 - self.first) as usize];
            if completion.status != Status::Ok {
                return Err(ProbeError::Refused(lba));
            }
            done.push(Done { id: completion.id.0, submitted, time: completion.time });
        }
        Ok(())
    }

    /// Forgets requests once none is in flight.
    fn forget(&mut self) {
        self.flights.clear();
        self.first = self.next_id;
    }

    /// Serves one request; returns its latency.
    pub fn serve(&mut self, operation: Operation, lba: u64) -> Result<Span, ProbeError> {
        self.forget();
        let mut done = Vec::new();
        self.submit(operation, lba, &mut done)?;
        while done.is_empty() {
            self.next(Time(u64::MAX), &mut done)?;
        }
        Ok(done[0].time.since(done[0].submitted))
    }

    /// Serves `count` requests to random pages of `pages`, `depth` at a time;
    /// returns requests per second.
    pub fn throughput(
        &mut self,
        operation: Operation,
        pages: &[u64],
        count: usize,
        depth: usize,
    ) -> Result<f64, ProbeError> {
        self.forget();
        let start = self.now;
        let (mut done, mut issued, mut flying) = (Vec::new(), 0, 0);
        while issued < count || flying > 0 {
            while issued < count && flying < depth {
                let lba = if operation == Operation::Write {
                    pages[issued % pages.len()]
                } else {
                    pages[self.random.below(pages.len() as u64) as usize]
                };
                self.submit(operation, lba, &mut done)?;
                issued += 1;
                flying += 1;
            }
            if done.is_empty() {
                self.next(Time(u64::MAX), &mut done)?;
            }
            flying -= done.len();
            done.clear();
        }
        let elapsed = self.now.since(start);
        Ok(count as f64 / elapsed.as_secs_f64().max(1e-9))
    }

    /// Serves a writer that waits `think` between its writes and a reader that
    /// does not, each one request at a time. `see` is told every completed
    /// request: whether it is a write, the writes submitted before it was, and
    /// its times. Ends after `writes` writes.
    pub fn beside(
        &mut self,
        writes: u64,
        think: Span,
        mut write_page: impl FnMut(&mut Stream) -> u64,
        read_pages: &[u64],
        mut see: impl FnMut(bool, u64, Time, Time),
    ) -> Result<(), ProbeError> {
        self.forget();
        let (mut done, mut written, mut next_write) = (Vec::new(), 0, self.now);
        // Each one's request, and the writes submitted before it.
        let (mut writer, mut reader) = (None::<(u64, u64)>, None::<(u64, u64)>);
        while written < writes || writer.is_some() || reader.is_some() {
            if writer.is_none() && written < writes && self.now >= next_write {
                let lba = write_page(&mut self.random);
                writer = Some((self.submit(Operation::Write, lba, &mut done)?, written));
                written += 1;
            }
            if reader.is_none() && (written < writes || writer.is_some()) {
                let lba = read_pages[self.random.below(read_pages.len() as u64) as usize];
                reader = Some((self.submit(Operation::Read, lba, &mut done)?, written));
            }
            let idle_writer = writer.is_none() && written < writes;
            let limit = if idle_writer { next_write } else { Time(u64::MAX) };
            if done.is_empty() {
                self.next(limit, &mut done)?;
            }
            for end in done.drain(..) {
                if writer.is_some_and(|(id, _)| id == end.id) {
                    let (_, before) = writer.take().expect("it has just been there");
                    next_write = end.time + think;
                    see(true, before, end.submitted, end.time);
                } else if let Some((_, before)) = reader.take() {
                    see(false, before, end.submitted, end.time);
                }
            }
            if writer.is_none() && reader.is_none() {
                self.forget();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use flashkeel_engine::{Durable, Ledger, Limits, Wake};

    use super::*;

    const SERVICE: Span = Span(70_000);
    const SECTORS: u64 = 1 << 16;

    /// A drive with a clock of its own, which ends each request after the same time.
    #[derive(Clone, Default)]
    struct Real(Rc<RefCell<Inside>>);

    /// The time on it, and when what is inside ends.
    type Inside = (Time, VecDeque<(RequestId, Time)>);

    impl Leaf for Real {
        fn limits(&self) -> Limits {
            Limits {
                sectors: SECTORS,
                block_sectors: 8,
                preferred_sectors: 8,
                durable: Durable::Acknowledged,
            }
        }

        fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
            let (clock, inside) = &mut *self.0.borrow_mut();
            assert_eq!(*clock, now, "the time is what it is outside");
            inside.push_back((request.id, now + SERVICE));
            Submit::Accepted
        }

        fn next_event(&self) -> Wake {
            Wake::OUTSIDE
        }

        fn advance(&mut self, now: Time, _data: &mut Arena, completions: &mut Vec<Completion>) {
            let inside = &mut self.0.borrow_mut().1;
            while let Some((id, time)) = inside.pop_front_if(|(_, end)| *end <= now) {
                completions.push(Completion { id, time, status: Status::Ok, ledger: Ledger::ZERO });
            }
        }

        fn cut_power(&mut self, _now: Time, _data: &mut Arena) {}
    }

    impl Outside for Real {
        fn wait(&mut self, until: Option<Time>) -> Time {
            let (clock, inside) = &mut *self.0.borrow_mut();
            let next = inside.front().map(|&(_, end)| end).into_iter().chain(until).min();
            *clock = next.expect("something will happen").max(*clock);
            *clock
        }
    }

    #[test]
    fn a_drive_with_a_clock_of_its_own_is_waited_for() {
        let (mut drive, mut world) = (Real::default(), Real::default());
        world.0 = drive.0.clone();
        let mut runner =
            Runner::new(&mut drive, Some(&mut world), SECTORS, 1, None).expect("it is large enough");
        assert_eq!(runner.serve(Operation::Write, 8), Ok(SERVICE));
        assert_eq!(runner.rest(), Ok(()));
        assert_eq!(runner.serve(Operation::Read, 8), Ok(SERVICE));
        let per_s = runner.throughput(Operation::Read, &[0, 8, 16], 50, 4).expect("it serves");
        assert!((per_s * SERVICE.as_secs_f64() / 4.0 - 1.0).abs() < 0.05, "{per_s} a second");
    }

    #[test]
    fn nobody_listens_to_a_drive_with_a_clock_of_its_own() {
        let mut drive = Real::default();
        let mut runner = Runner::new(&mut drive, None, SECTORS, 1, None).expect("it is large enough");
        assert_eq!(runner.serve(Operation::Write, 8), Err(ProbeError::Unheard));
        assert!(ProbeError::Unheard.to_string().contains("outside"));
    }
}
