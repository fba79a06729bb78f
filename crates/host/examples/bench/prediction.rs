//! What a prediction takes.

use std::hint::black_box;
use std::time::Instant;

use flashkeel_engine::{
    Completion, Lba, Ledger, Operation, Predictor as _, Request, RequestId, Status, Stream, Time,
};
use flashkeel_ssdcheck::{DeviceModel, Engine};
use serde_json::json;

/// What is counted in instructions: a prediction, and one with telling the predictor of the
/// request and its completion.
pub const COUNTED: [&str; 2] = ["prediction", "learning_prediction"];
/// From one request to the next.
const PACE_NS: u64 = 100_000;

/// A predictor for a drive with four internal volumes.
fn engine() -> Engine {
    let model = json!({
        "sectors": 1 << 23, "volume_bits": [17, 18], "gc_volume_bits": [17, 18],
        "write_buffer": { "bytes": 131_072, "type": "back", "flush": ["full"] },
        "thresholds_ns": { "read": 250_000, "write": 250_000 },
        "latencies_ns": { "read": 80_000, "write": 8_000, "flush": 1_000_000, "collection": 9_000_000 },
        "sleep": { "after_ns": 20_000_000, "wake_ns": 1_000_000 }, "undetermined": [],
    });
    let model: DeviceModel = serde_json::from_value(model).expect("a device model");
    Engine::new(&model, None)
}

fn requests(count: u64) -> Vec<Request> {
    let mut random = Stream::new(1, "prediction");
    let request = |id| {
        let operation = if random.chance(0.5) { Operation::Read } else { Operation::Write };
        Request::new(RequestId(id), operation, Lba(random.below(1 << 20) * 8), 8)
    };
    (0..count).map(request).collect()
}

/// Tells the predictor of a request and its completion.
fn tell(engine: &mut Engine, request: &Request) {
    let now = Time(request.id.0 * PACE_NS);
    engine.submitted(now, request);
    let is_slow = request.id.0 % 97 < 3;
    let time = Time(now.0 + if is_slow { 900_000 } else { 50_000 });
    engine.observe(time, &Completion { id: request.id, time, status: Status::Ok, ledger: Ledger::ZERO });
}

/// Time of one prediction, and of telling the predictor of a request and its completion.
pub fn times_ns() -> [(&'static str, f64); 2] {
    const REQUESTS: u64 = 2_000_000;
    let requests = requests(REQUESTS);
    let mut engine = engine();
    let each = |start: Instant| start.elapsed().as_secs_f64() * 1e9 / REQUESTS as f64;
    let start = Instant::now();
    requests.iter().for_each(|request| tell(&mut engine, request));
    let learning = each(start);
    let start = Instant::now();
    for request in &requests {
        black_box(engine.predict(Time((REQUESTS + request.id.0) * PACE_NS), &[], request));
    }
    [("prediction_ns", each(start)), ("prediction_learning_ns", learning)]
}

/// What valgrind runs: predicts `count` requests, of which the predictor is told if `learns`.
pub fn take(learns: bool, count: u64) {
    /// What is told to begin with, and made in all.
    const TOLD: u64 = 10_000;
    const MADE: u64 = 100_000;
    let (mut engine, requests) = (engine(), requests(MADE));
    let (told, asked) = requests.split_at(TOLD as usize);
    told.iter().for_each(|request| tell(&mut engine, request));
    for request in &asked[..count as usize] {
        black_box(engine.predict(Time(request.id.0 * PACE_NS), &[], request));
        if learns {
            tell(&mut engine, request);
        }
    }
}
