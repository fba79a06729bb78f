//! The map task: demand loading of map pages and writing them back.

use flashkeel_engine::{Cause, Time};

use super::{Entry, Ftl, LPNS_PER_MAP_PAGE, MapCache, Waiter};
use crate::address::{Home, Lpn, NONE};
use crate::machine::Machine;
use crate::sched::{Activity, FlashOp, Task};

impl Ftl {
    /// Whether the map entry of `lpn` is in memory; if not, it is being
    /// loaded and the request is woken when it has come. `is_again` is whether
    /// it has been woken for it, which is no other look-up.
    #[inline]
    pub fn translate(
        &mut self,
        now: Time,
        lpn: Lpn,
        request: u32,
        is_again: bool,
        machine: &mut Machine,
    ) -> bool {
        let Some(cache) = &mut self.tables.cache else { return true };
        if cache.touch(lpn.0 / LPNS_PER_MAP_PAGE, false) {
            machine.counters.map_hits += u64::from(!is_again);
            return true;
        }
        machine.counters.map_misses += u64::from(!is_again);
        self.load(now, lpn, Some(Waiter::Request(request)), Task::Map, machine)
    }

    /// Unmaps a trimmed page.
    pub fn trim(&mut self, now: Time, lpn: Lpn, machine: &mut Machine) {
        self.tables.set_gone(lpn, false);
        if self.shape.static_stripes.is_some() {
            // Its stripe still holds it.
            self.tables.note_trim_in_stripe(lpn);
            return self.tables.set_trimmed(lpn, true);
        }
        self.tables.unmap(lpn);
        self.tables.note_trim(lpn);
        self.change_map(now, lpn, None, Task::Map, machine);
    }

    /// Marks the map entry of `lpn` as changed; false if its page has to be
    /// loaded for that, for which `waiter` then waits.
    #[inline(always)]
    pub(super) fn change_map(
        &mut self,
        now: Time,
        lpn: Lpn,
        waiter: Option<Waiter>,
        task: Task,
        machine: &mut Machine,
    ) -> bool {
        self.note_map_changed(now, lpn.0 / LPNS_PER_MAP_PAGE, machine);
        self.tables.cache.is_none() || self.change_cached(now, lpn, waiter, task, machine)
    }

    /// The same, where part of the map is in memory.
    fn change_cached(
        &mut self,
        now: Time,
        lpn: Lpn,
        waiter: Option<Waiter>,
        task: Task,
        machine: &mut Machine,
    ) -> bool {
        let Some(cache) = &mut self.tables.cache else { return true };
        if cache.touch(lpn.0 / LPNS_PER_MAP_PAGE, true) {
            return true;
        }
        let is_there = self.load(now, lpn, waiter, task, machine);
        if let Some(cache) = &mut self.tables.cache {
            cache.touch(lpn.0 / LPNS_PER_MAP_PAGE, true);
        }
        is_there
    }

    /// Loads a map page that is not in memory; whether it is there at once. If not,
    /// `waiter` is told when it has come.
    fn load(
        &mut self,
        now: Time,
        lpn: Lpn,
        waiter: Option<Waiter>,
        task: Task,
        machine: &mut Machine,
    ) -> bool {
        let page = lpn.0 / LPNS_PER_MAP_PAGE;
        let home = self.tables.map.flash_home(self.shape.map_lpn(page));
        let cache = self.tables.cache.as_mut().expect("only a cached map is loaded");
        if cache.begin_load(page) {
            waiter.into_iter().for_each(|waiter| cache.wait(page, waiter));
            if let Some(Waiter::Request(_)) = waiter {
                // What a background task has begun is now the host's: it must
                // not wait for that task's turn.
                let loader = cache.loader(page);
                machine.dispatcher.promote(now, loader, Task::Map, &mut machine.events);
            }
            return false;
        }
        let Some(ppn) = home else {
            // Never programmed: an empty map page, made in memory. Whoever needs it
            // uses it here and now: had it to wait for its turn among others, they
            // could drive each other's pages out of the cache for ever.
            self.map_page_arrived(now, page, machine);
            return true;
        };
        waiter.into_iter().for_each(|waiter| cache.wait(page, waiter));
        let block = self.shape.block_of(ppn);
        self.tables.blocks.begin_read(block);
        let id = machine.dispatcher.operations.create(
            now,
            Activity::Map.read(),
            task,
            self.shape.index,
            Cause::Controller,
        );
        let operation = &mut machine.dispatcher.operations[id];
        self.tables.aim(operation, ppn.0 / self.shape.units_per_page);
        operation.units = 1;
        operation.owner = page;
        if let Some(cache) = &mut self.tables.cache {
            cache.set_loader(page, id);
        }
        machine.generate(now, id);
        false
    }

    /// A map page has been read.
    pub fn map_read_done(&mut self, now: Time, operation: &FlashOp, machine: &mut Machine) {
        self.read_done(now, operation.target, machine);
        self.map_page_arrived(now, operation.owner, machine);
    }

    fn map_page_arrived(&mut self, now: Time, page: u32, machine: &mut Machine) {
        let cache = self.tables.cache.as_mut().expect("only a cached map is loaded");
        cache.loaded(page);
        while let Some(waiter) = self.tables.cache.as_mut().and_then(|cache| cache.next_waiter(page)) {
            match waiter {
                Waiter::Request(request) => machine.woken.push_back(request),
                Waiter::Job(job) => self.copy_done(now, job, machine),
            }
        }
        self.evict(now, machine);
        self.note_map_loaded(now, machine);
    }

    /// Brings the cache back to its capacity; dirty pages go to flash, as many
    /// to a program as fit.
    pub(super) fn evict(&mut self, now: Time, machine: &mut Machine) {
        while let Some((page, dirty)) = self.tables.cache.as_mut().and_then(MapCache::evict) {
            if !dirty {
                continue;
            }
            let lpn = self.shape.map_lpn(page);
            let domain = self.shape.domain_of(lpn);
            let Some(cache) = &mut self.tables.cache else { return };
            let lane = &mut cache.lanes[domain as usize];
            self.tables.entries.push(lane, Entry::new(lpn, Home::UNMAPPED, NONE, 0, now), None);
            if lane.len == self.shape.units_per_page {
                let mut lane = std::mem::replace(lane, super::Lane::EMPTY);
                let id = self.form(
                    now,
                    &mut lane,
                    self.shape.units_per_page,
                    Activity::Map.program(),
                    domain,
                    machine,
                );
                machine.generate(now, id);
            }
        }
    }

    /// An evicted map page has been programmed.
    pub(super) fn map_page_written(&mut self, lpn: Lpn) {
        let page = lpn.0 - self.shape.lpns;
        self.tables.cache.as_mut().expect("only a cached map is written back").written(page);
    }
}
