//! Would prediction have worked? The engine, and three simple ways beside it, judged by
//! what a drive was asked and how long that took.
//!
//! Requests are told in the order in which they happened, as if they were submitted now.
//! The first half of them fixes what a way goes by; the second half is judged.

mod assumed;
mod baselines;
mod mirror;
mod other_drive;
mod ranking;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use flashkeel_engine::{
    Completion, Lba, Ledger, Operation, Predictor as _, Request, RequestId, Span, Status, Time,
};
use serde::Serialize;

pub use assumed::assume;
pub use other_drive::{TELLING, contradiction};

use crate::{Engine, Score};
use baselines::Baselines;
use mirror::Mirror;

/// Fewest slow requests, and fewest predictions of one, of which a part is told.
pub const LEAST: u64 = 30;

/// A read or write that a drive has served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// When it was submitted.
    pub submitted: Time,
    /// What it took.
    pub latency: Span,
    /// [`Operation::Read`] or [`Operation::Write`]; for [`contradiction`] [`Operation::Flush`], too.
    pub operation: Operation,
    /// First sector of 512 bytes.
    pub lba: Lba,
    /// Sectors of 512 bytes.
    pub sectors: u32,
}

/// How good each way would have been.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scored {
    /// Requests of the log.
    pub requests: u64,
    /// The second half of them, which is judged.
    pub judged: u64,
    /// Reads among these.
    pub judged_reads: u64,
    /// Slow ones among those judged.
    pub slow: u64,
    /// Slow reads among them.
    pub slow_reads: u64,
    /// Slow ones in the first half.
    pub slow_before: u64,
    /// Whether the off-switch left prediction on at the end.
    pub is_on: bool,
    /// The engine over the whole log, as it predicts online.
    pub whole_log: Score,
    /// What came of the probabilities that the engine gave, by tenths of them.
    pub reliability: [Tenth; 10],
    /// The engine first, then the baselines.
    pub methods: Vec<Method>,
}

/// Requests judged whose probability of being slow lay in one tenth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Tenth {
    /// So many.
    pub requests: u64,
    /// The mean of their probabilities.
    pub said: f64,
    /// Part of them that was slow.
    pub came: f64,
}

/// One way to predict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Method {
    /// What it is called.
    pub name: &'static str,
    /// From which value on it calls a request slow, fixed on the first half: requests
    /// outstanding or nanoseconds. None of the engine, which moves its own.
    pub threshold: Option<f64>,
    /// What became of the requests judged.
    pub score: Score,
    /// Part of the slow requests that were predicted.
    pub recall: Option<f64>,
    /// Part of the predictions of a slow request that came true.
    pub precision: Option<f64>,
    /// How likely a slow request was thought slower than a normal one: 0.5 by chance.
    pub roc_auc: Option<f64>,
    /// Reads that were predicted slow, which a mirror sends to its other copy.
    pub reads_sent: u64,
    /// Part of all reads' time that the mirror saves.
    pub saved_fraction: Option<f64>,
    /// What is not determined, and why.
    pub undetermined: Vec<String>,
}

