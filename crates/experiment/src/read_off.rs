//! What a device says of itself while it is at work.

use std::collections::BTreeMap;

use flashkeel_device::Doing;
use flashkeel_engine::{Span, Time};
use flashkeel_host::Part;
use flashkeel_host::device::Device;
use serde_json::{Map, Value, json};

/// How long what chips do is noted after somebody has asked.
const WATCHED: Span = Span::from_secs(2);

/// Each part of a device in JSON: its kind, what it has done since the start, its gauges now,
/// and what its chips have done since `since`, when this was last asked; `now` it is asked
/// again.
pub fn read_off(device: &mut dyn Device, since: Time, now: Time) -> Value {
    let mut parts = Vec::new();
    device.parts(&mut parts);
    let (mut values, mut said) = (Vec::new(), Vec::new());
    for part in parts {
        part.gauges(&mut values);
        let report = part.report();
        let gauges = part.gauge_names().into_iter().zip(values.iter().map(|&value| json!(value)));
        // Counts are told by the report.
        let gauges: Map<_, _> = gauges.filter(|(name, _)| report.get(name).is_none()).collect();
        let mut all = json!({ "kind": part.kind(), "report": report, "gauges": gauges });
        if part.channels().iter().any(|&chips| chips > 0) {
            let to = now.min(since + WATCHED);
            all["chips"] = json!({ "from_ns": since.0, "to_ns": to.0, "busy_ns": busy(part) });
        }
        said.push(all);
    }
    watch(device, now);
    Value::Array(said)
}

/// What chips do is noted for a while from `now` on, to be read off.
pub fn watch(device: &mut dyn Device, now: Time) {
    device.watch(now, now + WATCHED);
}

/// For each chip how long it has worked, by what on. What is not over yet is not in it.
fn busy(part: &dyn Part) -> Vec<BTreeMap<&'static str, u64>> {
    let chips = part.channels().iter().sum::<u32>() as usize;
    let mut busy = vec![BTreeMap::new(); chips];
    for interval in part.watched() {
        if let Doing::Work(purpose) = interval.doing {
            *busy[interval.chip as usize].entry(purpose.label()).or_default() +=
                interval.end.since(interval.start).0;
        }
    }
    busy
}
