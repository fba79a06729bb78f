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
}

impl<S: Stage, L: Leaf> Stack<S, L> {
    /// Puts `stage` over `children`; the stage names them by their index here.
    pub fn new(stage: S, children: Vec<L>) -> Self {
        let children = children.into_iter().map(|leaf| Child { leaf, waiting: VecDeque::new() }).collect();
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
    /// nothing moves at `now`.
    fn settle(&mut self, now: Time, data: &mut Arena) {
        loop {
            let mut moved = self.carry_commands(now, data);
            for (child, request) in self.outbox.requests.drain(..) {
                self.children[child].waiting.push_back(request);
            }
            for (index, child) in self.children.iter_mut().enumerate() {
                while let Some(request) = child.waiting.front() {
                    match child.leaf.submit(now, request, data) {
                        Submit::Accepted => {}
                        Submit::Busy => break,
                        Submit::Refused(status) => {
                            let id = request.id;
                            self.scratch.push(Completion { id, time: now, status, ledger: Ledger::ZERO });
                        }
                    }
                    child.waiting.pop_front();
                    moved = true;
                }
                child.leaf.advance(now, data, &mut self.scratch);
                for completion in self.scratch.drain(..) {
                    self.stage.completed(now, index, &completion, data, &mut self.outbox);
                    moved = true;
                }
                while let Some(notice) = child.leaf.notice() {
                    self.notices.extend(self.stage.noticed(now, index, notice, &mut self.outbox));
                    moved = true;
                }
            }
            let events = self.outbox.events.drain(..);
            self.notices.extend(events.map(|event| Notice { place: Place::default(), event }));
            if !moved && self.outbox.requests.is_empty() && self.outbox.commands.is_empty() {
                return;
            }
        }
    }

    /// Gives children their commands, and the stage the answers.
    fn carry_commands(&mut self, now: Time, data: &mut Arena) -> bool {
        if self.outbox.commands.is_empty() {
            return false;
        }
        for (index, command) in std::mem::take(&mut self.outbox.commands) {
            let answer = self.children[index].leaf.command(now, &Place::default(), &command, data);
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
        self.children.iter().fold(own, |wake, child| wake.or(child.leaf.next_event()))
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        // Step from event to event, so that what a stage does about a
        // completion happens at the completion's own time.
        let mut wake = self.next_event();
        while let Some(next) = wake.time().filter(|&next| next <= now) {
            self.stage.advance(next, data, &mut self.outbox);
            self.settle(next, data);
            completions.append(&mut self.outbox.completions);
            wake = self.next_event();
        }
        if wake.hears_outside() {
            self.settle(now, data);
        }
        completions.append(&mut self.outbox.completions);
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
                child.leaf.command(now, &Place(rest.to_vec()), command, data)
            }
        };
        self.settle(now, data);
        answer
    }

    fn notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }
}
