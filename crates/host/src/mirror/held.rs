//! Parts of requests that may not go yet.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use flashkeel_engine::{Operation, Request, RequestId, Time};

use super::stage::Destination;

/// A part of a request that may not go yet.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub since: Time,
    pub part: RequestId,
    pub request: Request,
    pub destination: Destination,
    /// The changes that a flush is behind have smaller numbers and have been acknowledged.
    pub behind: RequestId,
    /// Since when it waits for nothing but a window.
    pub window_since: Option<Time>,
}

impl Held {
    pub fn new(
        since: Time,
        part: RequestId,
        request: &Request,
        destination: Destination,
        behind: RequestId,
    ) -> Held {
        Held { since, part, request: *request, destination, behind, window_since: None }
    }

    pub fn is_read(&self) -> bool {
        self.request.operation == Operation::Read
    }
}

/// All of them, by numbers in the order in which they came. Writes that wait for a window only
/// are apart: where the first of them may not go, none may. Of the others only those are looked
/// at again for which something has changed, since a host without a bound may leave any number here.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    /// The number of the newest.
    newest: u64,
    others: BTreeMap<u64, Held>,
    for_window: BTreeMap<u64, Held>,
    /// The others: changes and reads by page, flushes by what they are behind.
    changes: ByPage,
    reads: ByPage,
    flushes: BTreeSet<(RequestId, u64)>,
    /// Changes that wait for a window.
    window_changes: ByPage,
    /// Those of the others that may be able to go, and every read of a page that is in doubt.
    woken: BTreeSet<u64>,
}

impl Waiting {
    pub fn len(&self) -> usize {
        self.others.len() + self.for_window.len()
    }

    /// Keeps one, behind all others.
    pub fn push(&mut self, held: Held) {
        self.newest += 1;
        if held.window_since.is_some() {
            return self.put_for_window(self.newest, held);
        }
        let pages = held.destination.pages();
        match held.request.operation {
            Operation::Read => {
                self.reads.insert(pages, self.newest);
                self.woken.insert(self.newest);
            }
            Operation::Flush => {
                self.flushes.insert((held.behind, self.newest));
            }
            _ => self.changes.insert(pages, self.newest),
        }
        self.others.insert(self.newest, held);
    }

    /// Keeps one at its place that waits for nothing but a window.
    pub fn put_for_window(&mut self, number: u64, held: Held) {
        self.window_changes.insert(held.destination.pages(), number);
        self.for_window.insert(number, held);
    }

    /// Whether any write waits for a window.
    pub fn awaits_window(&self) -> bool {
        !self.for_window.is_empty()
    }

    /// Whether a change of any of the pages waits.
    pub fn is_ahead(&self, destination: &Destination) -> bool {
        self.changes.overlap(destination.pages()) || self.window_changes.overlap(destination.pages())
    }

    /// Whether a change has to wait for another of its pages, which came before it or waits for
    /// a window.
    pub fn is_behind_change(&self, number: u64, held: &Held) -> bool {
        let pages = held.destination.pages();
        let is_first = |page| self.changes.first(page).is_none_or(|first| first >= number);
        !pages.clone().all(is_first) || self.window_changes.overlap(pages)
    }

    /// Nobody changes these pages any more: whoever comes next for them may go.
    pub fn wake(&mut self, pages: Range<usize>) {
        if self.others.is_empty() {
            return;
        }
        for page in pages {
            self.woken.extend(self.changes.first(page));
            self.woken.extend(self.reads.of(page));
        }
    }

    /// `oldest` is the oldest change that was acknowledged and is on its way: flushes that are behind none
    /// may go.
    pub fn wake_flushes(&mut self, oldest: Option<RequestId>) {
        let end = (oldest.unwrap_or(RequestId(u64::MAX)), u64::MAX);
        self.woken.extend(self.flushes.range(..=end).map(|&(_, number)| number));
    }

    /// The first from `from` on that does not wait for a window alone and may be able to go.
    pub fn next_woken(&self, from: u64) -> Option<(u64, &Held)> {
        self.woken.range(from..).next().map(|number| (*number, &self.others[number]))
    }

    /// One that was woken is not able to go.
    pub fn put_to_sleep(&mut self, number: u64) {
        self.woken.remove(&number);
    }

    /// Takes one that was woken.
    pub fn take_woken(&mut self, number: u64) -> Option<Held> {
        let held = self.others.remove(&number)?;
        self.woken.remove(&number);
        let pages = held.destination.pages();
        match held.request.operation {
            Operation::Read => self.reads.remove(pages, number),
            Operation::Flush => {
                self.flushes.remove(&(held.behind, number));
            }
            _ => self.changes.remove(pages, number),
        }
        Some(held)
    }

