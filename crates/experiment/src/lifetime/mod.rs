//! How long a drive lasts under a write demand, and what a throttle that makes
//! it last costs.
//!
//! A scaled model of the drive is simulated write by write for as long as it
//! takes to know its steady state: write amplification, service time, and how
//! unevenly its blocks wear. From there whole stretches of a constant demand
//! pass at once through the same throttle and the same law of wear, so that
//! years take less than the model does. Small drives can be simulated to their end
//! instead ([`Method::Plain`]); tests compare the two.

mod course;
mod delays;
mod drive;
mod outcome;
mod places;
mod simulation;
#[cfg(test)]
mod tests;
mod years;

use std::ops::ControlFlow;
use std::path::Path;

use flashkeel_config::{Node, Origin};
use flashkeel_device::{Goal, Rated, SelfRecovery, ThrottleConfig, WearConfig};
use flashkeel_engine::units::Rate;
use flashkeel_engine::{Span, Time};
use flashkeel_workload::demand::profile::{PROFILES, WriteProfile};
use flashkeel_workload::demand::series::Series;
use flashkeel_workload::demand::{Demand, Traffic};
use flashkeel_workload::generators::Pattern;
use flashkeel_workload::{Places, Watch};
use serde::{Deserialize, Serialize};

use crate::{Error, Progress};
pub use drive::Drive;
use drive::Model;
pub use outcome::{Blocks, Endured, Lifetime, Moment, Response};
use simulation::{Simulation, Steady};

/// A drive, its traffic, and the throttle between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LifetimePlan {
    /// The drive.
    pub drive: Drive,
    /// What is written to it.
    pub traffic: Traffic,
    /// Whether a recorded traffic, which the first seed takes as it is, is replaced by one
    /// drawn from its own days or hours with each further seed.
    #[serde(default)]
    pub resample: bool,
    /// Where single writes go; where a recorded trace has them, or the whole drive
    /// alike, if not given.
    #[serde(default)]
    pub pattern: Option<Pattern>,
    /// Bytes programmed per byte written; measured on the model if not given.
    #[serde(default)]
    pub write_amplification: Option<f64>,
    /// What makes the drive last: a policy of the device's throttle axis, aimed at
    /// the `target`.
    #[serde(default)]
    pub throttle: ThrottleConfig,
    /// Lengths of an epoch that `dynamic` and `ready` choose from; the throttles'
    /// own if not given.
    #[serde(default)]
    pub epochs: Option<Vec<Span>>,
    /// How long it has to last.
    #[serde(default = "five_years")]
    pub target: Span,
    /// What idle time gives back to a block; nothing if not given.
    #[serde(default)]
    pub recovery: Option<SelfRecovery>,
    /// How the answer is found.
    #[serde(default)]
    pub method: Method,
}

/// How a lifetime is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// A steady state from the simulation of a model, then whole stretches.
    #[default]
    FastForward,
    /// The simulation of every write of the drive's life.
    Plain,
}

/// Days of a year, here and in TBW and DWPD.
pub(crate) const DAYS_PER_YEAR: f64 = 365.0;
const DAY_S: u64 = 86_400;
const DAY_NS: u64 = DAY_S * 1_000_000_000;
/// Nobody asks for longer than a hundred years.
const HORIZON: Time = Time(100 * 365 * DAY_NS);

/// Intervals of a life: minutes of eight years. Who lives for longer needs no
/// throttle, whose work they are there to show.
const MOST_INTERVALS: f64 = (1 << 22) as f64;

fn five_years() -> Span {
    Span::from_secs(5 * 365 * DAY_S)
}

/// Finds the lifetimes that a list of plans in JSON asks for, with each seed: a
/// list for each plan. Plans that differ in nothing but their throttle share
/// what is simulated. `progress` is told what is being done and how much of it is
/// done.
///
/// # Errors
/// [`Error::Input`] for a wrong plan or input, [`Error::Interrupted`] if `progress`
/// breaks off.
pub fn lifetimes(
    plans_json: &str,
    seeds: &[u64],
    progress: &mut Progress<'_>,
) -> Result<Vec<Vec<Lifetime>>, Error> {
    let values: Vec<serde_json::Value> =
        serde_json::from_str(plans_json).map_err(|error| Error::Input(format!("plans: {error}")))?;
    // Each by itself, so that an error does not say which.
    let read = |value| Ok(Node::from_json(value, &Origin::Default).read()?);
    let plans = values.into_iter().map(read).collect::<Result<Vec<LifetimePlan>, Error>>()?;
    plans.iter().try_for_each(LifetimePlan::validate)?;
    let mut lives: Vec<Vec<Lifetime>> = plans.iter().map(|_| Vec::new()).collect();
    let part = 1.0 / (plans.len() * seeds.len()) as f64;
    let mut loaded: Option<(&Traffic, u64, Demand)> = None;
    for (row, &seed) in seeds.iter().enumerate() {
        let mut before: Option<&LifetimePlan> = None;
        let mut steady = None;
        for (column, plan) in plans.iter().enumerate() {
            let is_known = |&(traffic, drawn_by, _): &(&Traffic, u64, Demand)| {
                *traffic == plan.traffic && (drawn_by == seed || !traffic.policy().is_drawn())
            };
            if !loaded.as_ref().is_some_and(is_known) {
                let watch = &mut |done| progress("read", done);
                loaded = Some((&plan.traffic, seed, plan.traffic.policy().load_watched(seed, watch)?));
            }
            let (.., demand) = loaded.as_ref().expect("it was loaded");
            if before.is_some_and(|before| !before.is_modelled_like(plan)) {
                steady = None;
            }
            before = Some(plan);
            let from = (row * plans.len() + column) as f64 * part;
            let watch = &mut |done: f64| progress("live", from + part * done.min(1.0));
            let drawn = if plan.resample && row > 0 { demand.resampled(seed) } else { demand.clone() };
            lives[column].push(plan.live(drawn, &mut steady, seed, watch)?);
        }
    }
    Ok(lives)
}

