//! How a request stands before the volume that it waits for longest.

use flashkeel_engine::{Operation, Request, Time};

use super::history::quarter_octaves;
use super::silence::{DEBTS, PLACES};
use super::thought::asleep_prior;
use super::volume::{Seen, Volume};
use super::{CALL, CIRCUMSTANCES, Engine, KINDS, SIZES, SLOW_STEPS, STEPS};

/// What a request is, and what is expected of one like it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms {
    pub is_read: bool,
    pub pages: u32,
    /// Octaves of its pages, below eight.
    pub size: u32,
    /// What it takes if nothing interferes, and from what on it is slow.
    pub base_ns: u64,
    pub threshold_ns: u64,
    /// Expected wait for the requests outstanding before it.
    pub queue_ns: u64,
}

/// How a request stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct View {
    pub busy: u32,
    pub busy_by_size: u32,
    pub silence: u32,
    /// Expected wait for flush and collection, in nanoseconds.
    pub wait_ns: u64,
    /// Called slow for the silence before it.
    pub is_waking: bool,
    /// Probability of being slow for what its volume is at, and for the silence.
    pub busy_chance: f32,
    pub waking_chance: f32,
}

impl View {
    /// Which of several volumes decides.
    fn weight(&self) -> (bool, u64) {
        (self.is_waking || self.busy_chance > CALL, self.wait_ns)
    }
}

impl Engine {
    #[inline]
    pub(super) fn terms(&self, request: &Request) -> Terms {
        let is_read = request.operation == Operation::Read;
        let (threshold_ns, base_ns) = self.model.expectation(is_read, request.sectors);
        let pages = request.sectors.div_ceil(8);
        let size = (pages | 1).ilog2().min(7);
        let queue_ns = self.outstanding_pages * self.page_ns;
        Terms { is_read, pages, size, base_ns, threshold_ns, queue_ns }
    }

    /// The volume that `request` waits for longest, when those `ahead` have been
    /// submitted, and how the request stands there.
    pub(super) fn decisive(
        &self,
        now: Time,
        ahead: &[Request],
        request: &Request,
        terms: &Terms,
    ) -> (usize, View) {
        let mut decisive: Option<(usize, View)> = None;
        for index in self.model.volumes_of(request) {
            let mut volume = self.volumes[index];
            for other in ahead {
                let pages = self.model.pages_in(index, other);
                if pages > 0 {
                    let terms = self.terms(other);
                    volume.lead(now, other.operation, pages, terms.base_ns, &self.drive, &self.collections);
                }
            }
            let view = self.view(now, &volume, terms, self.model.pages_in(index, request));
            if decisive.is_none_or(|(_, other)| view.weight() > other.weight()) {
                decisive = Some((index, view));
            }
        }
        decisive.expect("a request lies in a volume")
    }

    /// How a request stands before `volume`, in which `pages` of its pages lie.
    #[inline(always)]
    pub(super) fn view(&self, now: Time, volume: &Volume, terms: &Terms, pages: u32) -> View {
        let until = |time: Time| time.0.saturating_sub(now.0);
        let since = |time: Time| now.0.saturating_sub(time.0);
        let drive = &self.drive;
        let &Terms { is_read, base_ns, threshold_ns, .. } = terms;
        // Whether it waits for a flush that it starts itself, or may; and the
        // time since the last one started, which decides only in the latter case.
        let (wait_ns, own_flush, is_own) = if is_read {
            let flushes = drive.is_flushed_by_reads && volume.pending > 0;
            let own_ns = if flushes { drive.read_flush_ns } else { 0 };
            (until(volume.flush_end) + own_ns, flushes, flushes)
        } else {
            let arrival = Time(now.0 + base_ns);
            let taken = volume.takes(arrival, pages, drive, &self.collections);
            let filled = volume.pending + pages;
            let is_full = filled >= drive.buffer_pages && drive.buffer_pages > 0;
            let waits = is_full && (drive.is_fore || filled >= 2 * drive.buffer_pages);
            (taken.since(arrival).0, waits || is_full && filled > drive.buffer_pages, waits)
        };
        let since_flush = if is_own { 0 } else { since(volume.flush_start) };
        let kind = usize::from(is_read) + 2 * usize::from(own_flush);
        let slow_step = (quarter_octaves(since(volume.slow_end), 4 * SLOW_STEPS) / 4).min(SLOW_STEPS - 1);
        let level = self.wakes.level(volume.since_late);
        let busy = (((level * KINDS + kind) * 3 + volume.seen as usize) * SLOW_STEPS + slow_step) * STEPS
            + quarter_octaves(since_flush, STEPS);
        let size = (terms.size as usize).min(SIZES - 1);
        let busy_by_size = size * CIRCUMSTANCES + busy;
        let quiet_ns = if self.ids.is_empty() { now.0.saturating_sub(self.active.0) } else { 0 };
        let (silent_ns, debt, place) = self.silences.wake(now, quiet_ns, drive.buffer_pages);
        let silence = (((size * 2 + usize::from(is_read)) * DEBTS + debt) * PLACES + place) * STEPS
            + quarter_octaves(silent_ns, STEPS);
        let prior = match base_ns + wait_ns > threshold_ns {
            true => 0.8,
            // Slow requests come together.
            false if volume.seen == Seen::Slow && slow_step <= 2 => 0.35,
            false => 0.02,
        };
        // Whether the drive is known to sleep by now, so that the request wakes it.
        let is_asleep = self
            .model
            .sleep
            .is_some_and(|sleep| quiet_ns >= sleep.after_ns && base_ns + sleep.wake_ns > threshold_ns);
        // A silence explains what comes more often after it than otherwise.
        let share = self.slow_share[usize::from(is_read)];
        let call = share + (1.0 - share) * CALL;
        let waking_chance = self.silence.probability(silence, asleep_prior(is_asleep));
        let busy_chance = self.busy_by_size.probability(busy_by_size, self.busy.probability(busy, prior));
        View {
            busy: busy as u32,
            busy_by_size: busy_by_size as u32,
            silence: silence as u32,
            wait_ns,
            is_waking: waking_chance > call,
            busy_chance,
            waking_chance,
        }
    }
}
