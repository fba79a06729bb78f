//! How a request stands before the volume that it waits for longest, and after a silence.

use flashkeel_engine::{Lba, Operation, Request, Time};

use super::circumstances::{KIND, SLOW_STEP, WAITS};
use super::flight::Flight;
use super::knowledge::{CALL, Knowledge};
use super::mixer::stretch;
use super::scale::Scale;
use super::silence::{DEBTS, PLACES};
use super::thought::asleep_prior;
use super::volume::{SLOW, Volume};

/// Sizes of requests told apart: octaves of pages, 128 and more together.
pub(super) const SIZES: usize = 8;
/// Steps of the time since a flush began, and of the length of a silence.
pub(super) const STEPS: usize = 1 << SLOW_STEP;
/// Quarter octaves of the time since a flush began and of a silence.
const QUARTERS: Scale = Scale::new(2, 16, STEPS as u32);
/// Least and greatest probability of what a silence brings.
const LEAST_LIKELY: f32 = 1e-6;
const MOST_LIKELY: f32 = 0.9995;

/// What a request is, and what it takes if nothing interferes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms {
    pub is_read: bool,
    pub pages: u32,
    /// Octaves of its pages.
    pub size: u32,
    pub base_ns: u64,
}

/// How a request stands before a volume.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct View {
    /// Its place among the [`Circumstances`](super::circumstances::Circumstances).
    pub place: u16,
    /// Expected wait for flush and collection, in nanoseconds.
    pub wait_ns: u64,
    /// The logarithm of the odds of being slow for what the volume is at.
    pub odds: f32,
    /// How full its buffer is, in steps below 64; 0 where that is not known.
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
    pub(super) fn terms(&self, is_read: bool, lba: Lba, sectors: u32) -> Terms {
        // One at least.
        let beyond = u64::from(sectors.saturating_sub(1));
        let pages = ((lba.0 % 8 + beyond) / 8) as u32 + 1;
        let ground = &self.signals.of[usize::from(is_read)];
        // Which is slow goes by the size alone.
        let base_ns = ground.base_ns + beyond / 8 * ground.page_ns;
        Terms { is_read, pages, size: pages.ilog2(), base_ns }
    }

    /// The volume that `request` waits for longest, when those `ahead` have been
    /// submitted, and how the request stands there.
    #[inline(never)]
    pub(super) fn decisive(&self, now: Time, ahead: &[Request], request: &Request) -> (u16, View) {
        let terms_of = |of: &Request| self.terms(of.operation == Operation::Read, of.lba, of.sectors);
        let writes_empty = self.flushes.writes_empty();
        let terms = terms_of(request);
        let mut decisive: Option<(u16, View)> = None;
        for index in self.model.volumes_of(request) {
            let mut volume = self.volumes[index];
            for other in ahead {
                let pages = self.model.pages_in(index, other);
                let empties = other.operation == Operation::Flush && self.flushes.commands_empty();
                if pages > 0 || empties {
                    let base_ns = terms_of(other).base_ns;
                    volume.lead(now, other.operation, pages, base_ns, &self.drive, &self.recurring);
                }
                // Wherever it lies, all buffers are written out for it.
                if writes_empty && other.fua && other.operation == Operation::Write {
                    let base_ns = terms_of(other).base_ns;
                    volume.empty(Time(now.0 + base_ns), &self.drive, &self.recurring);
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
        let &Terms { is_read, base_ns, .. } = terms;
        let ground = &self.signals.of[usize::from(is_read)];
        let is_own = match is_read {
            true => drive.is_flushed_by_reads && volume.pending > 0,
            false => volume.pending + pages >= drive.room_pages,
        };
        let (wait_ns, of_flush) = if is_own {
            self.before_its_own(now, volume, terms, pages)
        } else {
            let wait_ns = match is_read {
                true => volume.flush_end.0.saturating_sub(now.0),
                false => volume.room_from.0.saturating_sub(now.0 + base_ns),
            };
            (wait_ns, QUARTERS.since(now, volume.flush_start))
        };
        let since_slow = match now >= volume.calm_from {
            true => SLOW.last(),
            false => SLOW.since(now, volume.slow_end),
        };
        let waits = u32::from(wait_ns as i64 > ground.margin_ns) << WAITS;
        let place = (ground.kind + volume.standing + (since_slow << SLOW_STEP) + of_flush + waits) as u16;
        let odds = self.circumstances.odds(place);
        View { place, wait_ns, odds, phase: drive.phase(volume.pending) }
    }

    /// How long a request waits that starts a flush itself, or may, and the part of its place that
    /// tells of flushes: that it does, or else how long ago the last one started.
    #[inline(never)]
    fn before_its_own(&self, now: Time, volume: &Volume, terms: &Terms, pages: u32) -> (u64, u32) {
        const OWN: u32 = 2 << KIND;
        let drive = &self.drive;
        if terms.is_read {
            return (volume.flush_end.0.saturating_sub(now.0) + drive.read_flush_ns, OWN);
        }
        let arrival = Time(now.0 + terms.base_ns);
        let wait_ns = volume.takes(arrival, pages, drive, &self.recurring).since(arrival).0;
        let filled = volume.pending + pages;
        if drive.is_fore || filled >= 2 * drive.buffer_pages {
            return (wait_ns, OWN);
        }
        let may = if filled > drive.buffer_pages { OWN } else { 0 };
        (wait_ns, may + QUARTERS.since(now, volume.flush_start))
    }

    /// Whether a request at `now` comes after no silence and stands in the wake of none.
    #[inline]
    pub(super) fn is_awake(&self, now: Time) -> bool {
        now < self.quiet_until && self.silences.is_over(now)
    }

    /// How the request of `flight` stands after a silence, and the logarithm of the odds of being slow
    /// for that.
    #[inline(never)]
    pub(super) fn after_silence(&self, now: Time, flight: &Flight) -> (Woken, f32) {
        let &Flight { is_read, pages, .. } = flight;
        let quiet_ns = self.quiet_ns(now);
        let size = (pages.ilog2() as usize).min(SIZES - 1);
        let kind = size * 2 + usize::from(is_read);
        let (silent_ns, debt, place) = self.silences.wake(now, quiet_ns, self.drive.buffer_pages);
        let silence = ((kind * DEBTS + debt) * PLACES + place) * STEPS + QUARTERS.step(silent_ns) as usize;
        let margin_ns = self.signals.of[usize::from(is_read)].margin_ns;
        // Whether the drive is known to sleep by now, so that the request wakes it.
        let is_asleep = self
            .model
            .sleep
            .is_some_and(|sleep| quiet_ns >= sleep.after_ns && sleep.wake_ns as i64 > margin_ns);
        // A silence explains what comes more often after it than otherwise.
        let (share, _) = self.signals.share(is_read);
        let chance = self.silence.probability(silence, asleep_prior(is_asleep));
        let is_likely = chance > share + (1.0 - share) * CALL;
        // What it explains is what goes beyond the share of slow ones.
        let beyond = ((chance - share) / (1.0 - share + f32::EPSILON)).clamp(LEAST_LIKELY, MOST_LIKELY);
        (Woken { silence: silence as u32, is_likely }, stretch(beyond, 1.0 - beyond))
    }
}
