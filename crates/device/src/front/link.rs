//! The host link: one transfer at a time in each direction.

use flashkeel_engine::Time;
use flashkeel_engine::units::Rate;

/// A full-duplex link of a given rate.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    rate: Rate,
    /// When each direction is free: to the device, to the host.
    free_at: [Time; 2],
}

/// Direction of a transfer.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub(crate) enum Direction {
    ToDevice,
    ToHost,
}

impl Link {
    pub fn new(rate: Rate) -> Self {
        Link { rate, free_at: [Time::ZERO; 2] }
    }

    /// Queues a transfer of `bytes` at `now`; returns when it will be over.
    /// Transfers are never preempted, so that this is known at once.
    pub fn transfer(&mut self, now: Time, direction: Direction, bytes: u64) -> Time {
        let free_at = &mut self.free_at[direction as usize];
        *free_at = (*free_at).max(now) + self.rate.time_for(bytes);
        *free_at
    }
}
