//! The driver over leaves whose times nobody here knows, bare and in stacks.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use flashkeel_engine::{
    Arena, Cause, Completion, Durable, Leaf, Ledger, Limits, Outside, Request, RequestId, Stack, Status,
    Stream, Submit, Time, Wake,
};
use flashkeel_host::device::Device;
use flashkeel_host::scheduler::{IoSchedulerConfig, Scheduling};
use flashkeel_host::stack::Passing;
use flashkeel_host::tier::admission::AdmissionConfig;
use flashkeel_host::tier::eviction::EvictionConfig;
use flashkeel_host::tier::placement::Placement;
use flashkeel_host::tier::writeback::WritebackConfig;
use flashkeel_host::tier::{Plan, Tier};
use flashkeel_host::volume::{VolumeConfig, VolumeManager};
use flashkeel_host::{Claim, DriveError, Measured as _, Part, Tenant, drive};
use flashkeel_stats::{MeasureConfig, Recorder, Summary};
use flashkeel_workload::WorkloadConfig;
use serde_json::{Value, json};

const LIMITS: Limits =
    Limits { sectors: 1 << 16, block_sectors: 8, preferred_sectors: 8, durable: Durable::Acknowledged };
/// How long it takes what is done here.
const OWN_NS: u64 = 25_000;

/// A drive elsewhere: what it has got, and what it has done by now.
#[derive(Default)]
struct Elsewhere {
    inside: Vec<(RequestId, Time)>,
    done: Vec<(RequestId, Time)>,
    waits: u32,
    now: Time,
}

/// Its end here. It knows what it has sent and what has come back.
#[derive(Clone)]
struct Remote {
    shared: Arc<Mutex<Elsewhere>>,
    submitted: Vec<(RequestId, Time)>,
    /// What is done here, of which the end is known.
    own: Vec<(RequestId, Time)>,
    /// One in so many is; none if 0.
    own_every: u64,
}

impl Remote {
    fn new(own_every: u64) -> Remote {
        Remote { shared: Arc::default(), submitted: Vec::new(), own: Vec::new(), own_every }
    }

    /// Whether all is done here, and there is no clock outside.
    fn is_here(&self) -> bool {
        self.own_every == 1
    }
}

impl Leaf for Remote {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        if self.submitted.len() + self.own.len() == 4 {
            return Submit::Busy;
        }
        if self.own_every > 0 && request.id.0.is_multiple_of(self.own_every) {
            self.own.push((request.id, Time(now.0 + OWN_NS)));
        } else {
            self.shared.lock().unwrap().inside.push((request.id, now));
            self.submitted.push((request.id, now));
        }
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        let own = self.own.iter().map(|&(_, end)| end).min();
        Wake::new(own, !self.is_here())
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {
        self.submitted.clear();
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, completions: &mut Vec<Completion>) {
        let mut shared = self.shared.lock().unwrap();
        assert!(self.is_here() || now <= shared.now, "ahead of the clock outside");
        for (id, time) in shared.done.extract_if(.., |&mut (_, time)| time <= now) {
            let index = self.submitted.iter().position(|&(sent, _)| sent == id).expect("it was sent");
            let (_, submitted) = self.submitted.swap_remove(index);
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::Outside, submitted, time);
            completions.push(Completion { id, time, status: Status::Ok, ledger });
        }
        for (id, time) in self.own.extract_if(.., |&mut (_, time)| time <= now) {
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::Nvm, Time(time.0 - OWN_NS), time);
            completions.push(Completion { id, time, status: Status::Ok, ledger });
        }
        completions.sort_by_key(|completion| completion.time);
    }
}

impl Device for Remote {
    fn parts<'a>(&'a self, _parts: &mut Vec<&'a dyn Part>) {}

    fn keep_data(&mut self) {}

    fn reset_counters(&mut self, _now: Time) {}
}

/// The world: it ends a request after 10 to 90 us, and tells a little late.
struct World {
    shared: Arc<Mutex<Elsewhere>>,
    random: Stream,
}

impl Outside for World {
    fn wait(&mut self, until: Option<Time>) -> Time {
        let drive = &mut *self.shared.lock().unwrap();
        drive.waits += 1;
        assert!(until.is_some() || !drive.inside.is_empty(), "nothing will ever happen");
        let latest = drive.inside.iter().map(|&(_, sent)| sent).max().unwrap_or_default();
        drive.now = drive.now.max(latest);
        let end = drive.now.0 + self.random.between(10_000, 90_000);
        if drive.inside.is_empty() || until.is_some_and(|until| until.0 < end) {
            drive.now = until.map_or(drive.now, |until| until.max(drive.now));
            return drive.now;
        }
        let index = self.random.below(drive.inside.len() as u64) as usize;
        let (id, _) = drive.inside.swap_remove(index);
        drive.done.push((id, Time(end)));
        drive.now = Time(end + self.random.below(500));
        drive.now
    }
}

/// The same workload for so many tenants, over what has `remote` in it.
fn run(
    device: &mut dyn Device,
    remote: Option<&Remote>,
    tenants: usize,
    (pacing, arrivals): (Value, Value),
) -> Result<(Summary, u32), DriveError> {
    let workload = json!({
        "source": { "policy": "synthetic", "arrivals": arrivals, "read_fraction": 0.5 },
        "pacing": pacing,
        "requests": 2_000,
    });
    let workload: WorkloadConfig = serde_json::from_value(workload).expect("a workload");
    let sectors = device.limits().sectors;
    let mut sources: Vec<_> =
        (0..tenants).map(|seed| workload.open(sectors, seed as u64).expect("a valid workload")).collect();
    let gauges = device.gauge_names();
    let gauges: Vec<&str> = gauges.iter().map(String::as_str).collect();
    let recorder = Recorder::new(&MeasureConfig::default(), workload.warm_up, &gauges);
    let tenants = sources.iter_mut().map(|source| Tenant {
        source: source.as_mut(),
        workload: &workload,
        recorder: None,
    });
    let tenants = tenants.collect();
    let mut world =
        remote.map(|remote| World { shared: remote.shared.clone(), random: Stream::new(1, "world") });
    let outside = world.as_mut().map(|world| world as &mut dyn Outside);
    let (all, _) = drive(device, outside, tenants, recorder, &mut |_| ControlFlow::Continue(()))?;
    let waits = remote.map_or(0, |remote| remote.shared.lock().unwrap().waits);
    Ok((all.summary, waits))
}

