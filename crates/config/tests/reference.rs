//! The reference generated from a schema.

mod common;

use common::Experiment;
use flashkeel_config::{axes, reference};

fn schema() -> serde_json::Value {
    schemars::schema_for!(Experiment).to_value()
}

#[test]
fn every_key_has_a_row_and_every_table_a_section() {
    let text = reference(&schema());
    for line in [
        "## `device`",
        "| `device.channels` | integer | `4` | Number of channels. |",
        "| `device.capacity` | string, such as `\"16KiB\"` | `\"1GiB\"` |  |",
        "| `device.mode` | `\"open\"`, `\"closed\"` | `\"open\"` |  |",
        "| `device.scheduler` | [scheduler](#axis-scheduler) | `\"debit\"` | Who gets the flash next. |",
        "| `device.parts` | array of table | `[]` |  |",
        "| `device.spare` | `\"all\"` or integer |  |  |",
        "## `device.parts.N`",
        "## `device.timing`",
        "Times of the flash.",
        "| `device.timing.read` | string, such as `\"50us\"` | `\"50us\"` | Time of a page read. |",
        "## Axis: scheduler",
        "### scheduler `fifo`",
        "### scheduler `debit`",
        "Limits what each task has outstanding.",
        "| `period` | string, such as `\"50us\"` | `\"5ms\"` | Time between two adjustments. |",
        "| `shares` | array of number | `[]` | Fixed shares. |",
    ] {
        assert!(text.lines().any(|got| got == line), "no line {line:?} in\n{text}");
    }
}

#[test]
fn axes_are_listed_with_their_policies() {
    let axes = axes(&schema());
    assert_eq!(axes.len(), 1);
    assert_eq!(axes[0].axis, "scheduler");
    assert_eq!(axes[0].policies, ["fifo", "debit"]);
}

#[test]
fn a_table_without_defaults_of_its_own_has_those_of_its_holder() {
    let schema = serde_json::json!({
        "properties": { "delays": { "$ref": "#/$defs/Delays", "default": { "first": { "min": "1us" } } } },
        "$defs": {
            "Delays": { "properties": { "first": { "$ref": "#/$defs/Delay" } } },
            "Delay": { "properties": { "min": { "type": "string", "default": "0ns" } } },
        },
    });
    let text = reference(&schema);
    assert!(text.contains("| `delays.first.min` | string | `\"1us\"` |  |"), "{text}");
}
