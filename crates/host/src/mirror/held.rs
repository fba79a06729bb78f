//! Parts of requests that may not go yet.

use std::collections::{BTreeMap, VecDeque};

use flashkeel_engine::{Operation, Request, RequestId, Time};

use super::stage::Destination;

/// A part of a request that may not go yet.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub since: Time,
    pub part: RequestId,
    pub request: Request,
    pub destination: Destination,
    /// The changes that a flush is behind have smaller numbers.
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

/// All of them, in the order in which they came. Writes that wait for a window only are
/// apart: where the first of them may not go, none may.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    /// The number of the next.
    next: u64,
    others: VecDeque<(u64, Held)>,
    for_window: BTreeMap<u64, Held>,
    /// How many of each's changes are for a page.
    others_pages: Pages,
    window_pages: Pages,
}

impl Waiting {
    pub fn len(&self) -> usize {
        self.others.len() + self.for_window.len()
    }

    /// Keeps one, behind all others.
    pub fn push(&mut self, held: Held) {
        self.next += 1;
        self.put(self.next, held);
    }

    /// Keeps one at its place; those that do not wait for a window alone come in order.
    pub fn put(&mut self, number: u64, held: Held) {
        if held.window_since.is_some() {
            self.window_pages.add(&held);
            self.for_window.insert(number, held);
        } else {
            self.others_pages.add(&held);
            self.others.push_back((number, held));
        }
    }

    /// If one that was looked at anew has been kept again, it is where it was.
    pub fn keep_place(&mut self, number: u64) {
        if let Some((newest, _)) = self.others.back_mut() {
            *newest = number.min(*newest);
        }
    }

    /// Whether any write waits for a window.
    pub fn awaits_window(&self) -> bool {
        !self.for_window.is_empty()
    }

    /// Whether a change of any of the pages waits.
    pub fn is_ahead(&self, destination: &Destination) -> bool {
        self.others_pages.overlap(destination) || self.window_pages.overlap(destination)
    }

    /// Whether one of the pages waits for a window.
    pub fn is_ahead_in_window(&self, destination: &Destination) -> bool {
        self.window_pages.overlap(destination)
    }

    /// Takes all that do not wait for a window alone, with their numbers.
    pub fn take_others(&mut self) -> VecDeque<(u64, Held)> {
        self.others_pages = Pages::default();
        std::mem::take(&mut self.others)
    }

    /// The number of the first from `from` on that waits for a window.
    pub fn next_for_window(&self, from: u64) -> Option<(u64, &Held)> {
        self.for_window.range(from..).next().map(|(&number, held)| (number, held))
    }

    /// Takes one that waits for a window.
    pub fn take_for_window(&mut self, number: u64) -> Option<Held> {
        let held = self.for_window.remove(&number)?;
        self.window_pages.take_off(&held);
        Some(held)
    }

    /// Reads, in order.
    pub fn reads(&self) -> impl Iterator<Item = &Held> {
        self.others.iter().map(|(_, held)| held).filter(|held| held.is_read())
    }

    pub fn clear(&mut self) {
        *self = Waiting::default();
    }
}

/// Pages that are to be changed, and by how many changes each.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages(BTreeMap<usize, u32>);

impl Pages {
    pub fn add(&mut self, held: &Held) {
        if !held.is_read() {
            held.destination.pages().for_each(|page| *self.0.entry(page).or_default() += 1);
        }
    }

    fn take_off(&mut self, held: &Held) {
        for page in held.destination.pages() {
            let count = self.0.get_mut(&page).expect("it was added");
            *count -= 1;
            if *count == 0 {
                self.0.remove(&page);
            }
        }
    }

    /// Whether any of these pages is among them.
    pub fn overlap(&self, destination: &Destination) -> bool {
        self.0.range(destination.pages()).next().is_some()
    }
}
