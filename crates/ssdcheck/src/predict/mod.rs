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
mod volume;

use flashkeel_engine::{
    Completion, Filling, Operation, Prediction, Predictor, Request, RequestId, Span, Time,
};

pub use learned::Learned;
pub use score::Score;

use crate::{BufferType, DeviceModel};
use calls::Calls;
use history::{History, quarter_octaves};
use intervals::{Intervals, LEVELS};
use mixer::{Calibration, Mixer};
use phase::Phase;
use signals::Signals;
use silence::{DEBTS, PLACES, Silences};
use switch::Switch;
use thought::{Thought, WEIGHTS, asleep_prior};
use volume::{Drive, Seen, Volume};

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
    /// By circumstances in the volume, whatever the size of the request; and by
    /// both, where the former is the prior.
    busy: History,
    busy_by_size: History,
    /// By the size of the request, the length of the silence before it, and what
    /// was written before that.
    silence: History,
    silences: Silences,
    switch: Switch,
    signals: Signals,
    mixer: Mixer,
    calibration: Calibration,
    calls: Calls,
    /// Shares of slow ones among writes and reads of late.
    slow_share: [f32; 2],
    /// Mean latency of slow reads and writes.
    slow_ns: [u64; 2],
    /// When a request was submitted or completed last.
    active: Time,
    ids: Vec<RequestId>,
    flights: Vec<Flight>,
    /// Pages of the requests that are outstanding, and what each takes on the
    /// way that all share.
    outstanding_pages: u64,
    page_ns: u64,
    /// As long as nothing has been learnt since.
    asked: Option<Asked>,
}

/// What was thought of a request when it was submitted.
#[derive(Clone, Copy, Debug)]
struct Flight {
    submitted: Time,
    /// The volume that it was thought to wait for longest.
    volume: u16,
    is_read: bool,
    pages: u32,
    /// Start of the volume's last flush, seen from the request.
    flush_start: Time,
    /// Whether the request started it.
    flushes: bool,
    /// Pages written to the volume, and of how many of the last ones the request
    /// tells whether they started a flush.
    count: u64,
    told: u32,
    /// Expected wait for the requests outstanding before it, in nanoseconds.
    queue_ns: u64,
    view: View,
    thought: Thought,
}

/// The last prediction, which whoever submits what it has asked for need not wait for again.
#[derive(Clone, Copy, Debug)]
struct Asked {
    now: Time,
    request: Request,
    volume: usize,
    view: View,
    thought: Thought,
}

impl Asked {
    #[inline]
    fn is_of(&self, now: Time, request: &Request) -> bool {
        self.now == now && self.request == *request
    }
}

/// How a request stands.
#[derive(Clone, Copy, Debug)]
struct View {
    busy: u32,
    busy_by_size: u32,
    silence: u32,
    /// Expected wait for flush and collection, in nanoseconds.
    wait_ns: u64,
    is_slow: bool,
    /// Called slow for the silence before it.
    is_waking: bool,
    /// Whether the drive is known to sleep by now, so that the request wakes it.
    is_asleep: bool,
    /// Probability of being slow without its size.
    prior: f32,
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
            busy: History::new(CIRCUMSTANCES),
            busy_by_size: History::new(SIZES * CIRCUMSTANCES),
            silence: History::new(SIZES * 2 * DEBTS * PLACES * STEPS),
            silences: Silences::default(),
            // Without a buffer to follow, only what has come true is given out.
            switch: Switch::new(drive.buffer_pages > 0),
            signals: Signals::new(),
            mixer: Mixer::new(WEIGHTS),
            calibration: Calibration::new(),
            calls: Calls::new(false_calls.map(|part| part as f32)),
            slow_share: [0.0; 2],
            slow_ns: [2 * model.thresholds_ns.read, 2 * model.thresholds_ns.write],
            active: Time::ZERO,
            ids: Vec::new(),
            flights: Vec::new(),
            outstanding_pages: 0,
            asked: None,
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

