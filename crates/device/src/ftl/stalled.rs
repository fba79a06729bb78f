//! Programs that wait for a free block.

use std::collections::VecDeque;

use crate::sched::{FlashOpId, Task};

/// Programs of one partition without a free block.
#[derive(Clone, Debug)]
pub(in crate::ftl) struct Stalled {
    domains: Vec<Domain>,
}

/// Those of one allocation domain, the oldest first.
#[derive(Clone, Debug, Default)]
struct Domain {
    host: VecDeque<FlashOpId>,
    map: VecDeque<FlashOpId>,
}

impl Stalled {
    /// None, in so many domains.
    pub fn new(domains: u32) -> Self {
        Stalled { domains: vec![Domain::default(); domains as usize] }
    }

    /// Those of a domain that write what `writer` does. Moved data never waits
    /// here: it is read only when it has room.
    #[inline]
    pub fn of(&mut self, writer: Task, domain: u32) -> &mut VecDeque<FlashOpId> {
        let domain = &mut self.domains[domain as usize];
        if writer == Task::Host { &mut domain.host } else { &mut domain.map }
    }

    /// Whether the host waits in a domain.
    #[inline]
    pub fn holds_host(&self, domain: u32) -> bool {
        !self.domains[domain as usize].host.is_empty()
    }

    /// Whether the host waits anywhere.
    pub fn holds_host_somewhere(&self) -> bool {
        self.domains.iter().any(|domain| !domain.host.is_empty())
    }
}
