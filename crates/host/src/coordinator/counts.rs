//! What each host may read in the present window, and has.

use super::allocation::{Allocation, Share, allocate};
use super::demand::Demand;
use crate::claim::{Claim, Priority};

/// The counts of all hosts, in reads of 4 KiB.
#[derive(Clone)]
pub(super) struct Counts {
    pub hosts: Vec<HostCounts>,
    /// For all hosts together in a window.
    total: u64,
    allocation: Box<dyn Allocation>,
    shares: Vec<Share>,
    /// What nobody has been given.
    pub pool: u64,
    /// Something has happened by which nobody may have any left.
    pub may_be_used_up: bool,
}

/// Of one host.
#[derive(Clone, Debug)]
pub(super) struct HostCounts {
    pub class: Priority,
    /// It goes by no counts.
    pub overtakes: bool,
    /// What it is given first, before the coordinator has answered and where counts do not
    /// suffice for all.
    minimum: u64,
    /// Given in this window, and used of that.
    pub given: u64,
    pub used: u64,
    /// Asked for in this window, whether it was served in it or not.
    pub asked: u64,
    /// It has asked for more than it had.
    pub is_out: bool,
}

impl HostCounts {
    pub fn left(&self) -> u64 {
        self.given.saturating_sub(self.used)
    }
}

impl Counts {
    pub fn new(
        total: u64,
        allocation: Box<dyn Allocation>,
        claims: &[Claim],
        minimum: impl Fn(Priority) -> f64,
    ) -> Counts {
        let host = |claim: &Claim| HostCounts {
            class: claim.priority,
            overtakes: claim.overtakes,
            minimum: (total as f64 * minimum(claim.priority)) as u64,
            given: 0,
            used: 0,
            asked: 0,
            is_out: false,
        };
        let hosts = claims.iter().map(host).collect();
        Counts { hosts, total, allocation, shares: Vec::new(), pool: 0, may_be_used_up: false }
    }

    /// A window begins: each host has its minimum, until the coordinator has answered.
    pub fn begin(&mut self) {
        for host in &mut self.hosts {
            (host.used, host.asked, host.is_out) = (0, 0, false);
        }
        self.share(|_, host| (host.minimum, host.minimum));
    }

    /// The coordinator's answer: what each host is expected to need, as far as there is
    /// enough. What has been used of the minimum is part of it. Where needs `are_exact`
    /// nobody has more of a minimum than it needs.
    pub fn give(&mut self, are_exact: bool, mut need: impl FnMut(usize) -> Option<u64>) {
        // Of whom nothing is known gets as much as anybody.
        let alike = self.total / self.hosts.len() as u64;
        self.share(|index, host| {
            let need = need(index).unwrap_or(alike).max(host.used);
            (if are_exact { host.minimum.min(need) } else { host.minimum }, need)
        });
        self.hosts.iter_mut().for_each(|host| host.is_out = false);
        self.may_be_used_up = true;
    }

    /// Shares out to each host its minimum and its need, which `of` tells.
    fn share(&mut self, mut of: impl FnMut(usize, &HostCounts) -> (u64, u64)) {
        self.shares.clear();
        for (index, host) in self.hosts.iter().enumerate() {
            let (minimum, need) = of(index, host);
            self.shares.push(Share { class: host.class, minimum, need, given: 0 });
        }
        allocate(&*self.allocation, self.total, &mut self.shares);
        self.pool = self.total;
        for (host, share) in self.hosts.iter_mut().zip(&self.shares) {
            host.given = share.given;
            self.pool -= share.given;
        }
    }

    /// A host wants to read so many pages; whether its count has them.
    #[inline]
    pub fn take(&mut self, host: usize, pages: u64) -> bool {
        let host = &mut self.hosts[host];
        let has = host.left() >= pages;
        host.used += if has { pages } else { 0 };
        host.is_out |= !has;
        self.may_be_used_up |= !has || host.left() == 0;
        has
    }

    /// Gives a host more of what nobody has been given; whether there is so much.
    pub fn top_up(&mut self, host: usize, pages: u64) -> bool {
        let has = self.pool >= pages;
        self.may_be_used_up = true;
        if has {
            self.pool -= pages;
            self.hosts[host].given += pages;
            self.hosts[host].is_out = false;
        }
        has
    }

    /// Whether something was used, and nobody has any left, if that may have come about
    /// since it was last asked.
    #[inline]
    pub fn are_used_up(&mut self, counts_pool: bool) -> bool {
        if !std::mem::take(&mut self.may_be_used_up) {
            return false;
        }
        let is_done = |host: &HostCounts| host.is_out || host.left() == 0;
        (!counts_pool || self.pool == 0)
            && self.hosts.iter().any(|host| host.used > 0)
            && self.hosts.iter().all(is_done)
    }

    /// Tells `demand` what was asked for, of a window that has lasted for `part` of a
    /// whole one.
    pub fn tell(&self, demand: &mut dyn Demand, part: f64) {
        for (index, host) in self.hosts.iter().enumerate() {
            demand.measured(index, host.asked as f64 / part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::allocation::CountAllocationConfig;

    /// A window of 100 counts, of which each of three hosts has 20 before it has heard of the
    /// coordinator; the first has used five then.
    fn given(are_exact: bool, needs: [u64; 3]) -> (Vec<u64>, u64) {
        let claims = [Priority::High, Priority::Medium, Priority::Low];
        let claims = claims.map(|priority| Claim { priority, ..Claim::default() });
        let allocation = CountAllocationConfig::default().policy().build();
        let mut counts = Counts::new(100, allocation, &claims, |_| 0.2);
        counts.begin();
        assert!(counts.hosts.iter().all(|host| host.given == 20) && counts.take(0, 5));
        counts.give(are_exact, |host| Some(needs[host]));
        (counts.hosts.iter().map(|host| host.given).collect(), counts.pool)
    }

    #[test]
    fn where_there_is_enough_hosts_are_given_what_they_need_be_it_less_than_their_minimum() {
        for are_exact in [false, true] {
            assert_eq!(given(are_exact, [40, 10, 0]), (vec![40, 10, 0], 50));
            // What has been used is not taken back.
            assert_eq!(given(are_exact, [0, 10, 80]), (vec![5, 10, 80], 5));
        }
    }

    #[test]
    fn where_there_is_not_a_minimum_is_kept_for_hosts_that_do_not_know_their_needs() {
        assert_eq!(given(false, [0, 10, 90]), (vec![20, 20, 60], 0));
        assert_eq!(given(true, [0, 10, 90]), (vec![5, 10, 85], 0));
    }
}
