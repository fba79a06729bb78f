//! SSDsim ascii traces: the columns of MQSim's (see [`super::mqsim`]), whose
//! times are nanoseconds in some collections and microseconds in others.
//!
//! Without `time_unit`, a tick is 1 ns, unless the first thousand requests
//! would then arrive faster than one in 10 µs, which no disk of the time of
//! these traces served: then it is 1 µs. Either is an assumption and is noted.

use crate::WorkloadError;
use crate::input::Input;
use crate::readers::{Format, Reader, ReaderOptions, mqsim};
use crate::text::{lines, number, words};

/// Requests from which the tick is told.
const SAMPLE: usize = 1000;
/// Mean gap in ticks below which a tick cannot be a nanosecond.
const LEAST_GAP_TICKS: u64 = 10_000;

pub(super) const FORMAT: Format = Format {
    name: "ssdsim",
    shape: "5 fields separated by spaces: time, device, lba, sectors, 1 = read or 0 = write",
    matches: |file, head| if super::is_named(file, FORMAT.name) { mqsim::columns(head) } else { 0 },
    open,
};

fn open(input: Input, options: &ReaderOptions) -> Result<Box<dyn Reader>, WorkloadError> {
    if options.time_unit.is_some() {
        return mqsim::open(input, FORMAT.name, options, 1, Vec::new());
    }
    let (tick_ns, unit) = if is_in_microseconds(input.head()) { (1000, "1us") } else { (1, "1ns") };
    let note = format!("a tick of this SSDsim trace is assumed to be {unit}; set time_unit if it is not");
    mqsim::open(input, FORMAT.name, options, tick_ns, vec![note])
}

fn is_in_microseconds(head: &[u8]) -> bool {
    let time = |line| words(line).next().and_then(number);
    let mut times = lines(head, SAMPLE).filter_map(time);
    let Some(first) = times.next() else { return false };
    let (count, last) = times.fold((0, first), |(count, _), time| (count + 1, time));
    count > 0 && last.saturating_sub(first) / count < LEAST_GAP_TICKS
}
