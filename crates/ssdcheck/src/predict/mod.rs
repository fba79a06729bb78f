//! Prediction at run time: volume selector, prediction engine, latency
//! monitor, calibrator (§III-C2).
//!
//! The paper's model says when a flush or a collection blocks a volume. What
//! else a drive does (it sleeps, folds an SLC cache, writes its map) shows in
//! *when* requests are slow: after a silence, while others are slow, at this or
//! that time after a flush began, a certain number of flushes after the last time.
//! Histories learn that, and take the model's word where they have seen nothing
//! yet.

mod calibrator;
mod calls;
mod history;
mod intervals;
mod learned;
mod mixer;
mod phase;
mod score;
mod signals;
mod silence;
mod switch;
mod thought;
mod view;
mod volume;

use flashkeel_engine::{
    Completion, Filling, Lba, Operation, Prediction, Predictor, Request, RequestId, Span, Time,
};

pub use learned::Learned;
pub use score::Score;

use crate::{BufferType, DeviceModel};
use calls::Calls;
use history::History;
use intervals::{Intervals, LEVELS};
use mixer::{Calibration, Mixer};
use phase::Phase;
use signals::Signals;
use silence::{DEBTS, PLACES, Silences};
use switch::Switch;
use thought::{Thought, WEIGHTS, share_odds};
use view::{Terms, View};
use volume::{Drive, Volume};

/// Steps of the time since a flush began, and of the length of a silence.
const STEPS: usize = 64;
/// Steps of the time since a slow request ended.
const SLOW_STEPS: usize = 6;
/// Kinds of requests: reads and writes, either waiting for a flush that they
/// start themselves or not.
const KINDS: usize = 4;
/// Circumstances in a volume.
const CIRCUMSTANCES: usize = LEVELS * KINDS * 3 * SLOW_STEPS * STEPS;
/// Sizes of requests told apart: octaves of pages, 64 and more together.
const SIZES: usize = 7;
/// Histories by circumstances in the volume; by these and the size of the request, where the former
/// is the prior; and by the size, the length of the silence before, and what was written before that.
type Busy = History<CIRCUMSTANCES>;
type BusyBySize = History<{ SIZES * CIRCUMSTANCES }>;
type Waking = History<{ SIZES * 2 * DEBTS * PLACES * STEPS }>;
/// Requests over which the share of slow ones is taken.
const SHARE_MEMORY: f32 = 512.0;
/// One part of so many is a new time's share in a running mean.
const GAIN: u64 = 16;
/// Probability from which on a volume is thought to be what makes a request slow.
const CALL: f32 = 0.4;

/// Predicts the requests of one drive from its model, and corrects itself.
#[derive(Clone, Debug)]
pub struct Engine {
    model: DeviceModel,
    drive: Drive,
    volumes: Vec<Volume>,
    /// Of each volume; empty where reads flush the buffer, which tells its state.
    phases: Vec<Phase>,
    /// Between collections, and between flushes in whose wake requests were
    /// slow for longer than a flush takes.
    collections: Intervals,
    wakes: Intervals,
    busy: Busy,
    busy_by_size: BusyBySize,
    silence: Waking,
    silences: Silences,
    switch: Switch,
    signals: Signals,
    mixer: Mixer,
    calibration: Calibration,
    calls: Calls,
    /// Shares of slow ones among writes and reads of late, and the logarithms of their odds.
    slow_share: [f32; 2],
    share_odds: [f32; 2],
    /// Mean latency of slow reads and writes.
    slow_ns: [u64; 2],
    /// When a request was submitted or completed last.
    active: Time,
    ids: Vec<RequestId>,
    flights: Vec<Flight>,
    /// When the oldest of these was submitted, if there are any.
    oldest: Time,
    /// Pages of the requests that are outstanding, and what each takes on the
    /// way that all share.
    outstanding_pages: u64,
    page_ns: u64,
    /// The last request that was asked for, which whoever submits it need not wait for again;
    /// as long as nothing has been learnt since.
    asked: Flight,
    is_asked: bool,
}

