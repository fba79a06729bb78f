//! What a key may be, by the schema of its document.

use serde_json::Value;

/// The names that the key at `path` (dotted) chooses among; none where it is no choice.
pub(crate) fn choices<'a>(schema: &'a Value, path: &str) -> Vec<&'a str> {
    let mut here = alternatives(schema, schema);
    for key in path.split('.').filter(|key| !key.is_empty()) {
        let below = here.iter().flat_map(|table| [&table["properties"][key], &table["items"]]);
        here = below.flat_map(|value| alternatives(schema, value)).collect();
    }
    let mut names = Vec::new();
    for name in here.iter().filter_map(|value| value["enum"].as_array()).flatten().filter_map(Value::as_str) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A schema, what it refers to, and what may stand in its place.
fn alternatives<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let mut found = vec![schema];
    if let Some(pointer) = schema["$ref"].as_str() {
        let target = root.pointer(pointer.trim_start_matches('#')).unwrap_or(&Value::Null);
        found.extend(alternatives(root, target));
    }
    for option in schema["anyOf"].as_array().into_iter().flatten() {
        found.extend(alternatives(root, option));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_found_through_references_alternatives_and_arrays() {
        let axis = json!({ "anyOf": [{ "enum": ["fifo", "fair"] }, { "properties": { "policy": { "const": "fifo" } } }] });
        let device =
            json!({ "properties": { "order": { "$ref": "#/$defs/Order" }, "size": { "type": "string" } } });
        let devices = json!({ "type": "array", "items": { "$ref": "#/$defs/Device" } });
        let schema = json!({
            "properties": { "devices": { "anyOf": [devices, { "type": "null" }] } },
            "$defs": { "Device": device, "Order": axis },
        });
        assert_eq!(choices(&schema, "devices.0.order"), ["fifo", "fair"]);
        for path in ["devices.0.size", "devices.0.none", "devices", "none.order"] {
            assert!(choices(&schema, path).is_empty(), "{path}");
        }
    }
}
