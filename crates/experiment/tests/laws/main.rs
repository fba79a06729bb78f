//! One suite of laws for all that serves requests. A device, a stage or a policy
//! comes under them through the list of its axis, and by no other list: the JSON Schema
//! has those lists, and the switches beside them, by which volatile buffers, a tier's
//! journal and the tasks of the FTL enter. Each type is tried where it is nearest to
//! the root of the document.
//!
//! What serves clients of smaller blocks is chosen by the size `stack.block`, neither
//! a policy nor a switch: it enters by the document `small-blocks`. Those in
//! `bases::ALONE` join what single keys do not: devices that lose what was not flushed,
//! alone and below tiers.

mod bases;
mod broken;
mod bytes;
mod host;
mod laws;
mod outside;
mod steps;
mod subjects;
mod words;

use host::{Host, Tried};
use laws::{LAWS, Law, OF_COPIES, Trial};
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use steps::Case;
use subjects::{Policy, Subject};

/// Steps of a case at most.
const STEPS: usize = 250;
/// Cases for each policy.
const CASES: u32 = 6;
/// Cases for each document by itself.
const CASES_ALONE: u32 = 60;

/// Tries only subjects with this in their names.
const ONLY: &str = "FLASHKEEL_LAWS";
/// The round of `make soak`, which tries other cases in each.
const ROUND: &str = "FLASHKEEL_SOAK_ROUND";

/// Those of some laws that a device breaks in a case, each with what is wrong.
fn broken_laws(
    device: &(dyn Tried + 'static),
    tenants: u16,
    orders_flushes: bool,
    laws: &[Law],
    case: &Case,
) -> Vec<String> {
    let limits = device.limits();
    let mut host = Host::new(dyn_clone::clone_box(device), tenants, case.depth);
    let copied_at = case.copied_at.min(case.steps.len());
    case.steps[..copied_at].iter().for_each(|step| host.step(step));
    let copy = laws.iter().any(|(law, _)| *law == OF_COPIES).then(|| host.trusting());
    host.finish(case, copied_at);
    // One that never comes to rest would keep the copy for ever.
    let copy = copy.filter(|_| !host.is_stuck).map(|mut copy| {
        copy.finish(case, copied_at);
        copy.history
    });
    let of_copy = copy.as_deref().unwrap_or_default();
    let trial = Trial { limits, orders_flushes, history: &host.history, of_copy };
    let broken =
        laws.iter().filter_map(|(law, check)| check(&trial).err().map(|wrong| format!("{law}: {wrong}")));
    broken.collect()
}

fn round() -> u64 {
    std::env::var(ROUND).map_or(0, |round| round.parse().expect("a number"))
}

/// The shortest case of some in which something is wrong, and what is.
fn shortest(seed: u64, cases: u32, wrong: impl Fn(&Case) -> Vec<String>) -> Option<(String, Case)> {
    let config = Config {
        cases,
        failure_persistence: None,
        // What is still long then is cut step by step.
        max_shrink_iters: 400,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let found = TestRunner::new(config).run(&steps::cases(STEPS), |case| match &wrong(&case)[..] {
        [] => Ok(()),
        broken => Err(proptest::test_runner::TestCaseError::fail(broken.join("\n"))),
    });
    match found {
        Ok(()) => None,
        Err(TestError::Fail(_, mut case)) => {
            leave_out(&mut case, &wrong);
            Some((wrong(&case).join("\n"), case))
        }
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

/// Leaves out the steps of a case without which something is wrong, too: one that
/// was needed may not be, once others are gone. What happens every third time is shown
/// again only if three are left out together.
fn leave_out(case: &mut Case, wrong: &impl Fn(&Case) -> Vec<String>) {
    loop {
        let before = case.steps.len();
        for together in [3, 1] {
            for index in (0..before).rev() {
                let mut without = case.clone();
                let mut at = 0..case.steps.len();
                without.steps.retain(|_| at.next().is_none_or(|at| !(index..index + together).contains(&at)));
                if without.steps.len() < case.steps.len() && !wrong(&without).is_empty() {
                    *case = without;
                }
            }
        }
        if case.steps.len() == before {
            return;
        }
    }
}

/// Tries the laws on a subject; says what breaks one.
fn try_on(subject: &Subject, cases: u32) -> Option<String> {
    let Subject { name, tenants, is_stack, device } = subject;
    // New policies leave the cases of others as they are.
    let seed = name.bytes().fold(round(), |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let (reason, case) = shortest(seed, cases, |case| broken_laws(device, *tenants, *is_stack, &LAWS, case))?;
    Some(format!(
        "{name}\n{reason}\nin {case}\nagain: {ROUND}={} {ONLY}={name:?} cargo test -p flashkeel-experiment \
         --test laws",
        round()
    ))
}

/// What breaks a law among subjects, and what is none.
fn wrong_among(subjects: Result<Vec<Subject>, String>, cases: u32) -> Vec<String> {
    let only = std::env::var(ONLY).unwrap_or_default();
    match subjects {
        Ok(subjects) => {
            let asked = subjects.iter().filter(|subject| subject.name.contains(&only));
            asked.filter_map(|subject| try_on(subject, cases)).collect()
        }
        Err(refused) => vec![refused],
    }
}

/// What is no simulation: its time is the wall clock's, so that no case can be had again.
/// `crates/blockdev/tests` and `crates/experiment/tests/real.rs` try it.
const REAL: [&str; 2] = ["=file", "=nbd"];

/// The policies below a table that are simulations.
fn simulated(table: &str) -> Vec<Policy> {
    let mut policies = subjects::policies(table);
    policies.retain(|policy| !REAL.iter().any(|real| policy.name.ends_with(real)));
    policies
}

/// Tries the laws on every policy below a table, a half of them at a time.
fn try_policies(table: &str) {
    let policies = simulated(table);
    let halves = [0, 1].map(|first| policies.iter().skip(first).step_by(2));
    let wrong = std::thread::scope(|scope| {
        let each = halves.map(|half| {
            scope.spawn(|| {
                half.map(Policy::subjects)
                    .flat_map(|subjects| wrong_among(subjects, CASES))
                    .collect::<Vec<_>>()
            })
        });
        each.map(|half| half.join().expect("what it tries does not panic")).concat()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_policy_of_a_device_keeps_the_laws() {
    try_policies("device");
}

#[test]
fn every_policy_of_a_stack_keeps_the_laws() {
    try_policies("stack");
}

#[test]
fn the_documents_that_policies_are_put_into_keep_the_laws() {
    let wrong = wrong_among(Ok(subjects::documents()), CASES_ALONE);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_device_with_a_clock_of_its_own_keeps_the_laws() {
    let wrong = wrong_among(Ok(outside::subjects()), CASES_ALONE);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Whether a policy or document that is tried has this in its name.
fn is_tried(name: &str) -> bool {
    // A subject is called after its policy and the document.
    let policy = name.split(" in ").next().unwrap_or_default();
    ["device", "stack"].iter().any(|table| simulated(table).iter().any(|it| it.name.contains(policy)))
        || subjects::documents().iter().chain(&outside::subjects()).any(|it| it.name.contains(name))
}

#[test]
fn only_what_is_tried_can_be_asked_for() {
    let only = std::env::var(ONLY).unwrap_or_default();
    assert!(is_tried(&only), "{ONLY}={only}: nothing that is tried has that in its name");
    assert!(is_tried("d-choices") && is_tried("=d-choices in collecting"));
    assert!(!is_tried("no policy"));
}
