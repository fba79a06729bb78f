//! What a device is made of, as it is read off.

use flashkeel_device::Interval;
use serde_json::Value;

/// A part of a device that counts what it does: a device that is made of no
/// others, or a policy over some.
pub trait Part {
    /// The name of its kind.
    fn kind(&self) -> &'static str;

    /// What it has done since the start or the last reset.
    fn report(&self) -> Value;

    /// Its counters, in a fixed order, for the digest.
    fn counters(&self) -> Vec<u64>;

    /// Names of its gauges, in order.
    fn gauge_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Reads its gauges into `values`, which it clears.
    fn gauges(&self, values: &mut Vec<u64>) {
        values.clear();
    }

    /// What its chips have done in the window that is watched, in the order in
    /// which it ended.
    fn watched(&self) -> &[Interval] {
        &[]
    }

    /// How many chips each of its channels has.
    fn channels(&self) -> Vec<u32> {
        Vec::new()
    }
}
