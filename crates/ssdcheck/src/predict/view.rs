//! How a request stands before the volume that it waits for longest, and after a silence.

use flashkeel_engine::{Operation, Request, Time};

use super::circumstances::{KIND, SIZE, SIZES, SLOW_STEP};
use super::flight::Flight;
use super::knowledge::{CALL, Knowledge};
use super::mixer::stretch;
use super::scale::Scale;
use super::silence::{DEBTS, PLACES};
use super::thought::asleep_prior;
use super::volume::Volume;
use crate::DeviceModel;

/// Steps of the time since a flush began, and of the length of a silence.
pub(super) const STEPS: usize = 1 << SLOW_STEP;
/// Quarter octaves of the time since a flush began and of a silence, octaves of that since a slow
/// request ended.
const QUARTERS: Scale = Scale::new(2, 16, STEPS as u32);
const OCTAVES: Scale = Scale::new(0, 16, 6);
/// Least and greatest probability of what a silence brings.
const LEAST_LIKELY: f32 = 1e-6;
const MOST_LIKELY: f32 = 0.9995;

/// What a page takes, from what on it is slow, and what each further one adds to both: see
/// [`DeviceModel::expectation`].
///
/// [`DeviceModel::expectation`]: crate::DeviceModel::expectation
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub base_ns: u64,
    pub threshold_ns: u64,
    pub page_ns: u64,
}

impl Expected {
    /// Of a model's writes and reads.
    pub fn new(model: &DeviceModel) -> [Expected; 2] {
        [false, true].map(|is_read| {
            let (threshold_ns, base_ns) = model.expectation(is_read, 8);
            let page_ns = model.expectation(is_read, 16).1 - base_ns;
            Expected { base_ns, threshold_ns, page_ns }
        })
    }
}

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
    /// Its place among the [`Circumstances`](super::circumstances::Circumstances).
    pub place: u32,
    /// Expected wait for flush and collection, in nanoseconds, and whether that makes it slow.
    pub wait_ns: u64,
    pub waits: bool,
    /// The logarithm of the odds of being slow for what the volume is at.
    pub odds: f32,
    /// How full its buffer is, in steps below 64; where that is not known, what has been written
    /// since the last slow request, in steps from there to 128.
    pub phase: u32,
}

impl View {
    /// Which of several volumes decides.
    fn weight(&self) -> (bool, u64) {
        (self.odds > stretch(CALL, 1.0 - CALL), self.wait_ns)
    }
}

/// How a request stands after a silence.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Woken {
    pub silence: u32,
    /// Whether that is called the reason if it is slow.
    pub is_likely: bool,
}

impl Knowledge {
    #[inline]
    pub(super) fn terms(&self, request: &Request) -> Terms {
        let is_read = request.operation == Operation::Read;
        // One at least.
        let further = request.sectors.saturating_sub(1) / 8;
        let pages = further + 1;
        let Expected { base_ns, threshold_ns, page_ns } = self.expected[usize::from(is_read)];
        let more_ns = u64::from(further) * page_ns;
        let (base_ns, threshold_ns) = (base_ns + more_ns, threshold_ns + more_ns);
        let size = size(pages);
        let queue_ns = self.outstanding_pages * self.page_ns;
        Terms { is_read, pages, size, base_ns, threshold_ns, queue_ns }
    }

    /// The volume that `request` waits for longest, when those `ahead` have been
    /// submitted, and how the request stands there.
    #[inline(never)]
    pub(super) fn decisive(&self, now: Time, ahead: &[Request], request: &Request) -> (u16, View) {
        let terms = self.terms(request);
        let mut decisive: Option<(u16, View)> = None;
        for index in self.model.volumes_of(request) {
            let mut volume = self.volumes[index];
            for other in ahead {
                let pages = self.model.pages_in(index, other);
                if pages > 0 {
                    let terms = self.terms(other);
                    volume.lead(now, other.operation, pages, terms.base_ns, &self.drive, &self.recurring);
                }
            }
            let view = self.view(now, &volume, &terms, self.model.pages_in(index, request));
            if decisive.is_none_or(|(_, other)| view.weight() > other.weight()) {
                decisive = Some((index as u16, view));
            }
        }
        decisive.expect("a request lies in a volume")
    }

