//! What the requests of an operation have in common: as a rule, and until one is submitted or ends.
//! The latter is worked out when the first of them is asked for, and found by those after it.

use flashkeel_engine::Time;

use super::circumstances::KIND;
use super::knowledge::Knowledge;
use super::mixer::INPUTS;
use super::queue::DEPTHS;
use super::signals::Lately;
use super::tables::{COMMON, ENTRIES, OWN_PLACES};
use super::thought::{QUIET, common_sum};
use crate::DeviceModel;

/// What depends on no request of an operation and not on the time; in whole lines of a cache.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Ground {
    /// What a page takes if nothing interferes, and what each further one adds; see
    /// [`DeviceModel::expectation`](crate::DeviceModel::expectation).
    pub base_ns: u64,
    pub page_ns: u64,
    /// What takes longer than it would by more than this is slow.
    pub margin_ns: i64,
    /// Mean latency of slow ones.
    pub slow_ns: u64,
    /// When the last one ended.
    pub ended: Time,
    /// What tells the operation in places among the
    /// [`Circumstances`](super::circumstances::Circumstances).
    pub kind: u32,
    /// Whether anything is outstanding.
    pub is_busy: bool,
    /// Its places by the mean and by late outcomes; behind others the latter is another.
    pub places: [u32; COMMON],
    /// Where those parts of the tables begin in which a request has places of its own.
    pub begins: [u32; OWN_PLACES],
    /// What all this comes to in the mixture, where nothing is outstanding.
    pub sum: f32,
    pub weights: [f32; INPUTS],
    /// What the operation did of late, of which that comes.
    pub lately: Lately,
}

impl Ground {
    /// Of a model's writes and reads.
    pub fn new(model: &DeviceModel) -> [Ground; 2] {
        let slow_ns = [model.thresholds_ns.write, model.thresholds_ns.read].map(|ns| 2 * ns);
        [0, 1].map(|index| {
            let is_read = index == 1;
            let (threshold_ns, base_ns) = model.expectation(is_read, 8);
            Ground {
                base_ns,
                page_ns: model.expectation(is_read, 16).1 - base_ns,
                margin_ns: threshold_ns as i64 - base_ns as i64,
                slow_ns: slow_ns[index],
                kind: (index as u32) << KIND,
                lately: Lately::new(0.0),
                ..Ground::default()
            }
        })
    }

    /// What takes longer is slow, of what would take so long if nothing interfered.
    #[inline]
    pub fn threshold_ns(&self, base_ns: u64) -> u64 {
        base_ns.wrapping_add_signed(self.margin_ns)
    }
}

impl Knowledge {
    /// Works out what the next request of an operation stands on.
    #[inline(always)]
    pub(super) fn settle(&mut self, is_read: bool) {
        if self.signals.is_busy() {
            self.settle_behind(is_read);
        } else {
            self.settle_at(is_read, 0);
        }
    }

    #[inline(never)]
    fn settle_behind(&mut self, is_read: bool) {
        self.settle_at(is_read, self.signals.queue().depth());
    }

    #[inline(always)]
    fn settle_at(&mut self, is_read: bool, depth: usize) {
        let set = DEPTHS * usize::from(is_read) + depth;
        let first = (set * ENTRIES) as u32;
        let places = self.signals.common_places(first, is_read);
        let begins = self.signals.begins(first, is_read);
        let weights = self.mixer.weights(set);
        // Behind others more depends on the request.
        let sum = if depth == 0 { common_sum(weights, self.common(is_read, places, QUIET)) } else { 0.0 };
        let ground = &mut self.signals.of[usize::from(is_read)];
        ground.weights = *weights;
        (ground.places, ground.begins, ground.sum) = (places, begins, sum);
        ground.is_busy = depth > 0;
        self.queue_ns = if depth > 0 { self.outstanding_pages * self.page_ns } else { 0 };
        self.signals.settled[usize::from(is_read)] = true;
    }
}
