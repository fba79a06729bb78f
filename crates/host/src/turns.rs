//! Whose turn it is among many tenants.

use flashkeel_engine::Time;
use flashkeel_workload::pacing::Due;

/// When each tenant's next request is due, as they last said.
pub(crate) struct Turns {
    timed: Firsts,
    /// Zero for those whose next is due at any time.
    at_once: Firsts,
    /// Tenants that may say something else by now, the next to be asked last.
    pub changed: Vec<usize>,
}

impl Turns {
    /// Those of `tenants` tenants, of whom none has said anything.
    pub fn of(tenants: usize) -> Self {
        let none = Firsts::of(tenants);
        Turns { timed: none.clone(), at_once: none, changed: (0..tenants).rev().collect() }
    }

    /// What `tenant` says.
    pub fn set(&mut self, tenant: usize, due: Due) {
        let (timed, at_once) = match due {
            Due::At(time) => (time, Time::MAX),
            Due::AtOnce => (Time::MAX, Time::ZERO),
            Due::Later => (Time::MAX, Time::MAX),
        };
        self.timed.set(tenant, timed);
        self.at_once.set(tenant, at_once);
    }

    /// The next request, seen at `now`: when it is due and whose it is, at equal times the
    /// first tenant's. [`Time::MAX`] if none is.
    pub fn next(&self, now: Time) -> (Time, usize) {
        let at_once = match self.at_once.first() {
            (Time::MAX, tenant) => (Time::MAX, tenant),
            (_, tenant) => (now, tenant),
        };
        self.timed.first().min(at_once)
    }
}

/// Times of which the earliest is known: a tree in which each time stands over two that
/// are not earlier.
#[derive(Clone)]
struct Firsts {
    /// The root at 1; those over two at `index` are at twice that and behind it.
    times: Vec<Time>,
}

impl Firsts {
    /// As many times, none of which ever comes.
    fn of(count: usize) -> Self {
        Firsts { times: vec![Time::MAX; 2 * count.next_power_of_two()] }
    }

    fn set(&mut self, index: usize, time: Time) {
        let mut at = self.times.len() / 2 + index;
        self.times[at] = time;
        while at > 1 {
            at /= 2;
            self.times[at] = self.times[2 * at].min(self.times[2 * at + 1]);
        }
    }

    /// The earliest, and the first of those that are it.
    fn first(&self) -> (Time, usize) {
        let earliest = self.times[1];
        let mut at = 1;
        while at < self.times.len() / 2 {
            at = 2 * at + usize::from(self.times[2 * at] != earliest);
        }
        (earliest, at - self.times.len() / 2)
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Stream;

    use super::*;

    #[test]
    fn the_next_is_the_first_of_the_earliest() {
        let mut random = Stream::new(1, "turns");
        for tenants in 1..20 {
            let mut turns = Turns::of(tenants);
            let mut dues = vec![Due::Later; tenants];
            for _ in 0..200 {
                let (tenant, now) = (random.below(tenants as u64) as usize, Time(random.below(9)));
                let at = Due::At(Time(random.below(9)));
                let due = [at, at, Due::AtOnce, Due::Later][random.below(4) as usize];
                dues[tenant] = due;
                turns.set(tenant, due);
                let time = |due: Due| match due {
                    Due::At(time) => time,
                    Due::AtOnce => now,
                    Due::Later => Time::MAX,
                };
                let first = (0..tenants).map(|tenant| (time(dues[tenant]), tenant)).min().unwrap();
                let next = turns.next(now);
                assert_eq!(next.0, first.0);
                assert!(first.0 == Time::MAX || next.1 == first.1);
            }
        }
    }
}
