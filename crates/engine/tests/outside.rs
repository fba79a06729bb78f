//! The router over what has a clock that nobody here knows.

use flashkeel_engine::{
    Arena, Cause, Completion, Durable, Lba, Leaf, Ledger, Limits, Operation, Outbox, Request, RequestId,
    Stack, Stage, Status, Submit, Time, Wake,
};

const LIMITS: Limits =
    Limits { sectors: 1 << 20, block_sectors: 1, preferred_sectors: 8, durable: Durable::Acknowledged };

/// Ends each request so long after its submission, which it tells nobody before.
struct Elsewhere {
    service_ns: u64,
    /// Whether it says when it ends the latest, too.
    says_when: bool,
    inside: Vec<(RequestId, Time)>,
}

impl Elsewhere {
    fn new(service_ns: u64, says_when: bool) -> Elsewhere {
        Elsewhere { service_ns, says_when, inside: Vec::new() }
    }
}

impl Leaf for Elsewhere {
    fn limits(&self) -> Limits {
        LIMITS
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        self.inside.push((request.id, now));
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        match self.inside.last() {
            None => Wake::NEVER,
            Some(&(_, sent)) if self.says_when => Wake::at_or_outside(Time(sent.0 + 10 * self.service_ns)),
            Some(_) => Wake::OUTSIDE,
        }
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, completions: &mut Vec<Completion>) {
        let service = self.service_ns;
        for (id, sent) in self.inside.extract_if(.., |(_, sent)| sent.0 + service <= now.0) {
            let time = Time(sent.0 + service);
            let mut ledger = Ledger::ZERO;
            ledger.charge_between(Cause::OwnFlash, sent, time);
            completions.push(Completion { id, time, status: Status::Ok, ledger });
        }
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {
        self.inside.clear();
    }
}

/// Reads go to the first child, all else to the second. With `asks` it gives its
/// children nothing before somebody outside lets it.
struct Gate {
    asks: bool,
    held: Vec<Request>,
    /// When somebody outside opens it.
    opens: Time,
}

impl Stage for Gate {
    fn limits(&self, below: &[Limits]) -> Limits {
        below[0]
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena, outbox: &mut Outbox) -> Submit {
        self.held.push(*request);
        if !self.asks {
            self.let_through(now, outbox);
        }
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        if self.held.is_empty() { Wake::NEVER } else { Wake::OUTSIDE }
    }

    fn advance(&mut self, now: Time, _data: &mut Arena, outbox: &mut Outbox) {
        self.let_through(now, outbox);
    }

    fn completed(
        &mut self,
        now: Time,
        _child: usize,
        completion: &mut Completion,
        _data: &mut Arena,
        _outbox: &mut Outbox,
    ) -> bool {
        assert_eq!(completion.time, now, "what a stage hears of ends now");
        true
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena, _outbox: &mut Outbox) {}
}

impl Gate {
    fn let_through(&mut self, now: Time, outbox: &mut Outbox) {
        if now >= self.opens {
            let child = |request: &Request| usize::from(request.operation != Operation::Read);
            outbox.requests.extend(self.held.drain(..).map(|request| (child(&request), request)));
        }
    }
}

fn ask(stack: &mut impl Leaf, id: u64, operation: Operation) {
    let request = Request::new(RequestId(id), operation, Lba(0), 8);
    assert_eq!(stack.submit(Time(0), &request, &mut Arena::new()), Submit::Accepted);
}

/// Runs it by a clock that goes in steps; returns what ended when.
fn run(stack: &mut impl Leaf, step: u64, steps: u64) -> Vec<(u64, u64)> {
    let mut done = Vec::new();
    for turn in 1..=steps {
        stack.advance(Time(turn * step), &mut Arena::new(), &mut done);
    }
    for end in &done {
        assert_eq!(end.ledger.total(), end.time.since(Time(0)), "the ledger sums: {end:?}");
    }
    done.iter().map(|end| (end.id.0, end.time.0)).collect()
}

#[test]
fn a_stage_is_told_at_once_what_a_child_outside_has_done() {
    let open = || Gate { asks: false, held: Vec::new(), opens: Time(0) };
    for says_when in [false, true] {
        let children = vec![Elsewhere::new(130, says_when), Elsewhere::new(70, says_when)];
        let mut stack = Stack::new(open(), vec![Stack::new(open(), children), Stack::new(open(), vec![])]);
        assert_eq!(stack.next_event(), Wake::NEVER);
        ask(&mut stack, 0, Operation::Read);
        assert!(stack.next_event().hears_outside(), "through two stages");
        assert_eq!(run(&mut stack, 50, 5), [(0, 150)], "heard of a little late");
        assert_eq!(stack.next_event(), Wake::NEVER);
    }
}

#[test]
fn a_stage_that_waits_for_the_outside_is_woken() {
    let gate = Gate { asks: true, held: Vec::new(), opens: Time(400) };
    let mut stack = Stack::new(gate, vec![Elsewhere::new(130, false), Elsewhere::new(30, true)]);
    ask(&mut stack, 0, Operation::Read);
    ask(&mut stack, 1, Operation::Write);
    assert_eq!(stack.next_event(), Wake::OUTSIDE);
    let ends: Vec<(u64, u64)> = {
        let mut done = Vec::new();
        for turn in 1..=20 {
            stack.advance(Time(turn * 50), &mut Arena::new(), &mut done);
        }
        done.iter().map(|end| (end.id.0, end.time.0)).collect()
    };
    assert_eq!(ends, [(1, 450), (0, 550)]);
}
