//! `trace`: the writes of a recorded trace.

use std::sync::Arc;

use flashkeel_engine::units::Bytes;
use flashkeel_engine::{LOGICAL_PAGE_BYTES, Operation, SECTOR_BYTES, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Demand, Load, Recording};
use crate::error::Pulse;
use crate::places::Sampler;
use crate::{Stopped, Trace, Watch, WorkloadError, conversion};

/// A trace whose writes are summed up by the minute, as they were asked for, in
/// whole sectors; it repeats, the first request its mean gap after the last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The trace.
    pub trace: Trace,
}

const MINUTE: u64 = 60_000_000_000;
/// Longest trace in minutes: a year.
const MOST_MINUTES: u64 = 366 * 1_440;

impl Load for Recorded {
    fn load_watched(&self, _seed: u64, watch: &mut Watch<'_>) -> Result<Demand, Stopped> {
        let file = self.trace.path.display().to_string();
        let refuse = |message: &str| Err(WorkloadError::file(&file, message).into());
        // Every address is there, as is every request as it was asked for.
        let mut source = self.trace.open_whole(&conversion(), false, watch)?;
        let mut pulse = Pulse::new(watch);
        let (mut written, mut batch, mut last) = (vec![0.0], Vec::new(), 0);
        let mut sampler = Sampler::new();
        let (mut writes, mut rounded, mut places_end) = (0u64, 0u64, None);
        loop {
            source.fill(&mut batch, 4096)?;
            let Some(arrival) = batch.last() else { break };
            last = arrival.time.0;
            let minutes = last / MINUTE;
            if minutes >= MOST_MINUTES {
                return refuse("longer than a year; is its time unit right?");
            }
            written.resize(minutes as usize + 1, 0.0);
            for arrival in batch.iter().filter(|arrival| arrival.operation == Operation::Write) {
                let (offset, bytes) =
                    (arrival.lba.0 * SECTOR_BYTES, u64::from(arrival.asked_sectors) * SECTOR_BYTES);
                written[(arrival.time.0 / MINUTE) as usize] += bytes as f64;
                writes += 1;
                rounded += u64::from(
                    !offset.is_multiple_of(LOGICAL_PAGE_BYTES) || !bytes.is_multiple_of(LOGICAL_PAGE_BYTES),
                );
                sampler.write(offset, bytes);
                if sampler.is_full() {
                    places_end.get_or_insert(arrival.time);
                }
                pulse.step_by(1 + bytes / LOGICAL_PAGE_BYTES, || source.progress().unwrap_or(0.0))?;
            }
        }
        if last == 0 && writes > 0 {
            return refuse("its requests are all at one time, from which no rate follows");
        }
        let mut notes = source.notes().to_vec();
        let places = sampler.finish();
        if let Some(places) = places.as_ref().filter(|_| rounded > 0) {
            notes.push(format!(
                "{rounded} of its {writes} writes do not begin and end at multiples of {}, the unit of the drive's \
                 map: {:.3} times what they ask for is written, which counts as write amplification",
                Bytes(LOGICAL_PAGE_BYTES),
                places.rounding
            ));
        }
        if let Some(end) = places_end.filter(|end| end.0 < last) {
            notes.push(format!(
                "where it writes is taken from its first {}: more goes to too few places to be sampled",
                Span(end.0)
            ));
        }
        for (count, what) in
            [(source.counts().trims, "trims"), (source.counts().write_zeroes, "writes of zeros")]
        {
            if count > 0 {
                notes.push(format!("its {count} {what} are left out, which would lower write amplification"));
            }
        }
        let gaps = source.counts().delivered.saturating_sub(1).max(1);
        let length = (last + last / gaps).max(1);
        // What is over within a minute says nothing of its course: hours of its mean.
        let interval = if length < MINUTE {
            let hour = Span::from_secs(3_600);
            written = vec![written[0] * hour.0 as f64 / length as f64];
            hour
        } else {
            written = whole_minutes(written, length);
            Span(MINUTE)
        };
        Ok(Demand {
            interval,
            written,
            is_synthetic: false,
            recorded: Some(Arc::new(Recording { span: Span(last), places })),
            notes,
        })
    }
}

/// What was written in `length` nanoseconds, a minute or more, in as many minutes as that
/// is nearest to. A last part of less than half a minute goes with the minute before it;
/// all are scaled alike, so that the mean rate stays what it was.
fn whole_minutes(mut written: Vec<f64>, length: u64) -> Vec<f64> {
    let minutes = (length + MINUTE / 2) / MINUTE;
    let rest: f64 = written.drain((minutes as usize).min(written.len())..).sum();
    written.resize(minutes as usize, 0.0);
    written[minutes as usize - 1] += rest;
    let scale = (minutes * MINUTE) as f64 / length as f64;
    written.iter_mut().for_each(|bytes| *bytes *= scale);
    written
}
