//! A child of the router: a leaf, and what is known of it.

use std::collections::VecDeque;

use crate::{Arena, Completion, Leaf, Ledger, Request, Submit, Time};

/// A child, what waits for it, and when it has to be tended.
#[derive(Clone)]
pub(super) struct Child<L> {
    pub leaf: L,
    /// Requests that it has not taken yet, oldest first.
    pub waiting: VecDeque<Request>,
    /// When it next does something by itself, as it said when it was last
    /// touched; [`Time::MAX`] where nobody knows a time.
    pub due: Time,
    /// From when on it has to be tended: when it is due, or at once where there may be
    /// something to do for it that `due` does not tell of.
    stirs: Time,
    /// Whether something outside may have a say in that.
    pub hears_outside: bool,
}

impl<L: Leaf> Child<L> {
    pub fn new(leaf: L) -> Self {
        let waiting = VecDeque::new();
        let mut child = Child { leaf, waiting, due: Time::MAX, stirs: Time::MAX, hears_outside: false };
        child.look();
        child
    }

    /// Sees what there is to do after the leaf has been touched.
    #[inline]
    pub fn look(&mut self) {
        let wake = self.leaf.next_event();
        self.due = wake.due();
        self.hears_outside = wake.hears_outside();
        self.tend_again(self.hears_outside || !self.waiting.is_empty() || wake.has_notice());
    }

    /// Whether it has to be tended at once, or when it is due.
    #[inline]
    pub fn tend_again(&mut self, is_restless: bool) {
        self.stirs = if is_restless { Time::ZERO } else { self.due };
    }

    /// Whether it has to be tended at `now`.
    #[inline]
    pub fn stirs(&self, now: Time) -> bool {
        self.stirs <= now && self.stirs < Time::MAX
    }

    /// Offers a request, unless others wait before it; then, or if it is not
    /// taken, it waits too.
    #[inline]
    pub fn give(&mut self, now: Time, request: &Request, data: &mut Arena, refused: &mut Vec<Completion>) {
        if !self.waiting.is_empty() || !submit(&mut self.leaf, now, request, data, refused) {
            self.waiting.push_back(*request);
        }
        self.look();
    }

    /// Offers the oldest of the waiting requests until one is not taken.
    #[cold]
    pub fn offer(&mut self, now: Time, data: &mut Arena, refused: &mut Vec<Completion>) {
        while let Some(request) = self.waiting.front() {
            if !submit(&mut self.leaf, now, request, data, refused) {
                break;
            }
            self.waiting.pop_front();
        }
        self.look();
    }
}

/// Which child is due first and when, and when another is, or before that
/// anything at `other`.
#[inline]
pub(super) fn first_and_other<L>(children: &[Child<L>], mut other: Time) -> ((Time, usize), Time) {
    match children {
        [only] => return ((only.due, 0), other),
        [one, two] if one.due <= two.due => return ((one.due, 0), other.min(two.due)),
        [one, two] => return ((two.due, 1), other.min(one.due)),
        _ => {}
    }
    let mut first = (Time::MAX, 0);
    for (index, child) in children.iter().enumerate() {
        other = other.min(child.due.max(first.0));
        if child.due < first.0 {
            first = (child.due, index);
        }
    }
    (first, other)
}

/// Whether any child is so: mostly there are two.
#[inline(always)]
pub(super) fn any<L>(children: &[Child<L>], is_so: impl Fn(&Child<L>) -> bool) -> bool {
    match children {
        [one, two] => is_so(one) || is_so(two),
        _ => children.iter().any(is_so),
    }
}

/// Offers a request to a leaf; whether that is over. One that is refused for good
/// has ended so.
fn submit(
    leaf: &mut impl Leaf,
    now: Time,
    request: &Request,
    data: &mut Arena,
    refused: &mut Vec<Completion>,
) -> bool {
    match leaf.submit(now, request, data) {
        Submit::Accepted => true,
        Submit::Busy => false,
        Submit::Refused(status) => {
            refused.push(Completion { id: request.id, time: now, status, ledger: Ledger::ZERO });
            true
        }
    }
}
