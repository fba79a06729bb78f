//! The calibrator: corrects the model of a volume by what its requests took, and
//! the probability from which on they are called slow.

use flashkeel_engine::Time;

use super::volume::Seen;
use super::{Engine, Flight, GAIN};

/// Least and greatest probability from which on a request is called slow. Where
/// much is slow a greater one would keep false calls within their share, but
/// schedulers lose more by what is missed.
const CALL: (f32, f32) = (0.08, 0.7);
/// Part of the normal requests that may be called slow. The paper's drives have
/// 1.0 to 0.3 % (§V-B).
const FALSE_CALLS: f32 = 0.0085;
/// Normal requests over which that part is taken.
const FALSE_MEMORY: f32 = 4_096.0;
/// Steps of the probability after a false call and after a true one. Their ratio
/// is that of false calls to true ones.
const CALL_STEP: f32 = 0.005;
const CALL_BACK: f32 = 0.006;

impl Engine {
    /// Moves the probability from which on a request is called slow, so that
    /// false calls stay few beside true ones, and among normal requests.
    #[inline]
    pub(super) fn adjust_call(&mut self, called: bool, is_slow: bool) {
        if !is_slow {
            self.false_share += (f32::from(u8::from(called)) - self.false_share) / FALSE_MEMORY;
        }
        if called {
            let step = if !is_slow || self.false_share > FALSE_CALLS { CALL_STEP } else { -CALL_BACK };
            self.call = (self.call + step).clamp(CALL.0, CALL.1);
        }
    }

    /// Corrects times and counters of the volume by what a request took.
    pub(super) fn calibrate(&mut self, flight: &Flight, now: Time, is_slow: bool) {
        let drive = &mut self.drive;
        let volume = &mut self.volumes[usize::from(flight.volume)];
        let (_, base_ns) = self.model.expectation(flight.is_read, 8 * flight.pages);
        let is_newest = flight.flush_start == volume.flush_start;
        if flight.is_read && is_newest {
            volume.seen = if is_slow { Seen::Slow } else { Seen::Normal };
        }
        let lasted_ns = now.0.saturating_sub(base_ns).saturating_sub(flight.flush_start.0);
        if flight.flushes && !flight.is_read && is_newest && volume.pending > 0 {
            // Its last pages were taken because those before them had gone.
            volume.move_flush(now);
        }
        if !is_slow || flight.view.is_waking {
            return;
        }
        volume.slow_end = now;
        if lasted_ns > drive.flush_ns * 3 / 2 && is_newest && volume.since_late > 0 {
            self.wakes.note(volume.since_late);
            volume.since_late = 0;
        }
        let expected = flight.view.wait_ns > 0;
        if expected && lasted_ns < 2 * drive.flush_ns.max(drive.read_flush_ns) {
            let mean = if drive.is_flushed_by_reads && flight.is_read {
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
        if !flight.is_read && !drive.is_fore {
            volume.began(now, drive);
        }
    }

    /// Tells the volume's phase what a request says of it.
    #[inline]
    pub(super) fn correct_phase(&mut self, flight: &Flight, now: Time, is_slow: bool) {
        let Some(phase) = self.phases.get_mut(usize::from(flight.volume)) else { return };
        let volume = &mut self.volumes[usize::from(flight.volume)];
        // A write that a back buffer takes says nothing: it may have filled it or not.
        if flight.view.is_waking || !(is_slow || flight.is_read || self.drive.is_fore) {
            return;
        }
        if flight.is_read {
            volume.unread = [(flight.count, now); 2];
        }
        let pages = u64::from(self.drive.buffer_pages);
        let from = (flight.count - u64::from(flight.told)) % pages;
        if phase.tell(from as u32, flight.told, is_slow) {
            volume.pending = ((volume.count + pages - u64::from(phase.origin)) % pages) as u32;
        }
    }
}
