//! The calibrator: corrects the model of a volume by what its requests took.

use flashkeel_engine::{Span, Time};

use super::flight::Flight;
use super::knowledge::{GAIN, Knowledge, MOST_VOLUMES};
use super::volume::Seen;
use crate::model::LONGEST_NS;

impl Knowledge {
    /// Corrects counters of the volume by what became of a request; true if it tells of its phase.
    #[inline(always)]
    pub(super) fn follow(&mut self, flight: &Flight, now: Time, is_slow: bool) -> bool {
        let volume = &mut self.volumes[usize::from(flight.volume) % MOST_VOLUMES];
        let is_newest = flight.flush_start == volume.flush_start;
        if flight.is_read {
            // Whatever was told before this is told.
            volume.unread = [(flight.count, now); 2];
            if is_newest {
                volume.has_seen(if is_slow { Seen::Slow } else { Seen::Normal });
            }
        } else if is_newest && flight.flushes && volume.pending > 0 {
            // Its last pages were taken because those before them had gone.
            volume.move_flush(now);
        }
        self.tells(flight, is_slow)
    }

    /// Whether a request tells of its volume's phase.
    #[inline]
    pub(super) fn tells(&self, flight: &Flight, is_slow: bool) -> bool {
        // A write that a back buffer takes says nothing: it may have filled it or not.
        flight.told > 0 && (is_slow || flight.is_read || self.drive.is_fore)
    }

    /// Corrects times and counters of the volume by what a slow request took, `latency` of it but for
    /// the queue.
    #[inline(never)]
    pub(super) fn calibrate_slow(&mut self, flight: &Flight, now: Time, latency: Span) {
        let Flight { is_read, base_ns, .. } = *flight;
        let mean = &mut self.signals.of[usize::from(is_read)].slow_ns;
        *mean = (*mean * (GAIN - 1) + latency.0.min(LONGEST_NS)) / GAIN;
        if flight.is_waking() {
            return;
        }
        let drive = &mut self.drive;
        let volume = &mut self.volumes[usize::from(flight.volume) % MOST_VOLUMES];
        volume.was_slow(now);
        let lasted_ns = now.0.saturating_sub(base_ns).saturating_sub(flight.flush_start.0);
        let is_newest = flight.flush_start == volume.flush_start;
        if lasted_ns > drive.flush_ns * 3 / 2 && is_newest && volume.since_late > 0 {
            self.recurring.wakes.note(volume.since_late);
            volume.since_late = 0;
            volume.find_level(&self.recurring);
        }
        let expected = flight.wait_ns > 0;
        if expected && lasted_ns < 2 * drive.flush_ns.max(drive.read_flush_ns) {
            let mean = if drive.is_flushed_by_reads && is_read {
                &mut drive.read_flush_ns
            } else {
                &mut drive.flush_ns
            };
            *mean = (*mean * (GAIN - 1) + lasted_ns) / GAIN;
        } else if lasted_ns < 2 * drive.collection_ns
            && lasted_ns >= drive.collection_ns / 2
            && volume.since_collection > 0
        {
            // Too long for a flush: garbage was collected.
            drive.collection_ns = (drive.collection_ns * (GAIN - 1) + lasted_ns) / GAIN;
            self.recurring.collections.note(volume.since_collection);
            volume.since_collection = 0;
        }
        if !is_read && !drive.is_fore {
            volume.began(now, drive);
        }
    }

    /// Tells the volume's phase what a request says of it.
    #[inline(never)]
    pub(super) fn correct_phase(&mut self, flight: &Flight, is_slow: bool) {
        let Some(phase) = self.phases.get_mut(usize::from(flight.volume)) else { return };
        if flight.is_waking() {
            return;
        }
        let volume = &mut self.volumes[usize::from(flight.volume) % MOST_VOLUMES];
        let pages = u64::from(self.drive.buffer_pages);
        let from = (flight.count - u64::from(flight.told)) % pages;
        if phase.tell(from as u32, flight.told, is_slow) {
            volume.pending = ((volume.count + pages - u64::from(phase.origin)) % pages) as u32;
        }
    }
}
