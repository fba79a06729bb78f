//! The driver over a leaf whose times nobody here knows.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

use flashkeel_engine::{
    Arena, Cause, Completion, Durable, Leaf, Ledger, Limits, Request, RequestId, Status, Stream, Submit,
    Time, Wake,
};
use flashkeel_host::{Measured, Outside, Tenant, drive};
use flashkeel_stats::{MeasureConfig, Recorder, Summary};
use flashkeel_workload::WorkloadConfig;
use serde_json::json;

/// A drive elsewhere: what it has got, and what it has done by now.
#[derive(Default)]
struct Elsewhere {
    inside: Vec<(RequestId, Time)>,
    done: Vec<(RequestId, Time)>,
    waits: u32,
}

/// Its end here. It knows what it has sent and what has come back.
struct Remote {
    shared: Rc<RefCell<Elsewhere>>,
    submitted: Vec<(RequestId, Time)>,
}

impl Leaf for Remote {
    fn limits(&self) -> Limits {
        Limits { sectors: 1 << 16, block_sectors: 1, preferred_sectors: 8, durable: Durable::Flushed }
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        if self.submitted.len() == 4 {
            return Submit::Busy;
        }
        self.shared.borrow_mut().inside.push((request.id, now));
        self.submitted.push((request.id, now));
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        if self.submitted.is_empty() { Wake::Never } else { Wake::Outside }
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {
        self.submitted.clear();
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, completions: &mut Vec<Completion>) {
        for (id, time) in self.shared.borrow_mut().done.extract_if(.., |&mut (_, time)| time <= now) {
            let index = self.submitted.iter().position(|&(sent, _)| sent == id).expect("it was sent");
            let (_, submitted) = self.submitted.swap_remove(index);
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::Outside, submitted, time);
            completions.push(Completion { id, time, status: Status::Ok, ledger });
        }
    }
}

impl Measured for Remote {
    fn gauge_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn gauges(&self, values: &mut Vec<u64>) {
        values.clear();
    }

    fn start_measuring(&mut self) {}

    fn final_counters(&self) -> Vec<u64> {
        Vec::new()
    }
}

/// The world: it ends a request after 10 to 90 us, and tells a little late.
struct World {
    shared: Rc<RefCell<Elsewhere>>,
    random: Stream,
    now: Time,
}

impl Outside for World {
    fn wait(&mut self, until: Option<Time>) -> Time {
        let mut drive = self.shared.borrow_mut();
        drive.waits += 1;
        assert!(until.is_some() || !drive.inside.is_empty(), "nothing will ever happen");
        let latest = drive.inside.iter().map(|&(_, sent)| sent).max().unwrap_or_default();
        self.now = self.now.max(latest);
        let end = self.now.0 + self.random.between(10_000, 90_000);
        if drive.inside.is_empty() || until.is_some_and(|until| until.0 < end) {
            self.now = until.map_or(self.now, |until| until.max(self.now));
            return self.now;
        }
        let index = self.random.below(drive.inside.len() as u64) as usize;
        let (id, _) = drive.inside.swap_remove(index);
        drive.done.push((id, Time(end)));
        self.now = Time(end + self.random.below(500));
        self.now
    }
}

fn run(pacing: serde_json::Value, arrivals: serde_json::Value) -> (Summary, u32) {
    let workload = json!({
        "source": { "policy": "synthetic", "arrivals": arrivals },
        "pacing": pacing,
        "requests": 2_000,
    });
    let workload: WorkloadConfig = serde_json::from_value(workload).expect("a workload");
    let mut source = workload.open(1 << 16, 1).expect("a valid workload");
    let shared = Rc::new(RefCell::new(Elsewhere::default()));
    let mut remote = Remote { shared: shared.clone(), submitted: Vec::new() };
    let mut world = World { shared: shared.clone(), random: Stream::new(1, "world"), now: Time::ZERO };
    let recorder = || Recorder::new(&MeasureConfig::default(), workload.warm_up, &[]);
    let tenant = Tenant { source: source.as_mut(), workload: &workload, recorder: None };
    let go_on = &mut |_| ControlFlow::Continue(());
    let (all, _) = drive(&mut remote, Some(&mut world), vec![tenant], recorder(), go_on).expect("it ends");
    let waits = shared.borrow().waits;
    (all.summary, waits)
}

#[test]
fn a_driver_waits_for_what_only_the_outside_knows() {
    let poisson = json!({ "policy": "poisson", "iops": 30_000 });
    let closed = json!({ "policy": "closed", "depth": 3 });
    for (pacing, arrivals) in [(json!("open"), &poisson), (json!("think"), &poisson), (closed, &json!(null))]
    {
        let (summary, waits) = run(pacing.clone(), arrivals.clone());
        assert_eq!(summary.requests, 2_000, "{pacing}");
        assert!(waits >= 2_000, "{pacing}: it listened {waits} times");
        let outside = summary.blame_ns.iter().find(|&(cause, _)| cause == Cause::Outside);
        assert!(outside.expect("a cause of its own").1 >= 2_000 * 9_000, "{pacing}");
    }
}