/// What was thought of a request when it was submitted.
#[derive(Clone, Copy, Debug, Default)]
struct Flight {
    id: RequestId,
    submitted: Time,
    lba: Lba,
    sectors: u32,
    terms: Terms,
    /// The volume that it was thought to wait for longest, and whether it lies in no other.
    volume: u16,
    lies_in_one: bool,
    /// Start of the volume's last flush, seen from the request.
    flush_start: Time,
    /// Whether the request started it.
    flushes: bool,
    /// Pages written to the volume, and of how many of the last ones the request
    /// tells whether they started a flush.
    count: u64,
    told: u32,
    view: View,
    thought: Thought,
}

impl Flight {
    /// Whether this is what was thought of `request` if it is submitted `now`.
    #[inline]
    fn is_of(&self, now: Time, request: &Request) -> bool {
        self.id == request.id
            && self.submitted == now
            && self.lba == request.lba
            && self.sectors == request.sectors
            && self.terms.is_read == (request.operation == Operation::Read)
    }
}

impl Engine {
    /// An engine that knows no more than `model` says, and begins with what was learnt before if
    /// that is in it. Of the normal requests it calls no
    /// greater part slow than `false_calls`; without that, as many as give the greatest
    /// harmonic mean of recall and precision, or the paper's share.
    pub fn new(model: &DeviceModel, false_calls: Option<f64>) -> Self {
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
        let mut engine = Engine {
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
            slow_share: [0.0; 2],
            share_odds: [share_odds(0.0); 2],
            slow_ns: [2 * model.thresholds_ns.read, 2 * model.thresholds_ns.write],
            active: Time::ZERO,
            ids: Vec::new(),
            flights: Vec::new(),
            oldest: Time::ZERO,
            outstanding_pages: 0,
            asked: Flight::default(),
            is_asked: false,
            page_ns: latencies.read_page.min(latencies.write_page),
            model: DeviceModel { learned: None, ..model.clone() },
        };
        if let Some(learned) = &model.learned {
            engine.recall(learned);
        }
        engine
    }

    /// Whether predictions are given out; otherwise every request is predicted
    /// to be normal.
    pub fn is_on(&self) -> bool {
        self.switch.is_on
    }

    /// Whether a request that took `latency` was slow.
    #[inline]
    pub fn is_slow(&self, operation: Operation, sectors: u32, latency: Span) -> bool {
        latency.0 > self.model.expectation(operation == Operation::Read, sectors).0
    }
}

impl Predictor for Engine {
    #[inline]
    fn predict(&mut self, now: Time, ahead: &[Request], request: &Request) -> Prediction {
        let terms = self.terms(request);
        let only = self.model.only_volume(request);
        let (volume, view) = match (only, ahead) {
            // Nearly every request.
            (Some(index), []) => (index, self.view(now, &self.volumes[index], &terms, terms.pages)),
            _ => self.decisive(now, ahead, request, &terms),
        };
        let thought = self.think(now, request.lba, &terms, &self.volumes[volume], &view);
        let prediction = self.prediction(&terms, &view, &thought);
        if ahead.is_empty() {
            self.is_asked = true;
            self.asked = Flight {
                id: request.id,
                submitted: now,
                lba: request.lba,
                sectors: request.sectors,
                terms,
                volume: volume as u16,
                lies_in_one: only.is_some(),
                view,
                thought,
                ..Flight::default()
            };
        }
        prediction
    }

    fn filling(&self, write: &Request) -> Option<Filling> {
        let mut volumes = self.model.volumes_of(write);
        let (Some(volume), None) = (volumes.next(), volumes.next()) else { return None };
        let is_known = self.switch.is_on && self.phases.get(volume).is_some_and(Phase::is_sure);
        is_known.then(|| Filling { pages: self.volumes[volume].pending, of: self.drive.buffer_pages })
    }

