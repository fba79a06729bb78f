//! A drive that serves in any order, fails, forgets what was not flushed, is pulled and
//! takes no writes at times.

use std::collections::{BTreeMap, BTreeSet};

use flashkeel_engine::{
    Answer, Arena, Cause, Command, Completion, Durable, Leaf, Ledger, Limits, Operation, Place, Refusal,
    Request, Span, Status, Stream, Submit, Time, Wake,
};

pub const PAGES: usize = 48;

/// A drive that holds a number a page.
#[derive(Clone)]
pub struct Drive {
    random: Stream,
    pub pages: Vec<u64>,
    /// What has not been flushed, where that matters.
    cache: BTreeMap<usize, u64>,
    pub is_volatile: bool,
    /// Shares of requests that fail for want of a good medium.
    pub failing: f64,
    pub bad: BTreeSet<usize>,
    pub is_removed: bool,
    is_read_only: bool,
    /// When each ends and began.
    at_work: Vec<(Time, Time, Request)>,
    /// What each takes: from, to.
    pub takes: (u64, u64),
}

impl Drive {
    pub fn new(seed: u64) -> Drive {
        Drive {
            random: Stream::new(seed, "drive"),
            pages: vec![0; PAGES],
            cache: BTreeMap::new(),
            is_volatile: false,
            failing: 0.0,
            bad: BTreeSet::new(),
            is_removed: false,
            is_read_only: false,
            at_work: Vec::new(),
            takes: (10, 400),
        }
    }

    /// What is read from a page.
    pub fn held(&self, page: usize) -> u64 {
        self.cache.get(&page).copied().unwrap_or(self.pages[page])
    }

    fn write(&mut self, page: usize, value: u64, fua: bool) {
        self.bad.remove(&page);
        if self.is_volatile && !fua {
            self.cache.insert(page, value);
        } else {
            self.cache.remove(&page);
            self.pages[page] = value;
        }
    }

    fn serve(&mut self, request: &Request, data: &mut Arena) -> Status {
        let pages = (request.lba.0 / 8) as usize..(request.lba.0 as usize + request.sectors as usize) / 8;
        match request.operation {
            Operation::Flush => {
                for (page, value) in std::mem::take(&mut self.cache) {
                    self.pages[page] = value;
                }
            }
            Operation::Read => {
                if self.random.chance(self.failing) {
                    self.bad.insert(pages.start);
                }
                if pages.clone().any(|page| self.bad.contains(&page)) {
                    return Status::MediaError;
                }
                for (index, page) in pages.enumerate() {
                    let place = data.write(request.payload.skip(index as u32 * 8), 8).expect("bytes");
                    place.chunks_exact_mut(8).for_each(|w| w.copy_from_slice(&self.held(page).to_le_bytes()));
                }
            }
            _ => {
                let fails = self.random.chance(self.failing);
                for (index, page) in pages.enumerate() {
                    if fails && self.random.chance(0.5) {
                        continue;
                    }
                    self.write(page, value_of(request, index, data), request.fua);
                }
                if fails {
                    return Status::MediaError;
                }
            }
        }
        Status::Ok
    }
}

/// What a request puts into one of its pages.
pub fn value_of(request: &Request, index: usize, data: &Arena) -> u64 {
    if request.operation != Operation::Write {
        return 0;
    }
    let bytes = data.read(request.payload.skip(index as u32 * 8), 8).expect("bytes");
    let mut words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8")));
    let first = words.next().expect("a page has bytes");
    assert!(words.all(|word| word == first), "a page is of one write");
    first
}

impl Leaf for Drive {
    fn limits(&self) -> Limits {
        let durable = if self.is_volatile { Durable::Flushed } else { Durable::Acknowledged };
        Limits { sectors: PAGES as u64 * 8, block_sectors: 1, preferred_sectors: 1, durable }
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        if self.is_removed {
            return Submit::Refused(Status::Gone);
        }
        if self.is_read_only && request.operation.is_change() {
            return Submit::Refused(Status::ReadOnly);
        }
        if self.at_work.len() >= 6 {
            return Submit::Busy;
        }
        // One in fifty is slow, as behind background work.
        let times = if self.random.chance(0.02) { 8 } else { 1 };
        let end = now + Span(self.random.between(self.takes.0, self.takes.1) * times);
        self.at_work.push((end, now, *request));
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        self.at_work.iter().map(|&(end, ..)| end).min().into()
    }

    fn cut_power(&mut self, _now: Time, data: &mut Arena) {
        for (_, _, request) in std::mem::take(&mut self.at_work) {
            if !matches!(request.operation, Operation::Read | Operation::Flush) {
                for index in 0..request.sectors as usize / 8 {
                    if self.random.chance(0.5) {
                        let page = request.lba.0 as usize / 8 + index;
                        self.write(page, value_of(&request, index, data), false);
                    }
                }
            }
        }
        for (page, value) in std::mem::take(&mut self.cache) {
            if self.random.chance(0.5) {
                self.pages[page] = value;
            }
        }
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        while let Some(next) = self.next_event().time().filter(|&next| next <= now) {
            let index = self.at_work.iter().position(|&(end, ..)| end == next).expect("the next");
            let (time, begun, request) = self.at_work.swap_remove(index);
            let status = if self.is_removed { Status::Gone } else { self.serve(&request, data) };
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::OwnFlash, begun, time);
            completions.push(Completion { id: request.id, time, status, ledger });
        }
    }

    fn command(
        &mut self,
        _now: Time,
        _place: &Place,
        command: &Command,
        _data: &mut Arena,
    ) -> Result<Answer, Refusal> {
        match command {
            Command::Remove => self.is_removed = true,
            Command::ReadOnly(is_read_only) => self.is_read_only = *is_read_only,
            _ => return Err(Refusal::Unknown),
        }
        Ok(Answer::Done)
    }
}
