//! What a stage over whole devices is as a device: its parts are theirs, and its own.

use flashkeel_engine::{Stack, Stage, Time};

use super::{Device, Held};
use crate::coordinator::Foresight;
use crate::part::Part;

/// A stage that makes one device of several.
pub(crate) trait Composed: Stage + Clone + Send {
    /// Itself, if it counts something.
    fn part(&self) -> Option<&dyn Part>;

    /// From now on what goes through it holds bytes.
    fn keep_data(&mut self) {}

    /// What hosts will read.
    fn foresee(&mut self, _foresight: &Foresight) {}

    /// Starts counting anew.
    fn reset_counters(&mut self, now: Time);

    /// What it holds itself.
    fn held(&self) -> Held {
        Held::default()
    }
}

impl<S: Composed + 'static> Device for Stack<S, Box<dyn Device>> {
    fn parts<'a>(&'a self, parts: &mut Vec<&'a dyn Part>) {
        self.children().for_each(|device| device.parts(parts));
        parts.extend(self.stage().part());
    }

    fn keep_data(&mut self) {
        self.stage_mut().keep_data();
        self.children_mut().for_each(|device| device.keep_data());
    }

    fn reset_counters(&mut self, now: Time) {
        self.stage_mut().reset_counters(now);
        self.children_mut().for_each(|device| device.reset_counters(now));
    }

    fn foresee(&mut self, foresight: &Foresight) {
        self.stage_mut().foresee(foresight);
        self.children_mut().for_each(|device| device.foresee(foresight));
    }

    fn watch(&mut self, from: Time, to: Time) {
        self.children_mut().for_each(|device| device.watch(from, to));
    }

    fn held(&self) -> Option<Held> {
        Some(self.stage().held().over(self.children()))
    }
}
