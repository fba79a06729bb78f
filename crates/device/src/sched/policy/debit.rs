//! `debit`: each task may have only so many operations outstanding, in
//! proportion to its share; shares follow the state of the FTL by feedback
//! (AutoSSD, §3.2 and §3.3). Not work-conserving on purpose. Limits may add up to more than
//! the slots, where the paper has their sum equal to these: map traffic's is not taken from
//! the host's, and tasks at rest keep their least. Each partition has shares, of its own
//! slots, and limits of its own.

use flashkeel_engine::{Span, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arbiter, Build, Pending, Signals};
use crate::address::ChipId;
use crate::limits::LONGEST;
use crate::sched::Task;
use crate::sched::share::{Control, ControlConfig};
use crate::sched::tasks::tasks;

macro_rules! settings {
    (
        tasks { $(
            $(#[$($task_doc:tt)*])* $Task:ident = $label:literal {
                operations { $($operations:tt)* }
                weight { $($weight:tt)* }
                share { $(
                    $(#[$($p_doc:tt)*])* p $p:ident = $p_value:literal,
                    $(#[$($i_doc:tt)*])* i $i:ident = $i_value:literal,
                    $(#[$($min_doc:tt)*])* min $min:ident = $min_value:literal,
                    $(#[$($max_doc:tt)*])* max $max:ident = $max_value:literal,
                )? }
                work { $($work:tt)* }
                settings { $($settings:tt)* }
            }
        )+ }
        others { $($others:tt)* }
    ) => {
        /// Settings of `debit`.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Debit {
            /// How often shares are adjusted.
            pub period: Span,
            $($(
                $(#[$($p_doc)*])* pub $p: f64,
                $(#[$($i_doc)*])* pub $i: f64,
                $(#[$($min_doc)*])* pub $min: f64,
                $(#[$($max_doc)*])* pub $max: f64,
            )?)+
            /// A fixed share for garbage collection instead of the feedback. Of fewer slots than
            /// there are chips it may leave some without collection for seconds, as a chip that gives
            /// a slot back may take it again first; with many victims at once, for good.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub gc_static: Option<f64>,
            /// Share of map traffic; the host has what the background tasks leave.
            pub map: f64,
            /// What else than its error a task's share goes by.
            pub control: ControlConfig,
        }

        impl Default for Debit {
            /// AutoSSD tuned P and I by hand and gives no values; these are ours, from the
            /// sweeps of docs/tuning.md.
            fn default() -> Self {
                Debit {
                    period: Span::from_ms(1),
                    $($($p: $p_value, $i: $i_value, $min: $min_value, $max: $max_value,)?)+
                    gc_static: None,
                    map: 0.25,
                    control: ControlConfig::default(),
                }
            }
        }

        /// Number of tasks whose share follows an error.
        const LOOPS: usize = [$($(stringify!($p),)?)+].len();

        impl Debit {
            /// The feedback of each background task.
            fn loops(&self) -> [Feedback; LOOPS] {
                let fixed = |task| self.gc_static.filter(|_| task == Task::Gc);
                [$($(Feedback {
                    task: Task::$Task,
                    p: self.$p,
                    i: self.$i,
                    min: self.$min,
                    max: self.$max,
                    fixed: fixed(Task::$Task),
                },)?)+]
            }
        }
    };
}

tasks!(settings);

impl Build for Debit {
    fn build(&self, chips: u32, depth: u32, partitions: u32, random: Stream) -> Box<dyn Arbiter> {
        let mut account = Account {
            slots: chips / partitions * depth,
            map: self.map,
            shares: self.loops().map(Share::at_rest),
            debit: [0; Task::COUNT],
            limit: [0; Task::COUNT],
            open: 0,
        };
        account.apply_shares();
        let accounts = vec![account; partitions as usize];
        Box::new(DebitArbiter { settings: self.clone(), random, accounts })
    }

    fn foresees(&self) -> Option<Span> {
        self.control.policy().foresees()
    }

    fn validate(&self) -> Result<(), String> {
        let share = |key: &str, value: f64| match value {
            0.0..=1.0 => Ok(()),
            _ => Err(format!("{key} is {value}; a share lies between 0 and 1")),
        };
        share("map", self.map)?;
        share("gc_static", self.gc_static.unwrap_or(0.0))?;
        for Feedback { task, p, i, min, max, .. } in self.loops() {
            let name = task.label();
            share(&format!("{name}_min"), min)?;
            share(&format!("{name}_max"), max)?;
            if min > max {
                return Err(format!("{name}_min is {min}, above {name}_max, which is {max}"));
            }
            if !(0.0..1.0).contains(&i) {
                return Err(format!("{name}_i is {i}; it must be at least 0 and below 1"));
            }
            if !(p >= 0.0 && p.is_finite()) {
                return Err(format!("{name}_p is {p}; it must not be negative"));
            }
        }
        if !(SHORTEST_PERIOD..=LONGEST).contains(&self.period) {
            return Err(format!(
                "period is {}; it must lie between {SHORTEST_PERIOD} and {LONGEST}",
                self.period
            ));
        }
        Ok(())
    }
}

/// Shorter periods would only cost time: an operation lasts longer.
const SHORTEST_PERIOD: Span = Span::from_us(1);
/// At rest a share decays until it is this close to its least value.
const SETTLED_WITHIN: f64 = 1e-6;

/// How the share of one task follows its error.
#[derive(Clone, Copy, Debug)]
struct Feedback {
    task: Task,
    p: f64,
    i: f64,
    min: f64,
    max: f64,
    fixed: Option<f64>,
}

impl Feedback {
    /// The share where the error has been zero for long.
    fn at_rest(&self) -> f64 {
        self.fixed.unwrap_or(self.min)
    }

    /// S[t] = P e[t] + I S[t-1] (eq. 1), from the former share to the next.
    fn next(&self, former: f64, signals: &Signals) -> f64 {
        let share = self.p * f64::from(signals.error[self.task as usize]) + self.i * former;
        let at_rest = !signals.is_active(self.task) && share < self.min + SETTLED_WITHIN;
        let share = if at_rest { self.min } else { share };
        // The host's share is of no use to writes that wait for a free block.
        let share = if signals.host_stalled && self.task == Task::Gc { self.max } else { share };
        self.fixed.unwrap_or(share.clamp(self.min, self.max))
    }
}

/// The share of one background task.
#[derive(Clone, Copy, Debug)]
struct Share {
    feedback: Feedback,
    /// What its error gives it.
    value: f64,
    /// What it has.
    in_force: f64,
    active: bool,
}

impl Share {
    fn at_rest(feedback: Feedback) -> Share {
        let value = feedback.at_rest();
        Share { feedback, value, in_force: value, active: false }
    }

    /// What it takes from the host now.
    fn taken(&self) -> f64 {
        if self.active { self.in_force } else { 0.0 }
    }

    fn follow(&mut self, signals: &Signals, control: &dyn Control) {
        self.active = signals.is_active(self.feedback.task);
        self.value = self.feedback.next(self.value, signals);
        let Feedback { min, max, fixed, .. } = self.feedback;
        let is_free = self.active && fixed.is_none() && !signals.host_stalled;
        self.in_force = if is_free { control.share(self.value, min, max, signals) } else { self.value };
    }
}

/// What the tasks of one partition may have outstanding, and have.
#[derive(Clone)]
struct Account {
    /// Slots of the partition's chips: the total that shares divide.
    slots: u32,
    /// Share of map traffic.
    map: f64,
    shares: [Share; LOOPS],
    /// Outstanding operations of each task.
    debit: [u32; Task::COUNT],
    /// Most operations each task may have outstanding.
    limit: [u32; Task::COUNT],
    /// Bit set of the tasks below their limit.
    open: u32,
}

/// Parts of one in which shares become limits, and are told: less is what a sum of shares is
/// rounded by.
const PARTS: u64 = 1_000_000_000;

fn parts(share: f64) -> u64 {
    (share * PARTS as f64).round() as u64
}

impl Account {
    fn apply_shares(&mut self) {
        let limit = |share: f64| ((parts(share) * u64::from(self.slots) / PARTS) as u32).max(1);
        for share in &self.shares {
            self.limit[share.feedback.task as usize] = limit(share.in_force);
        }
        self.limit[Task::Map as usize] = limit(self.map);
        self.limit[Task::Host as usize] = limit(self.host_share());
        for task in 0..Task::COUNT {
            self.refresh(task);
        }
    }

    /// What the background tasks leave.
    fn host_share(&self) -> f64 {
        self.shares.iter().fold(1.0, |left, share| left - share.taken()).max(0.0)
    }

    #[inline]
    fn refresh(&mut self, task: usize) {
        let open = u32::from(self.debit[task] < self.limit[task]);
        self.open = self.open & !(1 << task) | open << task;
    }

    /// Room below the limit, relative to it, as a weight.
    #[inline]
    fn weight(&self, task: Task) -> u64 {
        let (debit, limit) = (self.debit[task as usize], self.limit[task as usize]);
        u64::from(limit - debit) * 1024 / u64::from(limit)
    }

    /// In [`PARTS`] of one.
    fn shares(&self) -> [u64; Task::COUNT] {
        let mut shares = [0; Task::COUNT];
        for share in &self.shares {
            shares[share.feedback.task as usize] = parts(share.taken());
        }
        shares[Task::Map as usize] = parts(self.map);
        shares[Task::Host as usize] = parts(self.host_share());
        shares
    }
}

#[derive(Clone)]
struct DebitArbiter {
    settings: Debit,
    random: Stream,
    /// Of each partition.
    accounts: Vec<Account>,
}

impl Arbiter for DebitArbiter {
    #[inline]
    fn open_tasks(&self, partition: u32) -> u32 {
        self.accounts[partition as usize].open
    }

    #[inline]
    fn pick(&mut self, _chip: ChipId, pending: &Pending<'_>) -> Task {
        let account = &mut self.accounts[pending.partition() as usize];
        let mut task = Task::ALL[pending.mask.trailing_zeros() as usize];
        if !pending.mask.is_power_of_two() {
            // At random, in favour of the smaller debit relative to its limit.
            let total: u64 = pending.tasks().map(|task| account.weight(task) + 1).sum();
            let mut at = self.random.below(total);
            for candidate in pending.tasks() {
                task = candidate;
                let weight = account.weight(candidate) + 1;
                if at < weight {
                    break;
                }
                at -= weight;
            }
        }
        account.debit[task as usize] += 1;
        account.refresh(task as usize);
        task
    }

    #[inline]
    fn completed(&mut self, partition: u32, task: Task) -> u32 {
        let account = &mut self.accounts[partition as usize];
        let was_open = account.open;
        account.debit[task as usize] -= 1;
        account.refresh(task as usize);
        account.open & !was_open
    }

    fn control_period(&self) -> Option<Span> {
        Some(self.settings.period)
    }

    fn control(&mut self, partition: u32, signals: &Signals) {
        let account = &mut self.accounts[partition as usize];
        for share in &mut account.shares {
            share.follow(signals, self.settings.control.policy());
        }
        account.apply_shares();
    }

    fn is_settled(&self) -> bool {
        let mut shares = self.accounts.iter().flat_map(|account| &account.shares);
        shares.all(|share| !share.active && share.value <= share.feedback.at_rest())
    }

    fn shares_ppm(&self) -> [u64; Task::COUNT] {
        let mut all = [0; Task::COUNT];
        for account in &self.accounts {
            all.iter_mut().zip(account.shares()).for_each(|(all, share)| *all += share);
        }
        let parts_per_million = PARTS / 1_000_000 * self.accounts.len() as u64;
        all.map(|sum| (sum + parts_per_million / 2) / parts_per_million)
    }
}