    #[inline]
    fn submitted(&mut self, now: Time, request: &Request) {
        if !matches!(request.operation, Operation::Read | Operation::Write) {
            return;
        }
        if !self.is_asked || !self.asked.is_of(now, request) {
            let _ = self.predict(now, &[], request);
        }
        self.is_asked = false;
        let Engine { model, drive, volumes, collections, asked, .. } = self;
        let Terms { is_read, pages, base_ns, .. } = asked.terms;
        let decisive = usize::from(asked.volume);
        let before = &volumes[decisive];
        (asked.count, asked.told) = match is_read {
            // What other volumes do tells nothing of this one.
            _ if !asked.lies_in_one && model.pages_in(decisive, request) != pages => (before.count, 0),
            true => (before.count, before.fresh(now, drive)),
            false => (before.count + u64::from(pages), pages),
        };
        let flush_start = before.flush_start;
        if asked.lies_in_one {
            volumes[decisive].lead(now, request.operation, pages, base_ns, drive, collections);
        } else {
            for index in model.volumes_of(request) {
                let pages = model.pages_in(index, request);
                volumes[index].lead(now, request.operation, pages, base_ns, drive, collections);
            }
        }
        asked.flush_start = volumes[decisive].flush_start;
        asked.flushes = asked.flush_start != flush_start;
        self.flights.push(self.asked);
        if self.ids.is_empty() {
            self.silences.end(now, now.0.saturating_sub(self.active.0), self.drive.buffer_pages);
            self.oldest = now;
        }
        self.ids.push(request.id);
        if !is_read {
            self.silences.write(pages);
        }
        self.signals.submitted(request.lba, &self.asked.terms);
        self.active = now;
        self.outstanding_pages += u64::from(pages);
    }

    fn observe(&mut self, now: Time, completion: &Completion) {
        self.is_asked = false;
        let Some(index) = self.ids.iter().position(|&id| id == completion.id) else { return };
        self.ids.swap_remove(index);
        let flight = self.flights.swap_remove(index);
        if flight.submitted == self.oldest {
            self.oldest = self.flights.iter().map(|flight| flight.submitted).min().unwrap_or_default();
        }
        let Terms { is_read, pages, threshold_ns, queue_ns, .. } = flight.terms;
        self.active = now;
        self.outstanding_pages -= u64::from(pages);
        let took = completion.time.since(flight.submitted);
        // What the queue explains tells nothing of the drive.
        let latency = Span(took.0.saturating_sub(queue_ns));
        let is_slow = latency.0 > threshold_ns;
        let view = &flight.view;
        let share = &mut self.slow_share[usize::from(is_read)];
        *share += (f32::from(u8::from(is_slow)) - *share) / SHARE_MEMORY;
        self.share_odds[usize::from(is_read)] = share_odds(*share);
        self.silence.note(view.silence as usize, is_slow);
        if !view.is_waking {
            self.busy.note(view.busy as usize, is_slow);
            self.busy_by_size.note(view.busy_by_size as usize, is_slow);
        }
        if is_slow {
            let mean = &mut self.slow_ns[usize::from(!is_read)];
            *mean = (*mean * (GAIN - 1) + latency.0) / GAIN;
        }
        self.correct_phase(&flight, completion.time, is_slow);
        self.calibrate(&flight, completion.time, is_slow);
        let was_slow = took.0 > threshold_ns;
        self.learn(&flight, completion.time, took, was_slow);
        if self.switch.judge(flight.thought.chance >= self.calls.least, was_slow) {
            self.collections.reset();
        }
    }

    fn cut_power(&mut self, _now: Time) {
        self.is_asked = false;
        self.ids.clear();
        self.flights.clear();
        self.signals.clear();
        self.outstanding_pages = 0;
    }
}
