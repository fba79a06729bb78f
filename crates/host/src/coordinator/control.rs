//! Windows that the coordinator commands itself, of a device that has no turns.

use flashkeel_engine::{Refusal, Span, Time, Window};

/// A device that cannot begin a window is asked again after such a part of its rest, but
/// not before so long.
const RETRY: u64 = 8;
const SHORTEST_RETRY: Span = Span::from_us(100);

/// What the device is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// At background work, until then at least.
    Resting(Time),
    /// A deterministic window has been commanded.
    Asked,
    /// In one, until then at most.
    Deterministic(Time),
    /// Still, but it ends as soon as the reads in it have been answered.
    Draining,
    /// It takes no such commands.
    Deaf,
}

/// The windows of a device, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Control {
    pub window: Span,
    rest: Span,
    phase: Phase,
}

impl Control {
    /// Deterministic windows of such a length at most, with such a time between.
    pub fn new(window: Span, rest: Span) -> Control {
        Control { window, rest, phase: Phase::Resting(Time::ZERO) }
    }

    /// Whether reads have to be counted.
    pub fn is_deterministic(&self) -> bool {
        matches!(self.phase, Phase::Deterministic(_))
    }

    /// Whether it would not have ended the window by now.
    pub fn goes_on(&self, now: Time) -> bool {
        matches!(self.phase, Phase::Deterministic(until) if now < until)
    }

    /// Whether reads wait until the device is at background work again.
    pub fn is_draining(&self) -> bool {
        self.phase == Phase::Draining
    }

    /// When something is to be decided, if nothing else happens.
    pub fn due(&self) -> Option<Time> {
        match self.phase {
            Phase::Resting(until) | Phase::Deterministic(until) => Some(until),
            Phase::Asked | Phase::Draining | Phase::Deaf => None,
        }
    }

    /// No more reads are let in.
    pub fn drain(&mut self) {
        if self.is_deterministic() {
            self.phase = Phase::Draining;
        }
    }

    /// The window that is to be commanded now, while so many reads are on their way.
    pub fn decide(&mut self, now: Time, inside: u64) -> Option<Window> {
        match self.phase {
            Phase::Resting(until) if until <= now => {
                self.phase = Phase::Asked;
                return Some(Window::Deterministic);
            }
            Phase::Deterministic(until) if until <= now => self.phase = Phase::Draining,
            _ => {}
        }
        (self.phase == Phase::Draining && inside == 0).then(|| {
            self.phase = Phase::Resting(now + self.rest);
            Window::NonDeterministic
        })
    }

    /// The device has begun the window.
    pub fn began(&mut self, now: Time) {
        self.phase = Phase::Deterministic(now + self.window);
    }

    /// The device has ended it by itself, or given it up.
    pub fn ended(&mut self, now: Time) {
        self.phase = Phase::Resting(now + self.rest);
    }

    /// The device has not begun to prepare for it.
    pub fn refused(&mut self, now: Time, refusal: &Refusal) {
        self.phase = match refusal {
            Refusal::NotNow(_) => Phase::Resting(now + Span(self.rest.0 / RETRY).max(SHORTEST_RETRY)),
            _ => Phase::Deaf,
        };
    }

    /// Windows begin anew.
    pub fn cut_power(&mut self, now: Time) {
        self.phase = Phase::Resting(now);
    }
}
