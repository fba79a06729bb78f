//! What is known of a drive, and what it is thought to be at.

use flashkeel_engine::{Filling, Prediction, Request, Span, Time};

use super::calibration::Calibration;
use super::calls::Calls;
use super::flight::Flight;
use super::history::History;
use super::intervals::{Intervals, LEVELS};
use super::mixer::Mixer;
use super::phase::Phase;
use super::sample::Sample;
use super::signals::Signals;
use super::silence::{DEBTS, PLACES, Silences};
use super::switch::Switch;
use super::thought::WEIGHTS;
use super::view::Terms;
use super::volume::{Drive, Volume};
use crate::{BufferType, DeviceModel};

/// Steps of the time since a flush began, and of the length of a silence.
pub(super) const STEPS: usize = 64;
/// Steps of the time since a slow request ended.
pub(super) const SLOW_STEPS: usize = 6;
/// Kinds of requests: reads and writes, either waiting for a flush that they
/// start themselves or not.
pub(super) const KINDS: usize = 4;
/// Circumstances in a volume.
pub(super) const CIRCUMSTANCES: usize = LEVELS * KINDS * 3 * SLOW_STEPS * STEPS;
/// Sizes of requests told apart: octaves of pages, 64 and more together.
pub(super) const SIZES: usize = 7;
/// Histories by circumstances in the volume; by these and the size of the request, where the former
/// is the prior; and by the size, the length of the silence before, and what was written before that.
pub(super) type Busy = History<CIRCUMSTANCES>;
pub(super) type BusyBySize = History<{ SIZES * CIRCUMSTANCES }>;
pub(super) type Waking = History<{ SIZES * 2 * DEBTS * PLACES * STEPS }>;
/// One part of so many is a new time's share in a running mean.
pub(super) const GAIN: u64 = 16;
/// Probability from which on a volume is thought to be what makes a request slow.
pub(super) const CALL: f32 = 0.4;

/// What an engine knows.
#[derive(Clone, Debug)]
pub(super) struct Knowledge {
    pub model: DeviceModel,
    pub drive: Drive,
    pub volumes: Vec<Volume>,
    /// Of each volume; empty where reads flush the buffer, which tells its state.
    pub phases: Vec<Phase>,
    /// Between collections, and between flushes in whose wake requests were
    /// slow for longer than a flush takes.
    pub collections: Intervals,
    pub wakes: Intervals,
    pub busy: Busy,
    pub busy_by_size: BusyBySize,
    pub silence: Waking,
    pub silences: Silences,
    pub switch: Switch,
    pub signals: Signals,
    pub mixer: Mixer,
    pub calibration: Calibration,
    pub calls: Calls,
    pub sample: Sample,
    /// Mean latency of slow reads and writes.
    pub slow_ns: [u64; 2],
    /// When a request was submitted or completed last.
    pub active: Time,
    /// When the oldest of the requests that are outstanding was submitted, if there are any.
    pub oldest: Time,
    /// Pages of these, and what each takes on the way that all share.
    pub outstanding_pages: u64,
    pub page_ns: u64,
}

impl Knowledge {
    /// As [`Engine::new`](super::Engine::new).
    pub fn new(model: &DeviceModel, false_calls: Option<f64>) -> Knowledge {
        let latencies = &model.latencies_ns;
        let flush_ns = if latencies.flush > 0 { latencies.flush } else { 1_000_000 };
        let buffer = &model.write_buffer;
        let drive = Drive {
            buffer_pages: buffer.bytes.map_or(0, |bytes| (bytes / 4_096) as u32),
            is_fore: buffer.kind == BufferType::Fore,
            is_flushed_by_reads: buffer.is_flushed_by_reads(),
            flush_ns,
            read_flush_ns: flush_ns,
            collection_ns: latencies.collection.max(2 * flush_ns),
        };
        let votes = if drive.buffer_pages > 0 && !drive.is_flushed_by_reads { model.volumes() } else { 0 };
        let phases = vec![Phase::new(drive.buffer_pages); votes];
        let mut knowledge = Knowledge {
            drive,
            volumes: vec![Volume::NEW; model.volumes()],
            phases,
            collections: Intervals::new(),
            wakes: Intervals::new(),
            busy: Busy::new(),
            busy_by_size: BusyBySize::new(),
            silence: Waking::new(),
            silences: Silences::default(),
            // Without a buffer to follow, only what has come true is given out.
            switch: Switch::new(drive.buffer_pages > 0),
            signals: Signals::new(),
            mixer: Mixer::new(WEIGHTS),
            calibration: Calibration::new(),
            calls: Calls::new(false_calls.map(|part| part as f32)),
            sample: Sample::default(),
            slow_ns: [2 * model.thresholds_ns.read, 2 * model.thresholds_ns.write],
            active: Time::ZERO,
            oldest: Time::ZERO,
            outstanding_pages: 0,
            page_ns: latencies.read_page.min(latencies.write_page),
            model: DeviceModel { learned: None, ..model.clone() },
        };
        if let Some(learned) = &model.learned {
            knowledge.recall(learned);
        }
        knowledge
    }

