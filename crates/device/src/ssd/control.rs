//! When the host rests, and what the scheduler is told of that and of each partition's tasks.

use flashkeel_engine::Time;

use super::Ssd;
use crate::idleness::Idleness;
use crate::layout::Layout;
use crate::machine::Machine;
use crate::sched::Signals;

impl Ssd {
    /// No pause of the host so far, where the scheduler goes by them.
    pub(super) fn no_pauses(layout: &Layout) -> Option<Idleness> {
        layout.policies.scheduler.policy().foresees().map(|_| Idleness::new())
    }

    /// Since when the device has had no request; `now` if it has one.
    #[inline]
    pub(super) fn quiet_since(&self, now: Time) -> Time {
        if self.requests.len() == 0 { self.active_at } else { now }
    }

    /// A request has come in: wakes a sleeping device, and ends a pause.
    #[inline]
    pub(super) fn rouse(&mut self, now: Time) {
        if self.requests.len() > 0 || self.power.is_none() && self.idleness.is_none() {
            return;
        }
        let idle = now.since(self.active_at);
        if let Some(power) = &mut self.power {
            self.awake_at = now + power.wake(idle);
        }
        if let Some(idleness) = &mut self.idleness {
            idleness.ended(idle);
        }
    }

    /// Lets the scheduler adjust itself, as long as there is anything to adjust to.
    pub(super) fn control(&mut self, now: Time) {
        let idle_for = self.layout.policies.scheduler.policy().foresees();
        let idle_expected = match (&self.idleness, idle_for, self.requests.len()) {
            (Some(idleness), Some(idle_for), 0) => idleness.expects(self.active_at, now, idle_for),
            _ => false,
        };
        let Machine { dispatcher, events, .. } = &mut self.machine;
        let mut active = 0;
        for (index, partition) in self.partitions.iter().enumerate() {
            let signals = Signals { idle_expected, ..partition.ftl.signals() };
            active |= signals.active;
            dispatcher.control(now, index as u32, &signals, events);
        }
        self.machine.controlling = false;
        if active != 0 || !self.machine.dispatcher.arbiter().is_settled() {
            self.machine.wake_control(now);
        }
    }
}
