//! Settings of sources and generators that make no sense are refused by their key.

mod common;

use common::*;
use flashkeel_engine::Span;
use flashkeel_engine::units::Bytes;
use flashkeel_workload::Times;
use flashkeel_workload::generators::arrivals::poisson::Poisson;
use flashkeel_workload::generators::patterns::hot_cold::HotCold;
use flashkeel_workload::generators::patterns::zipf::Zipf;
use flashkeel_workload::generators::{ArrivalProcess, BlockSize, Pattern, Synthetic};
use flashkeel_workload::pacing::Closed;
use flashkeel_workload::trace::TimeWindow;
use flashkeel_workload::{Pacing, SourceConfig, Trace, WorkloadConfig};

const MQSIM: &str = "100 0 0 8 1\n200 0 8 8 0\n300 0 16 8 1\n";
const BLKPARSE: &str = "8,0 3 1 0.000000000 697 Q R 0 + 8 [a]\n8,0 3 2 0.000000100 697 Q W 8 + 8 [a]\n";

#[test]
fn settings_that_make_no_sense() {
    let trace = || Trace::new(file("t.mq", MQSIM));
    let window = |from, to| Some(TimeWindow { from: Span(from), to: Some(Span(to)) });
    for (trace, expected) in [
        (Trace { align: Some(Bytes(1000)), ..trace() }, "workload.source.align: 1KB is not a power of two"),
        (Trace { align: Some(Bytes(2 << 20)), ..trace() }, "workload.source.align: 2MiB"),
        (
            Trace { align: Some(Bytes(2048)), ..trace() },
            "workload.source.align: 2KiB is not a power of two from 4KiB to 1MiB",
        ),
        (Trace { intensity: 0.0, ..trace() }, "workload.source.intensity: 0 is not between"),
        (Trace { intensity: f64::NAN, ..trace() }, "workload.source.intensity: NaN is not between"),
        (Trace { repeat: 0, ..trace() }, "workload.source.repeat: "),
        (
            Trace { write_magnification: 0, ..trace() },
            "workload.source.write_magnification: 0 is not between 1 and 64",
        ),
        (Trace { window: window(5, 5), ..trace() }, "workload.source.window: it ends before it begins"),
        (Trace { time_unit: Some(Span(0)), ..trace() }, "workload.source.time_unit: a tick of 0ns"),
        (
            Trace {
                time_unit: Some(Span(0)),
                ..Trace::new(file("t.csv", "time,op,offset,bytes\n5,R,0,4096\n"))
            },
            "workload.source.time_unit: a tick of 0ns",
        ),
        (
            Trace {
                time_unit: Some(Span(1000)),
                ..Trace::new(file("t.csv", "time_us,op,offset,bytes\n5,R,0,4096\n"))
            },
            "workload.source.time_unit: the column of times says by its name what its unit is; give no other",
        ),
        (
            Trace { times: Times::Issued, ..trace() },
            "workload.source.times: only etw has times of issue and of completion; this trace is mqsim",
        ),
        (
            Trace { action: Some("D".into()), ..trace() },
            "workload.source.action: only blkparse and blktrace have actions; this trace is mqsim",
        ),
        (
            Trace { time_unit: Some(Span(1)), ..Trace::new(file("b", BLKPARSE)) },
            "workload.source.time_unit: blkparse has no tick to set",
        ),
        (
            Trace { action: Some("Z".into()), ..Trace::new(file("b", BLKPARSE)) },
            "workload.source.action: blkparse has no action \"Z\"",
        ),
        // The first request lies before this window, the others behind it.
        (Trace { window: window(1, 2), ..trace() }, "t.mq: none of its"),
    ] {
        let message = refusal(trace);
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn generators_that_make_no_sense() {
    let endless =
        || Synthetic { arrivals: Some(ArrivalProcess::Poisson(Poisson::default())), ..Synthetic::default() };
    let limited =
        |synthetic| WorkloadConfig { requests: Some(1), ..workload(SourceConfig::Synthetic(synthetic)) };
    let refuse = |workload: WorkloadConfig, expected: &str| {
        let message = workload.open(DEVICE_SECTORS, 1).err().expect("must be refused").to_string();
        assert!(message.starts_with(expected), "{message}");
    };
    let size = |bytes, weight| vec![BlockSize { size: Bytes(bytes), weight }];
    let pattern = |pattern| limited(Synthetic { pattern, ..endless() });
    refuse(
        workload(SourceConfig::Synthetic(endless())),
        "workload: a generator has no end; set requests or duration",
    );
    refuse(WorkloadConfig { requests: Some(0), ..limited(endless()) }, "workload.requests: ");
    refuse(WorkloadConfig { duration: Some(Span(0)), ..limited(endless()) }, "workload.duration: ");
    refuse(limited(Synthetic { arrivals: None, ..endless() }), "workload.source.arrivals: needed");
    let closed = Pacing::Closed(Closed { depth: 1, low: None });
    refuse(
        WorkloadConfig { pacing: closed, ..limited(endless()) },
        "workload.source.arrivals: closed pacing",
    );
    let closed = |depth, low| Pacing::Closed(Closed { depth, low }).checked().expect_err("must be refused");
    assert!(closed(0, None).starts_with("depth: "));
    assert!(closed(4, Some(4)).starts_with("low is 4; it must"));
    refuse(
        limited(Synthetic { read_fraction: 1.5, ..endless() }),
        "workload.source.read_fraction: 1.5 is not",
    );
    refuse(limited(Synthetic { trim_fraction: 0.5, ..endless() }), "workload.source.trim_fraction: ");
    refuse(limited(Synthetic { zero_fraction: 0.5, ..endless() }), "workload.source.zero_fraction: ");
    refuse(limited(Synthetic { block_sizes: vec![], ..endless() }), "workload.source.block_sizes: ");
    refuse(
        limited(Synthetic { write_block_sizes: Some(size(512, 1)), ..endless() }),
        "workload.source.write_block_sizes: 512B is not a multiple of 4KiB, the unit of the device",
    );
    refuse(
        limited(Synthetic {
            write_block_sizes: Some(size(16384, 1)),
            region_size: Some(Bytes(8192)),
            ..endless()
        }),
        "workload.source.write_block_sizes: 16KiB does not fit a region of 8KiB",
    );
    refuse(
        limited(Synthetic { block_sizes: size(1000, 1), ..endless() }),
        "workload.source.block_sizes: 1KB",
    );
    refuse(
        limited(Synthetic { block_sizes: size(512, 1), ..endless() }),
        "workload.source.block_sizes: 512B is not a multiple of 4KiB, the unit of the device",
    );
    refuse(
        limited(Synthetic { align: Some(Bytes(512)), ..endless() }),
        "workload.source.align: 512B is not a multiple of 4KiB",
    );
    let long = Span::from_secs(2);
    refuse(
        WorkloadConfig { warm_up: long, duration: Some(long), ..limited(endless()) },
        "workload.warm_up: 2s leaves nothing to measure",
    );
    refuse(
        limited(Synthetic { block_sizes: size(4096, 0), ..endless() }),
        "workload.source.block_sizes: the weight",
    );
    refuse(
        limited(Synthetic {
            region_size: Some(Bytes(4096)),
            block_sizes: size(8192, 1),
            align: Some(Bytes(4096)),
            ..endless()
        }),
        "workload.source.block_sizes: 8KiB does not fit a region of 4KiB",
    );
    refuse(limited(Synthetic { align: Some(Bytes(0)), ..endless() }), "workload.source.align: ");
    refuse(
        limited(Synthetic { region_offset: Bytes(1 << 40), ..endless() }),
        "workload.source.region_offset: ",
    );
    refuse(
        limited(Synthetic { region_size: Some(Bytes(1 << 41)), ..endless() }),
        "workload.source.region_size: ",
    );
    refuse(
        limited(Synthetic { region_size: Some(Bytes(100)), ..endless() }),
        "workload.source.region_size: ",
    );
    refuse(pattern(Pattern::Zipf(Zipf { theta: 0.0 })), "workload.source.pattern.theta: ");
    refuse(
        pattern(Pattern::HotCold(HotCold { hot_space: 1.0, hot_accesses: 0.5 })),
        "workload.source.pattern.hot_space: ",
    );
    let rate = Some(ArrivalProcess::Poisson(Poisson { iops: -1.0 }));
    refuse(limited(Synthetic { arrivals: rate, ..endless() }), "workload.source.arrivals.iops: ");
}
