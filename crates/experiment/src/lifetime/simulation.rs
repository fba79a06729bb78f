//! A device written to one page at a time, each its gap after the completion of
//! the one before it.

use std::ops::ControlFlow;

use flashkeel_device::{DeviceConfig, Law, Ssd, THROTTLE_UNIT_BYTES};
use flashkeel_engine::{
    Arena, Cause, Completion, LOGICAL_PAGE_BYTES, Lba, Leaf, Operation, Request, RequestId, SECTOR_BYTES,
    Span, Stream, Submit, Time,
};
use flashkeel_workload::Watch;
use flashkeel_workload::demand::Demand;
use flashkeel_workload::generators::arrivals::{Clock, demand::DemandClock};

use super::course::{Course, response};
use super::delays::Delays;
use super::outcome::{Blocks, Endured, Lifetime, Watched, slowdown};
use super::places::{PageSequence, UNIT_PAGES};
use super::{Drive, HORIZON, LifetimePlan, ask};
use crate::Error;

/// What a short simulation has shown of a device.
pub(super) struct Steady {
    pub write_amplification: f64,
    /// Response times of page writes, without a throttle's delays.
    pub service: Delays,
    /// How its blocks wear.
    pub blocks: Watched,
    /// What cycles recovered, as a share of what they would have if all blocks
    /// were idle equally long; 1 without recovery.
    pub recovered: f64,
}

/// A device and the writes to it.
pub(super) struct Simulation {
    ssd: Ssd,
    places: PageSequence,
    /// Requests submitted.
    submitted: u64,
    now: Time,
    completions: Vec<Completion>,
}

/// Capacities written before the wear of blocks is watched, and before the
/// service of writes is.
const SETTLING: [u64; 2] = [3, 1];
/// Cycles of a block that its wear is watched for: fewer would say little of
/// which blocks stay ahead. Ours.
const TELLING_CYCLES: f64 = 50.0;
/// Pages written while their service is watched.
const WATCHED: u64 = 1 << 16;
/// Gap between writes that leaves collection time enough. Write amplification is
/// watched with no shorter one: where collection falls behind, few blocks of the
/// small model are free, which a large drive would not notice. Ours.
const LEISURELY: Span = Span::from_ms(2);
/// Writes between two looks at what is left of the endurance.
const LOOK: u64 = 64;
/// Writes between two reports of progress: some milliseconds. A multiple of [`LOOK`].
const REPORT: u64 = 1 << 12;
/// Share of the time that watching wear takes, about.
const AGING: f64 = 0.7;

