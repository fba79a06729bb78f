//! A scaled model, each of whose chips stands for several, against the drive
//! that it stands for.

use serde_json::{Value, json};

use super::*;

/// A drive of 16 chips that is small enough to be simulated to its end, and its
/// model: an eighth of it, with 8 chips that are twice as fast.
const WHOLE: Model = Model { scale: 1.0, chips: 16, stands_for: 1.0, blocks_per_chip: 512, more_blocks: 0 };
const SCALED: Model = Model { scale: 0.125, chips: 8, stands_for: 2.0, blocks_per_chip: 128, more_blocks: 2 };

fn plan(throttle: &str, per_day: &str, pattern: Value) -> LifetimePlan {
    let plan = json!({
        "drive": { "capacity": "200MiB", "over_provisioning": 0.28, "rated_cycles": 16 },
        "traffic": { "policy": "constant", "per_day": per_day },
        "pattern": pattern,
        "throttle": throttle,
        "target": "1d",
        "recovery": { "onset": "1min" },
    });
    Node::from_json(plan, &Origin::Default).read().expect("a plan")
}

fn go_on(_done: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The life by skipping years, and that of every write.
fn lives(plan: &LifetimePlan) -> [Lifetime; 2] {
    let demand = plan.traffic.policy().load(1).expect("a demand");
    let steady = plan.steady_state(&SCALED, &demand, 1, &mut go_on).expect("a model");
    let factor = steady.write_amplification;
    let wear = plan.wear(factor).expect("a law");
    let throttle = plan.throttle(factor, &wear, &demand).expect("a throttle");
    let whole = plan.drive.device(&WHOLE, wear.clone(), throttle.clone()).expect("a device");
    [
        years::Years::new(plan, &demand, &steady, factor, &wear, &throttle).run(1, &mut go_on),
        Simulation::new(&whole, plan, &demand, 1, &mut go_on)
            .and_then(|it| it.live(plan, &demand, 1.0, 1, &mut go_on)),
    ]
    .map(|life| life.expect("nobody interrupts"))
}

#[test]
fn a_chip_may_stand_for_several() {
    let hot_cold = json!({ "policy": "hot-cold", "hot_space": 0.2, "hot_accesses": 0.8 });
    let uniform = json!({ "policy": "uniform" });
    // Of the model's 32 operations, which are twice as quick, collection has 2 at least, where 8 %
    // of the drive's 64 are 5. Behind a throttle the drive collects the more ahead the more it has:
    // 0.8 to 1.3 % for 2 to 5 of them; without one it makes no difference.
    for (throttle, pattern, amplification_bound) in [("none", uniform, 0.01), ("ready", hot_cold, 0.015)] {
        let [scaled, whole] = lives(&plan(throttle, "10GB", pattern));
        let off = |of: fn(&Lifetime) -> f64| of(&scaled) / of(&whole) - 1.0;
        let years = off(|life| life.years.expect("worn out"));
        let amplification = off(|life| life.endured.write_amplification);
        let response = off(|life| life.response.as_ref().expect("writes").mean_ns);
        println!(
            "{throttle}: lifetime {years:+.4}, amplification {amplification:+.4}, response {response:+.4}"
        );
        assert!(years.abs() < 0.01 && amplification.abs() < amplification_bound && response.abs() < 0.03);
    }
}

#[test]
fn fifty_cycles_tell_how_uneven_wear_will_be() {
    let hot = |space: f64, accesses: f64| json!({ "policy": "hot-cold", "hot_space": space, "hot_accesses": accesses });
    let gap = Span::from_ms(35);
    for (pattern, levelled) in [
        (json!({ "policy": "uniform" }), None),
        (hot(0.2, 0.8), None),
        (hot(0.2, 0.8), Some(20)),
        (hot(0.5, 1.0), None),
    ] {
        let mut plan = plan("none", "10GB", pattern);
        plan.drive.wear_levelling = levelled;
        let demand = plan.traffic.policy().load(1).expect("a demand");
        let wear = plan.wear(2.0).expect("a law");
        let device = plan.drive.device(&SCALED, wear, ThrottleConfig::default()).expect("a device");
        let mut simulation = Simulation::new(&device, &plan, &demand, 1, &mut go_on).expect("a device");
        simulation.age(10_000, gap);
        let few = simulation.wear(5_000, gap, 50.0, &mut go_on).expect("nobody interrupts");
        let many = simulation.wear(5_000, gap, 300.0, &mut go_on).expect("nobody interrupts");
        let first = |watched| Blocks::foreseen(watched, many.cycles, 1.0).expect("wear").first_worn_years;
        let [foreseen, seen] = [&few, &many].map(first);
        println!(
            "{:?} {levelled:?}: foreseen {foreseen:.3}, seen {seen:.3} of the mean block's life",
            plan.pattern
        );
        assert!((-0.05..0.03).contains(&(foreseen - seen)), "{foreseen} instead of {seen}");
    }
}
