//! Whether what a drive did contradicts a model: then the model is of another drive.
//!
//! That nothing comes as the model has it is no contradiction: on many drives most slow requests have other
//! reasons than the buffer. Nor do medians: those of a drive that loads its map, or is full, are half or thirty
//! times what a probe has found. So this looks for what a drive cannot do if it is as the model
//! says: its slow requests recur after so many pages as no buffer of the model takes, or reads start flushes.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use flashkeel_engine::Operation;

use super::Measured;
use crate::DeviceModel;
use crate::model::pages;

/// Requests of a log that are looked at: a few hundred slow ones, where one in a hundred is.
pub const TELLING: usize = 200_000;
/// Pages that are looked up for how often they are written again, whatever is written.
const LOOKED_UP: usize = 1 << 20;
/// Fewest slow requests that tell.
const LEAST: usize = 60;
/// And most that are looked at: long writes blur where they come, so that it takes hundreds.
const MOST: usize = 1_200;
/// Pages of 4 KiB that a buffer takes, at least and at most; of others nothing is said.
const PAGES: RangeInclusive<u64> = 8..=512;
/// Buffers that have to be written before they tell how large they are.
const ROUNDS: u64 = 24;
/// Requests before a slow one that were not slow: what a flush holds up comes together, and tells of one.
const CALM: u32 = 8;
/// By how many standard deviations more slow requests have to come at one quarter of a buffer than by chance,
/// over some 100,000 buffers tried, and what remains of that with the model's own.
const SURE: f64 = 10.0;
const NOTHING: f64 = 0.3;
/// Places within a buffer at which slow requests can come, at least: of writes of one size they come at
/// multiples of it alone, which are in one quarter of a buffer more often than by chance.
const PLACES: u64 = 8;
/// How often what was found may be half a buffer.
const DOUBLINGS: usize = 4;
/// Part of the former that twice as many pages keep, if half a buffer was found.
const WHOLE: f64 = 0.8;
/// A silence after which a request may be slow for that alone.
const SILENCE_NS: u64 = 1_000_000;
/// Fewest reads after a write, and the part of them that is slow, where reads start flushes; and that of
/// other reads at most.
const LEAST_READS: u64 = 100;
const FLUSH: f64 = 0.9;
const NO_FLUSH: f64 = 0.25;

/// What of `requests`, which are in order of submission, a drive like `model` cannot have done: a
/// sentence. Of the first [`TELLING`] those tell that had the drive for themselves.
pub fn contradiction(model: &DeviceModel, requests: &[Measured]) -> Option<String> {
    let requests = &requests[..requests.len().min(TELLING)];
    let own_pages = Some(model.write_buffer.bytes? / 4_096).filter(|pages| PAGES.contains(pages))?;
    let flushed_by_reads = model.write_buffer.is_flushed_by_reads();
    let start_flushes = |bits: &[u32]| reads_start_flushes(model, bits, requests);
    if !flushed_by_reads && (start_flushes(&[]) || start_flushes(&model.volume_bits)) {
        return Some("a read right after a write is slow, and the model has no read start a flush".into());
    }
    let steps = steps(model, requests);
    let own = if flushed_by_reads { 0.0 } else { own_sureness(model, own_pages, requests, &steps) };
    if own >= SURE {
        return None;
    }
    // Pages of which all writes are multiples.
    let size = steps.iter().fold(0, |size, step| gcd(size, step.written.into()));
    // Of the last sector: a bit above it selects nothing.
    let top = (model.sectors - 1).max(1).ilog2();
    let bits = || 3..=top;
    let one_more = bits().filter(|bit| !model.volume_bits.contains(bit)).map(|bit| {
        let mut more = model.volume_bits.clone();
        more.push(bit);
        more.sort_unstable();
        more
    });
    let pairs = bits().flat_map(|low| (low + 1..=top).map(move |high| vec![low, high]));
    let (sure, pages, bits) = std::iter::once(Vec::new())
        .chain(bits().map(|bit| vec![bit]))
        .chain(pairs)
        .chain(one_more)
        .filter_map(|bits| {
            let counts = events(&bits, &steps);
            let written = counts.iter().max()? - counts.iter().min()?;
            let is_told = |pages: &u64| pages * ROUNDS <= written && pages / gcd(*pages, size) >= PLACES;
            let tried = PAGES.filter(is_told);
            let (sure, pages) =
                tried.map(|pages| (sureness(&counts, pages), pages)).max_by(|a, b| a.0.total_cmp(&b.0))?;
            Some((sure, pages, bits))
        })
        // Of equal ones that with the fewest bits, which comes first.
        .reduce(|best, other| if other.0 > best.0 { other } else { best })?;
    let is_its_own = pages == own_pages && bits == model.volume_bits;
    (sure >= SURE && own < NOTHING * sure && !is_its_own).then(|| {
        // Half a buffer recurs as regularly.
        let counts = events(&bits, &steps);
        let is_whole = |pages: &u64| sureness(&counts, 2 * pages) < WHOLE * sure;
        let doubled = std::iter::successors(Some(pages), |pages| Some(2 * pages)).take(DOUBLINGS);
        let pages = doubled.into_iter().find(is_whole).unwrap_or(pages);
        format!(
            "its slow requests recur after {pages} pages written{}, the model's after {own_pages}{}",
            of(&bits),
            of(&model.volume_bits)
        )
    })
}

