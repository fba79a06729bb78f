//! Devices that break a law each. A suite that lets one of them pass asserts
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use flashkeel_engine::{
    Answer, Arena, Cause, Command, Completion, Durable, Event, Leaf, Ledger, Limits, Notice, Operation,
    Payload, Place, Refusal, Request, RequestId, SECTOR_BYTES, Span, Status, Submit, TenantId, Time, Wake,
    WindowEnd,
};
use flashkeel_host::device::Device;

use crate::laws::{LAWS, Law};
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
    LacksRoomForWhatIsThere,
    CompletesBeforeTheSubmission,
    CompletesInTheFuture,
    LeavesThingsUndone,
    LosesANanosecond,
    FlushesAtOnce,
    ForgetsAWrite,
    ForgetsATrim,
    ReadsAWrongByte,
    IsNotWhatItWasCopiedFrom,
    AcknowledgesBeforeItKeeps,
    ForgetsTrimsInACut,
    GoesBackInACut,
    KeepsBuffersInACut,
    ForgetsWhatIsGone,
    WritesAlthoughReadOnly,
    TellsAnotherState,
    RaisesWhatHasNotHappened,
    NeverRests,
}

/// Every fault, with the law that it breaks.
const FAULTS: [(Fault, &str); 25] = [
    (Fault::ForgetsToComplete, "accepted once, completed once"),
    (Fault::CompletesTwice, "accepted once, completed once"),
    (Fault::CompletesWhatItRefused, "busy and refused are answers"),
    (Fault::IsBusyWithNothing, "busy and refused are answers"),
    (Fault::TakesWhatItMustRefuse, "busy and refused are answers"),
    (Fault::Fails, "what is admitted is done"),
    (Fault::LacksRoomForWhatIsThere, "what is admitted is done"),
    (Fault::CompletesBeforeTheSubmission, "nothing completes before it was submitted"),
    (Fault::CompletesInTheFuture, "time never runs back"),
    (Fault::LeavesThingsUndone, "time never runs back"),
    (Fault::LosesANanosecond, "the ledger sums"),
    (Fault::FlushesAtOnce, "a flush keeps its place"),
    (Fault::ForgetsAWrite, "reads return what was written"),
    (Fault::ForgetsATrim, "reads return what was written"),
    (Fault::ReadsAWrongByte, "reads return what was written"),
    (Fault::IsNotWhatItWasCopiedFrom, "a clone behaves as the original"),
    (Fault::AcknowledgesBeforeItKeeps, "what was durable survives a power cut"),
    (Fault::ForgetsTrimsInACut, "what was durable survives a power cut"),
    (Fault::GoesBackInACut, "what was durable survives a power cut"),
    (Fault::KeepsBuffersInACut, "it comes to rest"),
    (Fault::ForgetsWhatIsGone, "accepted once, completed once"),
    (Fault::WritesAlthoughReadOnly, "busy and refused are answers"),
    (Fault::TellsAnotherState, "what is told holds"),
    (Fault::RaisesWhatHasNotHappened, "what is told holds"),
    (Fault::NeverRests, "it comes to rest"),
];

impl Fault {
    /// The document of a device that has the fault.
    fn document(self) -> &'static str {
        match self {
            Fault::AcknowledgesBeforeItKeeps => "volatile",
            Fault::ForgetsWhatIsGone | Fault::WritesAlthoughReadOnly | Fault::TellsAnotherState => "plain",
            _ => "tenants",
        }
    }
}

struct Broken {
    fault: Fault,
    device: Box<dyn Device>,
    opportunities: u32,
    /// How often it has been copied on the way from the first.
    generation: u32,
    reads: BTreeMap<RequestId, Request>,
    /// Completions that the device knows nothing of.
    own: Vec<Completion>,
    /// The device as it was once, with nothing inside.
    earlier: Option<Box<dyn Device>>,
    /// Requests inside.
    inside: usize,
    /// Blocks that are trimmed until the power is cut.
    trimmed: BTreeSet<(TenantId, u64)>,
    /// Whether it has been taken out, or has something to do for ever.
    is_lost: bool,
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
            earlier: self.earlier.clone(),
            trimmed: self.trimmed.clone(),
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
            earlier: None,
            inside: 0,
            trimmed: BTreeSet::new(),
            is_lost: false,
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
        self.inside = self.inside.saturating_sub(1);
        if self.shows(Fault::ForgetsToComplete) || self.is_lost && completion.status == Status::Gone {
            return Vec::new();
        }
        if self.shows(Fault::CompletesTwice) {
            return vec![completion; 2];
        }
        if self.shows(Fault::Fails) {
            completion.status = Status::MediaError;
        }
        if self.shows(Fault::LacksRoomForWhatIsThere) {
            completion.status = Status::NoSpace;
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
            && let Some(bytes) = data.write(read.payload, read.sectors)
        {
            if self.shows(Fault::ReadsAWrongByte) {
                bytes[0] ^= 1;
            }
            let sectors = (read.lba.0..).zip(bytes.chunks_mut(SECTOR_BYTES as usize));
            for (_, bytes) in sectors.filter(|(lba, _)| self.trimmed.contains(&(read.tenant, *lba))) {
                bytes.fill(0);
            }
        }
        vec![completion]
    }
}

