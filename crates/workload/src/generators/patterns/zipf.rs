//! `zipf`: few places much, most places little.

use flashkeel_engine::Stream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draw, Locate};
use crate::WorkloadError;
use crate::generators::refuse;

/// The place of rank k is drawn with a probability proportional to k^-theta.
/// Ranks are scattered over the space, each to a place of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Zipf {
    /// Exponent, above 0 and at most 10; larger is more skewed.
    pub theta: f64,
}

impl Default for Zipf {
    fn default() -> Self {
        Zipf { theta: 0.99 }
    }
}

impl Locate for Zipf {
    fn draw(&self, places: u64) -> Result<Box<dyn Draw>, WorkloadError> {
        if !(self.theta > 0.0 && self.theta <= 10.0) {
            return Err(refuse("pattern.theta", format!("{} is not above 0 and at most 10", self.theta)));
        }
        Ok(Box::new(State { ranks: Ranks::new(places, self.theta), places, step: scatter_step(places) }))
    }
}

struct State {
    ranks: Ranks,
    places: u64,
    step: u64,
}

impl Draw for State {
    #[inline]
    fn next(&mut self, stream: &mut Stream, length: u64) -> u64 {
        let rank = self.ranks.draw(stream) - 1;
        let place = (u128::from(rank) * u128::from(self.step) % u128::from(self.places)) as u64;
        // Of a place too near the end for it a request begins as much behind the first one.
        place % (self.places - length + 1)
    }
}

/// A step without a common divisor with `places`, near the golden section of
/// it: multiples of it modulo `places` visit every place once, far apart.
fn scatter_step(places: u64) -> u64 {
    let mut step = (places as f64 * 0.618_033_988_749_894_9) as u64;
    while gcd(step.max(1), places) != 1 {
        step += 1;
    }
    step.max(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Draws ranks 1 to n exactly, by rejection-inversion (W. Hörmann and
/// G. Derflinger, "Rejection-inversion to generate variates from monotone
/// discrete distributions", ACM TOMACS 6(3), 1996). Logarithms and powers are
/// those of `libm`, which are the same on every platform.
struct Ranks {
    count: f64,
    theta: f64,
    area_first: f64,
    area_last: f64,
    squeeze: f64,
}

impl Ranks {
    fn new(count: u64, theta: f64) -> Ranks {
        let mut ranks = Ranks { count: count as f64, theta, area_first: 0.0, area_last: 0.0, squeeze: 0.0 };
        ranks.area_first = ranks.area(1.5) - 1.0;
        ranks.area_last = ranks.area(ranks.count + 0.5);
        ranks.squeeze = 2.0 - ranks.area_inverse(ranks.area(2.5) - ranks.density(2.0));
        ranks
    }

    fn draw(&self, stream: &mut Stream) -> u64 {
        loop {
            let area = self.area_last + stream.unit() * (self.area_first - self.area_last);
            let x = self.area_inverse(area);
            let rank = (x + 0.5).floor().clamp(1.0, self.count);
            if rank - x <= self.squeeze || area >= self.area(rank + 0.5) - self.density(rank) {
                return rank as u64;
            }
        }
    }

    /// x^-theta.
    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// Integral of the density from 1 to x.
    fn area(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let power = (1.0 - self.theta) * log;
        // Near a theta of 1 the quotient tends to 1 and loses its digits.
        let quotient = if power.abs() > 1e-8 { libm::expm1(power) / power } else { 1.0 + power / 2.0 };
        quotient * log
    }

    /// The x up to which the integral is `area`.
    fn area_inverse(&self, area: f64) -> f64 {
        let power = (area * (1.0 - self.theta)).max(-1.0);
        let quotient = if power.abs() > 1e-8 { libm::log1p(power) / power } else { 1.0 - power / 2.0 };
        libm::exp(quotient * area)
    }
}
