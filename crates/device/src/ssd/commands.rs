//! What the device is told and asked beside requests.

use flashkeel_engine::{
    Access, Answer, Command, Event, Notice, Place, Refusal, Status, Time, Window, WindowEnd,
};

use super::Ssd;
use crate::ftl::Gc;

/// The only set of windows.
const SET: usize = 0;

impl Ssd {
    /// See [`Leaf::command`](flashkeel_engine::Leaf::command).
    pub(super) fn obey(&mut self, now: Time, place: &Place, command: &Command) -> Result<Answer, Refusal> {
        if !place.0.is_empty() {
            return Err(Refusal::NoSuchPlace);
        }
        if self.access == Access::Removed {
            return Err(Refusal::NotNow("the device has been taken out".into()));
        }
        match *command {
            Command::Window(set, window) => self.enter(now, set, window)?,
            Command::ReadOnly(false) if self.is_worn_out => {
                return Err(Refusal::NotNow("no block is left to take the place of those worn out".into()));
            }
            Command::ReadOnly(is_read_only) => {
                self.access = if is_read_only { Access::ReadOnly } else { Access::Full };
            }
            Command::Remove => self.remove(now),
            Command::State => return Ok(self.state()),
        }
        Ok(Answer::Done)
    }

    fn enter(&mut self, now: Time, set: usize, window: Window) -> Result<(), Refusal> {
        let is_urgent = self.partitions.iter().any(|partition| Gc::is_urgent(&partition.ftl));
        let policy = self.window.as_mut().filter(|policy| set == SET && policy.obeys());
        let policy = policy.ok_or(Refusal::Unknown)?;
        if window == Window::Deterministic && is_urgent {
            return Err(Refusal::NotNow("garbage collection cannot wait: the host has no free block".into()));
        }
        policy.command(window);
        self.next_window(now);
        Ok(())
    }

    /// Leaves a commanded window without background work if a partition's
    /// garbage collection can wait no longer; whether it has.
    pub(super) fn leave_if_urgent(&mut self, now: Time, part: usize) -> bool {
        let Some(window) = self.window.as_mut().filter(|window| window.obeys()) else { return false };
        if !Gc::is_urgent(&self.partitions[part].ftl) {
            return false;
        }
        window.command(Window::NonDeterministic);
        let event = Event::WindowEnded(SET, WindowEnd::Urgent);
        self.notices.push_back((now, Notice { place: Place::default(), event }));
        self.next_window(now);
        true
    }

    /// A worn-out block has had to stay in use: nothing is written any more.
    pub(super) fn wear_out(&mut self, now: Time) {
        if self.is_worn_out {
            return;
        }
        self.is_worn_out = true;
        self.access = Access::ReadOnly;
        self.notices.push_back((now, Notice { place: Place::default(), event: Event::WornOut }));
    }

    /// Nothing happens here any more.
    fn remove(&mut self, now: Time) {
        self.access = Access::Removed;
        self.end_requests(now, Status::Gone);
        self.machine.events = Default::default();
        self.machine.woken.clear();
        self.forget_reads();
    }

    fn state(&self) -> Answer {
        let sum = |each: fn(&super::Partition) -> u32| self.partitions.iter().map(each).map(u64::from).sum();
        Answer::state([
            ("read_only", u64::from(self.access == Access::ReadOnly)),
            ("deterministic", u64::from(!self.machine.background_allowed)),
            ("free_blocks", sum(|partition| partition.ftl.tables.free_blocks())),
            ("retired_blocks", sum(|partition| partition.ftl.tables.retired_blocks())),
            ("buffer_room_pages", sum(|partition| partition.buffer.occupancy.room())),
            ("pages_scanned", sum(|partition| partition.ftl.pages_scanned)),
            ("requests", self.requests.len() as u64),
        ])
    }
}