impl Leaf for Broken {
    fn limits(&self) -> Limits {
        let limits = self.device.limits();
        match self.fault {
            Fault::AcknowledgesBeforeItKeeps => Limits { durable: Durable::Acknowledged, ..limits },
            _ => limits,
        }
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
        let is_admitted = self.limits().admit(request.lba.0, request.sectors);
        if self.fault == Fault::ForgetsTrimsInACut && operation != Operation::Read && is_admitted {
            let sectors = (request.lba.0..).take(request.sectors as usize);
            let sectors = sectors.map(|lba| (request.tenant, lba));
            if operation == Operation::Trim {
                self.trimmed.extend(sectors);
                self.complete(&request);
                return Submit::Accepted;
            }
            sectors.for_each(|sector| _ = self.trimmed.remove(&sector));
        }
        if self.inside == 0 && self.shows(Fault::GoesBackInACut) {
            self.earlier = Some(self.device.clone());
        }
        self.is_lost |= self.shows(Fault::NeverRests);
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
        self.inside += usize::from(answer == Submit::Accepted);
        answer
    }

    fn next_event(&self) -> Wake {
        let never_rests = self.is_lost && self.fault == Fault::NeverRests;
        if self.is_undone || never_rests || !self.own.is_empty() {
            return self.device.next_event().or(Wake::at(self.now));
        }
        self.device.next_event()
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        self.now = now;
        self.is_undone = self.shows(Fault::LeavesThingsUndone);
        completions.append(&mut self.own);
        if self.is_lost && self.fault == Fault::NeverRests {
            return;
        }
        let mut done = Vec::new();
        self.device.advance(now, data, &mut done);
        for completion in done {
            completions.append(&mut self.spoil(completion, data));
        }
    }

    fn cut_power(&mut self, now: Time, data: &mut Arena) {
        self.device.cut_power(now, data);
        self.trimmed.clear();
        if self.shows(Fault::KeepsBuffersInACut) {
            let _ = data.take(8);
        }
        if let Some(mut earlier) = self.earlier.take() {
            // What was inside now ends as it should.
            self.device.advance(now, data, &mut self.own);
            earlier.advance(now, data, &mut Vec::new());
            earlier.cut_power(now, data);
            self.device = earlier;
        }
    }

    fn command(
        &mut self,
        now: Time,
        place: &Place,
        command: &Command,
        data: &mut Arena,
    ) -> Result<Answer, Refusal> {
        if *command == Command::ReadOnly(true) && self.fault == Fault::WritesAlthoughReadOnly {
            return Ok(Answer::Done);
        }
        let mut answer = self.device.command(now, place, command, data);
        if let Ok(Answer::State(readings)) = &mut answer
            && self.shows(Fault::TellsAnotherState)
        {
            readings.iter_mut().filter(|(name, _)| name == "read_only").for_each(|(_, value)| *value ^= 1);
        }
        self.is_lost |= self.fault == Fault::ForgetsWhatIsGone && *command == Command::Remove;
        answer
    }

    fn notice(&mut self) -> Option<Notice> {
        if self.shows(Fault::RaisesWhatHasNotHappened) {
            let event = Event::WindowEnded(0, WindowEnd::Urgent);
            return Some(Notice { place: Place::default(), event });
        }
        self.device.notice()
    }
}

#[test]
fn whatever_breaks_a_law_is_caught_in_a_short_case() {
    let documents = subjects::documents();
    for (fault, law) in FAULTS {
        let named = documents.iter().find(|subject| subject.name == fault.document());
        let subject = named.expect("a document");
        let broken = Broken::new(fault, subject.device.clone());
        let laws: Vec<Law> = LAWS.into_iter().filter(|(sentence, _)| sentence.starts_with(law)).collect();
        let found =
            shortest(1, 64, |case| broken_laws(&broken, subject.tenants, subject.is_stack, &laws, case));
        let (_, case) = found.unwrap_or_else(|| panic!("{fault:?} does not break the law: {law}"));
        assert!(case.steps.len() <= 12, "{fault:?} is shown by {case}");
    }
}
