//! The presets are no toys: who knows a drive's buffer and garbage collection
//! perfectly, and nothing else, does not find many more of its slow requests
//! than the paper did.

mod support;

use flashkeel_engine::{Cause, Operation, Time};
use support::{DRIVES, Thinks, WORKLOADS, preset, ready, serve};

/// Slow requests found by the paper, in percent (Fig. 11, SSD A to G).
const PAPER: [f64; 7] = [80.0, 79.8, 72.3, 61.1, 48.4, 72.7, 73.7];
/// SSD A's latency threshold (§V-B).
const SLOW_NS: u64 = 250_000;
/// What a read or write takes that nothing interferes with.
const READ_NS: u64 = 90_000;
const WRITE_NS: u64 = 10_000;

#[test]
fn buffer_and_collection_do_not_explain_a_drive() {
    for (drive, paper) in DRIVES.into_iter().zip(PAPER) {
        let mut ssd = ready(&preset(drive), 1);
        let (mut now, mut mean) = (Time::ZERO, 0.0);
        for (_, writes) in WORKLOADS {
            let mut thinks = Thinks::new(writes, ssd.sectors(), 7);
            let (mut slow, mut found) = (0u32, 0u32);
            now = serve(&mut ssd, now, &mut thinks, 40_000, &mut |at, request, completion| {
                let Some(completion) = completion else { return };
                if completion.time.since(at).0 <= SLOW_NS {
                    return;
                }
                let known = [
                    Cause::BehindHostWrite,
                    Cause::BufferFull,
                    Cause::BehindGcRead,
                    Cause::BehindGcProgram,
                    Cause::BehindErase,
                    Cause::NoFreeBlock,
                ];
                let base = if request.operation == Operation::Read { READ_NS } else { WRITE_NS };
                let explained: u64 = known.iter().map(|&cause| completion.ledger.ns(cause)).sum();
                slow += 1;
                found += u32::from(base + explained > SLOW_NS);
            });
            mean += 100.0 * f64::from(found) / f64::from(slow) / WORKLOADS.len() as f64;
        }
        println!("{drive}: {mean:.1} %, the paper {paper} %");
        assert!(mean <= paper + 10.0, "{drive}: {mean:.1} %, the paper {paper} %");
    }
}
