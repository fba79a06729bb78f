//! Writes what strangers were asked, how long that took, and what was predicted of it, for
//! `scripts/learned_baselines.py`: `stranger_logs FROM TO FOLDER` gives a file for each drive
//! and pacing. What is asked is what `tests/prediction.rs` asks.

#[path = "../tests/support/mod.rs"]
mod support;

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use flashkeel_device::stranger;
use flashkeel_engine::Operation;
use flashkeel_ssdcheck::{Engine, probe};
use support::loads::{PACINGS, log};
use support::ready;

const REQUESTS: u64 = 30_000;
/// The specimen that is probed is another than the one whose requests are predicted.
const OTHER: u64 = 1 << 32;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, from, to, folder] = &arguments[..] else {
        eprintln!("stranger_logs FROM TO FOLDER");
        std::process::exit(2);
    };
    let number = |text: &str| text.parse::<u64>().expect("a number");
    for number in number(from)..number(to) {
        let config = stranger(number);
        let go_on = &mut |_: f64| ControlFlow::Continue(());
        let Ok(found) = probe(&mut ready(&config, number | OTHER), None, number, None, go_on) else {
            continue;
        };
        let fresh = ready(&config, number);
        for (name, pace) in PACINGS {
            let mut engine = Engine::new(&found.model, None);
            let asked = log(&mut fresh.clone(), &mut engine, number, pace, REQUESTS);
            let mut text =
                "operation,lba,sectors,submitted_ns,latency_ns,is_slow,is_called,chance\n".to_owned();
            for one in asked {
                let of = one.measured;
                let operation = if of.operation == Operation::Read { "read" } else { "write" };
                let is_slow = engine.is_slow(of.operation, of.sectors, of.latency);
                writeln!(
                    text,
                    "{operation},{},{},{},{},{},{},{}",
                    of.lba.0,
                    of.sectors,
                    of.submitted.0,
                    of.latency.0,
                    u8::from(is_slow),
                    u8::from(one.is_called),
                    one.chance,
                )
                .expect("a string");
            }
            let path = Path::new(folder).join(format!("{number}-{}.csv", name.replace(' ', "-")));
            std::fs::write(&path, text).expect("the folder can be written");
        }
    }
}
