//! What the device is told and asked beside requests.

use flashkeel_engine::{Access, Answer, Command, Event, Place, Refusal, Status, Time};

use super::Ssd;

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
            Command::State => return Ok(self.state(now)),
        }
        Ok(Answer::Done)
    }

    /// A worn-out block has had to stay in use: nothing is written any more.
    pub(super) fn wear_out(&mut self, now: Time) {
        if self.is_worn_out {
            return;
        }
        self.is_worn_out = true;
        self.access = Access::ReadOnly;
        self.raise(now, Event::WornOut);
    }

    /// Nothing happens here any more.
    fn remove(&mut self, now: Time) {
        self.access = Access::Removed;
        self.end_requests(now, Status::Gone);
        self.machine.events = Default::default();
        self.machine.woken.clear();
        self.forget_reads();
    }

    fn state(&self, now: Time) -> Answer {
        let sum = |each: fn(&super::Partition) -> u32| self.partitions.iter().map(each).map(u64::from).sum();
        let mut readings: Vec<(String, u64)> = [
            ("read_only", u64::from(self.access == Access::ReadOnly)),
            ("deterministic", (0..self.partitions.len()).map(|set| self.deterministic(set)).sum()),
            ("free_blocks", sum(|partition| partition.ftl.tables.free_blocks())),
            ("retired_blocks", sum(|partition| partition.ftl.tables.retired_blocks())),
            ("buffer_room_pages", sum(|partition| partition.buffer.occupancy.room())),
            ("pages_scanned", sum(|partition| partition.ftl.pages_scanned)),
            ("requests", self.requests.len() as u64),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        self.window_readings(now, &mut readings);
        Answer::State(readings)
    }
}
