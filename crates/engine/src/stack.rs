//! The router: a stage over children is again a leaf.

mod child;

use std::collections::VecDeque;

use crate::{
    Answer, Arena, Cause, Coming, Command, Completion, Holds, Lba, Leaf, Limits, Notice, Outbox, Patience,
    Place, Refusal, Request, Stage, Submit, Time, Wake,
};

use child::{Child, any, first_and_other};

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

/// What ended outside is heard of now, when whatever follows from it begins.
#[cold]
fn heard_at(now: Time, completions: &mut [Completion]) {
    for completion in completions {
        completion.ledger.charge_between(Cause::Outside, completion.time, now);
        completion.time = now;
    }
}

impl<S: Stage, L: Leaf> Stack<S, L> {
    /// Puts `stage` over `children`; the stage names them by their index here.
    pub fn new(stage: S, children: Vec<L>) -> Self {
        let children = children.into_iter().map(Child::new).collect();
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
    #[inline(always)]
    fn settle(&mut self, now: Time, data: &mut Arena) {
        if self.has_to_carry() || any(&self.children, |child| child.stirs(now)) {
            self.move_all(now, data);
        }
    }

    #[inline(never)]
    fn move_all(&mut self, now: Time, data: &mut Arena) {
        let mut patience = Patience::default();
        loop {
            patience.at(now);
            if self.has_to_carry() {
                self.carry(now, data);
            }
            let mut is_quiet = true;
            for index in 0..self.children.len() {
                if self.children[index].stirs(now) {
                    self.tend(now, index, data);
                    is_quiet = false;
                }
            }
            if is_quiet && !self.has_to_carry() {
                return;
            }
        }
    }

    #[inline]
    fn has_to_carry(&self) -> bool {
        let Outbox { requests, commands, events, .. } = &self.outbox;
        !requests.is_empty() || !commands.is_empty() || !events.is_empty()
    }

    /// Carries what the stage has put into its outbox.
    #[inline]
    fn carry(&mut self, now: Time, data: &mut Arena) {
        if !self.outbox.commands.is_empty() {
            self.carry_commands(now, data);
        }
        if !self.outbox.requests.is_empty() {
            self.carry_requests(now, data);
        }
        if !self.outbox.events.is_empty() {
            let events = self.outbox.events.drain(..);
            self.notices.extend(events.map(|event| Notice { place: Place::default(), event }));
        }
    }

    /// Lets a child do what it has to do.
    fn tend(&mut self, now: Time, index: usize, data: &mut Arena) {
        let child = &mut self.children[index];
        if !child.waiting.is_empty() {
            child.offer(now, data, &mut self.scratch);
        }
        if child.due <= now || child.hears_outside {
            let hears_outside = child.hears_outside;
            child.leaf.advance(now, data, &mut self.scratch);
            child.look();
            if hears_outside {
                heard_at(now, &mut self.scratch);
            }
        }
        // One that has ended something may take more.
        child.tend_again(!self.scratch.is_empty() && !child.waiting.is_empty());
        if !self.scratch.is_empty() {
            self.hear_all(now, index, data);
        }
        self.take_notices(now, index);
    }

    /// Gives children their requests, where none waits before.
    #[inline]
    fn carry_requests(&mut self, now: Time, data: &mut Arena) {
        let mut requests = std::mem::take(&mut self.outbox.requests);
        for (index, request) in &requests {
            self.children[*index].give(now, request, data, &mut self.scratch);
            if !self.scratch.is_empty() {
                self.hear_all(now, *index, data);
            }
        }
        if self.outbox.requests.is_empty() {
            // Keeps the room for the next ones.
            requests.clear();
            self.outbox.requests = requests;
        }
    }

    /// Tells the stage what a child has completed, mostly one request.
    #[inline(always)]
    fn hear(&mut self, now: Time, index: usize, data: &mut Arena) {
        let Stack { stage, outbox, scratch, .. } = self;
        let ([only], true) = (&mut scratch[..], outbox.completions.is_empty()) else {
            return self.hear_all(now, index, data);
        };
        // Spares the copy: if it is passed on, the lists change places.
        let is_passed_on = stage.completed(now, index, only, data, outbox);
        if is_passed_on && outbox.completions.is_empty() {
            std::mem::swap(scratch, &mut outbox.completions);
        } else if is_passed_on {
            outbox.completions.insert(0, *only);
        }
        scratch.clear();
    }

    /// Tells the stage whatever a child has completed.
    #[inline(never)]
    fn hear_all(&mut self, now: Time, index: usize, data: &mut Arena) {
        let Stack { stage, outbox, scratch, .. } = self;
        for mut completion in scratch.drain(..) {
            let at = outbox.completions.len();
            if stage.completed(now, index, &mut completion, data, outbox) {
                outbox.completions.insert(at, completion);
            }
        }
    }

    /// Tells the stage what a child has raised.
    fn take_notices(&mut self, now: Time, index: usize) {
        while let Some(notice) = self.children[index].leaf.notice() {
            self.notices.extend(self.stage.noticed(now, index, notice, &mut self.outbox));
        }
    }

    /// Goes on to the next instant at or before `limit` at which the stage has
    /// something to do; returns it.
    ///
    /// What a stage does about a completion happens at the completion's own time,
    /// so that no child may run ahead of another one's completion. One that is
    /// alone for a while runs by itself.
    #[inline(always)]
    fn step(&mut self, limit: Time, data: &mut Arena) -> Option<Time> {
        let mut patience = Patience::default();
        loop {
            let timer = self.stage.next_event().due();
            // The first child, and when anything else does something.
            let (first, other) = first_and_other(&self.children, timer.min(self.ready()));
            let next = first.0.min(other);
            if next > limit || next == Time::MAX {
                return None;
            }
            let now = if first.0 < other {
                let child = &mut self.children[first.1];
                let bound = limit.min(Time(other.0 - 1));
                let hears_outside = child.hears_outside;
                let completed = child.leaf.advance_to_completion(bound, data, &mut self.scratch);
                child.look();
                let Some(now) = completed else {
                    patience.at(first.0);
                    continue;
                };
                if hears_outside {
                    heard_at(now, &mut self.scratch);
                }
                if !self.scratch.is_empty() {
                    self.hear(now, first.1, data);
                }
                if self.children[first.1].stirs(Time::ZERO) {
                    self.take_notices(now, first.1);
                }
                now
            } else {
                self.stage.advance(next, data, &mut self.outbox);
                next
            };
            self.settle(now, data);
            return Some(now);
        }
    }

    /// Whether something outside may have a say.
    fn hears_outside(&self) -> bool {
        any(&self.children, |child| child.hears_outside) || self.stage.next_event().hears_outside()
    }

    /// Since when completions wait to be handed over, if any do.
    fn ready(&self) -> Time {
        self.outbox.completions.first().map_or(Time::MAX, |completion| completion.time)
    }

    /// Gives children their commands, and the stage the answers.
    #[cold]
    fn carry_commands(&mut self, now: Time, data: &mut Arena) {
        for (index, command) in std::mem::take(&mut self.outbox.commands) {
            let child = &mut self.children[index];
            let answer = child.leaf.command(now, &Place::default(), &command, data);
            child.look();
            self.stage.answered(now, index, &command, answer, &mut self.outbox);
        }
    }

    /// Hands over what has completed.
    #[inline]
    fn hand_over(&mut self, completions: &mut Vec<Completion>) {
        if completions.is_empty() {
            std::mem::swap(completions, &mut self.outbox.completions);
        } else {
            completions.append(&mut self.outbox.completions);
        }
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

    fn expect(&self, coming: &[Coming]) {
        if let Some(child) = self.stage.goes_straight() {
            return self.children[child].leaf.expect(coming);
        }
        for (child, coming) in coming.iter().filter_map(|&coming| self.stage.route(coming)) {
            self.children[child].leaf.expect(&[coming]);
        }
    }

    fn expect_soon(&self, coming: &[Coming]) {
        if let Some(child) = self.stage.goes_straight() {
            return self.children[child].leaf.expect_soon(coming);
        }
        for (child, coming) in coming.iter().filter_map(|&coming| self.stage.route(coming)) {
            self.children[child].leaf.expect_soon(&[coming]);
        }
    }

    fn prepare(&mut self) -> bool {
        self.children.iter_mut().any(|child| child.leaf.prepare())
    }

    fn holds(&self, from: Lba, sectors: u32) -> (u32, Holds) {
        let found = self.stage.finds(from, sectors);
        found.map_or((sectors, Holds::Data), |(at, from, alike)| self.children[at].leaf.holds(from, alike))
    }

    fn next_event(&self) -> Wake {
        let own = self.stage.next_event();
        let (first, other) = first_and_other(&self.children, own.due().min(self.ready()));
        let hears_outside = own.hears_outside() || any(&self.children, |child| child.hears_outside);
        Wake::new(Some(first.0.min(other)), hears_outside).noting(!self.notices.is_empty())
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        let mut patience = Patience::default();
        while let Some(now) = self.step(now, data) {
            patience.at(now);
            self.hand_over(completions);
        }
        if self.stage.next_event().hears_outside() {
            self.stage.advance(now, data, &mut self.outbox);
        }
        for child in &mut self.children {
            if child.hears_outside {
                child.tend_again(true);
            }
        }
        self.settle(now, data);
        self.hand_over(completions);
    }

    fn advance_to_completion(
        &mut self,
        limit: Time,
        data: &mut Arena,
        completions: &mut Vec<Completion>,
    ) -> Option<Time> {
        let mut patience = Patience::default();
        loop {
            let now = self.step(limit, data)?;
            patience.at(now);
            self.hand_over(completions);
            if !completions.is_empty() || !self.notices.is_empty() || self.hears_outside() {
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
            child.look();
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
                let refused = self.stage.refuses(child, command);
                let child = self.children.get_mut(child).ok_or(Refusal::NoSuchPlace)?;
                if let Some(refusal) = refused {
                    return Err(refusal);
                }
                let answer = child.leaf.command(now, &Place(rest.to_vec()), command, data);
                child.look();
                answer
            }
        };
        self.settle(now, data);
        answer
    }

    fn notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }
}
