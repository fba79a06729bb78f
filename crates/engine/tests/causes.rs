//! What has to be said of every cause elsewhere.

use flashkeel_engine::Cause;

#[test]
fn every_cause_is_explained_and_has_a_colour() {
    let results = include_str!("../../../docs/results.md");
    let plots = include_str!("../../../python/flashkeel/output/plots.py");
    let rows: Vec<&str> = results.lines().filter(|line| line.starts_with("| `")).collect();
    for cause in Cause::ALL {
        let label = cause.label();
        let is_explained = rows.iter().any(|row| row.contains(&format!("`{label}`")));
        assert!(is_explained, "`{label}` has no row in docs/results.md");
        assert!(plots.contains(&format!("\"{label}\": \"#")), "{label} has no colour in plots.py");
    }
}
