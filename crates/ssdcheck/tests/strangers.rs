//! Diagnosis of drives that nobody tuned for.

mod support;

use support::strangers::{Judged, QUESTIONS, Verdict, features, fills, judge, table};

/// Diagnoses strangers and prints what became of it.
fn judged(numbers: impl IntoIterator<Item = u64>) -> Vec<Judged> {
    let all: Vec<Judged> = numbers.into_iter().filter_map(judge).inspect(print).collect();
    println!("{}", table(&all));
    all
}

fn print(of: &Judged) {
    let evidence = &of.report.evidence;
    let (seconds, fills) = (evidence.duration_ns as f64 / 1e9, fills(&of.config));
    let answers = of.answers.map(|answer| ["+", "?", "-"][answer as usize]).concat();
    let unsure = &of.report.model.undetermined;
    println!("{} {answers} {seconds:.1} s, {} requests {fills} {unsure:?}", of.number, evidence.requests);
    for (question, &answer) in QUESTIONS.iter().zip(&of.answers) {
        if answer == Verdict::Wrong {
            println!("  {question}: {:?} {:?}", of.report.model, features(&of.config));
        }
    }
}

/// `FLASHKEEL_STRANGERS=0..500` chooses others.
#[test]
#[ignore = "takes minutes"]
fn many_strangers_are_never_confidently_mistaken() {
    let chosen = std::env::var("FLASHKEEL_STRANGERS").ok();
    let numbers = chosen.as_deref().and_then(|chosen| {
        let (from, to) = chosen.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    judged(numbers.unwrap_or(0..20));
}
