//! Devices that break a law each. A suite that lets one of them pass asserts
//! nothing.

use std::collections::BTreeMap;

use flashkeel_engine::{
    Arena, Cause, Completion, Leaf, Ledger, Limits, Operation, Payload, Request, RequestId, Span, Status,
    Submit, Time, Wake,
};
use flashkeel_host::device::Device;

use crate::{broken_laws, shortest, subjects};

/// What is wrong with a device, at every third opportunity.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    ForgetsToComplete,
    CompletesTwice,
    CompletesWhatItRefused,
    IsBusyWithNothing,
    TakesWhatItMustRefuse,
    Fails,
    CompletesBeforeTheSubmission,
    CompletesInTheFuture,
    LeavesThingsUndone,
    LosesANanosecond,
    FlushesAtOnce,
    ForgetsAWrite,
    ForgetsATrim,
    ReadsAWrongByte,
    IsNotWhatItWasCopiedFrom,
}

/// Every fault, with the law that it breaks.
const FAULTS: [(Fault, &str); 15] = [
    (Fault::ForgetsToComplete, "accepted once, completed once"),
    (Fault::CompletesTwice, "accepted once, completed once"),
    (Fault::CompletesWhatItRefused, "busy and refused are answers"),
    (Fault::IsBusyWithNothing, "busy and refused are answers"),
    (Fault::TakesWhatItMustRefuse, "busy and refused are answers"),
    (Fault::Fails, "what is admitted is done"),
    (Fault::CompletesBeforeTheSubmission, "nothing completes before it was submitted"),
    (Fault::CompletesInTheFuture, "time never runs back"),
    (Fault::LeavesThingsUndone, "time never runs back"),
    (Fault::LosesANanosecond, "the ledger sums"),
    (Fault::FlushesAtOnce, "a flush keeps its place"),
    (Fault::ForgetsAWrite, "reads return what was written"),
    (Fault::ForgetsATrim, "reads return what was written"),
    (Fault::ReadsAWrongByte, "reads return what was written"),
    (Fault::IsNotWhatItWasCopiedFrom, "a clone behaves as the original"),
];

struct Broken {
    fault: Fault,
    device: Box<dyn Device>,
    opportunities: u32,
    /// How often it has been copied on the way from the first.
    generation: u32,
    reads: BTreeMap<RequestId, Request>,
    /// Completions that the device knows nothing of.
    own: Vec<Completion>,
    now: Time,
    is_undone: bool,
}

impl Clone for Broken {
    fn clone(&self) -> Broken {
        Broken {
            device: self.device.clone(),
            generation: self.generation + 1,
            reads: self.reads.clone(),
            own: self.own.clone(),
            ..*self
        }
    }
}

impl Broken {
    fn new(fault: Fault, device: Box<dyn Device>) -> Broken {
        let (reads, own) = (BTreeMap::new(), Vec::new());
        Broken {
            fault,
            device,
            opportunities: 0,
            generation: 0,
            reads,
            own,
            now: Time::ZERO,
            is_undone: false,
        }
    }

    /// Whether the fault shows now.
    fn shows(&mut self, fault: Fault) -> bool {
        if self.fault != fault {
            return false;
        }
        self.opportunities += 1;
        self.opportunities.is_multiple_of(3)
    }

    fn complete(&mut self, request: &Request) {
        let (id, time, status, ledger) = (request.id, self.now, Status::Ok, Ledger::ZERO);
        self.own.push(Completion { id, time, status, ledger });
    }

    /// A completion as it leaves the device, as often as it does.
    fn spoil(&mut self, mut completion: Completion, data: &mut Arena) -> Vec<Completion> {
        if self.shows(Fault::ForgetsToComplete) {
            return Vec::new();
        }
        if self.shows(Fault::CompletesTwice) {
            return vec![completion; 2];
        }
        if self.shows(Fault::Fails) {
            completion.status = Status::MediaError;
        }
        if self.shows(Fault::CompletesBeforeTheSubmission) {
            completion.time = Time::ZERO;
        }
        if self.shows(Fault::CompletesInTheFuture) {
            completion.time += Span::from_secs(1);
        }
        if self.shows(Fault::LosesANanosecond)
            || self.generation > 1 && self.shows(Fault::IsNotWhatItWasCopiedFrom)
        {
            completion.ledger.charge(Cause::Controller, Span(1));
        }
        if let Some(read) = self.reads.remove(&completion.id)
            && self.shows(Fault::ReadsAWrongByte)
            && let Some(bytes) = data.write(read.payload, read.sectors)
        {
            bytes[0] ^= 1;
        }
        vec![completion]
    }
}

impl Leaf for Broken {
    fn limits(&self) -> Limits {
        self.device.limits()
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena) -> Submit {
        self.now = now;
        let mut request = *request;
        let operation = request.operation;
        if self.shows(Fault::IsBusyWithNothing) {
            return Submit::Busy;
        }
        if operation == Operation::Flush && self.shows(Fault::FlushesAtOnce)
            || operation == Operation::Trim && self.shows(Fault::ForgetsATrim)
        {
            self.complete(&request);
            return Submit::Accepted;
        }
        if operation == Operation::Write && self.shows(Fault::ForgetsAWrite) {
            request.payload = Payload::NONE;
        }
        let answer = self.device.submit(now, &request, data);
        if let Submit::Refused(_) = answer {
            if self.shows(Fault::CompletesWhatItRefused) {
                self.complete(&request);
            }
            if self.shows(Fault::TakesWhatItMustRefuse) {
                self.complete(&request);
                return Submit::Accepted;
            }
        } else if operation == Operation::Read {
            self.reads.insert(request.id, request);
        }
        answer
    }

    fn next_event(&self) -> Wake {
        if self.is_undone || !self.own.is_empty() {
            return Wake::At(self.now);
        }
        self.device.next_event()
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        self.now = now;
        self.is_undone = self.shows(Fault::LeavesThingsUndone);
        completions.append(&mut self.own);
        let mut done = Vec::new();
        self.device.advance(now, data, &mut done);
        for completion in done {
            completions.append(&mut self.spoil(completion, data));
        }
    }

    fn cut_power(&mut self, now: Time, data: &mut Arena) {
        self.device.cut_power(now, data);
    }
}

#[test]
fn whatever_breaks_a_law_is_caught_in_a_short_case() {
    for (fault, law) in FAULTS {
        let tenants = subjects::documents().into_iter().find(|subject| subject.name == "tenants");
        let subject = tenants.expect("a stack with bytes and tenants");
        let broken = Broken::new(fault, subject.device);
        let found = shortest(1, 64, |case| {
            let mut laws = broken_laws(&broken, subject.tenants, true, case);
            laws.retain(|broken| broken.starts_with(law));
            laws
        });
        let (_, case) = found.unwrap_or_else(|| panic!("{fault:?} does not break the law: {law}"));
        assert!(case.steps.len() <= 12, "{fault:?} is shown by {case}");
    }
}