/// Tells `watch` how much is done, and whether to go on.
fn ask(watch: &mut Watch<'_>, done: f64) -> Result<(), Error> {
    match watch(done) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Interrupted),
    }
}

/// The built-in write profiles.
pub fn write_profiles() -> &'static [WriteProfile] {
    PROFILES
}

/// Names of the series of a write demand, in order of appearance.
///
/// # Errors
/// [`Error::Input`] if the file cannot be read or a line of it is wrong.
pub fn demand_names(path: &Path) -> Result<Vec<String>, Error> {
    Ok(Series::names(path)?)
}

/// Share of the periods of `period_s` seconds in which a traffic's demand differs from that of
/// the period before by less than `share` of it; none where there are fewer than
/// two periods.
///
/// # Errors
/// [`Error::Input`] for a wrong traffic or input.
pub fn demand_similarity(
    traffic_json: &str,
    period_s: u64,
    share: f64,
    seed: u64,
) -> Result<Option<f64>, Error> {
    let value =
        serde_json::from_str(traffic_json).map_err(|error| Error::Input(format!("traffic: {error}")))?;
    let traffic: Traffic = Node::from_json(value, &Origin::Default).read()?;
    Ok(traffic.policy().load(seed)?.similarity(Span::from_secs(period_s), share))
}

impl LifetimePlan {
    /// Whether the model of another plan may be watched instead of its own.
    fn is_modelled_like(&self, other: &LifetimePlan) -> bool {
        let of = |plan: &LifetimePlan| {
            let LifetimePlan { drive, traffic, resample, pattern, recovery, .. } = plan.clone();
            (drive, traffic, resample, pattern, recovery)
        };
        of(self) == of(other)
    }

    /// Checks the settings.
    fn validate(&self) -> Result<(), Error> {
        let input = |message: String| Error::Input(message);
        self.drive.validate().map_err(input)?;
        if self.target == Span::ZERO {
            return Err(input("target is zero; a required lifetime is longer than that".into()));
        }
        if let Some(epoch) = self.throttle.policy().longest_epoch().filter(|&epoch| self.target < epoch) {
            let (target, throttle) = (self.target, self.throttle.name());
            return Err(input(format!("target is {target}; {throttle} plans by epochs of up to {epoch}")));
        }
        if let Some(factor) = self.write_amplification.filter(|factor| !(0.01..=1000.0).contains(factor)) {
            return Err(input(format!("write_amplification is {factor}; it must lie between 0.01 and 1000")));
        }
        // Checked before a model is made with them, as far as they are known: the
        // cycles that tbw and dwpd mean depend on the write amplification.
        match (self.write_amplification, &self.recovery) {
            (Some(factor), _) => self.wear(factor).map(drop).map_err(input),
            (None, Some(recovery)) => {
                let wear = WearConfig::SelfRecovery(recovery.clone()).checked();
                wear.map(drop).map_err(|message| input(format!("wear.{message}")))
            }
            (None, None) => Ok(()),
        }
    }

