//! Buffered pages by logical stripe: which stripes have some, in what order.

use std::collections::VecDeque;

use flashkeel_engine::Time;

use crate::ftl::Bits;

/// The logical stripes of one partition with pages in the buffer. The pages
/// themselves are found by their homes.
#[derive(Clone, Debug)]
pub(crate) struct StripeQueue {
    /// Stripes to flush, oldest first. Some have been flushed out of turn meanwhile.
    order: VecDeque<Place>,
    /// The number of each stripe's last place.
    places: Vec<u32>,
    /// Places taken so far, modulo 2^32.
    taken: u32,
    /// Stripes that may be flushed.
    due: usize,
    /// Stripes with enough pages for a flush that had to wait.
    pub ready: VecDeque<u32>,
    /// Stripes with pending pages.
    pending: Bits,
    /// Stripes being updated.
    updating: Bits,
}

/// The place of a stripe in the order of flushes.
#[derive(Clone, Copy, Debug)]
struct Place {
    stripe: u32,
    number: u32,
    since: Time,
}

/// Places of stripes flushed out of turn that are kept in any case.
const MOST_VOID: usize = 64;

impl StripeQueue {
    /// Nothing buffered of `stripes` stripes.
    pub fn new(stripes: u32) -> Self {
        let (mut pending, mut updating) = (Bits::default(), Bits::default());
        pending.grow(stripes);
        updating.grow(stripes);
        let places = vec![0; stripes as usize];
        let (order, ready) = (VecDeque::new(), VecDeque::new());
        StripeQueue { order, places, taken: 0, due: 0, ready, pending, updating }
    }

    /// Whether a stripe has pending pages and may be flushed.
    #[inline]
    pub fn is_due(&self, stripe: u32) -> bool {
        self.pending.get(stripe) && !self.updating.get(stripe)
    }

    /// Whether a stripe is being updated.
    #[inline]
    pub fn is_updating(&self, stripe: u32) -> bool {
        self.updating.get(stripe)
    }

    /// A page of a stripe has been buffered.
    #[inline]
    pub fn add(&mut self, now: Time, stripe: u32) {
        let is_new = !self.pending.get(stripe);
        self.pending.set(stripe, true);
        if is_new && !self.is_updating(stripe) {
            self.take_place(now, stripe);
        }
    }

    /// A stripe is due from now on: it is the last to flush.
    fn take_place(&mut self, since: Time, stripe: u32) {
        self.due += 1;
        self.taken = self.taken.wrapping_add(1);
        self.places[stripe as usize] = self.taken;
        // So that the void ones are never many, each is looked at a few times in all.
        if self.order.len() >= 2 * self.due + MOST_VOID {
            let mut order = std::mem::take(&mut self.order);
            order.retain(|place| self.holds(place));
            self.order = order;
        }
        self.order.push_back(Place { stripe, number: self.taken, since });
    }

    /// Whether a stripe has not been flushed since it took its place.
    fn holds(&self, place: &Place) -> bool {
        self.is_due(place.stripe) && self.places[place.stripe as usize] == place.number
    }

    /// The oldest stripe to flush, and since when it is there.
    pub fn first(&mut self) -> Option<(u32, Time)> {
        while let Some(place) = self.order.front() {
            if self.holds(place) {
                return Some((place.stripe, place.since));
            }
            self.order.pop_front();
        }
        None
    }

    /// The pending pages of a stripe, which is due, are being flushed.
    pub fn begin_update(&mut self, stripe: u32) {
        debug_assert!(self.is_due(stripe));
        self.due -= 1;
        self.pending.set(stripe, false);
        self.updating.set(stripe, true);
    }

    /// A stripe has been updated. Whether pages of it have come meanwhile;
    /// then it is the last to flush.
    pub fn end_update(&mut self, now: Time, stripe: u32) -> bool {
        self.updating.set(stripe, false);
        let is_due = self.is_due(stripe);
        if is_due {
            self.take_place(now, stripe);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_waits_until_its_update_is_over() {
        let mut queue = StripeQueue::new(100);
        for (at, stripe) in [(1, 70), (2, 3), (3, 70)] {
            queue.add(Time(at), stripe);
        }
        assert_eq!(queue.first(), Some((70, Time(1))));
        queue.begin_update(70);
        assert_eq!(queue.first(), Some((3, Time(2))));
        queue.add(Time(4), 70);
        assert!(!queue.is_due(70) && queue.is_updating(70));
        queue.begin_update(3);
        assert_eq!(queue.first(), None);
        assert!(queue.end_update(Time(5), 70) && !queue.end_update(Time(6), 3));
        assert_eq!(queue.first(), Some((70, Time(5))));
    }

    /// Behind one that waits, a stripe that was flushed out of turn had its old place again.
    #[test]
    fn a_stripe_flushed_out_of_turn_is_the_last_when_it_comes_again() {
        let mut queue = StripeQueue::new(100);
        queue.add(Time(1), 70);
        for at in 0..10_000 {
            queue.add(Time(2 + at), 3);
            queue.begin_update(3);
            assert!(!queue.end_update(Time(2 + at), 3));
        }
        assert!(queue.order.len() <= 2 + MOST_VOID, "{} places", queue.order.len());
        queue.add(Time(20_000), 3);
        assert_eq!(queue.first(), Some((70, Time(1))));
        queue.begin_update(70);
        assert_eq!(queue.first(), Some((3, Time(20_000))));
    }
}
