//! What is known of a drive, and what it is thought to be at.

use flashkeel_engine::{Filling, Operation, Prediction, Request, Span, Time};

use super::calibration::Calibration;
use super::calls::Calls;
use super::circumstances::Circumstances;
use super::flight::{Flight, Outcome};
use super::flushes::Flushes;
use super::ground::Ground;
use super::history::History;
use super::intervals::Recurring;
use super::mixer::Mixer;
use super::phase::Phase;
use super::placing::Placing;
use super::sample::Sample;
use super::signals::Signals;
use super::silence::{DEBTS, PLACES, SHORTEST_NS, Silences};
use super::switch::Switch;
use super::thought::WEIGHTS;
use super::view::{SIZES, STEPS, Terms, View};
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
/// Probability that a write is slow which waits for the flush that it asks for.
const DURABLE: f32 = 0.95;
/// Probability from which on a volume is thought to be what makes a request slow.
pub(super) const CALL: f32 = 0.4;

/// What an engine knows.
#[derive(Clone, Debug)]
pub(super) struct Knowledge {
    pub model: DeviceModel,
    pub placing: Placing,
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
    pub flushes: Flushes,
    /// Until when what is quiet is no silence: forever while a request is outstanding.
    pub quiet_until: Time,
    /// When the oldest of the requests that are outstanding was submitted, if there are any.
    pub oldest: Time,
    /// Pages of these, what each takes on the way that all share, and the wait for all of them when the
    /// next request is looked at.
    pub outstanding_pages: u64,
    pub page_ns: u64,
    pub queue_ns: u64,
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
            volumes: Box::new([Volume::NEW; MOST_VOLUMES]),
            phases,
            recurring: Recurring::default(),
            circumstances: Circumstances::new(),
            silence: Waking::new(),
            silences: Silences::default(),
            // Without a buffer to follow, only what has come true is given out.
            switch: Switch::new(drive.buffer_pages > 0),
            signals: Signals::new(Ground::new(model), drive.buffer_pages > 0),
            mixer: Mixer::new(WEIGHTS),
            calibration: Calibration::new(),
            calls: Calls::new(false_calls.map(|part| part as f32)),
            sample: Sample::default(),
            flushes: Flushes::default(),
            quiet_until: Time(SHORTEST_NS),
            oldest: Time::ZERO,
            queue_ns: 0,
            outstanding_pages: 0,
            page_ns: latencies.read_page.min(latencies.write_page),
            model: DeviceModel { learned: None, ..model.clone() },
        };
        if let Some(learned) = &model.learned {
            knowledge.recall(learned);
        }
        knowledge
    }

    /// What is to be expected of `request` if it is submitted `now`, and what that comes from.
    #[inline(never)]
    pub fn look(&mut self, now: Time, request: &Request, flight: &mut Flight) -> Prediction {
        // Two ways, so that which operation it is need not be asked again.
        if request.operation == Operation::Read {
            self.look_at(true, now, request, flight)
        } else {
            self.look_at(false, now, request, flight)
        }
    }

    #[inline(always)]
    fn look_at(&mut self, is_read: bool, now: Time, request: &Request, flight: &mut Flight) -> Prediction {
        let terms = self.note(is_read, now, request, flight);
        let view = match self.placing.only_volume(request) {
            // Nearly every request.
            Some(index) => {
                (flight.volume, flight.lies_in_one) = (index as u16, true);
                self.view(now, &self.volumes[index % MOST_VOLUMES], &terms, terms.pages)
            }
            None => {
                let (volume, view) = self.decisive(now, &[], request);
                (flight.volume, flight.lies_in_one) = (volume, false);
                view
            }
        };
        self.conclude(now, true, &terms, view, flight)
    }

    /// Whether nothing has been submitted or has ended since a request of the same operation was
    /// looked at.
    #[inline]
    pub fn is_settled(&self, is_read: bool) -> bool {
        self.signals.settled[usize::from(is_read)]
    }

    /// The same if those `ahead` are submitted before it, as [`Predictor::predict`].
    ///
    /// [`Predictor::predict`]: flashkeel_engine::Predictor::predict
    pub fn look_behind(&mut self, now: Time, ahead: &[Request], request: &Request) -> Prediction {
        let flight = &mut Flight::default();
        let terms = self.note(request.operation == Operation::Read, now, request, flight);
        let (_, view) = self.decisive(now, ahead, request);
        let is_next =
            !ahead.iter().any(|other| matches!(other.operation, Operation::Read | Operation::Write));
        let prediction = self.conclude(now, is_next, &terms, view, flight);
        self.durable(request, prediction)
    }

    /// Notes what a request is.
    #[inline(always)]
    fn note(&mut self, is_read: bool, now: Time, request: &Request, flight: &mut Flight) -> Terms {
        if !self.signals.settled[usize::from(is_read)] {
            self.settle(is_read);
        }
        let terms = self.terms(is_read, request.lba, request.sectors);
        (flight.id, flight.submitted) = (request.id, now);
        (flight.lba, flight.sectors) = (request.lba, request.sectors);
        (flight.is_read, flight.pages) = (is_read, terms.pages);
        (flight.base_ns, flight.queue_ns) = (terms.base_ns, self.queue_ns);
        terms
    }

    #[inline(always)]
    fn conclude(
        &self,
        now: Time,
        is_next: bool,
        terms: &Terms,
        mut view: View,
        flight: &mut Flight,
    ) -> Prediction {
        (flight.place, flight.wait_ns) = (view.place, view.wait_ns);
        (flight.woken, flight.is_durable) = (None, false);
        if !self.is_awake(now) {
            let (woken, odds) = self.after_silence(now, flight);
            flight.woken = Some(woken);
            view.odds = if odds > view.odds { odds } else { view.odds };
        }
        self.think(now, is_next, terms, &view, flight)
    }

    /// How full the buffer is that `write` goes to, as far as that is known.
    pub fn filling(&self, write: &Request) -> Option<Filling> {
        let mut volumes = self.model.volumes_of(write);
        let (Some(volume), None) = (volumes.next(), volumes.next()) else { return None };
        let is_known = self.switch.is_on && self.phases.get(volume).is_some_and(Phase::is_sure);
        is_known.then(|| Filling { pages: self.volumes[volume].pending, of: self.drive.buffer_pages })
    }

    /// How long it has been quiet.
    #[inline]
    pub fn quiet_ns(&self, now: Time) -> u64 {
        now.0.saturating_sub(self.quiet_until.0 - SHORTEST_NS)
    }

    /// `request`, of which that was thought, has been submitted.
    #[inline]
    pub fn submitted(&mut self, now: Time, request: &Request, flight: &mut Flight) {
        let Knowledge { drive, volumes, recurring, .. } = self;
        let Flight { is_read, pages, base_ns, .. } = *flight;
        if flight.lies_in_one {
            let volume = &mut volumes[usize::from(flight.volume) % MOST_VOLUMES];
            let flush_start = volume.flush_start;
            if is_read {
                (flight.count, flight.told) = (volume.count, volume.fresh(now, drive));
                volume.read(now, drive, recurring);
            } else {
                (flight.count, flight.told) = (volume.count + u64::from(pages), pages);
                // None of it is in the buffer before all of it is in the drive.
                let _ = volume.write(Time(now.0 + base_ns), pages, drive, recurring);
            }
            flight.flush_start = volume.flush_start;
            flight.flushes = volume.flush_start != flush_start;
        } else {
            self.submitted_to_several(now, request, flight);
        }
        if self.quiet_until != Time::MAX {
            if now >= self.quiet_until {
                self.silences.end(now, self.quiet_ns(now), self.drive.buffer_pages);
            }
            (self.oldest, self.quiet_until) = (now, Time::MAX);
        }
        self.signals.submitted(request.lba, is_read, pages);
        if !is_read {
            self.silences.write(pages);
        }
        self.outstanding_pages += u64::from(pages);
    }

    #[inline(never)]
    fn submitted_to_several(&mut self, now: Time, request: &Request, flight: &mut Flight) {
        let Knowledge { model, drive, volumes, recurring, .. } = self;
        let Flight { is_read, pages, base_ns, .. } = *flight;
        let decisive = usize::from(flight.volume) % MOST_VOLUMES;
        let before = volumes[decisive];
        (flight.count, flight.told) = match is_read {
            // What other volumes do tells nothing of this one.
            _ if model.pages_in(decisive, request) != pages => (before.count, 0),
            true => (before.count, before.fresh(now, drive)),
            false => (before.count + u64::from(pages), pages),
        };
        for index in model.volumes_of(request) {
            let pages = model.pages_in(index, request);
            volumes[index].lead(now, request.operation, pages, base_ns, drive, recurring);
        }
        flight.flush_start = volumes[decisive].flush_start;
        flight.flushes = flight.flush_start != before.flush_start;
    }

    /// What has become of the request of `flight`, which has ended at `now`.
    #[inline(always)]
    fn outcome(&self, flight: &Flight, now: Time) -> Outcome {
        let took = now.since(flight.submitted);
        // What the queue explains tells nothing of the drive.
        let latency = Span(took.0.saturating_sub(flight.queue_ns));
        let threshold_ns = self.signals.of[usize::from(flight.is_read)].threshold_ns(flight.base_ns);
        Outcome { took, latency, threshold_ns }
    }

    /// Learns from a request that has ended at `now`.
    #[inline(never)]
    pub fn ended(&mut self, flight: &Flight, now: Time) {
        self.outstanding_pages -= u64::from(flight.pages);
        if flight.is_durable && self.durable_ended(flight, now) {
            return;
        }
        let outcome = self.outcome(flight, now);
        let tells = self.follow(flight, now, outcome.is_slow());
        self.signals.ended(now, flight.is_read, &outcome);
        if !self.signals.is_busy() {
            self.quiet_until = Time(now.0 + SHORTEST_NS);
        }
        let thought = &flight.thought;
        let times = self.sample.times(thought.chance, outcome.was_slow());
        // Most tell nothing more, and go a short way.
        if times > 0 || tells || thought.is_called || outcome.is_slow() {
            self.heed(flight, now, times);
        }
    }

    /// A write has ended that had to be durable; true if it waited for the flush that it asked for, so that
    /// it tells nothing else.
    #[inline(never)]
    fn durable_ended(&mut self, flight: &Flight, now: Time) -> bool {
        self.flushes.ended(flight.id, now);
        if !self.flushes.writes_empty() {
            return false;
        }
        self.signals.left(false);
        if !self.signals.is_busy() {
            self.quiet_until = Time(now.0 + SHORTEST_NS);
        }
        true
    }

    /// Learns what else a request tells: the histories as if it had come so many times, or not at all.
    #[inline(never)]
    fn heed(&mut self, flight: &Flight, now: Time, times: u32) {
        let outcome = self.outcome(flight, now);
        if self.tells(flight, outcome.is_slow()) {
            self.correct_phase(flight, outcome.is_slow());
        }
        if outcome.is_slow() {
            self.calibrate_slow(flight, now, outcome.latency);
        }
        if outcome.was_slow() {
            self.signals.was_slow();
        }
        if times > 0 {
            self.learn(flight, &outcome, times);
        }
        if self.switch.judge(flight.thought.is_called, outcome.was_slow(), times) {
            self.recurring.collections.reset();
        }
    }

    /// What is neither a read nor a write has been submitted; only flush commands change anything.
    #[inline(never)]
    pub fn other_submitted(&mut self, now: Time, request: &Request) {
        if request.operation != Operation::Flush {
            return;
        }
        let base_ns = self.signals.of[0].base_ns;
        self.flushes.submitted(request.id, now, true, self.holds_any(), base_ns);
        if self.flushes.commands_empty() {
            self.empty(now);
        }
    }

    /// A write has been submitted that has to be durable before it is acknowledged.
    #[inline(never)]
    pub fn durable_submitted(&mut self, now: Time, request: &Request, flight: &mut Flight) {
        let waits = self.volumes[..self.model.volumes()].iter().any(|volume| volume.room_from > now);
        let tells = self.holds_any() && !waits;
        self.flushes.submitted(request.id, now, false, tells, flight.base_ns);
        flight.is_durable = true;
        if self.flushes.writes_empty() {
            self.empty(Time(now.0 + flight.base_ns));
        }
    }

    /// The same as [`look`](Self::look) where it may have to be durable.
    #[inline(never)]
    pub fn look_at_durable(&mut self, now: Time, request: &Request, flight: &mut Flight) -> Prediction {
        let prediction = self.look(now, request, flight);
        self.durable(request, prediction)
    }

    /// What is to be expected of a write that has to be durable, of which this would be if it had not.
    fn durable(&self, request: &Request, prediction: Prediction) -> Prediction {
        if !request.fua || request.operation != Operation::Write || !self.flushes.writes_empty() {
            return prediction;
        }
        let (threshold_ns, base_ns) = self.model.expectation(false, request.sectors);
        let latency = Span(prediction.latency.0.max(base_ns + self.drive.flush_ns));
        let is_slow = latency.0 > threshold_ns;
        let chance = if is_slow { prediction.chance.max(DURABLE) } else { prediction.chance };
        Prediction { latency, chance, is_slow: is_slow && self.switch.is_on || prediction.is_slow }
    }

    /// Whether a buffer is thought to hold anything.
    fn holds_any(&self) -> bool {
        self.volumes[..self.model.volumes()].iter().any(|volume| volume.pending > 0)
    }

    /// The buffers are written out at `now`.
    fn empty(&mut self, now: Time) {
        let Knowledge { model, drive, volumes, recurring, .. } = self;
        volumes[..model.volumes()].iter_mut().for_each(|volume| volume.empty(now, drive, recurring));
        self.signals.unsettle();
    }

    /// Nothing is outstanding any more, and nothing is buffered where a write that has to be durable is
    /// not at once.
    pub fn cut_power(&mut self, now: Time) {
        self.flushes.clear();
        if self.flushes.writes_empty() {
            self.empty(now);
        }
        self.signals.clear();
        (self.outstanding_pages, self.quiet_until) = (0, Time(now.0 + SHORTEST_NS));
    }
}