    /// The places that a trace has of its own, unless a pattern is asked for.
    fn recorded_places<'a>(&self, demand: &'a Demand) -> Option<&'a Places> {
        demand.recorded.as_ref().filter(|_| self.pattern.is_none())?.places.as_ref()
    }

    /// Lives with a seed. `steady` is what is known of the model, or what will be.
    fn live(
        &self,
        mut demand: Demand,
        steady: &mut Option<Steady>,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Lifetime, Error> {
        if demand.bytes_per_day() <= 0.0 {
            return Ok(Lifetime::without_writes(self, &demand, seed));
        }
        if let Some(footprint) = self.recorded_places(&demand).map(Places::footprint_bytes)
            && footprint > self.drive.capacity.0 as f64
        {
            let (touched, capacity) = (footprint / 1e9, self.drive.capacity.0 as f64 / 1e9);
            demand.notes.push(format!(
                "it writes to {touched:.3} GB, more than the drive's {capacity:.3} GB: its addresses are folded onto them"
            ));
        }
        if self.method == Method::Plain {
            return self.plain(&demand, seed, watch);
        }
        if steady.is_none() {
            *steady =
                Some(self.steady_state(&self.drive.model(), &demand, seed, &mut |done| watch(0.9 * done))?);
        }
        let steady = steady.as_ref().expect("it was watched");
        let factor = self.write_amplification.unwrap_or(steady.write_amplification);
        let wear = self.wear(factor).map_err(Error::Input)?;
        let cycles = f64::from(wear.policy().rated_cycles().unwrap_or(0));
        let days = self.drive.flash_bytes() * cycles / factor / demand.bytes_per_day();
        let intervals = (days * DAY_NS as f64).min(HORIZON.0 as f64) / demand.interval.0 as f64;
        let demand = demand.merged((intervals / MOST_INTERVALS).ceil().max(1.0) as usize);
        let throttle = self.throttle(factor, &wear, &demand).map_err(Error::Input)?;
        years::Years::new(self, &demand, steady, factor, &wear, &throttle)
            .run(seed, &mut |done| watch(0.9 + 0.1 * done))
    }

    /// Watches a model of the drive. Its blocks are cycled as much more often
    /// as it is smaller; recovery sets in as much earlier.
    fn steady_state(
        &self,
        model: &Model,
        demand: &Demand,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Steady, Error> {
        let wear = match &self.recovery {
            None => WearConfig::Rated(Rated::default()),
            Some(recovery) => {
                let onset = Span(((recovery.onset.0 as f64 * model.scale) as u64).max(1));
                WearConfig::SelfRecovery(SelfRecovery { onset, ..recovery.clone() })
            }
        };
        let law = wear.policy().build().expect("a lifetime has a law of wear");
        let device = self.drive.device(model, wear, ThrottleConfig::default()).map_err(Error::Input)?;
        let simulation = Simulation::new(&device, self, demand, seed, watch)?;
        let levelled = self.drive.wear_levelling.unwrap_or(0);
        let mut steady = simulation.steady_state(demand, levelled, law.as_ref(), watch)?;
        // What is written beside what was asked for, because pages are whole.
        steady.write_amplification *= self.recorded_places(demand).map_or(1.0, |places| places.rounding);
        Ok(steady)
    }

    /// Simulates every write.
    fn plain(&self, demand: &Demand, seed: u64, watch: &mut Watch<'_>) -> Result<Lifetime, Error> {
        let input = |message: String| Error::Input(message);
        let missing = |what| Err(input(format!("write_amplification is missing; a plain run {what} by it")));
        let factor = match self.write_amplification {
            Some(factor) => factor,
            None if self.throttle.policy().is_aimed_by_rate() => return missing("sets its cap"),
            None if self.drive.rated_cycles.is_none() => return missing("turns tbw and dwpd into cycles"),
            // Rated cycles are what they are, and the device counts what it programs.
            None => 1.0,
        };
        let wear = self.wear(factor).map_err(input)?;
        let throttle = self.throttle(factor, &wear, demand).map_err(input)?;
        let model = self.drive.whole(wear, throttle).map_err(input)?;
        let rounding = self.recorded_places(demand).map_or(1.0, |places| places.rounding);
        Simulation::new(&model, self, demand, seed, watch)?.live(self, demand, rounding, seed, watch)
    }

    /// The law of wear, with the rated cycles that the drive's endurance means.
    fn wear(&self, write_amplification: f64) -> Result<WearConfig, String> {
        let rated_cycles = self.drive.cycles(write_amplification)?;
        let wear = match &self.recovery {
            None => WearConfig::Rated(Rated { rated_cycles }),
            Some(recovery) => WearConfig::SelfRecovery(SelfRecovery { rated_cycles, ..recovery.clone() }),
        };
        wear.checked().map_err(|message| format!("wear.{message}"))
    }

    /// The throttle, aimed at the target.
    fn throttle(
        &self,
        write_amplification: f64,
        wear: &WearConfig,
        demand: &Demand,
    ) -> Result<ThrottleConfig, String> {
        let cycles = f64::from(wear.policy().rated_cycles().unwrap_or(0));
        let bytes = self.drive.flash_bytes() * cycles / write_amplification;
        let goal = Goal {
            lifetime: self.target,
            rate: Rate((bytes / self.target.as_secs_f64()) as u64),
            epochs: self.epochs.clone(),
            // Demand is known by its intervals; within them all epochs are alike.
            shortest_epoch: demand.interval,
        };
        let throttle = self.throttle.policy().aimed_at(&goal);
        throttle.checked().map_err(|message| format!("throttle.{message}"))
    }
}