    /// How a request stands before `volume`, in which `pages` of its pages lie.
    #[inline(always)]
    pub(super) fn view(&self, now: Time, volume: &Volume, terms: &Terms, pages: u32) -> View {
        let drive = &self.drive;
        let &Terms { is_read, base_ns, threshold_ns, size, .. } = terms;
        // Whether it waits for a flush that it starts itself, or may; and the
        // time since the last one started, which decides only in the latter case.
        let (mut wait_ns, mut own_flush, mut is_own) = (0, false, false);
        if is_read {
            if volume.flush_end > now {
                wait_ns = volume.flush_end.since(now).0;
            }
            if drive.is_flushed_by_reads && volume.pending > 0 {
                (own_flush, is_own) = (true, true);
                wait_ns += drive.read_flush_ns;
            }
        } else {
            let arrival = Time(now.0 + base_ns);
            let filled = volume.pending + pages;
            if filled < drive.room_pages {
                if volume.room_from > arrival {
                    wait_ns = volume.room_from.since(arrival).0;
                }
            } else {
                is_own = drive.is_fore || filled >= 2 * drive.buffer_pages;
                own_flush = is_own || filled > drive.buffer_pages;
                wait_ns = volume.takes(arrival, pages, drive, &self.recurring).since(arrival).0;
            }
        }
        let since_flush = if is_own { 0 } else { QUARTERS.since(now, volume.flush_start) };
        let kind = u32::from(is_read) + 2 * u32::from(own_flush);
        let place = (size << SIZE)
            + volume.level
            + volume.seen as u32
            + (kind << KIND)
            + (OCTAVES.since(now, volume.slow_end) << SLOW_STEP)
            + since_flush;
        let waits = base_ns + wait_ns > threshold_ns;
        let odds = self.circumstances.odds(place, waits);
        let is_followed = drive.buffer_pages > 0;
        let phase = if is_followed { drive.phase(volume.pending) } else { self.signals.since_slow() };
        View { place, wait_ns, waits, odds, phase }
    }

    /// How the request of `flight` stands after a silence, if there is any, and the logarithm of the
    /// odds of being slow for that.
    #[inline(always)]
    pub(super) fn woken(&self, now: Time, flight: &Flight) -> Option<(Woken, f32)> {
        let quiet_ns = if self.signals.is_busy() { 0 } else { now.0.saturating_sub(self.active.0) };
        if self.silences.is_none(now, quiet_ns) {
            return None;
        }
        Some(self.after_silence(now, quiet_ns, flight))
    }

    #[inline(never)]
    fn after_silence(&self, now: Time, quiet_ns: u64, flight: &Flight) -> (Woken, f32) {
        let &Flight { is_read, pages, base_ns, threshold_ns, .. } = flight;
        let kind = size(pages) as usize * 2 + usize::from(is_read);
        let (silent_ns, debt, place) = self.silences.wake(now, quiet_ns, self.drive.buffer_pages);
        let silence = ((kind * DEBTS + debt) * PLACES + place) * STEPS + QUARTERS.step(silent_ns) as usize;
        // Whether the drive is known to sleep by now, so that the request wakes it.
        let is_asleep = self
            .model
            .sleep
            .is_some_and(|sleep| quiet_ns >= sleep.after_ns && base_ns + sleep.wake_ns > threshold_ns);
        // A silence explains what comes more often after it than otherwise.
        let (share, _) = self.signals.share(is_read);
        let chance = self.silence.probability(silence, asleep_prior(is_asleep));
        let is_likely = chance > share + (1.0 - share) * CALL;
        // What it explains is what goes beyond the share of slow ones.
        let beyond = ((chance - share) / (1.0 - share + f32::EPSILON)).clamp(LEAST_LIKELY, MOST_LIKELY);
        (Woken { silence: silence as u32, is_likely }, stretch(beyond, 1.0 - beyond))
    }
}

/// Octaves of so many pages, below [`SIZES`].
#[inline]
fn size(pages: u32) -> u32 {
    pages.ilog2().min(SIZES as u32 - 1)
}
