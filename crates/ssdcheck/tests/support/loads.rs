//! What strangers are asked: requests of many sizes and places, one after the other or
//! several at a time, and the log of them.

use flashkeel_device::Ssd;
use flashkeel_engine::{
    Arena, Cause, Completion, Lba, Leaf, Operation, Predictor, Request, RequestId, Span, Stream, Submit, Time,
};
use flashkeel_ssdcheck::{Engine, Measured};

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// Each a while after the one before it has ended: 97 % of the gaps 70 us in the
    /// mean, the others 5 ms.
    Think,
    /// So many are always outstanding.
    Depth(usize),
}

/// Those that are judged.
pub const PACINGS: [(&str, Pacing); 4] = [
    ("think", Pacing::Think),
    ("depth 1", Pacing::Depth(1)),
    ("depth 4", Pacing::Depth(4)),
    ("depth 16", Pacing::Depth(16)),
];

/// Requests drawn at random, a mixture of its own for each seed.
struct Mixture {
    random: Stream,
    pages: u64,
    writes: f64,
    /// Part of the requests of 4 KiB; the others have up to 64.
    small: f64,
    /// Part of the requests that go to a part of the drive.
    hot: (f64, f64),
    /// Part of the requests that follow the one before them.
    sequential: f64,
    last: u64,
}

impl Mixture {
    fn new(sectors: u64, seed: u64) -> Mixture {
        let mut random = Stream::new(seed, "mixture");
        let one_of = |random: &mut Stream, values: &[f64]| values[random.below(values.len() as u64) as usize];
        Mixture {
            pages: sectors / 8,
            writes: one_of(&mut random, &[0.1, 0.3, 0.5, 0.7, 0.9]),
            small: one_of(&mut random, &[1.0, 0.8, 0.5]),
            hot: (one_of(&mut random, &[0.0, 0.8]), one_of(&mut random, &[0.05, 0.2])),
            sequential: one_of(&mut random, &[0.0, 0.0, 0.2]),
            last: 0,
            random,
        }
    }

    fn next(&mut self, id: u64) -> Request {
        let random = &mut self.random;
        let operation = if random.chance(self.writes) { Operation::Write } else { Operation::Read };
        let size = if random.chance(self.small) { 1 } else { 1 << (1 + random.below(4)) };
        let room = self.pages - size;
        let page = if random.chance(self.sequential) {
            self.last % room
        } else if random.chance(self.hot.0) {
            random.below((room as f64 * self.hot.1) as u64)
        } else {
            random.below(room)
        };
        self.last = page + size;
        Request::new(RequestId(id), operation, Lba(8 * page), 8 * size as u32)
    }

    fn gap(&mut self) -> Span {
        let mean_ns = if self.random.chance(0.03) { 5e6 } else { 70e3 };
        Span(self.random.exponential(mean_ns) as u64)
    }
}

/// A request that was served, how likely it was thought to be slow and whether it was called
/// so, and what it waited for longest.
pub struct Asked {
    pub measured: Measured,
    pub chance: f32,
    pub is_called: bool,
    pub cause: Cause,
}

/// What `count` requests take on a drive, in order of submission, while `engine` predicts
/// each of them.
pub fn log(ssd: &mut Ssd, engine: &mut Engine, seed: u64, pacing: Pacing, count: u64) -> Vec<Asked> {
    let mut mixture = Mixture::new(ssd.limits().sectors, seed);
    let (mut log, mut done): (Vec<Asked>, Vec<Completion>) = (Vec::new(), Vec::new());
    let (mut now, mut outstanding, mut ended) = (Time::ZERO, 0, 0);
    let depth = if let Pacing::Depth(depth) = pacing { depth } else { 1 };
    while ended < count {
        while outstanding < depth && (log.len() as u64) < count {
            if pacing == Pacing::Think {
                now += mixture.gap();
                ssd.advance(now, &mut Arena::new(), &mut done);
            }
            let request = mixture.next(log.len() as u64);
            let predicted = engine.predict(now, &[], &request);
            assert_eq!(ssd.submit(now, &request, &mut Arena::new()), Submit::Accepted);
            engine.submitted(now, &request);
            let Request { operation, lba, sectors, .. } = request;
            let measured = Measured { submitted: now, latency: Span::ZERO, operation, lba, sectors };
            let (chance, is_called) = (predicted.chance, predicted.is_slow);
            log.push(Asked { measured, chance, is_called, cause: Cause::OwnFlash });
            outstanding += 1;
        }
        now = ssd
            .advance_to_completion(Time(u64::MAX), &mut Arena::new(), &mut done)
            .expect("a request is outstanding");
        for completion in done.drain(..) {
            engine.observe(completion.time, &completion);
            let asked = &mut log[completion.id.0 as usize];
            asked.measured.latency = completion.time.since(asked.measured.submitted);
            let causes = completion.ledger.iter().filter(|(cause, _)| *cause != Cause::OwnFlash);
            asked.cause = causes.max_by_key(|&(_, ns)| ns).map_or(Cause::OwnFlash, |(cause, _)| cause);
            outstanding -= 1;
            ended += 1;
        }
    }
    log
}
