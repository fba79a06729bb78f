//! Buffered pages by logical stripe: which stripes have some, in what order.

use std::collections::VecDeque;

use flashkeel_engine::Time;

use crate::ftl::Bits;

/// The logical stripes of one partition with pages in the buffer. The pages
/// themselves are found by their homes.
#[derive(Clone, Debug)]
pub(crate) struct StripeQueue {
    /// Stripes to flush, and since when, oldest first. Some have been flushed
    /// out of turn meanwhile.
    order: VecDeque<(u32, Time)>,
    /// Stripes with enough pages for a flush that had to wait.
    pub ready: VecDeque<u32>,
    /// Stripes with pending pages.
    pending: Bits,
    /// Stripes being updated.
    updating: Bits,
}

impl StripeQueue {
    /// Nothing buffered of `stripes` stripes.
    pub fn new(stripes: u32) -> Self {
        let (mut pending, mut updating) = (Bits::default(), Bits::default());
        pending.grow(stripes);
        updating.grow(stripes);
        StripeQueue { order: VecDeque::new(), ready: VecDeque::new(), pending, updating }
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
            self.order.push_back((stripe, now));
        }
    }

    /// The oldest stripe to flush, and since when it is there.
    pub fn first(&mut self) -> Option<(u32, Time)> {
        while let Some(&(stripe, since)) = self.order.front() {
            if self.is_due(stripe) {
                return Some((stripe, since));
            }
            self.order.pop_front();
        }
        None
    }

    /// The pending pages of a stripe are being flushed.
    pub fn begin_update(&mut self, stripe: u32) {
        self.pending.set(stripe, false);
        self.updating.set(stripe, true);
    }

    /// A stripe has been updated. Whether pages of it have come meanwhile;
    /// then it is the last to flush.
    pub fn end_update(&mut self, now: Time, stripe: u32) -> bool {
        self.updating.set(stripe, false);
        let is_due = self.is_due(stripe);
        if is_due {
            self.order.push_back((stripe, now));
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
}