impl Simulation {
    pub fn new(
        config: &DeviceConfig,
        plan: &LifetimePlan,
        demand: &Demand,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Simulation, Error> {
        let layout = config.validate().map_err(Error::Input)?;
        let mut ssd = Ssd::new(&layout, seed);
        if ssd.precondition(&mut |_| watch(0.0)) == ControlFlow::Break(()) {
            return Err(Error::Interrupted);
        }
        let pages = ssd.sectors() * SECTOR_BYTES / LOGICAL_PAGE_BYTES;
        Ok(Simulation {
            places: PageSequence::new(plan, demand, pages, seed)?,
            ssd,
            submitted: 0,
            now: Time::ZERO,
            completions: Vec::new(),
        })
    }

    /// Writes a unit `gap` after the last one; returns its response time and the
    /// throttle's share of it.
    fn write(&mut self, gap: Span) -> (f64, f64) {
        self.now += gap;
        self.ssd.advance(self.now, &mut Arena::new(), &mut self.completions);
        let pages = self.places.next();
        // What lies in a row is one request.
        let requests = if pages.is_sorted_by(|a, b| a + 1 == *b) { 1 } else { UNIT_PAGES };
        let sectors = THROTTLE_UNIT_BYTES / SECTOR_BYTES / requests as u64;
        for page in &pages[..requests] {
            let lba = Lba(page * LOGICAL_PAGE_BYTES / SECTOR_BYTES);
            let request = Request::new(RequestId(self.submitted), Operation::Write, lba, sectors as u32);
            let answer = self.ssd.submit(self.now, &request, &mut Arena::new());
            assert_eq!(answer, Submit::Accepted, "a unit at a time always fits");
            self.submitted += 1;
        }
        let mut done = self.now;
        while self.completions.len() < requests {
            let ended = self.ssd.advance_to_completion(Time::MAX, &mut Arena::new(), &mut self.completions);
            done = ended.expect("a device with a write inside completes it");
        }
        let held = self.completions.last().map_or(0, |last| last.ledger.ns(Cause::Throttle));
        self.completions.clear();
        let response = done.since(self.now).0;
        self.now = done;
        (response as f64, held as f64)
    }

    /// Writes so many units without timing, one each `gap`.
    pub fn age(&mut self, units: u64, gap: Span) {
        let places = &mut self.places;
        let pages = (0..units).flat_map(|_| places.next());
        self.now = self.ssd.age(self.now, Span(gap.0 / UNIT_PAGES as u64), pages);
    }

    /// Watches how blocks wear for at least so many cycles, a model's capacity of
    /// units written without timing at a time.
    pub fn wear(
        &mut self,
        units: u64,
        gap: Span,
        cycles: f64,
        watch: &mut Watch<'_>,
    ) -> Result<Watched, Error> {
        let began = self.ssd.endurance().cycles;
        let mut half = || -> Result<Vec<f64>, Error> {
            let before: Vec<f64> = self.ssd.worn().collect();
            let from = self.ssd.endurance().cycles;
            while self.ssd.endurance().cycles - from < cycles / 2.0 {
                self.age(units, gap);
                ask(watch, (self.ssd.endurance().cycles - began) / cycles)?;
            }
            Ok(self.ssd.worn().zip(before).map(|(after, before)| after - before).collect())
        };
        let halves = [half()?, half()?];
        Ok(Watched { halves, cycles: self.ssd.endurance().cycles - began })
    }

    /// Watches the device in its steady state, written to as fast as the demand
    /// asks on average: first without timing, for long enough to see how blocks
    /// wear (where they are `levelled` at so many erases apart, for long enough to
    /// see what that does), then write by write.
    pub fn steady_state(
        mut self,
        demand: &Demand,
        levelled: u32,
        law: &dyn Law,
        watch: &mut Watch<'_>,
    ) -> Result<Steady, Error> {
        let day_ns = 86_400.0 * 1e9;
        // Writes further apart than this find an idle device anyway.
        let gap = Span((day_ns * THROTTLE_UNIT_BYTES as f64 / demand.bytes_per_day()).min(1e9) as u64);
        let units = self.ssd.sectors() * SECTOR_BYTES / THROTTLE_UNIT_BYTES;
        self.age(SETTLING[0] * units, gap);
        let levelled = f64::from(levelled);
        let _ = self.wear(units, gap, 2.0 * levelled, &mut |part| watch(AGING / 3.0 * part))?;
        let cycles = TELLING_CYCLES.max(4.0 * levelled);
        let from = if levelled > 0.0 { AGING / 3.0 } else { 0.0 };
        let blocks = self.wear(units, gap, cycles, &mut |part| watch(from + (AGING - from) * part))?;
        let rest = |part: f64| AGING + (1.0 - AGING) * part;
        let (mut service, mut recovered) =
            self.serve(units, gap.max(LEISURELY), law, &mut |part| watch(rest(part / 2.0)))?;
        let write_amplification = self.ssd.report().waf.unwrap_or(1.0);
        if gap < LEISURELY {
            (service, recovered) = self.serve(units, gap, law, &mut |part| watch(rest(0.5 + part / 2.0)))?;
        }
        Ok(Steady { write_amplification, service, blocks, recovered })
    }

    /// Watches writes, one each `gap`: their service, and what cycles recover as
    /// a share of what they would if all blocks were idle equally long.
    fn serve(
        &mut self,
        units: u64,
        gap: Span,
        law: &dyn Law,
        watch: &mut Watch<'_>,
    ) -> Result<(Delays, f64), Error> {
        let settling = SETTLING[1] * units;
        let watched = WATCHED.max(2 * units);
        let mut report = |done: u64| match done % REPORT {
            0 => ask(watch, done as f64 / (settling + watched) as f64),
            _ => Ok(()),
        };
        for done in 0..settling {
            self.write(gap);
            report(done)?;
        }
        let (from, before) = (self.now, self.ssd.endurance());
        self.ssd.reset_counters();
        let mut service = Delays::default();
        for done in 0..watched {
            let (response, held) = self.write(gap);
            service.add(1.0, response - held);
            report(settling + done)?;
        }
        let endurance = self.ssd.endurance();
        let passed = endurance.cycles - before.cycles;
        let recovered = 1.0 - (endurance.wear - before.wear) / passed;
        let alike = 1.0 - law.cost(Span((self.now.since(from).0 as f64 / passed) as u64));
        Ok((service, if alike > 0.0 { recovered / alike } else { 1.0 }))
    }

    /// Writes until the mean block is worn out. Pages are written whole: `rounding` times the
    /// demand.
    pub fn live(
        mut self,
        plan: &LifetimePlan,
        demand: &Demand,
        rounding: f64,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Lifetime, Error> {
        let mut clock = DemandClock::new(demand.clone(), THROTTLE_UNIT_BYTES as f64 / rounding);
        let mut unused = Stream::new(seed, "lifetime/arrivals");
        let (mut service, mut held) = (Delays::default(), Delays::default());
        let mut course = Course::default();
        let mut recorded = 0;
        let mut written = 0u64;
        let mut endurance = self.ssd.endurance();
        let mut is_over = false;
        while endurance.wear < endurance.rated_cycles && !is_over {
            for _ in 0..LOOK {
                let time = clock.next(&mut unused);
                // A drive that is held back is far behind what was recorded, whose clock need not
                // get there.
                is_over = self.now.0 + (time - recorded) > HORIZON.0;
                if is_over {
                    break;
                }
                let (response, delay) = self.write(Span(time - recorded));
                recorded = time;
                service.add(1.0, response - delay);
                held.add(1.0, delay);
                course.add(1.0, delay);
            }
            endurance = self.ssd.endurance();
            course.note(self.now, endurance.wear / endurance.rated_cycles);
            written += LOOK;
            if written.is_multiple_of(REPORT) {
                ask(watch, endurance.wear / endurance.rated_cycles)?;
            }
        }
        let days = self.now.as_secs_f64() / 86_400.0;
        let is_worn = endurance.wear >= endurance.rated_cycles;
        // Beyond the horizon the life goes on as it has until there.
        let whole_years = endurance.rated_cycles / endurance.wear * Drive::years(days);
        let written_per_day = held.pages() * THROTTLE_UNIT_BYTES as f64 / rounding / days;
        let mut notes = demand.notes.clone();
        if !is_worn {
            notes.push(format!("not worn out after {:.0} years", Drive::years(days)));
        }
        Ok(Lifetime {
            seed,
            years: is_worn.then_some(whole_years),
            is_infinite: false,
            endured: Endured {
                rated_cycles: endurance.rated_cycles,
                cycles: endurance.cycles,
                write_amplification: endurance.write_amplification * rounding,
                write_amplification_measured: Some(endurance.write_amplification * rounding),
                demanded_per_day: demand.bytes_per_day(),
                slowdown: slowdown(demand, service.mean_ns()),
                written_per_day,
                drive_writes_per_day: plan.drive.writes_per_day(written_per_day),
            },
            blocks: Blocks::seen(&self.ssd.worn().collect::<Vec<_>>(), endurance.cycles, whole_years),
            response: Some(response(&service, &held)),
            course: course.moments,
            day: Vec::new(),
            is_synthetic: demand.is_synthetic,
            recorded_ns: demand.recorded.as_ref().map(|recording| recording.span.0),
            notes,
        })
    }
}
