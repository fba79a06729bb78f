//! Reports of several runs, or of several devices, as one.

use std::collections::BTreeSet;

use flashkeel_workload::Counts;
use serde_json::{Map, Value};

/// Whole numbers that count nothing, so that a sum of them says nothing: sizes, what is
/// at a moment, and percentiles. Other numbers that count nothing are fractions.
const NO_COUNTS: [&str; 9] = [
    "bytes_at_risk",
    "deficiency_percent",
    "table_bytes",
    "tail_p50_ns",
    "tail_p99_99_ns",
    "tail_p99_9_ns",
    "tail_p99_ns",
    "upper_pages",
    "utilisation_percent",
];

/// Numbers of which the largest counts.
const LARGEST: [&str; 2] = ["held_bytes_max", "most_cycles"];

/// Pools what the parts of a stack say of themselves after runs with different seeds:
/// counts are added up, of all other numbers it is the mean of the runs that have one, and
/// write amplification is that of all together.
pub(crate) fn pool(reports: &[Value]) -> Value {
    pool_at("", &reports.iter().collect::<Vec<_>>())
}

fn pool_at(key: &str, values: &[&Value]) -> Value {
    let known: Vec<&Value> = values.iter().filter(|value| !value.is_null()).copied().collect();
    match known.first() {
        None => Value::Null,
        Some(Value::Object(_)) => pool_tables(&known),
        Some(Value::Array(_)) => {
            let longest = known.iter().filter_map(|value| value.as_array()).map(Vec::len).max();
            let at = |index| known.iter().filter_map(|value| value.get(index)).collect::<Vec<_>>();
            (0..longest.unwrap_or(0)).map(|index| pool_at(key, &at(index))).collect()
        }
        Some(Value::Bool(_)) => known.iter().any(|value| **value == Value::Bool(true)).into(),
        Some(Value::Number(_)) => pool_numbers(key, &known),
        Some(other) => (*other).clone(),
    }
}

fn pool_tables(tables: &[&Value]) -> Value {
    let keys: BTreeSet<&String> =
        tables.iter().filter_map(|table| table.as_object()).flat_map(Map::keys).collect();
    let at = |key: &str| tables.iter().filter_map(|table| table.get(key)).collect::<Vec<_>>();
    let mut pooled: Value =
        keys.into_iter().map(|key| (key.clone(), pool_at(key, &at(key)))).collect::<Map<_, _>>().into();
    if pooled.get("waf").is_some() {
        pooled["waf"] = write_amplification(&pooled).into();
    }
    pooled
}

fn pool_numbers(key: &str, numbers: &[&Value]) -> Value {
    if LARGEST.contains(&key) {
        let larger = |one: &&&Value, two: &&&Value| one.as_f64().partial_cmp(&two.as_f64()).expect("no NaN");
        return (**numbers.iter().max_by(larger).expect("there is one")).clone();
    }
    let wholes: Option<Vec<u64>> = numbers.iter().map(|number| number.as_u64()).collect();
    match wholes {
        Some(wholes) if !NO_COUNTS.contains(&key) => wholes.into_iter().sum::<u64>().into(),
        wholes => {
            let sum: f64 = numbers.iter().filter_map(|number| number.as_f64()).sum();
            let mean = sum / numbers.len() as f64;
            if wholes.is_some() { (mean.round() as u64).into() } else { mean.into() }
        }
    }
}

fn write_amplification(report: &Value) -> Option<f64> {
    let host = report["host_bytes_written"].as_f64().filter(|host| *host > 0.0)?;
    Some(report["programmed_bytes"].as_f64()? / host)
}

/// The counts of two sources as those of one.
pub(crate) fn sum_of_counts(counts: &Counts, other: &Counts) -> Counts {
    let [one, two] = [counts, other].map(|each| serde_json::to_value(each).expect("counts are plain data"));
    serde_json::from_value(pool(&[one, two])).expect("a sum of counts is one")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::pool;

    #[test]
    fn counts_are_added_up_and_all_else_is_a_mean() {
        let one = json!({
            "erases": 3, "share": 0.5, "tail_p99_ns": 10, "held_bytes_max": 7,
            "most_cycles": 1.5, "has_filled": false,
            "hosts": [{ "used": 1, "utilisation_percent": [10, 20, 30], "tail_p50_ns": null, "class": "low" }],
        });
        let two = json!({
            "erases": 4, "share": 0.25, "tail_p99_ns": 21, "held_bytes_max": 5,
            "most_cycles": 2.0, "has_filled": true,
            "hosts": [{ "used": 5, "utilisation_percent": [20, 20, 61], "tail_p50_ns": 8, "class": "low" }],
        });
        let pooled = json!({
            "erases": 7, "share": 0.375, "tail_p99_ns": 16, "held_bytes_max": 7,
            "most_cycles": 2.0, "has_filled": true,
            "hosts": [{ "used": 6, "utilisation_percent": [15, 20, 46], "tail_p50_ns": 8, "class": "low" }],
        });
        assert_eq!(pool(&[one.clone(), two]), pooled);
        assert_eq!(pool(std::slice::from_ref(&one)), one);
    }

    #[test]
    fn write_amplification_is_that_of_all_bytes() {
        let report = |programmed, host| {
            let waf = (host > 0).then(|| f64::from(programmed) / f64::from(host));
            json!({ "ssds": { "0": { "waf": waf, "programmed_bytes": programmed, "host_bytes_written": host } } })
        };
        assert_eq!(pool(&[report(4, 4), report(6, 1)]), report(10, 5));
        assert_eq!(pool(&[report(0, 0), report(6, 2)])["ssds"]["0"]["waf"], 3.0);
        assert_eq!(pool(&[report(0, 0), report(0, 0)]), report(0, 0));
    }
}
