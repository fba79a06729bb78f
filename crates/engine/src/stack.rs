//! The router: a stage over children is again a leaf.

use std::collections::VecDeque;

use crate::{
    Answer, Arena, Coming, Command, Completion, Leaf, Ledger, Limits, Notice, Outbox, Place, Refusal,
    Request, Stage, Submit, Time, Wake,
};

/// One stage over its children, routed so that the whole is a [`Leaf`] again.
///
/// Routing repeats at equal times until nothing moves. A request refused by a
/// busy child waits here, in order, and is offered again whenever that child
/// has completed something. A request that a child refuses for good comes back
/// to the stage as completed, with the status that says why.
#[derive(Clone)]
pub struct Stack<S, L> {
    stage: S,
    children: Vec<Child<L>>,
    outbox: Outbox,
    scratch: Vec<Completion>,
    /// Oldest first.
    notices: VecDeque<Notice>,
}

#[derive(Clone)]
struct Child<L> {
    leaf: L,
    waiting: VecDeque<Request>,
    /// When it next does something by itself, as it said when it was last touched.
    wake: Wake,
}

impl<L: Leaf> Child<L> {
    /// Offers the oldest of the waiting requests until one is not taken; whether
    /// any was.
    fn offer(&mut self, now: Time, data: &mut Arena, refused: &mut Vec<Completion>) -> bool {
        let before = self.waiting.len();
        while let Some(request) = self.waiting.front() {
            if !submit(&mut self.leaf, now, request, data, refused) {
                break;
            }
            self.waiting.pop_front();
        }
        self.wake = self.leaf.next_event();
        self.waiting.len() < before
    }
}

/// Offers a request to a leaf; whether that is over. One that is refused for good
/// has ended so.
fn submit(
    leaf: &mut impl Leaf,
    now: Time,
    request: &Request,
    data: &mut Arena,
    refused: &mut Vec<Completion>,
) -> bool {
    match leaf.submit(now, request, data) {
        Submit::Accepted => true,
        Submit::Busy => false,
        Submit::Refused(status) => {
            refused.push(Completion { id: request.id, time: now, status, ledger: Ledger::ZERO });
            true
        }
    }
}

impl<S: Stage, L: Leaf> Stack<S, L> {
    /// Puts `stage` over `children`; the stage names them by their index here.
    pub fn new(stage: S, children: Vec<L>) -> Self {
        let child = |leaf: L| Child { wake: leaf.next_event(), leaf, waiting: VecDeque::new() };
        let children = children.into_iter().map(child).collect();
        Stack { stage, children, outbox: Outbox::default(), scratch: Vec::new(), notices: VecDeque::new() }
    }

    /// The stage, to read its counters.
    pub fn stage(&self) -> &S {
        &self.stage
    }

    /// The children, to read their counters.
    pub fn children(&self) -> impl Iterator<Item = &L> {
        self.children.iter().map(|child| &child.leaf)
    }

    /// The children, to change what is counted in them.
    pub fn children_mut(&mut self) -> impl Iterator<Item = &mut L> {
        self.children.iter_mut().map(|child| &mut child.leaf)
    }

    /// The stage, to change what is counted in it.
    pub fn stage_mut(&mut self) -> &mut S {
        &mut self.stage
    }

    /// Carries requests and commands down, completions and events up, until
    /// nothing moves at `now`. Children that have nothing to do are not touched.
    fn settle(&mut self, now: Time, data: &mut Arena) {
        loop {
            let mut moved = self.carry_commands(now, data);
            moved |= self.carry_requests(now, data);
            for index in 0..self.children.len() {
                let child = &mut self.children[index];
                if !child.waiting.is_empty() {
                    moved |= child.offer(now, data, &mut self.scratch);
                }
                if child.wake.is_due(now) || child.wake.hears_outside() {
                    child.leaf.advance(now, data, &mut self.scratch);
                    child.wake = child.leaf.next_event();
                }
                moved |= self.hear(now, index, data);
            }
            let events = self.outbox.events.drain(..);
            self.notices.extend(events.map(|event| Notice { place: Place::default(), event }));
            if !moved && self.outbox.requests.is_empty() && self.outbox.commands.is_empty() {
                return;
            }
        }
    }

    /// Gives children their requests, where none waits before.
    fn carry_requests(&mut self, now: Time, data: &mut Arena) -> bool {
        let Stack { stage, children, outbox, scratch, .. } = self;
        let mut requests = std::mem::take(&mut outbox.requests);
        let moved = !requests.is_empty();
        for (index, request) in requests.drain(..) {
            let child = &mut children[index];
            if !child.waiting.is_empty() || !submit(&mut child.leaf, now, &request, data, scratch) {
                child.waiting.push_back(request);
            }
            child.wake = child.leaf.next_event();
            for completion in scratch.drain(..) {
                stage.completed(now, index, &completion, data, outbox);
            }
        }
        if outbox.requests.is_empty() {
            // Keeps the room for the next ones.
            outbox.requests = requests;
        }
        moved
    }

