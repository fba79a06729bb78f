//! How fast traces are read.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use flashkeel_workload::WorkloadConfig;
use serde_json::json;

use super::speeds;

/// Length of the traces that are read.
const TRACE_REQUESTS: u64 = 3_000_000;

/// Requests read in a second from a trace of binary records, and from one of
/// lines: vSCSI and MSR's CSV, from a file in memory to arrivals, aligned and
/// placed. Each is read as often as a speed is measured.
pub fn per_s() -> [(&'static str, f64); 2] {
    std::fs::create_dir_all("target").expect("target can be made");
    let (mut records, mut lines) = (Vec::new(), String::new());
    for number in 0..TRACE_REQUESTS {
        let (time_us, sector) = (number * 97, number * 7919 % (1 << 27) * 8);
        for word in [number as u32, 4096, 1, 0x0100_0000 | if number % 3 == 0 { 0x2a } else { 0x28 }] {
            records.extend(word.to_le_bytes());
        }
        records.extend(sector.to_le_bytes());
        records.extend(time_us.to_le_bytes());
        let operation = if number % 3 == 0 { "Write" } else { "Read" };
        let (time, offset) = (128_166_372_003_061_629 + time_us * 10, sector * 512);
        writeln!(lines, "{time},hm,1,{operation},{offset},4096,{}", 100 + number % 4000).expect("text grows");
    }
    [
        ("binary_trace_requests_per_s", "target/bench.vscsi", &records[..]),
        ("text_trace_requests_per_s", "target/bench.csv", lines.as_bytes()),
    ]
    .map(|(name, path, contents)| {
        std::fs::write(path, contents).expect("target can be written");
        let source = json!({ "policy": "trace", "path": path, "devices": "merge" });
        let workload: WorkloadConfig =
            serde_json::from_value(json!({ "source": source })).expect("a valid workload");
        let per_s = speeds(|| {
            let start = Instant::now();
            let mut source = workload.open(1 << 40, 1).expect("a valid trace");
            let (mut batch, mut requests) = (Vec::new(), 0);
            loop {
                source.fill(&mut batch, 4096).expect("a valid trace");
                if black_box(&batch).is_empty() {
                    break;
                }
                requests += batch.len() as u64;
            }
            assert_eq!(requests, TRACE_REQUESTS);
            requests as f64 / start.elapsed().as_secs_f64()
        });
        std::fs::remove_file(path).expect("it was just written");
        (name, per_s.fastest)
    })
}
