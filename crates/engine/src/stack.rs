//! The router: a stage over children is again a leaf.

use std::collections::VecDeque;

use crate::{Completion, Leaf, Outbox, Request, Stage, Submit, Time};

/// One stage over its children, routed so that the whole is a [`Leaf`] again.
///
/// Routing repeats at equal times until nothing moves. A request refused by a
/// busy child waits here, in order, and is offered again whenever that child
/// has completed something.
pub struct Stack<S, L> {
    stage: S,
    children: Vec<Child<L>>,
    outbox: Outbox,
    scratch: Vec<Completion>,
}

struct Child<L> {
    leaf: L,
    waiting: VecDeque<Request>,
}

impl<S: Stage, L: Leaf> Stack<S, L> {
    /// Puts `stage` over `children`; the stage names them by their index here.
    pub fn new(stage: S, children: Vec<L>) -> Self {
        let children = children.into_iter().map(|leaf| Child { leaf, waiting: VecDeque::new() }).collect();
        Stack { stage, children, outbox: Outbox::default(), scratch: Vec::new() }
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

    /// Carries requests down and completions up until nothing moves at `now`.
    fn settle(&mut self, now: Time) {
        loop {
            let mut moved = false;
            for (child, request) in self.outbox.requests.drain(..) {
                self.children[child].waiting.push_back(request);
            }
            for (index, child) in self.children.iter_mut().enumerate() {
                while let Some(request) = child.waiting.front() {
                    if child.leaf.submit(now, request) == Submit::Busy {
                        break;
                    }
                    child.waiting.pop_front();
                    moved = true;
                }
                child.leaf.advance(now, &mut self.scratch);
                for completion in self.scratch.drain(..) {
                    self.stage.completed(now, index, &completion, &mut self.outbox);
                    moved = true;
                }
            }
            if !moved && self.outbox.requests.is_empty() {
                return;
            }
        }
    }
}

impl<S: Stage, L: Leaf> Leaf for Stack<S, L> {
    fn submit(&mut self, now: Time, request: &Request) -> Submit {
        let answer = self.stage.submit(now, request, &mut self.outbox);
        self.settle(now);
        answer
    }

    fn next_event(&self) -> Option<Time> {
        let children = self.children.iter().filter_map(|child| child.leaf.next_event());
        let ready = self.outbox.completions.first().map(|completion| completion.time);
        children.chain(self.stage.next_event()).chain(ready).min()
    }

    fn advance(&mut self, now: Time, completions: &mut Vec<Completion>) {
        // Step from event to event, so that what a stage does about a
        // completion happens at the completion's own time.
        while let Some(next) = self.next_event().filter(|&next| next <= now) {
            self.stage.advance(next, &mut self.outbox);
            self.settle(next);
            completions.append(&mut self.outbox.completions);
        }
        completions.append(&mut self.outbox.completions);
    }
}
