//! One suite of laws for all that serves requests. A device, a stage or a policy
//! comes under them through the list of its axis, and by no other list.

mod bases;
mod broken;
mod host;
mod laws;
mod steps;
mod subjects;

use host::{Host, Tried};
use laws::{LAWS, Trial};
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use steps::Case;
use subjects::{Policy, Subject};

/// Steps of a case at most.
const STEPS: usize = 250;
/// Cases for each policy.
const CASES: u32 = 8;

/// Tries only subjects with this in their names.
const ONLY: &str = "FLASHKEEL_LAWS";
/// The round of `make soak`, which tries other cases in each.
const ROUND: &str = "FLASHKEEL_SOAK_ROUND";

/// The laws that a device breaks in a case, each with what is wrong.
fn broken_laws(
    device: &(dyn Tried + 'static),
    tenants: u16,
    orders_flushes: bool,
    case: &Case,
) -> Vec<String> {
    let limits = device.limits();
    let mut host = Host::new(dyn_clone::clone_box(device), tenants, case.depth);
    let copied_at = case.copied_at.min(case.steps.len());
    case.steps[..copied_at].iter().for_each(|step| host.step(step));
    let mut copy = host.clone();
    copy.finish(case, copied_at);
    host.finish(case, copied_at);
    let trial = Trial { limits, orders_flushes, history: &host.history, of_copy: &copy.history };
    let broken =
        LAWS.iter().filter_map(|(law, check)| check(&trial).err().map(|wrong| format!("{law}: {wrong}")));
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
        max_shrink_iters: 3000,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let found = TestRunner::new(config).run(&steps::cases(STEPS), |case| match &wrong(&case)[..] {
        [] => Ok(()),
        broken => Err(proptest::test_runner::TestCaseError::fail(broken.join("\n"))),
    });
    match found {
        Ok(()) => None,
        Err(TestError::Fail(reason, case)) => Some((reason.to_string(), case)),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

/// Tries the laws on a subject; says what breaks one.
fn try_on(subject: &Subject) -> Option<String> {
    let Subject { name, tenants, is_stack, device } = subject;
    // New policies leave the cases of others as they are.
    let seed = name.bytes().fold(round(), |seed, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
    let (reason, case) = shortest(seed, CASES, |case| broken_laws(device, *tenants, *is_stack, case))?;
    Some(format!(
        "{name}\n{reason}\nin {case}\nagain: {ROUND}={} {ONLY}={name:?} cargo test -p flashkeel-experiment \
         --test laws",
        round()
    ))
}

/// Tries the laws on every subject and lists what breaks one, and what is none.
fn try_all(subjects: impl Iterator<Item = Result<Vec<Subject>, String>>) {
    let only = std::env::var(ONLY).unwrap_or_default();
    let mut wrong = Vec::new();
    for subjects in subjects {
        match subjects {
            Ok(subjects) => {
                let asked = subjects.iter().filter(|subject| subject.name.contains(&only));
                wrong.extend(asked.filter_map(try_on));
            }
            Err(refused) => wrong.push(refused),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_policy_of_a_device_keeps_the_laws() {
    try_all(subjects::policies("device").iter().map(Policy::subjects));
}

#[test]
fn every_policy_of_a_stack_keeps_the_laws() {
    try_all(subjects::policies("stack").iter().map(Policy::subjects));
}

#[test]
fn the_documents_that_policies_are_put_into_keep_the_laws() {
    try_all(std::iter::once(Ok(subjects::documents())));
}
