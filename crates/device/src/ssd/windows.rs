//! The windows of each NVM set: entered by command, left by command or when what they
//! promise has been used, and what they keep out of the flash.

use flashkeel_engine::{
    Event, LOGICAL_PAGE_SECTORS, Notice, Operation, Place, Refusal, Request, Span, Time, Window, WindowEnd,
};

use super::Ssd;
use crate::flash::FlashCommand;
use crate::front::window::{Phase, WindowPolicy};
use crate::ftl::Gc;
use crate::layout::Layout;
use crate::machine::DeviceEvent;

impl Ssd {
    /// The windows of each set; none where background work may always run.
    pub(super) fn windows(layout: &Layout) -> Vec<Box<dyn WindowPolicy>> {
        let sets = u32::from(layout.partitions);
        (0..sets).filter_map(|set| layout.policies.window.policy().build(set, sets)).collect()
    }

    /// Begins the first window of each set.
    pub(super) fn begin_windows(&mut self, now: Time) {
        (0..self.windows.len()).for_each(|set| self.next_window(now, set));
    }

    /// Begins the next window of a set, if it has windows by the clock.
    pub(super) fn next_window(&mut self, now: Time, set: usize) {
        let Some(window) = self.windows.get_mut(set) else { return };
        let (allowed, until) = window.background(now);
        if let Some(until) = until {
            self.machine.schedule(until, DeviceEvent::Window(set as u32));
        }
        let ftl = &mut self.partitions[set].ftl;
        (ftl.holds_queued, ftl.window_broken) = (!allowed, false);
        self.machine.counters.deterministic_windows += u64::from(!allowed);
        self.allow_background(now, set, allowed);
    }

    /// A time has come that a window named.
    pub(super) fn window_due(&mut self, now: Time, set: usize) {
        let Some(commands) = self.windows[set].commands_mut() else { return self.next_window(now, set) };
        if commands.timer != Some(now) {
            return;
        }
        let (.., left) = commands.left(now, 1);
        if commands.phase == Phase::Deterministic && left.is_some_and(|left| left.0 == 0) {
            return self.leave(now, set, Some(WindowEnd::TimeExceeded));
        }
        self.warn(now, set);
        self.set_timer(now, set);
    }

    /// Sees to it that a set's deterministic window is looked at when its time is over, or
    /// a warning of that is due.
    fn set_timer(&mut self, now: Time, set: usize) {
        let Some(commands) = self.windows[set].commands_mut() else { return };
        commands.timer = commands.due(now);
        if let Some(due) = commands.timer {
            self.machine.schedule(due, DeviceEvent::Window(set as u32));
        }
    }

    /// Notes what window the chips of a set are in, if somebody watches them.
    pub(super) fn watch_window(&mut self, now: Time, set: usize) {
        let chips = self.layout.partition.chips;
        let first = set as u32 * chips;
        let is_deterministic = self.deterministic(set) == 1;
        self.machine.dispatcher.watch_window(now, first..first + chips, is_deterministic);
    }

    fn allow_background(&mut self, now: Time, set: usize, is_allowed: bool) {
        let partition = &mut self.partitions[set];
        partition.ftl.background_allowed = is_allowed;
        partition.ftl.wake_all(now, &mut self.machine);
        partition.ftl.go_on(now, &mut self.machine);
        self.watch_window(now, set);
    }

