//! The calibrator: corrects the model of a volume by what its requests took.

use flashkeel_engine::Time;

use super::flight::Flight;
use super::knowledge::{GAIN, Knowledge};
use super::view::Terms;
use super::volume::Seen;

impl Knowledge {
    /// Corrects times and counters of the volume by what a request took.
    #[inline]
    pub(super) fn calibrate(&mut self, flight: &Flight, now: Time, is_slow: bool) {
        let drive = &mut self.drive;
        let volume = &mut self.volumes[usize::from(flight.volume)];
        let Terms { is_read, base_ns, .. } = flight.terms;
        let is_newest = flight.flush_start == volume.flush_start;
        if is_read && is_newest {
            volume.seen = if is_slow { Seen::Slow } else { Seen::Normal };
        }
        let lasted_ns = now.0.saturating_sub(base_ns).saturating_sub(flight.flush_start.0);
        if flight.flushes && !is_read && is_newest && volume.pending > 0 {
            // Its last pages were taken because those before them had gone.
            volume.move_flush(now);
        }
        if !is_slow || flight.is_waking() {
            return;
        }
        volume.slow_end = now;
        if lasted_ns > drive.flush_ns * 3 / 2 && is_newest && volume.since_late > 0 {
            self.wakes.note(volume.since_late);
            volume.since_late = 0;
        }
        let expected = flight.view.wait_ns > 0;
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
            self.collections.note(volume.since_collection);
            volume.since_collection = 0;
        }
        if !is_read && !drive.is_fore {
            volume.began(now, drive);
        }
    }

    /// Tells the volume's phase what a request says of it.
    #[inline]
    pub(super) fn correct_phase(&mut self, flight: &Flight, now: Time, is_slow: bool) {
        let Some(phase) = self.phases.get_mut(usize::from(flight.volume)) else { return };
        let volume = &mut self.volumes[usize::from(flight.volume)];
        // A write that a back buffer takes says nothing: it may have filled it or not.
        let is_read = flight.terms.is_read;
        if flight.is_waking() || !(is_slow || is_read || self.drive.is_fore) {
            return;
        }
        if is_read {
            volume.unread = [(flight.count, now); 2];
        }
        let pages = u64::from(self.drive.buffer_pages);
        let from = (flight.count - u64::from(flight.told)) % pages;
        if phase.tell(from as u32, flight.told, is_slow) {
            volume.pending = ((volume.count + pages - u64::from(phase.origin)) % pages) as u32;
        }
    }
}
