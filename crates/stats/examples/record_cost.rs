//! Prints what recording one completion costs, in nanoseconds.

use std::{hint::black_box, time::Instant};

use flashkeel_engine::{
    Cause, Completion, Lba, Ledger, Operation, RequestId, Span, Status, Stream, TenantId, Time,
};
use flashkeel_stats::{Asked, MeasureConfig, Recorder};

fn main() {
    const DISTINCT: u64 = 1 << 10;
    const ROUNDS: u64 = 9600;
    let mut stream = Stream::new(1, "record_cost");
    let completions: Vec<(Asked, Span, Completion)> = (0..DISTINCT)
        .map(|id| {
            let operation = if stream.chance(0.5) { Operation::Read } else { Operation::Write };
            let sectors = 8 << stream.below(5);
            let mut ledger = Ledger::ZERO;
            ledger.charge(Cause::OwnFlash, Span(50_000 + stream.below(20_000)));
            ledger.charge(Cause::Controller, Span(1_000));
            if stream.chance(0.3) {
                ledger.charge(Cause::BehindHostWrite, Span(stream.exponential(300_000.0) as u64));
            }
            if stream.chance(0.05) {
                ledger.charge(Cause::BehindErase, Span(stream.exponential(3_000_000.0) as u64));
            }
            let lba = Lba(stream.below(1 << 30));
            let (arrived, tenant) = (Time::ZERO, TenantId(0));
            let asked = Asked { operation, lba, sectors, asked_sectors: sectors, arrived, tenant };
            let completion = Completion { id: RequestId(id), time: Time::ZERO, status: Status::Ok, ledger };
            (asked, ledger.total(), completion)
        })
        .collect();

    let mut recorder = Recorder::new(&MeasureConfig::default(), Span::ZERO, &["free_blocks"]);
    let started = Instant::now();
    let mut arrived = Time::ZERO;
    for _ in 0..ROUNDS {
        for (asked, latency, completion) in &completions {
            arrived += Span(1_000);
            let asked = Asked { arrived, ..*asked };
            let completion = Completion { time: arrived + *latency, ..*completion };
            if completion.time >= recorder.next_window_end() {
                recorder.close_windows(completion.time, &[1]);
            }
            recorder.record(black_box(&asked), black_box(&completion));
        }
    }
    let elapsed_ns = started.elapsed().as_nanos() as f64;
    let measurement = recorder.finish(arrived, &[1]);
    println!(
        "{:.1} ns per completion over {} completions, digest {}",
        elapsed_ns / measurement.summary.requests as f64,
        measurement.summary.requests,
        measurement.summary.digest
    );
}
