//! What each chip does when, for which requests, and when reads of the host wait for
//! it: a log of one window of time, for those who want to see it.

use flashkeel_engine::{RequestId, Time};

use super::{Activity, FlashOpId, Purpose};
use crate::address::ChipId;

/// What goes on at a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It works on an operation.
    Work(Purpose),
    /// At least one read of the host waits for it.
    Wait,
    /// It is in a deterministic window.
    Deterministic,
}

const LABELS: usize = Purpose::ALL.len() + 2;

impl Doing {
    /// The names used in results: those of purposes, one for waiting, and one for windows.
    pub const LABELS: [&'static str; LABELS] = {
        let mut labels = ["read_waits"; LABELS];
        labels[LABELS - 1] = "deterministic";
        let mut at = 0;
        while at < Purpose::ALL.len() {
            labels[at] = Purpose::ALL[at].label();
            at += 1;
        }
        labels
    };

    /// Place of its name among [`LABELS`](Self::LABELS).
    pub fn index(self) -> u8 {
        match self {
            Doing::Work(purpose) => {
                let place = Purpose::ALL.iter().position(|&other| other == purpose);
                place.expect("every purpose is listed") as u8
            }
            Doing::Wait => Purpose::ALL.len() as u8,
            Doing::Deterministic => Purpose::ALL.len() as u8 + 1,
        }
    }
}

/// A time in which one thing goes on at a chip, cut to the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Chip of the device, channel by channel.
    pub chip: u32,
    /// What goes on.
    pub doing: Doing,
    /// Beginning.
    pub start: Time,
    /// End.
    pub end: Time,
    /// The requests of the workload whose data is read or programmed for them; no others
    /// are known, such as those that wait for a map page.
    pub requests: Vec<RequestId>,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    working: Option<(FlashOpId, Purpose, Time)>,
    waiting: u32,
    waiting_since: Time,
    deterministic: Option<Time>,
}

/// The log of one window.
#[derive(Clone, Debug)]
pub(crate) struct ChipLog {
    from: Time,
    to: Time,
    rows: Vec<Row>,
    intervals: Vec<Interval>,
    /// The requests that each operation on its way is for, by its number.
    served: Vec<Vec<RequestId>>,
    /// The request that has written each buffered page last, by partition and entry.
    writers: Vec<Vec<RequestId>>,
}

impl ChipLog {
    pub fn new(from: Time, to: Time, chips: usize) -> Self {
        let row = Row { working: None, waiting: 0, waiting_since: Time::ZERO, deterministic: None };
        let (intervals, served, writers) = Default::default();
        ChipLog { from, to, rows: vec![row; chips], intervals, served, writers }
    }

    /// An operation is there for a chip.
    pub fn arrives(&mut self, now: Time, chip: ChipId, purpose: Purpose) {
        let row = &mut self.rows[chip.0 as usize];
        if is_read_of_host(purpose) {
            if row.waiting == 0 {
                row.waiting_since = now;
            }
            row.waiting += 1;
        }
    }

    /// A chip begins with an operation that was there for it.
    pub fn begins(&mut self, now: Time, chip: ChipId, id: FlashOpId, purpose: Purpose) {
        let row = &mut self.rows[chip.0 as usize];
        // Those that came before the log began are not counted.
        if is_read_of_host(purpose) && row.waiting > 0 {
            row.waiting -= 1;
            if row.waiting == 0 {
                let since = row.waiting_since;
                self.add(chip, Doing::Wait, since, now, &[]);
            }
        }
        self.goes_on(now, chip, id, purpose);
    }

    /// A chip takes an operation up again.
    pub fn goes_on(&mut self, now: Time, chip: ChipId, id: FlashOpId, purpose: Purpose) {
        self.rows[chip.0 as usize].working = Some((id, purpose, now));
    }

    /// A chip breaks its operation off; which one it was.
    pub fn rests(&mut self, now: Time, chip: ChipId) -> Option<FlashOpId> {
        let (id, purpose, since) = self.rows[chip.0 as usize].working.take()?;
        let requests = self.served.get_mut(id.0 as usize).map(std::mem::take).unwrap_or_default();
        self.add(chip, Doing::Work(purpose), since, now, &requests);
        if let Some(served) = self.served.get_mut(id.0 as usize) {
            *served = requests;
        }
        Some(id)
    }

    /// A chip is done with its operation.
    pub fn ends(&mut self, now: Time, chip: ChipId) {
        let served = self.rests(now, chip).and_then(|id| self.served.get_mut(id.0 as usize));
        served.into_iter().for_each(Vec::clear);
    }

    /// An operation is for a request of the workload, if it is one.
    pub fn serves(&mut self, id: FlashOpId, request: RequestId) {
        if request == RequestId::NONE {
            return;
        }
        let served = at(&mut self.served, id.0 as usize, Vec::new());
        if !served.contains(&request) {
            served.push(request);
        }
    }

    /// A request has written a page that is in the buffer.
    pub fn buffers(&mut self, partition: usize, entry: u32, request: RequestId) {
        let writers = at(&mut self.writers, partition, Vec::new());
        *at(writers, entry as usize, RequestId::NONE) = request;
    }

    /// An operation programs a page that was in the buffer.
    pub fn programs(&mut self, id: FlashOpId, partition: usize, entry: u32) {
        let writers = self.writers.get_mut(partition);
        if let Some(writer) = writers.and_then(|writers| writers.get_mut(entry as usize)) {
            let request = std::mem::replace(writer, RequestId::NONE);
            self.serves(id, request);
        }
    }