    /// A window is commanded.
    pub(super) fn enter(&mut self, now: Time, set: usize, window: Window) -> Result<(), Refusal> {
        let erase = self.layout.timing.erase();
        let commands = self.windows.get(set).and_then(|window| window.commands()).ok_or(Refusal::Unknown)?;
        if window == Window::NonDeterministic {
            if commands.phase != Phase::NonDeterministic {
                self.leave(now, set, None);
            }
            return Ok(());
        }
        if commands.phase != Phase::NonDeterministic {
            return Ok(());
        }
        let rests_until = commands.rests_until(erase);
        if now < rests_until {
            let left = rests_until.since(now);
            return Err(Refusal::NotNow(format!("background work has its time for another {left}")));
        }
        let promised = u64::from(self.promised_pages(set));
        let ftl = &self.partitions[set].ftl;
        if Gc::is_urgent(ftl) {
            return Err(Refusal::NotNow("garbage collection cannot wait: the host has no free block".into()));
        }
        let free = ftl.tables.spare_units();
        if free < promised {
            return Err(Refusal::NotNow(format!(
                "free blocks hold {free} pages of 4 KiB beyond what collection needs, less than the \
                 {promised} that a window promises to take"
            )));
        }
        self.windows[set].commands_mut().expect("it obeys").prepare();
        self.preparing |= 1 << set;
        self.allow_background(now, set, false);
        self.begin_prepared(now);
        Ok(())
    }

    /// Pages of 4 KiB that the buffer of a set has to take in a deterministic window.
    fn promised_pages(&self, set: usize) -> u32 {
        let commands = self.windows[set].commands();
        let pages = commands.and_then(|commands| commands.settings.writes_typical).unwrap_or(0);
        // Checked to be no more than a buffer holds.
        pages as u32 * self.layout.geometry.units_per_page
    }

    /// Whether what is written in a deterministic window stays in the buffer.
    fn holds_writes(&self) -> bool {
        let kind = self.layout.buffer.kind.policy();
        !kind.acknowledges_in_flash()
    }

    /// Begins the deterministic windows of sets whose flash is at rest.
    #[cold]
    pub(super) fn begin_prepared(&mut self, now: Time) {
        let mut preparing = self.preparing;
        while preparing != 0 {
            let set = preparing.trailing_zeros() as usize;
            preparing &= preparing - 1;
            if Gc::is_urgent(&self.partitions[set].ftl) {
                self.leave(now, set, Some(WindowEnd::Urgent));
                continue;
            }
            if self.is_at_work(set, false) {
                continue;
            }
            if self.holds_writes() {
                // Now what the host has written, until the flash is at rest.
                let buffer = &self.partitions[set].buffer;
                let lacks_room = buffer.occupancy.room() < self.promised_pages(set);
                if !buffer.is_held || lacks_room && !buffer.is_flushing() {
                    self.partitions[set].buffer.is_held = false;
                    self.flush_all(now, set);
                    self.partitions[set].buffer.is_held = true;
                }
                if self.is_at_work(set, true) {
                    continue;
                }
            }
            self.preparing &= !(1 << set);
            let commands = self.windows[set].commands_mut().expect("it was commanded");
            commands.begin(now);
            self.machine.counters.deterministic_windows += 1;
            self.set_timer(now, set);
            self.watch_window(now, set);
            self.raise(now, Event::WindowBegan(set));
        }
    }

    /// Whether anything is on its way in the set that a deterministic window keeps out: of
    /// background tasks, or also what the host has programmed.
    fn is_at_work(&self, set: usize, for_host: bool) -> bool {
        let mut operations = self.machine.dispatcher.operations.in_flight();
        operations.any(|operation| {
            let is_change = operation.purpose.command() != FlashCommand::Read;
            operation.partition as usize == set && (operation.task.is_background() || for_host && is_change)
        })
    }

    /// Leaves a set's deterministic window, or gives it up before it has begun.
    fn leave(&mut self, now: Time, set: usize, why: Option<WindowEnd>) {
        let pages_each = u64::from(self.layout.geometry.units_per_page);
        let commands = self.windows[set].commands_mut().expect("only commanded windows are left");
        let is_broken = commands.phase == Phase::Deterministic && why == Some(WindowEnd::Urgent);
        self.machine.counters.broken_windows += u64::from(is_broken);
        commands.leave(now, pages_each);
        self.preparing &= !(1 << set);
        if let Some(why) = why {
            self.raise(now, Event::WindowEnded(set, why));
        }
        self.partitions[set].buffer.is_held = false;
        self.allow_background(now, set, true);
        self.flush_all(now, set);
    }