    /// Leads a volume through a request, `pages` pages of which lie in it.
    #[inline]
    fn lead(&self, volume: &mut Volume, now: Time, request: &Request, pages: u32) {
        let collects = |since| self.collections.expects(since);
        match request.operation {
            Operation::Read => volume.read(now, &self.drive, collects),
            Operation::Write => {
                // None of a write is in the buffer before all of it is in the drive.
                let (_, transfer_ns) = self.model.expectation(false, request.sectors);
                let _ = volume.write(Time(now.0 + transfer_ns), pages, &self.drive, collects);
            }
            Operation::Trim | Operation::WriteZeroes | Operation::Flush | Operation::Demote => {}
        }
    }

    /// The volume that `request` waits for longest, when those `ahead` have been
    /// submitted, and how the request stands there.
    #[inline]
    fn decisive(&self, now: Time, ahead: &[Request], request: &Request) -> (usize, View) {
        if let (Some(index), []) = (self.model.only_volume(request), ahead) {
            // Nearly every request.
            return (index, self.view(now, &self.volumes[index], request, request.sectors.div_ceil(8)));
        }
        let mut decisive: Option<(usize, View)> = None;
        for index in self.model.volumes_of(request) {
            let mut volume = self.volumes[index];
            for other in ahead {
                let pages = self.model.pages_in(index, other);
                if pages > 0 {
                    self.lead(&mut volume, now, other, pages);
                }
            }
            let view = self.view(now, &volume, request, self.model.pages_in(index, request));
            let weight = |view: &View| (view.is_slow, view.wait_ns);
            if decisive.is_none_or(|(_, other)| weight(&view) > weight(&other)) {
                decisive = Some((index, view));
            }
        }
        decisive.expect("a request lies in a volume")
    }

    /// How `request` stands before `volume`, in which `pages` of its pages lie.
    #[inline]
    fn view(&self, now: Time, volume: &Volume, request: &Request, pages: u32) -> View {
        let is_read = request.operation == Operation::Read;
        let until = |time: Time| time.0.saturating_sub(now.0);
        let since = |time: Time| now.0.saturating_sub(time.0);
        let drive = &self.drive;
        let (threshold_ns, base_ns) = self.model.expectation(is_read, request.sectors);
        // Whether it waits for a flush that it starts itself, or may; and the
        // time since the last one started, which decides only in the latter case.
        let (wait_ns, own_flush, since_flush) = if is_read {
            let flushes = drive.is_flushed_by_reads && volume.pending > 0;
            let own_ns = if flushes { drive.read_flush_ns } else { 0 };
            (until(volume.flush_end) + own_ns, flushes, if flushes { 0 } else { since(volume.flush_start) })
        } else {
            let arrival = Time(now.0 + base_ns);
            let collects = |since| self.collections.expects(since);
            let taken = { *volume }.write(arrival, pages, drive, collects);
            let filled = (volume.pending + pages).checked_div(drive.buffer_pages).unwrap_or(0);
            let overflows = filled > 0 && volume.pending + pages > drive.buffer_pages;
            let waits = filled > u32::from(!drive.is_fore);
            (taken.since(arrival).0, overflows || waits, if waits { 0 } else { since(volume.flush_start) })
        };
        let kind = usize::from(is_read) + 2 * usize::from(own_flush);
        let slow_step = (quarter_octaves(since(volume.slow_end), 4 * SLOW_STEPS) / 4).min(SLOW_STEPS - 1);
        let level = self.wakes.level(volume.since_late);
        let busy = (((level * KINDS + kind) * 3 + volume.seen as usize) * SLOW_STEPS + slow_step) * STEPS
            + quarter_octaves(since_flush, STEPS);
        let size = (request.sectors.div_ceil(8).max(1).ilog2() as usize).min(SIZES - 1);
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
        let is_asleep = self
            .model
            .sleep
            .is_some_and(|sleep| quiet_ns >= sleep.after_ns && base_ns + sleep.wake_ns > threshold_ns);
        // A silence explains what comes more often after it than otherwise.
        let share = self.slow_share[usize::from(is_read)];
        let call = share + (1.0 - share) * CALL;
        let is_waking = self.silence.exceeds(silence, asleep_prior(is_asleep), call);
        let prior = self.busy.probability(busy, prior);
        let is_slow = is_waking || self.busy_by_size.exceeds(busy_by_size, prior, CALL);
        View {
            busy: busy as u32,
            busy_by_size: busy_by_size as u32,
            silence: silence as u32,
            wait_ns,
            is_slow,
            is_waking,
            is_asleep,
            prior,
        }
    }
}