fn loads() -> [(Value, Value); 3] {
    let poisson = json!({ "policy": "poisson", "iops": 30_000 });
    let closed = json!({ "policy": "closed", "depth": 3 });
    [(json!("open"), poisson.clone()), (json!("think"), poisson), (closed, json!(null))]
}

fn outside_ns(summary: &Summary) -> u64 {
    summary.blame_ns.iter().find(|&(cause, _)| cause == Cause::Outside).map_or(0, |(_, ns)| ns)
}

/// A volume for each tenant over a scheduler over a device.
fn layered(device: Remote, tenants: usize) -> Box<dyn Device> {
    let claims = vec![Claim::default(); tenants];
    let order = IoSchedulerConfig::default().policy().build(&claims, None);
    let device: Box<dyn Device> = Box::new(device);
    let scheduled = Stack::new(Scheduling::new(order, 3), vec![device]);
    let volumes = VolumeConfig::default().policy().build(&[LIMITS.sectors], tenants).expect("volumes");
    Box::new(Stack::new(VolumeManager::new(volumes, None, &[LIMITS], tenants), vec![scheduled]))
}

/// A device in memory here in front of one elsewhere.
fn tiered(lower: Remote) -> Box<dyn Device> {
    let upper: Box<dyn Device> = Box::new(Remote::new(1));
    let plan = Plan {
        lower: LIMITS,
        upper: Limits { sectors: 1 << 10, ..LIMITS },
        placement: Box::new(ToTheUpper),
        takes_any: true,
        admission: AdmissionConfig::default().policy().build(),
        fills: false,
        eviction: EvictionConfig::default().policy().build(),
        demotes: false,
        writeback: WritebackConfig::default().policy().build(),
        ratings: Default::default(),
        overflow: Default::default(),
        journal: false,
        kept: None,
    };
    Box::new(Stack::new(Tier::new(plan), vec![Box::new(lower) as Box<dyn Device>, upper]))
}

/// Sends all writes to the upper device.
#[derive(Clone)]
struct ToTheUpper;

impl Placement for ToTheUpper {
    fn takes(&mut self, _now: Time, _write: &Request) -> bool {
        true
    }
}

#[test]
fn a_driver_waits_for_what_only_the_outside_knows() {
    for load in loads() {
        let name = load.0.clone();
        let mut remote = Remote::new(0);
        let shared = remote.clone();
        let (summary, waits) = run(&mut remote, Some(&shared), 1, load).expect("it ends");
        assert_eq!(summary.requests, 2_000, "{name}");
        assert!(waits >= 2_000, "{name}: it listened {waits} times");
        assert!(outside_ns(&summary) >= 2_000 * 9_000, "{name}");
    }
}

#[test]
fn what_is_simulated_beside_it_does_not_run_ahead() {
    for load in loads() {
        for tenants in [1, 3] {
            let name = format!("{}, {tenants} tenants", load.0);
            let mut remote = Remote::new(3);
            let shared = remote.clone();
            let (summary, _) = run(&mut remote, Some(&shared), tenants, load.clone()).expect("it ends");
            assert_eq!(summary.requests, 2_000 * tenants as u64, "{name}");
            assert!(outside_ns(&summary) > 0, "{name}");
        }
    }
}

#[test]
fn stacks_wait_for_it_too() {
    for load in loads() {
        for own_every in [0, 3] {
            for tenants in [1, 2] {
                let remote = Remote::new(own_every);
                let mut devices = vec![layered(remote.clone(), tenants)];
                if tenants == 1 {
                    devices.push(Box::new(Passing::new(Box::new(remote.clone()), 3)));
                    devices.push(tiered(remote.clone()));
                    devices.push(Box::new(Passing::new(tiered(remote.clone()), 7)));
                }
                for (number, mut device) in devices.into_iter().enumerate() {
                    let name = format!("{}, {tenants} tenants, {own_every}, device {number}", load.0);
                    *remote.shared.lock().unwrap() = Elsewhere::default();
                    let (summary, _) = run(&mut *device, Some(&remote), tenants, load.clone()).expect(&name);
                    assert_eq!(summary.requests, 2_000 * tenants as u64, "{name}");
                    assert!(outside_ns(&summary) > 0, "{name}");
                }
            }
        }
    }
}

#[test]
fn without_anybody_who_listens_it_is_an_error() {
    for load in loads() {
        for tenants in [1, 2] {
            let mut devices: Vec<Box<dyn Device>> =
                vec![Box::new(Remote::new(0)), Box::new(Remote::new(3)), layered(Remote::new(0), tenants)];
            if tenants == 1 {
                devices.push(Box::new(Passing::new(Box::new(Remote::new(0)), 3)));
            }
            for mut device in devices {
                let ended = run(&mut *device, None, tenants, load.clone());
                assert!(matches!(ended, Err(DriveError::Unheard)), "{}, {tenants} tenants", load.0);
            }
        }
    }
}
