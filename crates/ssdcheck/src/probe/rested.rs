//! Buffers from which pages leave when they are old, too: while a write waits for a flush those
//! behind it grow old, and leave by themselves. At rest a buffer is empty, and what is written
//! from then on without a pause is young: it shows in the first write that waits.

use flashkeel_engine::{Operation, Span};

use super::buffer::{AGREEING, READ, Test};
use super::flushes::Sight;
use super::places::{Pages, Where};
use super::runner::{ProbeError, Runner};
use super::size::Size;

/// Silences after which nothing may be left in a buffer.
const RESTS: [Span; 2] = [Span::from_us(250_000), Span::from_us(1_000_000)];
/// Writes from rest, at most.
const MOST: u64 = 2_048;
/// How often the first write that waits is looked for, and how often it has to be the same.
const TRIALS: usize = 5;
const SAME: usize = 4;
/// How often reads are looked at with less than a buffer written, and with more, of which so
/// many meet no flush, and so many one.
const LOOKS: usize = 6;
const CALM: usize = 1;
const MET: usize = 5;
/// A read that meets a flush takes so much longer than one that meets none, as a part: where
/// programs are suspended for reads that is what suspending takes.
const LONGER: f64 = 1.05;
/// Who waits this soon after a silence waits for something else.
const SOON: u64 = 8;
/// Trials with pages of two volumes, at most.
const FLIPS: usize = 6;
/// Reads of one look, at most: a flush need not have begun on the chip of each.
const READS: usize = 24;
/// Fewer pages do not leave time to see a flush by.
const LEAST_PAGES: u64 = 16;

