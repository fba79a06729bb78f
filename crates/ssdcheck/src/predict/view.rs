//! How a request stands before the volume that it waits for longest, and after a silence.

use flashkeel_engine::{Operation, Request, Time};

use super::knowledge::{CALL, CIRCUMSTANCES, KINDS, Knowledge, SIZES, SLOW_STEPS, STEPS};
use super::scale::Scale;
use super::silence::{DEBTS, PLACES};
use super::thought::asleep_prior;
use super::volume::{Seen, Volume};

/// Quarter octaves of the time since a flush began and of a silence, octaves of that since a slow
/// request ended.
const QUARTERS: Scale = Scale::new(2, 16, STEPS as u32);
const OCTAVES: Scale = Scale::new(0, 16, SLOW_STEPS as u32);

/// Outcomes of requests of one size after which those of others count for nothing.
const ENOUGH: u16 = 64;

/// What a request is, and what is expected of one like it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms {
    pub is_read: bool,
    pub pages: u32,
    /// Octaves of its pages, below [`SIZES`].
    pub size: u32,
    /// What it takes if nothing interferes, and from what on it is slow.
    pub base_ns: u64,
    pub threshold_ns: u64,
    /// Expected wait for the requests outstanding before it.
    pub queue_ns: u64,
}

/// How a request stands before a volume.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct View {
    pub busy: u32,
    pub busy_by_size: u32,
    /// Expected wait for flush and collection, in nanoseconds.
    pub wait_ns: u64,
    /// Probability of being slow for what the volume is at.
    pub busy_chance: f32,
    /// How full its buffer is, in steps below 64; where that is not known, what has been written
    /// since the last slow request, in steps from there to 128.
    pub phase: u32,
}

impl View {
    /// Which of several volumes decides.
    fn weight(&self) -> (bool, u64) {
        (self.busy_chance > CALL, self.wait_ns)
    }
}

/// How a request stands after a silence.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Woken {
    pub silence: u32,
    /// Probability of being slow for it.
    pub chance: f32,
    /// Whether that is called the reason if it is slow.
    pub is_likely: bool,
}

impl Knowledge {
    #[inline]
    pub(super) fn terms(&self, request: &Request) -> Terms {
        let is_read = request.operation == Operation::Read;
        let (threshold_ns, base_ns) = self.model.expectation(is_read, request.sectors);
        let pages = request.sectors.div_ceil(8);
        let size = (pages | 1).ilog2().min(SIZES as u32 - 1);
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
    ) -> (u16, View) {
        let mut decisive: Option<(u16, View)> = None;
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
                decisive = Some((index as u16, view));
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
        let slow_step = OCTAVES.step(since(volume.slow_end)) as usize;
        let level = self.wakes.level(volume.since_late);
        let busy = (((level * KINDS + kind) * 3 + volume.seen as usize) * SLOW_STEPS + slow_step) * STEPS
            + QUARTERS.step(since_flush) as usize;
        let busy_by_size = terms.size as usize * CIRCUMSTANCES + busy;
        let prior = match base_ns + wait_ns > threshold_ns {
            true => 0.8,
            // Slow requests come together.
            false if volume.seen == Seen::Slow && slow_step <= 2 => 0.35,
            false => 0.02,
        };
        let by_size = self.busy_by_size.entry(busy_by_size);
        let busy_chance = by_size.probability(match by_size.all() {
            // What little could be added is not looked for.
            ENOUGH.. => prior,
            _ => self.busy.probability(busy, prior),
        });
        let is_followed = drive.buffer_pages > 0;
        let phase = match is_followed {
            true => volume.pending * 64 / drive.buffer_pages,
            false => self.signals.since_slow(),
        };
        View { busy: busy as u32, busy_by_size: busy_by_size as u32, wait_ns, busy_chance, phase }
    }

    /// How a request stands after a silence, if there is any.
    #[inline(always)]
    pub(super) fn woken(&self, now: Time, terms: &Terms) -> Option<Woken> {
        let quiet_ns = if self.signals.queue().is_busy { 0 } else { now.0.saturating_sub(self.active.0) };
        if self.silences.is_none(now, quiet_ns) {
            return None;
        }
        let &Terms { is_read, base_ns, threshold_ns, .. } = terms;
        let (silent_ns, debt, place) = self.silences.wake(now, quiet_ns, self.drive.buffer_pages);
        let silence = (((terms.size as usize * 2 + usize::from(is_read)) * DEBTS + debt) * PLACES + place)
            * STEPS
            + QUARTERS.step(silent_ns) as usize;
        // Whether the drive is known to sleep by now, so that the request wakes it.
        let is_asleep = self
            .model
            .sleep
            .is_some_and(|sleep| quiet_ns >= sleep.after_ns && base_ns + sleep.wake_ns > threshold_ns);
        // A silence explains what comes more often after it than otherwise.
        let (share, _) = self.signals.share(is_read);
        let chance = self.silence.probability(silence, asleep_prior(is_asleep));
        let is_likely = chance > share + (1.0 - share) * CALL;
        Some(Woken { silence: silence as u32, chance, is_likely })
    }
}