    /// What is to be expected of `request`, and what that comes from, as [`Predictor::predict`].
    ///
    /// [`Predictor::predict`]: flashkeel_engine::Predictor::predict
    #[inline]
    pub fn look(&self, now: Time, ahead: &[Request], request: &Request, flight: &mut Flight) -> Prediction {
        flight.id = request.id;
        flight.submitted = now;
        flight.lba = request.lba;
        flight.sectors = request.sectors;
        flight.terms = self.terms(request);
        let only = self.model.only_volume(request);
        flight.lies_in_one = only.is_some();
        let terms = &flight.terms;
        match (only, ahead) {
            // Nearly every request.
            (Some(index), []) => {
                flight.view = self.view(now, &self.volumes[index], terms, terms.pages);
                flight.volume = index as u16;
            }
            _ => (flight.volume, flight.view) = self.decisive(now, ahead, request, terms),
        }
        flight.woken = self.woken(now, terms);
        self.think(now, ahead.is_empty(), flight);
        self.prediction(flight)
    }

    /// How full the buffer is that `write` goes to, as far as that is known.
    pub fn filling(&self, write: &Request) -> Option<Filling> {
        let mut volumes = self.model.volumes_of(write);
        let (Some(volume), None) = (volumes.next(), volumes.next()) else { return None };
        let is_known = self.switch.is_on && self.phases.get(volume).is_some_and(Phase::is_sure);
        is_known.then(|| Filling { pages: self.volumes[volume].pending, of: self.drive.buffer_pages })
    }

    /// `request`, of which that was thought, has been submitted.
    #[inline]
    pub fn submitted(&mut self, now: Time, request: &Request, flight: &mut Flight) {
        let Knowledge { model, drive, volumes, collections, .. } = self;
        let Terms { is_read, pages, base_ns, .. } = flight.terms;
        let decisive = usize::from(flight.volume);
        let before = &volumes[decisive];
        (flight.count, flight.told) = match is_read {
            // What other volumes do tells nothing of this one.
            _ if !flight.lies_in_one && model.pages_in(decisive, request) != pages => (before.count, 0),
            true => (before.count, before.fresh(now, drive)),
            false => (before.count + u64::from(pages), pages),
        };
        let flush_start = before.flush_start;
        if flight.lies_in_one {
            volumes[decisive].lead(now, request.operation, pages, base_ns, drive, collections);
        } else {
            for index in model.volumes_of(request) {
                let pages = model.pages_in(index, request);
                volumes[index].lead(now, request.operation, pages, base_ns, drive, collections);
            }
        }
        flight.flush_start = volumes[decisive].flush_start;
        flight.flushes = flight.flush_start != flush_start;
        if !self.signals.queue().is_busy {
            self.silences.end(now, now.0.saturating_sub(self.active.0), self.drive.buffer_pages);
            self.oldest = now;
        }
        self.signals.submitted(request.lba, &flight.terms);
        if !is_read {
            self.silences.write(pages);
        }
        self.active = now;
        self.outstanding_pages += u64::from(pages);
    }

    /// Learns from a request that has ended at `now`.
    #[inline]
    pub fn ended(&mut self, flight: &Flight, now: Time) {
        let Terms { is_read, pages, threshold_ns, queue_ns, .. } = flight.terms;
        self.active = now;
        self.outstanding_pages -= u64::from(pages);
        let took = now.since(flight.submitted);
        // What the queue explains tells nothing of the drive.
        let latency = Span(took.0.saturating_sub(queue_ns));
        let is_slow = latency.0 > threshold_ns;
        if let Some(woken) = &flight.woken {
            self.silence.note(woken.silence as usize, is_slow, 1);
        }
        if !flight.is_waking() {
            self.busy.note(flight.view.busy as usize, is_slow, 1);
            self.busy_by_size.note(flight.view.busy_by_size as usize, is_slow, 1);
        }
        if is_slow {
            let mean = &mut self.slow_ns[usize::from(!is_read)];
            *mean = (*mean * (GAIN - 1) + latency.0) / GAIN;
        }
        self.correct_phase(flight, now, is_slow);
        self.calibrate(flight, now, is_slow);
        let was_slow = took.0 > threshold_ns;
        self.signals.ended(now, &flight.terms, took.0);
        self.learn(flight, was_slow);
        if self.switch.judge(flight.thought.is_called, was_slow) {
            self.collections.reset();
        }
    }

    /// Nothing is outstanding any more.
    pub fn cut_power(&mut self) {
        self.signals.clear();
        self.outstanding_pages = 0;
    }
}