impl Test<'_> {
    /// How much a buffer holds that takes writes while it is flushed: reads meet the flush of the
    /// pages written first once it is full, but not before that, and the first write that waits
    /// is the next one, or the one after as many more. `waited` are distances at which writes
    /// without a pause have waited.
    pub fn size_from_rest(
        &mut self,
        runner: &mut Runner<'_>,
        place: Where,
        waited: &[u64],
    ) -> Result<Option<Size>, ProbeError> {
        self.volumes = None;
        for rest in RESTS {
            let Some((first, per_write_ns)) = self.always_first(runner, place, rest)? else { continue };
            let half = first / 2;
            let is_even = first == 2 * half;
            // Who waits as soon as later on waits for the flush that it causes.
            if half < LEAST_PAGES || (is_even && !waited.contains(&half)) || waited.contains(&first) {
                return Ok(None);
            }
            let sight = Sight::Rested { rest, first };
            let mut size = Size { pages: half, place, sight, cycle_ns: half * per_write_ns };
            // Those that are 0 in all of many pages are asked by themselves.
            let fixed = if let Where::One(_) = place { 0 } else { self.mask };
            let fixed: Vec<u32> = (0..u64::BITS).filter(|bit| fixed >> bit & 1 == 1).collect();
            let (bits, unclear) = match self.volumes.take() {
                Some(told) => told,
                None => self.bits(runner, &fixed, &size)?,
            };
            let page = Pages::new(place, runner.pages()).next(&mut runner.random, 0);
            let mask = bits.iter().fold(0, |mask, bit| mask | 1u64 << bit);
            let mut reads = runner.pool_where(|lba| (lba ^ page) & mask == 0);
            reads.sort_unstable();
            reads.truncate(READ);
            if reads.is_empty() || !unclear.is_empty() {
                return Ok(None);
            }
            let slow_read_ns = self.watched.slow_read_ns;
            let mut look = |writes| self.longest_reads(runner, rest, &reads, place, writes);
            let (before, after) = (look(half - 1)?, look(half + 1)?);
            let is_calm = |looks: &[u64; LOOKS]| looks[LOOKS - 1 - CALM] <= slow_read_ns;
            let mut is_so = is_calm(&before) && is_longer(&after, &before);
            if is_calm(&before) && !is_so && !is_even {
                size.pages = first - 1;
                size.cycle_ns *= 2;
                let last = look(size.pages - 1)?;
                is_so = is_calm(&last) && !is_longer(&last, &before) && is_longer(&look(size.pages)?, &last);
            }
            self.volumes = Some((bits, unclear));
            if is_so {
                return Ok(Some(size));
            }
        }
        Ok(None)
    }

    /// The first write that waits after such a silence, if it is nearly always the same, or the
    /// one after as many more, and what a write up to it takes.
    fn always_first(
        &self,
        runner: &mut Runner<'_>,
        place: Where,
        rest: Span,
    ) -> Result<Option<(u64, u64)>, ProbeError> {
        let mut found: Vec<(u64, u64)> = Vec::new();
        for trial in 1..=TRIALS {
            self.rest(runner, rest)?;
            let begun = runner.now();
            let Some([first, _]) = self.first_wait(runner, place, 0)? else { return Ok(None) };
            found.push((first, runner.now().since(begun).0 / first));
            let like = |one: &(u64, u64)| {
                found.iter().filter(|other| other.0 == one.0 || 2 * other.0 - 1 == one.0).count()
            };
            let most = found
                .iter()
                .copied()
                .max_by_key(|one| (like(one), one.0))
                .filter(|one| like(one) + TRIALS - trial >= SAME);
            if most.is_none() || trial == TRIALS {
                return Ok(most);
            }
        }
        Ok(None)
    }

    /// Whether pages that differ in the bits `flip` fill one buffer, if no trial contradicts
    /// another: then the first write waits after as many as of one of them, else after as many of
    /// its own.
    pub fn is_one_from_rest(
        &self,
        runner: &mut Runner<'_>,
        place: Where,
        (rest, first): (Span, u64),
        flip: u64,
    ) -> Result<Option<bool>, ProbeError> {
        let is_full = |written: u64| [written, 2 * written - 1, written.div_ceil(2)].contains(&first);
        let (mut one_buffer, mut two) = (0, 0);
        for _ in 0..FLIPS {
            self.rest(runner, rest)?;
            let Some([one, other]) = self.first_wait(runner, place, flip)? else { return Ok(None) };
            match (is_full(one + other), is_full(one.max(other))) {
                (true, false) => one_buffer += 1,
                (false, true) => two += 1,
                _ => {}
            }
            match (one_buffer, two) {
                (AGREEING.., 0) => return Ok(Some(true)),
                (0, AGREEING..) => return Ok(Some(false)),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Lets a buffer empty itself, and wakes the drive.
    fn rest(&self, runner: &mut Runner<'_>, rest: Span) -> Result<(), ProbeError> {
        runner.wait(rest)?;
        read(runner, self.watched.reads)?;
        Ok(())
    }

    /// Writes to pages of a place and to those that differ in `flip`, at random, up to the first
    /// that waits, that one included.
    fn first_wait(
        &self,
        runner: &mut Runner<'_>,
        place: Where,
        flip: u64,
    ) -> Result<Option<[u64; 2]>, ProbeError> {
        let mut pages = Pages::new(place, runner.pages());
        let mut written = [0; 2];
        while written[0] + written[1] < MOST {
            let side = if flip == 0 { 0 } else { runner.random.below(2) as usize };
            written[side] += 1;
            let page = pages.next(&mut runner.random, if side == 0 { 0 } else { flip });
            let latency = runner.serve(Operation::Write, page)?.0;
            if latency > self.watched.slow_write_ns && written[0] + written[1] > SOON {
                return Ok(Some(written));
            }
        }
        Ok(None)
    }

    /// What the longest of some `reads` takes after each of some silences and so many writes;
    /// rising.
    fn longest_reads(
        &self,
        runner: &mut Runner<'_>,
        rest: Span,
        reads: &[u64],
        place: Where,
        writes: u64,
    ) -> Result<[u64; LOOKS], ProbeError> {
        let mut longest = [0; LOOKS];
        for longest in &mut longest {
            self.rest(runner, rest)?;
            let mut pages = Pages::new(place, runner.pages());
            for _ in 0..writes {
                let page = pages.next(&mut runner.random, 0);
                runner.serve(Operation::Write, page)?;
            }
            for _ in 0..READS {
                *longest = read(runner, reads)?.max(*longest);
            }
        }
        longest.sort_unstable();
        Ok(longest)
    }
}

/// Whether what reads took is longer than before, in all looks but few of either.
fn is_longer(after: &[u64; LOOKS], before: &[u64; LOOKS]) -> bool {
    after[LOOKS - MET] as f64 > before[LOOKS - 1 - CALM] as f64 * LONGER
}

/// What a read of one of these takes.
fn read(runner: &mut Runner<'_>, reads: &[u64]) -> Result<u64, ProbeError> {
    let lba = reads[runner.random.below(reads.len() as u64) as usize];
    Ok(runner.serve(Operation::Read, lba)?.0)
}