/// How sure it is that slow requests recur as the model's buffer of `pages` pages has them. Where pages are
/// written again within a buffer, one that keeps only the newest of each takes more.
fn own_sureness(model: &DeviceModel, pages: u64, requests: &[Measured], steps: &[Step]) -> f64 {
    let mut written = vec![0u64; model.volumes()];
    let mut last = BTreeMap::new();
    let (mut all, mut again) = (0u64, 0u64);
    let writes = requests.iter().filter(|measured| measured.operation == Operation::Write);
    let pages_of = |of: &Measured| of.lba.0 / 8..of.lba.0.saturating_add(of.sectors.into()).div_ceil(8);
    for page in writes.flat_map(pages_of).take(LOOKED_UP) {
        let volume = model.volume_of(8 * page);
        written[volume] += 1;
        all += 1;
        let before = last.insert(page, written[volume]);
        again += u64::from(before.is_some_and(|before| written[volume] - before < pages));
    }
    let counts = events(&model.volume_bits, steps);
    let most = pages + (2 * pages * again).div_ceil(all.max(1));
    (pages..=most).map(|pages| sureness(&counts, pages)).fold(0.0, f64::max)
}

/// Says which volumes pages are counted in.
fn of(bits: &[u32]) -> String {
    match bits {
        [] => String::new(),
        bits => format!(" to each volume of bits {bits:?}"),
    }
}

/// Whether reads right after a write to their volume, which `bits` select, are slow and others are not.
fn reads_start_flushes(model: &DeviceModel, bits: &[u32], requests: &[Measured]) -> bool {
    // After a read and after a write: all of which something is told, and the slow ones.
    let mut counts = [[0u64; 2]; 2];
    let mut after_write = vec![false; 1 << bits.len()];
    for (measured, is_slow) in told(model, requests) {
        if measured.operation == Operation::Flush {
            after_write.fill(false);
            continue;
        }
        let volume = volume_of(bits, measured.lba.0);
        let is_read = measured.operation == Operation::Read;
        if let (true, Some(is_slow)) = (is_read, is_slow) {
            let of = &mut counts[usize::from(after_write[volume])];
            of[0] += 1;
            of[1] += u64::from(is_slow);
        }
        after_write[volume] = !is_read;
    }
    let [others, after] = counts.map(|[all, slow]| slow as f64 / all.max(1) as f64);
    let is_enough = counts.iter().all(|[all, _]| *all >= LEAST_READS);
    is_enough && after >= FLUSH && others <= NO_FLUSH
}

/// Of a request what is needed to look for a recurrence.
struct Step {
    lba: u64,
    /// Pages that it writes.
    written: u32,
    /// Whether it is slow, and [`CALM`] before it were not.
    is_event: bool,
    /// Whether it has buffers written out, so that they begin anew.
    empties: bool,
}

fn steps(model: &DeviceModel, requests: &[Measured]) -> Vec<Step> {
    let mut calm = 0;
    let step = |(measured, is_slow): (&Measured, Option<bool>)| {
        let is_slow = is_slow == Some(true);
        let is_event = is_slow && calm >= CALM;
        calm = if is_slow { 0 } else { calm + 1 };
        let is_write = measured.operation == Operation::Write;
        let written = if is_write { pages(measured.lba.0, measured.sectors) } else { 0 };
        let empties = measured.operation == Operation::Flush;
        Step { lba: measured.lba.0, written, is_event, empties }
    };
    told(model, requests).map(step).collect()
}

/// How many pages had been written to its volume, which `bits` select, at each event, since buffers were
/// last written out. One before which nothing was written since the last of its volume is behind no buffer.
fn events(bits: &[u32], steps: &[Step]) -> Vec<u64> {
    let mut written = vec![0u64; 1 << bits.len()];
    let mut has_more = vec![false; 1 << bits.len()];
    let mut counts = Vec::new();
    for step in steps {
        if step.empties {
            written.fill(0);
        }
        let volume = volume_of(bits, step.lba);
        written[volume] += u64::from(step.written);
        has_more[volume] |= step.written > 0;
        if step.is_event && std::mem::take(&mut has_more[volume]) {
            counts.push(written[volume]);
            if counts.len() == MOST {
                break;
            }
        }
    }
    counts
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The volume that an address lies in.
fn volume_of(bits: &[u32], lba: u64) -> usize {
    bits.iter().rev().fold(0, |volume, &bit| volume << 1 | (lba >> bit & 1) as usize)
}

/// Requests, and whether they were slow if they had the drive for themselves and came after no silence.
fn told<'a>(
    model: &'a DeviceModel,
    requests: &'a [Measured],
) -> impl Iterator<Item = (&'a Measured, Option<bool>)> + 'a {
    let mut end = 0;
    requests.iter().map(move |measured| {
        let Measured { submitted, latency, operation, sectors, .. } = *measured;
        let is_told = operation != Operation::Flush && submitted.0 >= end && submitted.0 - end < SILENCE_NS;
        end = end.max(submitted.0 + latency.0);
        let (threshold_ns, _) = model.expectation(operation == Operation::Read, sectors);
        (measured, is_told.then_some(latency.0 > threshold_ns))
    })
}

/// By how many standard deviations more of these come within a quarter of a buffer of so many pages than
/// by chance.
fn sureness(counts: &[u64], pages: u64) -> f64 {
    if counts.len() < LEAST {
        return 0.0;
    }
    let mut places = vec![0u32; pages as usize];
    counts.iter().for_each(|count| places[(count % pages) as usize] += 1);
    let width = places.len().div_ceil(4);
    let mut within: u32 = places[..width].iter().sum();
    let mut most = within;
    for first in 0..places.len() {
        within = within + places[(first + width) % places.len()] - places[first];
        most = most.max(within);
    }
    let (all, part) = (counts.len() as f64, width as f64 / pages as f64);
    (f64::from(most) - all * part) / (all * part * (1.0 - part)).sqrt()
}