/// Judges what an engine predicts of `requests`, which are in order of
/// submission. `progress` is told the fraction done, and may break off; then there is nothing.
pub fn score(
    engine: &mut Engine,
    requests: &[Measured],
    progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Option<Scored> {
    let half = requests.len() / 2;
    let mut baselines = Baselines::default();
    let mut whole_log = Score::default();
    let mut seen = Vec::with_capacity(requests.len());
    // What is outstanding: by end, and at equal times by submission.
    let mut ends = BinaryHeap::new();
    for (index, measured) in requests.iter().enumerate() {
        let Measured { submitted, latency, operation, lba, sectors } = *measured;
        if index % 65_536 == 0 && progress(index as f64 / requests.len() as f64).is_break() {
            return None;
        }
        while let Some(&Reverse((time, ended))) = ends.peek()
            && time <= submitted
        {
            ends.pop();
            observe(engine, time, ended);
            baselines.ended(&requests[ended]);
        }
        let request = Request::new(RequestId(index as u64), operation, lba, sectors);
        let is_slow = engine.is_slow(operation, sectors, latency);
        let prediction = engine.predict(submitted, &[], &request);
        whole_log.count(prediction.is_slow, is_slow);
        seen.push(Seen {
            is_slow,
            is_called: prediction.is_slow,
            chance: f64::from(prediction.chance),
            signals: baselines.signals(ends.len(), operation),
        });
        engine.submitted(submitted, &request);
        ends.push(Reverse((submitted + latency, index)));
    }
    while let Some(Reverse((time, ended))) = ends.pop() {
        observe(engine, time, ended);
    }
    let (before, after) = seen.split_at(half);
    let mirror = Mirror::new(&requests[half..]);
    let slow_in = |part: &[Seen]| part.iter().filter(|seen| seen.is_slow).count() as u64;
    let reads = |seen: &&(&Measured, &Seen)| seen.0.operation == Operation::Read;
    let judged: Vec<(&Measured, &Seen)> = requests[half..].iter().zip(after).collect();
    let told = Told { judged: &judged, mirror: &mirror, slow_before: slow_in(before) };
    let mut methods = vec![told.method("SSDcheck", None, |seen| seen.is_called, |seen| seen.chance)];
    for (signal, name) in baselines::NAMES.into_iter().enumerate() {
        let threshold =
            baselines::threshold(before.iter().map(|seen| (seen.signals[signal], seen.is_slow)).collect());
        let calls = |seen: &Seen| threshold.is_some_and(|least| seen.signals[signal] >= least);
        methods.push(told.method(name, Some(threshold), calls, |seen| seen.signals[signal]));
    }
    Some(Scored {
        requests: requests.len() as u64,
        judged: judged.len() as u64,
        judged_reads: judged.iter().filter(reads).count() as u64,
        slow: slow_in(after),
        slow_reads: judged.iter().filter(reads).filter(|(_, seen)| seen.is_slow).count() as u64,
        slow_before: told.slow_before,
        is_on: engine.is_on(),
        whole_log,
        reliability: reliability(after),
        methods,
    })
}

/// What came of probabilities, by tenths of them.
fn reliability(judged: &[Seen]) -> [Tenth; 10] {
    let mut tenths = [Tenth::default(); 10];
    for seen in judged {
        let tenth = &mut tenths[((10.0 * seen.chance) as usize).min(9)];
        tenth.requests += 1;
        tenth.said += seen.chance;
        tenth.came += f64::from(u8::from(seen.is_slow));
    }
    for tenth in tenths.iter_mut().filter(|tenth| tenth.requests > 0) {
        tenth.said /= tenth.requests as f64;
        tenth.came /= tenth.requests as f64;
    }
    tenths
}

fn observe(engine: &mut Engine, time: Time, index: usize) {
    let id = RequestId(index as u64);
    engine.observe(time, &Completion { id, time, status: Status::Ok, ledger: Ledger::ZERO });
}

/// What was thought of a request when it was submitted, and what came.
struct Seen {
    is_slow: bool,
    is_called: bool,
    chance: f64,
    signals: [f64; baselines::NAMES.len()],
}

/// What every way is judged by.
struct Told<'a> {
    judged: &'a [(&'a Measured, &'a Seen)],
    mirror: &'a Mirror,
    slow_before: u64,
}

impl Told<'_> {
    /// Judges one way: `calls` says whether it calls a request slow, `ranks` how slow it
    /// thinks it. A baseline has a `threshold`, if one could be found.
    fn method(
        &self,
        name: &'static str,
        threshold: Option<Option<f64>>,
        calls: impl Fn(&Seen) -> bool,
        ranks: impl Fn(&Seen) -> f64,
    ) -> Method {
        let (mut score, mut reads_sent, mut sent) = (Score::default(), 0, Vec::new());
        for (measured, seen) in self.judged {
            let is_called = calls(seen);
            score.count(is_called, seen.is_slow);
            if is_called && measured.operation == Operation::Read {
                reads_sent += 1;
                sent.push(*measured);
            }
        }
        let slow = score.slow_found + score.slow_missed;
        let normal = score.normal_found + score.normal_missed;
        let called = score.slow_found + score.normal_missed;
        let slow_reads = self
            .judged
            .iter()
            .filter(|(measured, seen)| seen.is_slow && measured.operation == Operation::Read);
        let slow_reads = slow_reads.count() as u64;
        let mut undetermined = Vec::new();
        let mut enough = |what: &str, count: u64, of: &str| {
            if count < LEAST {
                undetermined.push(format!("{what}: {count} {of}, fewer than {LEAST}"));
            }
            count >= LEAST
        };
        let is_fixed = threshold.is_none()
            || enough("all", self.slow_before, "slow requests in the first half, which fixes the threshold");
        let ranked = || self.judged.iter().map(|(_, seen)| (ranks(seen), seen.is_slow)).collect();
        let has_slow = enough("recall and ROC-AUC", slow, "slow requests in the second half");
        let has_normal = enough("ROC-AUC", normal, "normal requests in the second half");
        let recall = (is_fixed && has_slow).then(|| score.slow_recall()).flatten();
        let roc_auc = (has_slow && has_normal).then(|| ranking::roc_auc(ranked()));
        let has_calls = !is_fixed || enough("precision", called, "predictions of a slow request");
        let precision = (is_fixed && has_calls).then(|| score.precision()).flatten();
        let has_slow_reads = enough("time saved", slow_reads, "slow reads in the second half");
        let saved_fraction = (is_fixed && has_slow_reads).then(|| self.mirror.saved_fraction(&sent));
        let threshold = threshold.flatten();
        Method {
            name,
            threshold,
            score,
            recall,
            precision,
            roc_auc,
            reads_sent,
            saved_fraction,
            undetermined,
        }
    }
}
