//! A drive as it is seen over a way that takes time, by a machine that is late now and then:
//! what a probe of a served drive meets, in virtual time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use flashkeel_device::Ssd;
use flashkeel_engine::{Arena, Completion, Leaf, Limits, Outside, Request, Span, Stream, Submit, Time, Wake};

/// How a machine is late.
#[derive(Clone, Copy, Debug)]
pub struct Lateness {
    /// Part of the answers that come [`LATE`] too late.
    pub part: f64,
    /// Once in so long a time nothing is heard for [`BURST`].
    pub bursts: Option<Span>,
}

/// By how much an answer is late, each length as likely by its logarithm.
const LATE: (Span, Span) = (Span::from_us(100), Span::from_us(2_000));
const BURST: Span = Span::from_ms(58);
/// The way there and back: at least, and in the mean beyond that.
const WAY: (Span, f64) = (Span::from_us(20), 5_000.0);
/// Whoever has been silent so long sleeps, and the way is so much longer for the next.
const SILENCE: Span = Span::from_us(150);
const WAKING: (Span, f64) = (Span::from_us(30), 15_000.0);

/// The drive, and, as a copy of it, the world that it is waited for in.
#[derive(Clone)]
pub struct LateDrive(Rc<RefCell<Inside>>);

struct Inside {
    ssd: Ssd,
    now: Time,
    lateness: Lateness,
    random: Stream,
    /// When something was last on its way.
    last: Time,
    answers: VecDeque<Completion>,
}

impl LateDrive {
    pub fn new(ssd: Ssd, lateness: Lateness, seed: u64) -> Self {
        let random = Stream::new(seed, "lateness");
        let (now, last) = (Time::ZERO, Time::ZERO);
        LateDrive(Rc::new(RefCell::new(Inside {
            ssd,
            now,
            lateness,
            random,
            last,
            answers: VecDeque::new(),
        })))
    }
}

impl Inside {
    /// Takes what the drive has completed up to `now`; an answer comes when it gets here.
    fn take(&mut self, now: Time, data: &mut Arena) {
        let mut ended = Vec::new();
        self.ssd.advance(now, data, &mut ended);
        for end in ended {
            let mut at = end.time + self.way(end.time);
            if let Some(period) = self.lateness.bursts {
                let phase = at.0 % period.0;
                at = at.max(Time(at.0 - phase) + if phase < BURST.0 { BURST } else { Span::ZERO });
            }
            // One after the other, as over any line.
            let at = at.max(self.answers.back().map_or(at, |last| last.time));
            self.answers.push_back(Completion { time: at, ..end });
        }
    }

    fn way(&mut self, now: Time) -> Span {
        let mut way = WAY.0 + Span(self.random.exponential(WAY.1) as u64);
        if now.0 > self.last.0 + SILENCE.0 {
            way += WAKING.0 + Span(self.random.exponential(WAKING.1) as u64);
        }
        if self.random.chance(self.lateness.part) {
            let (least, most) = (LATE.0.0 as f64, LATE.1.0 as f64);
            way += Span((least * (most / least).powf(self.random.unit())) as u64);
        }
        self.last = now + way;
        way
    }
}

impl Leaf for LateDrive {
    fn limits(&self) -> Limits {
        self.0.borrow().ssd.limits()
    }

    fn submit(&mut self, now: Time, request: &Request, data: &mut Arena) -> Submit {
        let inside = &mut *self.0.borrow_mut();
        inside.take(now, data);
        inside.ssd.submit(now, request, data)
    }

    fn next_event(&self) -> Wake {
        Wake::OUTSIDE
    }

    fn advance(&mut self, now: Time, data: &mut Arena, completions: &mut Vec<Completion>) {
        let inside = &mut *self.0.borrow_mut();
        inside.take(now, data);
        while inside.answers.front().is_some_and(|answer| answer.time <= now) {
            completions.extend(inside.answers.pop_front());
        }
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {}
}

impl Outside for LateDrive {
    /// Up to the next answer.
    fn wait(&mut self, until: Option<Time>) -> Time {
        let inside = &mut *self.0.borrow_mut();
        loop {
            let answer = inside.answers.front().map(|answer| answer.time);
            let event = inside.ssd.next_event().time().filter(|&event| answer.is_none_or(|at| event < at));
            let next = event.into_iter().chain(answer).chain(until).min().expect("something will happen");
            inside.now = next.max(inside.now);
            if event != Some(next) {
                return inside.now;
            }
            inside.take(next, &mut Arena::new());
        }
    }
}