impl Predictor for Engine {
    #[inline]
    fn predict(&mut self, now: Time, ahead: &[Request], request: &Request) -> Prediction {
        let (index, view) = self.decisive(now, ahead, request);
        let thought = self.think(now, request, &self.volumes[index], &view);
        if ahead.is_empty() {
            self.asked = Some(Asked { now, request: *request, volume: index, view, thought });
        }
        self.prediction(&view, &thought, request)
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
        let asked = self.asked.take().filter(|asked| asked.is_of(now, request));
        let Asked { volume: decisive, view, thought, .. } = asked.unwrap_or_else(|| {
            let (volume, view) = self.decisive(now, &[], request);
            let thought = self.think(now, request, &self.volumes[volume], &view);
            Asked { now, request: *request, volume, view, thought }
        });
        let is_read = request.operation == Operation::Read;
        let pages = request.sectors.div_ceil(8);
        let before = &self.volumes[decisive];
        let (count, told) = match is_read {
            // What other volumes do tells nothing of this one.
            _ if self.model.pages_in(decisive, request) != pages => (before.count, 0),
            true => (before.count, before.fresh(now, &self.drive)),
            false => (before.count + u64::from(pages), pages),
        };
        let flush_start = before.flush_start;
        for index in self.model.volumes_of(request) {
            let mut volume = self.volumes[index];
            self.lead(&mut volume, now, request, self.model.pages_in(index, request));
            self.volumes[index] = volume;
        }
        if self.ids.is_empty() {
            self.silences.end(now, now.0.saturating_sub(self.active.0), self.drive.buffer_pages);
        }
        if !is_read {
            self.silences.write(pages);
        }
        self.signals.submitted(request);
        self.active = now;
        let queue_ns = self.outstanding_pages * self.page_ns;
        self.outstanding_pages += u64::from(pages);
        self.ids.push(request.id);
        self.flights.push(Flight {
            submitted: now,
            volume: decisive as u16,
            is_read,
            pages,
            flush_start: self.volumes[decisive].flush_start,
            flushes: self.volumes[decisive].flush_start != flush_start,
            count,
            told,
            queue_ns,
            view,
            thought,
        });
    }

    fn observe(&mut self, now: Time, completion: &Completion) {
        self.asked = None;
        let Some(index) = self.ids.iter().position(|&id| id == completion.id) else { return };
        self.ids.swap_remove(index);
        let flight = self.flights.swap_remove(index);
        self.active = now;
        self.outstanding_pages -= u64::from(flight.pages);
        // What the queue explains tells nothing of the drive.
        let latency = Span(completion.time.since(flight.submitted).0.saturating_sub(flight.queue_ns));
        let operation = if flight.is_read { Operation::Read } else { Operation::Write };
        let is_slow = self.is_slow(operation, 8 * flight.pages, latency);
        let view = flight.view;
        let share = &mut self.slow_share[usize::from(flight.is_read)];
        *share += (f32::from(u8::from(is_slow)) - *share) / SHARE_MEMORY;
        self.silence.note(view.silence as usize, is_slow);
        if !view.is_waking {
            self.busy.note(view.busy as usize, is_slow);
            self.busy_by_size.note(view.busy_by_size as usize, is_slow);
        }
        if is_slow {
            let mean = &mut self.slow_ns[usize::from(!flight.is_read)];
            *mean = (*mean * (GAIN - 1) + latency.0) / GAIN;
        }
        self.correct_phase(&flight, completion.time, is_slow);
        self.calibrate(&flight, completion.time, is_slow);
        let took = completion.time.since(flight.submitted);
        self.learn(&flight, completion.time, took);
        let was_slow = self.is_slow(operation, 8 * flight.pages, took);
        if self.switch.judge(flight.thought.chance >= self.calls.least, was_slow) {
            self.collections.reset();
        }
    }

    fn cut_power(&mut self, _now: Time) {
        self.asked = None;
        self.ids.clear();
        self.flights.clear();
        self.signals.clear();
        self.outstanding_pages = 0;
    }
}
