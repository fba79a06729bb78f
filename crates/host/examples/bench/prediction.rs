//! What a prediction takes.

use std::hint::black_box;
use std::time::Instant;

use flashkeel_engine::{
    Completion, Lba, Ledger, Operation, Predictor as _, Request, RequestId, Status, Stream, Time,
};
use flashkeel_ssdcheck::{DeviceModel, Engine};
use serde_json::json;

/// What is counted in instructions: a prediction, and one with telling the predictor of the
/// request and its completion; and the loops alone that ask for either, which are no part of it.
pub const COUNTED: [&str; 2] = ["prediction", "learning_prediction"];
pub const LOOPS: [&str; 2] = ["prediction_loop", "learning_prediction_loop"];
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

/// A request, and when it ends.
struct Course {
    request: Request,
    ends: Time,
}

impl Course {
    fn begins(&self) -> Time {
        Time(self.request.id.0 * PACE_NS)
    }
}

fn courses(count: u64) -> Vec<Course> {
    let mut random = Stream::new(1, "prediction");
    let course = |id| {
        let operation = if random.chance(0.5) { Operation::Read } else { Operation::Write };
        let request = Request::new(RequestId(id), operation, Lba(random.below(1 << 20) * 8), 8);
        let is_slow = id % 97 < 3;
        Course { request, ends: Time(id * PACE_NS + if is_slow { 900_000 } else { 50_000 }) }
    };
    (0..count).map(course).collect()
}

/// Tells the predictor of a request and its completion, which is made once: what a drive does to
/// make one is not a predictor's.
fn tell(engine: &mut Engine, course: &Course, completion: &mut Completion) {
    engine.submitted(course.begins(), &course.request);
    (completion.id, completion.time) = (course.request.id, course.ends);
    engine.observe(course.ends, completion);
}

fn completion() -> Completion {
    Completion { id: RequestId::NONE, time: Time::ZERO, status: Status::Ok, ledger: Ledger::ZERO }
}

/// Time of one prediction, and of telling the predictor of a request and its completion.
pub fn times_ns() -> [(&'static str, f64); 2] {
    const REQUESTS: u64 = 2_000_000;
    let courses = courses(REQUESTS);
    let (mut engine, mut completion) = (engine(), completion());
    let each = |start: Instant| start.elapsed().as_secs_f64() * 1e9 / REQUESTS as f64;
    let start = Instant::now();
    courses.iter().for_each(|course| tell(&mut engine, course, &mut completion));
    let learning = each(start);
    let start = Instant::now();
    for course in &courses {
        black_box(engine.predict(Time(REQUESTS * PACE_NS), &[], &course.request));
    }
    [("prediction_ns", each(start)), ("prediction_learning_ns", learning)]
}

/// What valgrind runs: predicts `count` requests, of which the predictor is told if that is counted,
/// or goes through them alone.
pub fn take(operation: &str, count: u64) {
    /// What is told to begin with, and made in all.
    const TOLD: u64 = 10_000;
    const MADE: u64 = 100_000;
    let (learns, asks) = (operation.starts_with("learning"), !operation.ends_with("loop"));
    let (mut engine, mut completion, courses) = (engine(), completion(), courses(MADE));
    let (told, asked) = courses.split_at(TOLD as usize);
    told.iter().for_each(|course| tell(&mut engine, course, &mut completion));
    for course in &asked[..count as usize] {
        // A drive that nobody tells of anything more is asked of as it is now, not after seconds.
        let now = if learns { course.begins() } else { Time(TOLD * PACE_NS) };
        match (asks, learns) {
            (true, false) => _ = black_box(engine.predict(now, &[], &course.request)),
            (true, true) => {
                black_box(engine.predict(now, &[], &course.request));
                tell(&mut engine, course, &mut completion);
            }
            (false, false) => _ = black_box((now, &course.request)),
            (false, true) => {
                black_box((now, &course.request));
                (completion.id, completion.time) = (course.request.id, course.ends);
                black_box((course.begins(), &completion));
            }
        }
    }
}
