//! What a prediction takes.

use std::hint::black_box;
use std::time::Instant;

use flashkeel_engine::{
    Completion, Lba, Ledger, Operation, Predictor as _, Request, RequestId, Status, Stream, Time,
};
use flashkeel_ssdcheck::{DeviceModel, Engine};
use serde_json::json;

/// Time of one prediction for a drive with four internal volumes, and of telling
/// the predictor of a request and its completion.
pub fn times_ns() -> [(&'static str, f64); 2] {
    const REQUESTS: u64 = 2_000_000;
    let model = json!({
        "sectors": 1 << 23, "volume_bits": [17, 18], "gc_volume_bits": [17, 18],
        "write_buffer": { "bytes": 131_072, "type": "back", "flush": ["full"] },
        "thresholds_ns": { "read": 250_000, "write": 250_000 },
        "latencies_ns": { "read": 80_000, "write": 8_000, "flush": 1_000_000, "collection": 9_000_000 },
        "sleep": { "after_ns": 20_000_000, "wake_ns": 1_000_000 }, "undetermined": [],
    });
    let model: DeviceModel = serde_json::from_value(model).expect("a device model");
    let mut engine = Engine::new(&model, None);
    let mut random = Stream::new(1, "prediction");
    let requests: Vec<Request> = (0..REQUESTS)
        .map(|id| {
            let operation = if random.chance(0.5) { Operation::Read } else { Operation::Write };
            Request::new(RequestId(id), operation, Lba(random.below(1 << 20) * 8), 8)
        })
        .collect();
    let each = |start: Instant| start.elapsed().as_secs_f64() * 1e9 / REQUESTS as f64;
    let start = Instant::now();
    for request in &requests {
        let now = Time(request.id.0 * 100_000);
        engine.submitted(now, request);
        let is_slow = request.id.0 % 97 < 3;
        let time = Time(now.0 + if is_slow { 900_000 } else { 50_000 });
        let completion = Completion { id: request.id, time, status: Status::Ok, ledger: Ledger::ZERO };
        engine.observe(time, &completion);
    }
    let learning = each(start);
    let start = Instant::now();
    for request in &requests {
        let now = Time((REQUESTS + request.id.0) * 100_000);
        black_box(engine.predict(now, &[], request));
    }
    [("prediction_ns", each(start)), ("prediction_learning_ns", learning)]
}