    /// The first from `from` on that waits for a window.
    pub fn next_for_window(&self, from: u64) -> Option<(u64, &Held)> {
        self.for_window.range(from..).next().map(|(&number, held)| (number, held))
    }

    /// Takes one that waits for a window.
    pub fn take_for_window(&mut self, number: u64) -> Option<Held> {
        let held = self.for_window.remove(&number)?;
        self.window_changes.remove(held.destination.pages(), number);
        Some(held)
    }

    /// Reads that may be able to go, in order: all those of pages in doubt are among them.
    pub fn woken_reads(&self) -> impl Iterator<Item = &Held> {
        self.woken.iter().map(|number| &self.others[number]).filter(|held| held.is_read())
    }

    pub fn clear(&mut self) {
        *self = Waiting::default();
    }
}

/// The numbers of those that want each page.
#[derive(Clone, Debug, Default)]
struct ByPage(BTreeSet<(usize, u64)>);

impl ByPage {
    fn insert(&mut self, pages: Range<usize>, number: u64) {
        self.0.extend(pages.map(|page| (page, number)));
    }

    fn remove(&mut self, pages: Range<usize>, number: u64) {
        for page in pages {
            self.0.remove(&(page, number));
        }
    }

    fn overlap(&self, pages: Range<usize>) -> bool {
        self.0.range((pages.start, 0)..(pages.end, 0)).next().is_some()
    }

    /// Those that want a page, in order.
    fn of(&self, page: usize) -> impl Iterator<Item = u64> {
        self.0.range((page, 0)..=(page, u64::MAX)).map(|&(_, number)| number)
    }

    fn first(&self, page: usize) -> Option<u64> {
        self.of(page).next()
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Lba;

    use super::*;

    fn held(operation: Operation, pages: Range<u32>) -> Held {
        let request = Request::new(RequestId(0), operation, Lba(0), 8);
        let destination = Destination { single: 0, first: pages.start, count: pages.len() as u32 };
        Held::new(Time::ZERO, RequestId(0), &request, destination, RequestId(7))
    }

    fn woken(waiting: &Waiting) -> Vec<u64> {
        waiting.woken.iter().copied().collect()
    }

    /// Once all that waited were looked at anew whenever a change had ended, so that many that
    /// waited took a time that grew with their square.
    #[test]
    fn of_many_that_wait_only_those_are_looked_at_for_which_something_has_changed() {
        let mut waiting = Waiting::default();
        let all = [(Operation::Write, 0..1), (Operation::Write, 0..2), (Operation::Write, 1..2)];
        all.into_iter().for_each(|(operation, pages)| waiting.push(held(operation, pages)));
        (0..1_000).for_each(|page| waiting.push(held(Operation::Write, page % 10..page % 10 + 1)));
        waiting.push(held(Operation::Flush, 0..0));
        assert_eq!(woken(&waiting), [0; 0]);
        waiting.wake(0..2);
        assert_eq!(woken(&waiting), [1, 2], "the first of each page");
        waiting.wake_flushes(Some(RequestId(6)));
        assert_eq!(woken(&waiting), [1, 2], "an older change is on its way");
        waiting.wake_flushes(Some(RequestId(7)));
        assert_eq!(woken(&waiting), [1, 2, 1_004]);
        let is_behind = |waiting: &Waiting, number| {
            waiting.is_behind_change(number, waiting.next_woken(number).expect("it was woken").1)
        };
        assert!(!is_behind(&waiting, 1) && is_behind(&waiting, 2));
        waiting.put_to_sleep(2);
        let first = waiting.take_woken(1).expect("it waits");
        assert_eq!((woken(&waiting), waiting.len()), (vec![1_004], 1_003));
        waiting.put_for_window(1, Held { window_since: Some(Time::ZERO), ..first });
        waiting.wake(0..1);
        assert!(is_behind(&waiting, 2), "behind one that waits for a window");
        assert!(waiting.take_for_window(1).is_some() && !is_behind(&waiting, 2));
    }

    #[test]
    fn a_read_is_looked_at_until_it_sleeps_and_woken_by_its_pages() {
        let mut waiting = Waiting::default();
        (0..100).for_each(|page| waiting.push(held(Operation::Read, page..page + 1)));
        assert_eq!(waiting.woken_reads().count(), 100);
        (1..=100).for_each(|number| waiting.put_to_sleep(number));
        waiting.wake(40..42);
        assert_eq!((woken(&waiting), waiting.woken_reads().count()), (vec![41, 42], 2));
    }
}
