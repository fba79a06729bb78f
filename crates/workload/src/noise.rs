//! Noise of generated workloads.

use flashkeel_engine::Stream;

/// A lognormal factor with median 1, by the method of Box and Muller.
pub(crate) fn lognormal(stream: &mut Stream, sigma: f64) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.unit()));
    libm::exp(sigma * radius * libm::cos(std::f64::consts::TAU * stream.unit()))
}