    /// A chip is in a deterministic window from now on, or in none.
    pub fn window(&mut self, now: Time, chip: ChipId, is_deterministic: bool) {
        let row = &mut self.rows[chip.0 as usize];
        if is_deterministic {
            row.deterministic.get_or_insert(now);
        } else if let Some(since) = row.deterministic.take() {
            self.add(chip, Doing::Deterministic, since, now, &[]);
        }
    }

    /// Every chip breaks off what it does, and forgets what was there for it.
    pub fn all_rest(&mut self, now: Time) {
        for chip in 0..self.rows.len() {
            self.rests(now, ChipId(chip as u32));
            self.window(now, ChipId(chip as u32), false);
            self.rows[chip].waiting = 0;
        }
        self.served.clear();
        self.writers.clear();
    }

    fn add(&mut self, chip: ChipId, doing: Doing, start: Time, end: Time, requests: &[RequestId]) {
        let (start, end) = (start.max(self.from), end.min(self.to));
        if start < end {
            self.intervals.push(Interval { chip: chip.0, doing, start, end, requests: requests.to_vec() });
        }
    }

    /// Everything in the window that has ended, in the order of its ends.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }
}

/// One of a list that is made as long as that takes.
fn at<T: Clone>(list: &mut Vec<T>, index: usize, empty: T) -> &mut T {
    if index >= list.len() {
        list.resize(index + 1, empty);
    }
    &mut list[index]
}

fn is_read_of_host(purpose: Purpose) -> bool {
    purpose == Activity::Host.read() || purpose == Activity::Rebuild.read()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHIP: ChipId = ChipId(1);

    fn told(log: &ChipLog) -> Vec<(&'static str, u64, u64)> {
        let label = |doing: Doing| Doing::LABELS[usize::from(doing.index())];
        let all = log.intervals().iter();
        all.map(|each| (label(each.doing), each.start.0, each.end.0)).collect()
    }

    #[test]
    fn intervals_are_cut_to_the_window() {
        let mut log = ChipLog::new(Time(100), Time(200), 2);
        log.begins(Time(10), CHIP, FlashOpId(0), Activity::Gc.erase());
        log.rests(Time(90), CHIP);
        log.begins(Time(90), CHIP, FlashOpId(0), Activity::Host.program());
        log.rests(Time(120), CHIP);
        log.begins(Time(150), CHIP, FlashOpId(0), Activity::Gc.copyback());
        assert_eq!(told(&log), [("host_write", 100, 120)]);
        log.rests(Time(300), CHIP);
        assert_eq!(told(&log), [("host_write", 100, 120), ("gc_copyback", 150, 200)]);
    }

    #[test]
    fn an_operation_is_for_those_who_asked_for_it_and_those_who_wrote_its_pages() {
        let mut log = ChipLog::new(Time(0), Time(1000), 2);
        let (read, program) = (FlashOpId(3), FlashOpId(1));
        log.serves(read, RequestId(7));
        log.begins(Time(10), CHIP, read, Activity::Host.read());
        log.ends(Time(20), CHIP);
        // The page of request 5 is written again before it is programmed; nobody asked for entry 9.
        for (entry, request) in
            [(4, RequestId(5)), (8, RequestId(6)), (4, RequestId(8)), (9, RequestId::NONE)]
        {
            log.buffers(1, entry, request);
        }
        [4, 8, 9, 10].into_iter().for_each(|entry| log.programs(program, 1, entry));
        log.begins(Time(30), CHIP, program, Activity::Host.program());
        log.rests(Time(40), CHIP);
        log.goes_on(Time(50), CHIP, program, Activity::Host.program());
        log.ends(Time(60), CHIP);
        // Their numbers are given again, to others.
        log.programs(FlashOpId(3), 1, 4);
        log.begins(Time(70), CHIP, read, Activity::Gc.read());
        log.ends(Time(80), CHIP);
        let requests = log.intervals().iter().map(|each| each.requests.iter().map(|id| id.0).collect());
        let requests: Vec<Vec<u64>> = requests.collect();
        assert_eq!(requests, [vec![7], vec![8, 6], vec![8, 6], vec![]]);
    }

    #[test]
    fn windows_are_told_once_they_have_ended() {
        let mut log = ChipLog::new(Time(100), Time(200), 2);
        log.window(Time(20), CHIP, true);
        log.window(Time(30), CHIP, true);
        log.begins(Time(110), CHIP, FlashOpId(0), Activity::Host.read());
        log.rests(Time(120), CHIP);
        log.window(Time(150), CHIP, false);
        log.window(Time(160), CHIP, false);
        assert_eq!(told(&log), [("host_read", 110, 120), ("deterministic", 100, 150)]);
    }

    #[test]
    fn a_chip_is_waited_for_from_the_first_read_that_comes_to_the_last_that_begins() {
        let mut log = ChipLog::new(Time(0), Time(1000), 2);
        log.begins(Time(10), CHIP, FlashOpId(0), Activity::Gc.erase());
        for at in [20, 30] {
            log.arrives(Time(at), CHIP, Activity::Host.read());
        }
        log.arrives(Time(40), CHIP, Activity::Host.program());
        log.rests(Time(50), CHIP);
        log.begins(Time(50), CHIP, FlashOpId(0), Activity::Host.read());
        log.rests(Time(60), CHIP);
        log.begins(Time(60), CHIP, FlashOpId(0), Activity::Host.read());
        log.rests(Time(65), CHIP);
        assert_eq!(
            told(&log),
            [("erase", 10, 50), ("host_read", 50, 60), ("read_waits", 20, 60), ("host_read", 60, 65)]
        );
    }
}
