//! What is known of a drive, and what it is thought to be at.

use flashkeel_engine::{Filling, Operation, Prediction, Request, Span, Time};

use super::calibration::Calibration;
use super::calls::Calls;
use super::circumstances::{Circumstances, SIZES};
use super::flight::Flight;
use super::history::History;
use super::intervals::Recurring;
use super::mixer::Mixer;
use super::phase::Phase;
use super::placing::Placing;
use super::sample::Sample;
use super::signals::Signals;
use super::silence::{DEBTS, PLACES, Silences};
use super::switch::Switch;
use super::thought::WEIGHTS;
use super::view::{Expected, STEPS};
use super::volume::{Drive, Volume};
use crate::model::MOST_BITS;
use crate::{BufferType, DeviceModel};

/// Histories by the size of a request, the length of the silence before, and what was written before
/// that.
pub(super) type Waking = History<{ SIZES * 2 * DEBTS * PLACES * STEPS }>;
/// Volumes that a model may have.
pub(super) const MOST_VOLUMES: usize = 1 << MOST_BITS;
/// One part of so many is a new time's share in a running mean.
pub(super) const GAIN: u64 = 16;
/// Probability from which on a volume is thought to be what makes a request slow.
pub(super) const CALL: f32 = 0.4;

/// What an engine knows.
#[derive(Clone, Debug)]
pub(super) struct Knowledge {
    pub model: DeviceModel,
    pub placing: Placing,
    /// Of writes and reads.
    pub expected: [Expected; 2],
    pub drive: Drive,
    pub volumes: Box<[Volume; MOST_VOLUMES]>,
    /// Of each volume; empty where reads flush the buffer, which tells its state.
    pub phases: Vec<Phase>,
    pub recurring: Recurring,
    pub circumstances: Circumstances,
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
        let buffer_pages = buffer.bytes.map_or(0, |bytes| (bytes / 4_096) as u32);
        let is_fore = buffer.kind == BufferType::Fore;
        let collection_ns = latencies.collection.max(2 * flush_ns);
        let drive = Drive::new(buffer_pages, is_fore, buffer.is_flushed_by_reads(), flush_ns, collection_ns);
        let votes = if drive.buffer_pages > 0 && !drive.is_flushed_by_reads { model.volumes() } else { 0 };
        let phases = vec![Phase::new(drive.buffer_pages); votes];
        let mut knowledge = Knowledge {
            drive,
            placing: Placing::new(model),
            expected: Expected::new(model),
            volumes: Box::new([Volume::NEW; MOST_VOLUMES]),
            phases,
            recurring: Recurring::default(),
            circumstances: Circumstances::new(),
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
        let terms = self.terms(request);
        flight.is_read = terms.is_read;
        flight.pages = terms.pages;
        (flight.base_ns, flight.threshold_ns, flight.queue_ns) =
            (terms.base_ns, terms.threshold_ns, terms.queue_ns);
        let only = self.placing.only_volume(request);
        flight.lies_in_one = only.is_some();
        let view;
        match (only, ahead) {
            // Nearly every request.
            (Some(index), []) => {
                view = self.view(now, &self.volumes[index % MOST_VOLUMES], &terms, terms.pages);
                flight.volume = index as u16;
            }
            _ => (flight.volume, view) = self.decisive(now, ahead, request),
        }
        (flight.place, flight.wait_ns, flight.waits) = (view.place, view.wait_ns, view.waits);
        let mut odds = view.odds;
        flight.woken = self.woken(now, flight).map(|(woken, awake)| {
            odds = if awake > odds { awake } else { odds };
            woken
        });
        let is_next =
            !ahead.iter().any(|other| matches!(other.operation, Operation::Read | Operation::Write));
        self.think(now, is_next, &terms, odds, view.phase, flight)
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
        let Knowledge { model, drive, volumes, recurring, .. } = self;
        let Flight { is_read, pages, base_ns, .. } = *flight;
        let decisive = usize::from(flight.volume) % MOST_VOLUMES;
        let before = &volumes[decisive];
        (flight.count, flight.told) = match is_read {
            // What other volumes do tells nothing of this one.
            _ if !flight.lies_in_one && model.pages_in(decisive, request) != pages => (before.count, 0),
            true => (before.count, before.fresh(now, drive)),
            false => (before.count + u64::from(pages), pages),
        };
        let flush_start = before.flush_start;
        if flight.lies_in_one {
            volumes[decisive].lead(now, request.operation, pages, base_ns, drive, recurring);
        } else {
            for index in model.volumes_of(request) {
                let pages = model.pages_in(index, request);
                volumes[index].lead(now, request.operation, pages, base_ns, drive, recurring);
            }
        }
        flight.flush_start = volumes[decisive].flush_start;
        flight.flushes = flight.flush_start != flush_start;
        if !self.signals.is_busy() {
            let quiet_ns = now.0.saturating_sub(self.active.0);
            if Silences::is_any(quiet_ns) {
                self.silences.end(now, quiet_ns, self.drive.buffer_pages);
            }
            self.oldest = now;
        }
        self.signals.submitted(request.lba, is_read, pages);
        if !is_read {
            self.silences.write(pages);
        }
        self.active = now;
        self.outstanding_pages += u64::from(pages);
    }

    /// Learns from a request that has ended at `now`.
    #[inline]
    pub fn ended(&mut self, flight: &Flight, now: Time) {
        let Flight { is_read, pages, threshold_ns, queue_ns, .. } = *flight;
        self.active = now;
        self.outstanding_pages -= u64::from(pages);
        let took = now.since(flight.submitted);
        // What the queue explains tells nothing of the drive.
        let latency = Span(took.0.saturating_sub(queue_ns));
        let is_slow = latency.0 > threshold_ns;
        let was_slow = took.0 > threshold_ns;
        self.calibrate(flight, now, latency, is_slow);
        self.signals.ended(now, is_read, threshold_ns, took.0);
        let times = self.sample.times(flight.thought.chance, was_slow);
        if times > 0 {
            self.learn(flight, is_slow, was_slow, times);
        }
        if self.switch.judge(flight.thought.is_called, was_slow) {
            self.recurring.collections.reset();
        }
    }

    /// Nothing is outstanding any more.
    pub fn cut_power(&mut self) {
        self.signals.clear();
        self.outstanding_pages = 0;
    }
}
