//! The axis of allocations: who gets what where counts do not suffice for all.
//!
//! One file per policy. To add one: write the file, add its line to the list.

use dyn_clone::DynClone;

use crate::claim::Priority;

flashkeel_config::axis! {
    /// Who gets what is left of the counts once each host has its minimum, where they do
    /// not suffice for all.
    pub enum CountAllocationConfig as "count allocation": Build {
        /// A higher class before a lower one.
        StrictPriority(StrictPriority) in strict_priority = "strict-priority",
        /// Each class in proportion.
        FixedRatio(FixedRatio) in fixed_ratio = "fixed-ratio",
    }
}

impl Default for CountAllocationConfig {
    fn default() -> Self {
        CountAllocationConfig::StrictPriority(strict_priority::StrictPriority::default())
    }
}

/// Makes a policy from its settings.
pub trait Build {
    /// The policy.
    fn build(&self) -> Box<dyn Allocation>;

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence that begins with the key.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Shares counts out.
pub trait Allocation: DynClone + Send {
    /// Adds `left` to what hosts are given, none more than it needs. It is less than what
    /// they lack together.
    fn share_out(&self, left: u64, hosts: &mut [Share]);
}

dyn_clone::clone_trait_object!(Allocation);

/// What a host needs and gets, in reads of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Its class.
    pub class: Priority,
    /// The least that it gets where there is not enough for all, whatever it needs.
    pub minimum: u64,
    /// What it is expected to need.
    pub need: u64,
    /// What it gets.
    pub given: u64,
}

impl Share {
    fn lack(&self) -> u64 {
        self.need.saturating_sub(self.given)
    }
}

/// Gives every host what it needs, be it less than its minimum, if `count` suffices for
/// that; otherwise its minimum, and the rest as `policy` says; and where even the minima
/// exceed it, by class until nothing is left (the dissertation on PLMC, sections 4.3.3 and
/// 5.3.4).
pub fn allocate(policy: &dyn Allocation, count: u64, hosts: &mut [Share]) {
    let sum = |of: fn(&Share) -> u64, hosts: &[Share]| hosts.iter().map(of).sum::<u64>();
    if sum(|host| host.need, hosts) <= count {
        hosts.iter_mut().for_each(|host| host.given = host.need);
    } else if sum(|host| host.minimum, hosts) <= count {
        hosts.iter_mut().for_each(|host| host.given = host.minimum);
        policy.share_out(count - sum(|host| host.given, hosts), hosts);
    } else {
        let need = |host: &mut Share| std::mem::replace(&mut host.need, host.minimum);
        let needs: Vec<u64> = hosts.iter_mut().map(need).collect();
        by_class(count, hosts);
        hosts.iter_mut().zip(needs).for_each(|(host, need)| host.need = need);
    }
}

/// Gives what is left to the highest class that lacks some, and then to the next.
fn by_class(mut left: u64, hosts: &mut [Share]) {
    for class in Priority::ALL {
        left = by_weight(left, hosts, |host| u64::from(host.class == class));
    }
}

/// Gives what is left to those that lack some, in proportion to weights: what one does not
/// need goes to the others, and what cannot be divided to the first. Those of weight 0 get
/// nothing. Returns what nobody lacks.
fn by_weight(mut left: u64, hosts: &mut [Share], weight: impl Fn(&Share) -> u64) -> u64 {
    loop {
        let of = |host: &Share| if host.lack() > 0 { weight(host) } else { 0 };
        let total: u64 = hosts.iter().map(of).sum();
        if left == 0 || total == 0 {
            return left;
        }
        let round = left;
        for host in hosts.iter_mut() {
            let part = (u128::from(round) * u128::from(of(host)) / u128::from(total)) as u64;
            let part = part.min(host.lack());
            host.given += part;
            left -= part;
        }
        if left == round {
            // Fewer than can be divided: one each, those of the greatest weight first.
            let mut order: Vec<usize> = (0..hosts.len()).filter(|&host| of(&hosts[host]) > 0).collect();
            order.sort_by_key(|&host| std::cmp::Reverse(weight(&hosts[host])));
            for host in order.into_iter().take(left as usize) {
                hosts[host].given += 1;
                left -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Stream;

    use super::*;

    fn share(class: Priority, minimum: u64, need: u64) -> Share {
        Share { class, minimum, need, given: 0 }
    }

    fn given(policy: CountAllocationConfig, count: u64, mut hosts: Vec<Share>) -> Vec<u64> {
        allocate(&*policy.policy().build(), count, &mut hosts);
        hosts.iter().map(|host| host.given).collect()
    }

    fn strict() -> CountAllocationConfig {
        CountAllocationConfig::default()
    }

    fn ratio() -> CountAllocationConfig {
        CountAllocationConfig::FixedRatio(fixed_ratio::FixedRatio::default())
    }

    #[test]
    fn what_suffices_for_all_is_given_as_it_is_needed() {
        let hosts = || vec![share(Priority::High, 0, 50), share(Priority::Low, 20, 10)];
        assert_eq!(given(strict(), 100, hosts()), [50, 10]);
        assert_eq!(given(ratio(), 60, hosts()), [50, 10]);
        assert_eq!(given(ratio(), 59, hosts()), [39, 20]);
    }

    #[test]
    fn beyond_minima_a_higher_class_goes_first_or_each_in_proportion() {
        let hosts =
            || [Priority::Low, Priority::High, Priority::Medium].map(|class| share(class, 10, 200)).to_vec();
        assert_eq!(given(strict(), 230, hosts()), [10, 200, 20]);
        // 4 : 2 : 1 of 70 beyond 3 × 10.
        assert_eq!(given(ratio(), 100, hosts()), [20, 50, 30]);
    }

    #[test]
    fn minima_that_exceed_everything_are_met_by_class() {
        let hosts = || vec![share(Priority::Low, 60, 90), share(Priority::High, 60, 90)];
        assert_eq!(given(strict(), 100, hosts()), [40, 60]);
        assert_eq!(given(ratio(), 100, hosts()), [40, 60]);
    }

    #[test]
    fn hosts_of_one_class_share_alike_and_what_one_does_not_need_goes_to_the_others() {
        let hosts = || [5, 100, 100].map(|need| share(Priority::High, 0, need)).to_vec();
        assert_eq!(given(strict(), 65, hosts()), [5, 30, 30]);
        assert_eq!(given(ratio(), 66, hosts()), [5, 31, 30]);
    }

    #[test]
    fn all_is_given_and_to_nobody_more_than_its_minimum_and_need() {
        let mut random = Stream::new(1, "allocation");
        for _ in 0..2_000 {
            let hosts: Vec<Share> = (0..1 + random.below(9))
                .map(|_| share(Priority::ALL[random.below(4) as usize], random.below(30), random.below(100)))
                .collect();
            let count = random.below(500);
            let needed: u64 = hosts.iter().map(|host| host.need).sum();
            let minima: u64 = hosts.iter().map(|host| host.minimum).sum();
            for policy in [strict(), ratio()] {
                let given = given(policy, count, hosts.clone());
                assert!(given.iter().zip(&hosts).all(|(given, host)| *given <= host.need.max(host.minimum)));
                assert_eq!(given.iter().sum::<u64>(), count.min(needed));
                if needed <= count {
                    assert!(given.iter().zip(&hosts).all(|(given, host)| *given == host.need));
                } else if minima <= count {
                    assert!(given.iter().zip(&hosts).all(|(given, host)| *given >= host.minimum));
                }
            }
        }
    }
}
