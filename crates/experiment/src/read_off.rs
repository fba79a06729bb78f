//! What a device says of itself while it runs.

use flashkeel_host::device::Device;
use serde_json::{Map, Value, json};

/// Of each of its parts the kind, what it has done since the start, and its gauges now.
pub fn read_off(device: &dyn Device) -> Value {
    let mut parts = Vec::new();
    device.parts(&mut parts);
    let (mut values, mut said) = (Vec::new(), Vec::new());
    for part in parts {
        part.gauges(&mut values);
        let gauges = part.gauge_names().into_iter().zip(values.iter().map(|&value| json!(value)));
        let gauges: Map<_, _> = gauges.collect();
        said.push(json!({ "kind": part.kind(), "report": part.report(), "gauges": gauges }));
    }
    Value::Array(said)
}