    /// Tells the stage what a child has completed and raised.
    fn hear(&mut self, now: Time, index: usize, data: &mut Arena) -> bool {
        let mut heard = !self.scratch.is_empty();
        for completion in self.scratch.drain(..) {
            self.stage.completed(now, index, &completion, data, &mut self.outbox);
        }
        while let Some(notice) = self.children[index].leaf.notice() {
            self.notices.extend(self.stage.noticed(now, index, notice, &mut self.outbox));
            heard = true;
        }
        heard
    }

    /// Goes on to the next instant at or before `limit` at which the stage has
    /// something to do; returns it.
    ///
    /// What a stage does about a completion happens at the completion's own time,
    /// so that no child may run ahead of another one's completion. One that is
    /// alone for a while runs by itself.
    fn step(&mut self, limit: Time, data: &mut Arena) -> Option<Time> {
        loop {
            let timer = self.stage.next_event().time().unwrap_or(Time::MAX);
            let ready = self.outbox.completions.first().map_or(Time::MAX, |completion| completion.time);
            // When anything but the first child does something.
            let (mut first, mut other) = ((Time::MAX, 0), timer.min(ready));
            for (index, child) in self.children.iter().enumerate() {
                let Some(time) = child.wake.time() else { continue };
                if time < first.0 {
                    other = other.min(first.0);
                    first = (time, index);
                } else {
                    other = other.min(time);
                }
            }
            let next = first.0.min(other);
            if next > limit || next == Time::MAX {
                return None;
            }
            let now = if first.0 < other {
                let child = &mut self.children[first.1];
                let bound = limit.min(Time(other.0 - 1));
                let completed = child.leaf.advance_to_completion(bound, data, &mut self.scratch);
                child.wake = child.leaf.next_event();
                let Some(now) = completed else { continue };
                self.hear(now, first.1, data);
                now
            } else {
                self.stage.advance(next, data, &mut self.outbox);
                next
            };
            self.settle(now, data);
            return Some(now);
        }
    }

    /// Gives children their commands, and the stage the answers.
    fn carry_commands(&mut self, now: Time, data: &mut Arena) -> bool {
        if self.outbox.commands.is_empty() {
            return false;
        }
        for (index, command) in std::mem::take(&mut self.outbox.commands) {
            let child = &mut self.children[index];
            let answer = child.leaf.command(now, &Place::default(), &command, data);
            child.wake = child.leaf.next_event();
            self.stage.answered(now, index, &command, answer, &mut self.outbox);
        }
        true
    }
}

impl<S: Stage, L: Leaf> Leaf for Stack<S, L> {
    fn limits(&self) -> Limits {
        let below: Vec<Limits> = self.children.iter().map(|child| child.leaf.limits()).collect();
        self.stage.limits(&below)
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena) -> Submit {
        let answer = self.stage.submit(now, request, data, &mut self.outbox);
        self.settle(now, data);
        answer
    }

    fn expect(&self, coming: Coming) {
        if let Some((child, coming)) = self.stage.route(coming) {
            self.children[child].leaf.expect(coming);
        }
    }

    fn expect_soon(&self, coming: Coming) {
        if let Some((child, coming)) = self.stage.route(coming) {
            self.children[child].leaf.expect_soon(coming);
        }
    }

    fn next_event(&self) -> Wake {
        let ready = self.outbox.completions.first().map(|completion| completion.time);
        let own = self.stage.next_event().or(ready.into());
        self.children.iter().fold(own, |wake, child| wake.or(child.wake))
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        while self.step(now, data).is_some() {
            completions.append(&mut self.outbox.completions);
        }
        if self.children.iter().any(|child| child.wake.hears_outside()) {
            self.settle(now, data);
        }
        completions.append(&mut self.outbox.completions);
    }

    fn advance_to_completion(
        &mut self,
        limit: Time,
        data: &mut Arena,
        completions: &mut Vec<Completion>,
    ) -> Option<Time> {
        loop {
            let now = self.step(limit, data)?;
            completions.append(&mut self.outbox.completions);
            if !completions.is_empty() || self.has_notice() {
                return Some(now);
            }
        }
    }

    fn cut_power(&mut self, now: Time, data: &mut Arena) {
        // What was on its way between stage and children was in memory.
        self.outbox.requests.clear();
        self.outbox.commands.clear();
        for child in &mut self.children {
            child.waiting.clear();
            child.leaf.cut_power(now, data);
            // The stage has forgotten what it waited for.
            child.leaf.advance(now, data, &mut self.scratch);
            self.scratch.clear();
            child.wake = child.leaf.next_event();
        }
        self.stage.cut_power(now, data, &mut self.outbox);
    }

    fn command(
        &mut self,
        now: Time,
        place: &Place,
        command: &Command,
        data: &mut Arena,
    ) -> Result<Answer, Refusal> {
        let answer = match place.0.split_first() {
            None => self.stage.command(now, command, &mut self.outbox),
            Some((&child, rest)) => {
                let child = self.children.get_mut(child).ok_or(Refusal::NoSuchPlace)?;
                let answer = child.leaf.command(now, &Place(rest.to_vec()), command, data);
                child.wake = child.leaf.next_event();
                answer
            }
        };
        self.settle(now, data);
        answer
    }

    fn has_notice(&self) -> bool {
        !self.notices.is_empty()
    }

    fn notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }
}