    /// Leaves a commanded window without background work if a partition's
    /// garbage collection can wait no longer.
    pub(super) fn leave_if_urgent(&mut self, now: Time, part: usize) {
        let is_commanded = self.windows.get(part).is_some_and(|window| window.commands().is_some());
        if is_commanded && Gc::is_urgent(&self.partitions[part].ftl) {
            self.leave(now, part, Some(WindowEnd::Urgent));
        }
    }

    /// The buffer of a set has to be flushed, though it is in a deterministic window.
    #[cold]
    pub(crate) fn leave_to_flush(&mut self, now: Time, set: usize) {
        self.leave(now, set, Some(WindowEnd::Urgent));
    }

    /// Counts a request of the host in the windows of the sets that it is for.
    pub(super) fn count_in_windows(&mut self, now: Time, request: &Request) {
        let (reads, writes) = match request.operation {
            Operation::Read => (1, 0),
            Operation::Write => (0, 1),
            _ => return,
        };
        let pages_each = u64::from(self.layout.geometry.units_per_page);
        let first = request.lba.0 / LOGICAL_PAGE_SECTORS;
        let pages = u64::from(request.sectors) / LOGICAL_PAGE_SECTORS;
        for page in first..first + pages {
            let (set, _) = self.layout.locate(page);
            let Some(commands) = self.windows[set].commands_mut() else { return };
            if let Some(why) = commands.count(reads, writes, pages_each) {
                self.leave(now, set, Some(why));
            } else {
                self.warn(now, set);
            }
        }
    }

    /// Raises what a set's window was to warn of.
    fn warn(&mut self, now: Time, set: usize) {
        let pages_each = u64::from(self.layout.geometry.units_per_page);
        while let Some(limit) = self.windows[set].commands_mut().and_then(|it| it.warning(now, pages_each)) {
            self.raise(now, Event::WindowWarning(set, limit));
        }
    }

    pub(super) fn raise(&mut self, now: Time, event: Event) {
        self.notices.push_back((now, Notice { place: Place::default(), event }));
    }

    /// 1 if a set is in a deterministic window, else 0.
    pub(super) fn deterministic(&self, set: usize) -> u64 {
        let commands = self.windows.get(set).and_then(|window| window.commands());
        let is_allowed = self.partitions[set].ftl.background_allowed;
        u64::from(commands.map_or(!is_allowed, |commands| commands.phase == Phase::Deterministic))
    }

    /// What a host reads back of the windows of each set, as NVMe has it: status 1 in a
    /// deterministic window and 2 in another; what is not limited is left out.
    pub(super) fn window_readings(&self, now: Time, readings: &mut Vec<(String, u64)>) {
        let pages_each = u64::from(self.layout.geometry.units_per_page);
        let erase = self.layout.timing.erase();
        for (set, commands) in self.windows.iter().enumerate() {
            let Some(commands) = commands.commands() else { continue };
            let settings = &commands.settings;
            let (reads, writes, time) = commands.left(now, pages_each);
            let span_ns = |span: Option<Span>| span.map(|span| span.0);
            let (low, high) = commands.shortest(erase);
            let each = [
                ("status", Some(if commands.phase == Phase::Deterministic { 1 } else { 2 })),
                ("reads_typical", settings.reads_typical),
                ("writes_typical", settings.writes_typical),
                ("time_maximum_ns", span_ns(settings.time_maximum)),
                ("time_minimum_low_ns", Some(low.0)),
                ("time_minimum_high_ns", Some(high.0)),
                ("reads_estimate", reads),
                ("writes_estimate", writes),
                ("time_estimate_ns", span_ns(time)),
                ("rest_ns", Some(commands.rests_until(erase).0.saturating_sub(now.0))),
            ];
            let named = |(name, value): (&str, Option<u64>)| Some((format!("set{set}_{name}"), value?));
            readings.extend(each.into_iter().filter_map(named));
        }
    }
}
