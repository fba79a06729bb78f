//! A device with a clock of its own, alone and in stacks.

use flashkeel_engine::{
    Answer, Arena, Command, Completion, Leaf, Limits, Notice, Place, Refusal, Request, Span, Stack, Submit,
    Time, Wake,
};
use flashkeel_experiment::resolve;
use flashkeel_host::device::Device;
use flashkeel_host::scheduler::{IoSchedulerConfig, Scheduling};
use flashkeel_host::stack::Passing;
use flashkeel_host::tier::admission::AdmissionConfig;
use flashkeel_host::tier::eviction::EvictionConfig;
use flashkeel_host::tier::placement::PlacementConfig;
use flashkeel_host::tier::writeback::WritebackConfig;
use flashkeel_host::tier::{Plan, Tier};
use flashkeel_host::volume::{VolumeConfig, VolumeManager};
use flashkeel_host::{Claim, Part};

use crate::subjects::{self, Subject};

/// A device that does not say when it will do something, or only when at the latest.
#[derive(Clone)]
struct Elsewhere {
    device: Box<dyn Device>,
    says_when: bool,
}

/// How much later than it does it says that it will do something.
const LATER: Span = Span(20_000);

impl Leaf for Elsewhere {
    fn limits(&self) -> Limits {
        self.device.limits()
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena) -> Submit {
        self.device.submit(now, request, data)
    }

    fn next_event(&self) -> Wake {
        let wake = self.device.next_event();
        let heard = match wake.time() {
            Some(time) if self.says_when => Wake::at_or_outside(time + LATER),
            Some(_) => Wake::OUTSIDE,
            None => Wake::NEVER,
        };
        heard.noting(wake.has_notice())
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        self.device.advance(now, data, completions);
    }

    fn cut_power(&mut self, now: Time, data: &mut Arena) {
        self.device.cut_power(now, data);
    }

    fn command(
        &mut self,
        now: Time,
        place: &Place,
        command: &Command,
        data: &mut Arena,
    ) -> Result<Answer, Refusal> {
        self.device.command(now, place, command, data)
    }

    fn notice(&mut self) -> Option<Notice> {
        self.device.notice()
    }
}

impl Device for Elsewhere {
    fn parts<'a>(&'a self, parts: &mut Vec<&'a dyn Part>) {
        self.device.parts(parts);
    }

    fn keep_data(&mut self) {
        self.device.keep_data();
    }

    fn reset_counters(&mut self, now: Time) {
        self.device.reset_counters(now);
    }
}

/// A device with these settings that has been written, which keeps data.
fn simulated(base: &str, changes: &[(&str, &str)]) -> Box<dyn Device> {
    let (_, document) = crate::bases::BASES.iter().find(|(name, _)| *name == base).expect("a document");
    let changes: Vec<_> = changes.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let plans = resolve(document, base, &changes, None).unwrap_or_else(|refused| panic!("{refused}"));
    let subject = subjects::subject(base.into(), &plans[0].config);
    subject.unwrap_or_else(|refused| panic!("{refused}")).device
}

fn elsewhere(says_when: bool) -> Box<dyn Device> {
    Box::new(Elsewhere { device: simulated("plain", &[]), says_when })
}

/// Two volumes over a device elsewhere and one that is simulated.
fn volumes(says_when: bool) -> Box<dyn Device> {
    let claims = [Claim::default(); 2];
    let devices = [elsewhere(says_when), simulated("plain", &[])];
    let limits = devices.each_ref().map(|device| device.limits());
    let scheduled = devices.map(|device| {
        let order = IoSchedulerConfig::default().policy().build(&claims, None);
        Stack::new(Scheduling::new(order, 8), vec![device])
    });
    let sizes = limits.map(|limits| limits.sectors);
    let volumes = VolumeConfig::default().policy().build(&sizes, claims.len()).expect("volumes");
    Box::new(Stack::new(VolumeManager::new(volumes, None, &limits, claims.len()), scheduled.into()))
}

/// An NVM that is simulated in front of a device elsewhere.
fn tier(says_when: bool) -> Box<dyn Device> {
    let upper = simulated("bare", &[("stack.devices.0.nvm.capacity", "1MiB")]);
    let lower = elsewhere(says_when);
    let placement: PlacementConfig = serde_json::from_value("small-large".into()).expect("a policy");
    let plan = Plan {
        lower: lower.limits(),
        upper: upper.limits(),
        placement: placement.policy().build(None, flashkeel_engine::Stream::new(1, "outside")),
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
    Box::new(Stack::new(Tier::new(plan), vec![lower, upper]))
}

/// A way to have a device elsewhere: its name, for how many tenants it is, and whether
/// it orders flushes.
type Way = (&'static str, u16, bool, fn(bool) -> Box<dyn Device>);

/// All of them.
const WAYS: [Way; 4] = [
    ("elsewhere", 1, false, elsewhere),
    ("elsewhere in a stack without policies", 1, true, |says_when| {
        Box::new(Passing::new(elsewhere(says_when), 8))
    }),
    ("elsewhere beside a simulated one", 2, true, volumes),
    ("elsewhere below a tier", 1, true, |says_when| Box::new(Passing::new(tier(says_when), 8))),
];

/// Devices elsewhere, alone and in stacks.
pub fn subjects() -> Vec<Subject> {
    let each = WAYS.iter().flat_map(|&(name, tenants, is_stack, make)| {
        [false, true].map(|says_when| {
            let name = format!("{name}{}", if says_when { ", which says when at the latest" } else { "" });
            Subject { name, tenants, is_stack, device: make(says_when) }
        })
    });
    each.collect()
}
