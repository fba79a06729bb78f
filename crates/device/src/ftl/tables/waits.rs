//! Who waits for a free block beside the host.
//!
//! A host that takes each block as soon as it is free would leave none, for good, to those
//! who may open one only while it may itself. So while one of them waits in a domain, the
//! host leaves it a block more than collection needs. Who writes as much as the host is no
//! worse for it: they take turns. (Ours.)

use crate::sched::{Activity, Task};

/// The background activities of a partition that wait for a free block.
#[derive(Clone, Debug)]
pub struct Waits {
    /// By domain, a bit for each activity.
    waiting: Vec<u16>,
    /// By domain, whether the last block was theirs: the next is the host's.
    is_hosts_turn: Vec<bool>,
    /// The bits of all domains; perhaps more.
    anywhere: u16,
}

/// The bit of an activity.
const fn bit(activity: Activity) -> u16 {
    1 << activity as u16
}

impl Waits {
    /// Nobody waits in any of so many domains.
    pub fn new(domains: u32) -> Self {
        let domains = domains as usize;
        Waits { waiting: vec![0; domains], is_hosts_turn: vec![false; domains], anywhere: 0 }
    }

    /// An activity waits for a free block of a domain.
    pub fn begin(&mut self, activity: Activity, domain: u32) {
        self.waiting[domain as usize] |= bit(activity);
        self.anywhere |= bit(activity);
    }

    /// An activity waits nowhere, as far as is known.
    #[inline]
    pub fn end(&mut self, activity: Activity) {
        if self.anywhere & bit(activity) != 0 {
            self.waiting.iter_mut().for_each(|waiting| *waiting &= !bit(activity));
            self.anywhere &= !bit(activity);
        }
    }

    /// Nobody waits any more.
    pub fn end_all(&mut self) {
        if self.anywhere != 0 {
            self.waiting.fill(0);
            self.anywhere = 0;
        }
    }

    /// Whether the host leaves somebody the next free block of a domain.
    #[inline]
    pub fn hold_host(&self, domain: u32) -> bool {
        self.waiting[domain as usize] != 0 && !self.is_hosts_turn[domain as usize]
    }

    /// The next free block of a domain is for what goes to the host's blocks.
    pub fn give_host_turn(&mut self, domain: u32) {
        self.is_hosts_turn[domain as usize] = true;
    }

    /// A free block of a domain has been opened.
    #[inline]
    pub fn opened(&mut self, writer: Task, domain: u32) {
        match writer {
            // They do not wait for others.
            Task::Map | Task::Gc => {}
            writer => self.is_hosts_turn[domain as usize] = writer != Task::Host,
        }
    }
}
