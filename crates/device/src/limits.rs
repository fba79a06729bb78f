//! Bounds of what a device may be given, which every module may name.

use flashkeel_engine::Span;
use flashkeel_engine::units::Rate;

/// Longest delay that makes sense anywhere in a device.
pub(crate) const LONGEST: Span = Span::from_secs(3600);
/// Longest window or period: a century, so that the clock, which goes up to nearly
/// six of them, can name its end.
pub(crate) const LONGEST_PERIOD: Span = Span::from_secs(36_525 * 24 * 3600);
/// Slowest bus that makes sense.
pub(crate) const SLOWEST: Rate = Rate(1_000_000);

/// Bits of an event's payload that hold an index.
pub(crate) const INDEX_BITS: u32 = 24;
/// Largest index an event can carry, and so the limit of every pool.
pub(crate) const MAX_INDEX: u32 = (1 << INDEX_BITS) - 1;
