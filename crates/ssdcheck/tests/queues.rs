//! Predictions where several requests are outstanding.

mod support;

use std::ops::ControlFlow;

use flashkeel_engine::{
    Arena, Completion, Lba, Leaf, Ledger, Operation, Predictor, Request, RequestId, Span, Status, Stream,
    Submit, Time,
};
use flashkeel_ssdcheck::{
    BufferType, DeviceModel, Engine, FlushTrigger, Latencies, Score, Thresholds, WriteBuffer, probe,
};
use support::{preset, ready};

/// Pages that come together every 10 ms, as from a tier that is drained.
const BURST: u64 = 72;

#[test]
fn writes_beside_bursts_of_others_are_predicted() {
    let mut ssd = ready(&preset("ssd-c"), 2);
    let sectors = ssd.sectors();
    let model = probe(&mut ssd, None, 2, None, &mut |_| ControlFlow::Continue(())).expect("a drive").model;
    let mut ssd = ready(&preset("ssd-c"), 1);
    let mut engine = Engine::new(&model, None);
    let mut random = Stream::new(1, "queues");
    let (mut done, mut score) = (Vec::new(), Score::default());
    // By number: when it was submitted, and what was said, of the writes that are asked about.
    let mut asked: Vec<Option<(Time, bool)>> = Vec::new();
    let (mut next_burst, mut next_single) = (Time(1_000_000), Time(0));
    while asked.len() < 200_000 {
        let now = next_burst.min(next_single);
        while let Some(at) = ssd.advance_to_completion(now, &mut Arena::new(), &mut done) {
            for completion in done.drain(..) {
                if let Some((submitted, said)) = asked[completion.id.0 as usize] {
                    let is_slow = engine.is_slow(Operation::Write, 8, at.since(submitted));
                    score.count(said, is_slow);
                }
                engine.observe(at, &completion);
            }
        }
        let is_burst = now == next_burst;
        for _ in 0..if is_burst { BURST } else { 1 } {
            let lba = Lba(random.below(sectors / 8) * 8);
            let id = RequestId(asked.len() as u64);
            let request = Request::new(id, Operation::Write, lba, 8);
            let said = (!is_burst).then(|| (now, engine.predict(now, &[], &request).is_slow));
            asked.push(said);
            engine.submitted(now, &request);
            assert_eq!(ssd.submit(now, &request, &mut Arena::new()), Submit::Accepted);
        }
        if is_burst {
            next_burst += Span::from_ms(10);
        } else {
            next_single += Span(random.exponential(560_000.0) as u64);
        }
    }
    println!("{score:?}");
    assert!(score.slow_recall().expect("slow ones") > 0.6, "{score:?}");
    assert!(score.normal_recall().expect("normal ones") > 0.95, "{score:?}");
    assert!(score.precision().expect("predictions") > 0.6, "{score:?}");
}

/// Of a drive whose buffer is not known, and of one where it is.
fn models() -> [DeviceModel; 2] {
    let model = DeviceModel {
        sectors: 1 << 20,
        volume_bits: vec![],
        gc_volume_bits: None,
        write_buffer: WriteBuffer::UNKNOWN,
        thresholds_ns: Thresholds { read: 200_000, write: 200_000 },
        latencies_ns: Latencies {
            read: 80_000,
            write: 8_000,
            read_page: 20_000,
            write_page: 20_000,
            ..Latencies::default()
        },
        sleep: None,
        undetermined: vec![],
        learned: None,
    };
    let buffer =
        WriteBuffer { bytes: Some(131_072), kind: BufferType::Back, flush: vec![FlushTrigger::Full] };
    let known = DeviceModel { write_buffer: buffer, ..model.clone() };
    [model, known]
}

/// Whoever is switched off says nothing, not even of requests in a long queue.
/// Where no buffer is known that is so from the start.
#[test]
fn a_predictor_that_is_switched_off_calls_nothing_slow() {
    let [model, known] = models();
    for (model, is_on) in [(model, false), (known, true)] {
        let mut engine = Engine::new(&model, None);
        assert_eq!(engine.is_on(), is_on);
        let request = |id| Request::new(RequestId(id), Operation::Write, Lba(id * 256), 256);
        for id in 0..40 {
            engine.submitted(Time(id), &request(id));
        }
        let last = Request { sectors: 8, ..request(40) };
        assert_eq!(engine.predict(Time(40), &[], &last).is_slow, is_on);
    }
}

/// Whoever asks, of whatever and how often, learns no less and nothing else for that.
#[test]
fn asking_changes_nothing_that_is_learnt() {
    let [_, model] = models();
    let mut engines = [(); 2].map(|()| Engine::new(&model, None));
    let mut random = Stream::new(1, "asking");
    let mut outstanding: Vec<Completion> = Vec::new();
    let request = |random: &mut Stream, id| {
        let operation = if random.chance(0.5) { Operation::Read } else { Operation::Write };
        Request::new(RequestId(id), operation, Lba(random.below(1_000) * 8), 8)
    };
    let mut next = request(&mut random, 0);
    let mut now = Time(0);
    for id in 1..20_000 {
        // Several come, or end, at the same time.
        now += Span(random.below(3) * 20_000);
        let this = std::mem::replace(&mut next, request(&mut random, id));
        if random.chance(0.1) {
            let said = engines.each_mut().map(|engine| engine.predict(now, &[], &this));
            assert_eq!(said[0], said[1]);
        }
        if random.chance(0.5) {
            let _ = engines[1].predict(now, &[], &next);
        }
        let ended: Vec<Completion> = outstanding.extract_if(.., |one| one.time <= now).collect();
        engines.iter_mut().for_each(|engine| ended.iter().for_each(|one| engine.observe(now, one)));
        for _ in 0..random.below(3) {
            match random.below(3) {
                0 => engines[1].predict(now, &[], &this),
                1 => engines[1].predict(now, &[], &next),
                _ => engines[1].predict(now, &[this], &next),
            };
        }
        engines.iter_mut().for_each(|engine| engine.submitted(now, &this));
        if random.chance(0.5) {
            let _ = engines[1].predict(now, &[this], &request(&mut random, 1 << 40));
        }
        let time = now + Span(if random.chance(0.05) { 900_000 } else { 10_000 * (1 + random.below(8)) });
        outstanding.push(Completion { id: this.id, time, status: Status::Ok, ledger: Ledger::ZERO });
    }
    let [told, asked] = engines.map(|engine| engine.model());
    assert_eq!(told, asked);
}
