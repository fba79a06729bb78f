//! Buffers from which pages leave when they are old, too: while a write waits for a flush those
//! behind it grow old, and leave by themselves. At rest a buffer is empty, and what is written
//! from then on without a pause is young: it shows in the first write that waits.

use flashkeel_engine::{Operation, Span};

use super::buffer::{AGREEING, READ, Test};
use super::flushes::Sight;
use super::places::Where;
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
/// Reads of one look, at most: a flush need not have begun on the chip of each.
const READS: usize = 24;
/// Fewer pages do not leave time to see a flush by.
const LEAST_PAGES: u64 = 16;

impl Test<'_> {
    /// How much a buffer of two halves holds: the first write that waits is the one after
    /// both, and reads meet the flush of the first half, but not before that. `waited` are
    /// distances at which writes without a pause have waited.
    pub fn size_from_rest(
        &mut self,
        runner: &mut Runner<'_>,
        page: u64,
        waited: &[u64],
    ) -> Result<Option<Size>, ProbeError> {
        for rest in RESTS {
            let Some((first, cycle_ns)) = self.always_first(runner, page, rest)? else { continue };
            let pages = first / 2;
            let is_whole = first == 2 * pages + 1 || waited.contains(&pages);
            if pages < LEAST_PAGES || !is_whole {
                return Ok(None);
            }
            let size =
                Size { pages, place: Where::One(page), sight: Sight::Rested { rest, first }, cycle_ns };
            let (bits, unclear) = self.bits(runner, &[], &size)?;
            let mask = bits.iter().fold(0, |mask, bit| mask | 1u64 << bit);
            let mut reads = runner.pool_where(|lba| (lba ^ page) & mask == 0);
            reads.sort_unstable();
            reads.truncate(READ);
            if reads.is_empty() || !unclear.is_empty() {
                return Ok(None);
            }
            let beside = (pages / 8).max(2);
            let calm = self.slow_reads(runner, rest, &reads, page, pages - beside)? <= CALM;
            let is_so = calm && self.slow_reads(runner, rest, &reads, page, pages + beside)? >= MET;
            self.volumes = Some((bits, unclear)).filter(|_| is_so);
            return Ok(is_so.then_some(size));
        }
        Ok(None)
    }

    /// The first write that waits after such a silence, if it is nearly always the same, and
    /// half of the time up to it.
    fn always_first(
        &self,
        runner: &mut Runner<'_>,
        page: u64,
        rest: Span,
    ) -> Result<Option<(u64, u64)>, ProbeError> {
        let mut found: Vec<(u64, u64)> = Vec::new();
        for trial in 1..=TRIALS {
            self.rest(runner, rest)?;
            let begun = runner.now();
            let Some([first, _]) = self.first_wait(runner, page, 0)? else { return Ok(None) };
            found.push((first, runner.now().since(begun).0 / 2));
            let like = |one: &(u64, u64)| found.iter().filter(|other| other.0 == one.0).count();
            let most = found
                .iter()
                .copied()
                .max_by_key(|one| like(one))
                .filter(|one| like(one) + TRIALS - trial >= SAME);
            if most.is_none() || trial == TRIALS {
                return Ok(most);
            }
        }
        Ok(None)
    }

    /// Whether pages that differ in the bits `flip` fill one buffer, if every trial says the same:
    /// then the first write waits after as many as of one of them, else after as many of its own.
    pub fn is_one_from_rest(
        &self,
        runner: &mut Runner<'_>,
        page: u64,
        (rest, first): (Span, u64),
        flip: u64,
    ) -> Result<Option<bool>, ProbeError> {
        let mut told = None;
        for trial in 0..AGREEING {
            self.rest(runner, rest)?;
            let Some(written) = self.first_wait(runner, page, flip)? else { return Ok(None) };
            let now = match written {
                [one, other] if one + other == first => true,
                [one, other] if one.max(other) == first => false,
                _ => return Ok(None),
            };
            if trial > 0 && told != Some(now) {
                return Ok(None);
            }
            told = Some(now);
        }
        Ok(told)
    }

    /// Lets a buffer empty itself, and wakes the drive.
    fn rest(&self, runner: &mut Runner<'_>, rest: Span) -> Result<(), ProbeError> {
        runner.wait(rest)?;
        read(runner, self.watched.reads)?;
        Ok(())
    }

    /// Writes to a page and the one that differs in `flip`, at random, up to the first that
    /// waits, that one included.
    fn first_wait(
        &self,
        runner: &mut Runner<'_>,
        page: u64,
        flip: u64,
    ) -> Result<Option<[u64; 2]>, ProbeError> {
        let mut written = [0; 2];
        while written[0] + written[1] < MOST {
            let side = if flip == 0 { 0 } else { runner.random.below(2) as usize };
            written[side] += 1;
            let latency = runner.serve(Operation::Write, if side == 0 { page } else { page ^ flip })?.0;
            if latency > self.watched.slow_write_ns {
                return Ok(Some(written));
            }
        }
        Ok(None)
    }

    /// After how many of some silences and so many writes `reads` are slow.
    fn slow_reads(
        &self,
        runner: &mut Runner<'_>,
        rest: Span,
        reads: &[u64],
        page: u64,
        writes: u64,
    ) -> Result<usize, ProbeError> {
        let mut slow = 0;
        for _ in 0..LOOKS {
            self.rest(runner, rest)?;
            for _ in 0..writes {
                runner.serve(Operation::Write, page)?;
            }
            for _ in 0..READS {
                if read(runner, reads)? > self.watched.slow_read_ns {
                    slow += 1;
                    break;
                }
            }
        }
        Ok(slow)
    }
}

/// What a read of one of these takes.
fn read(runner: &mut Runner<'_>, reads: &[u64]) -> Result<u64, ProbeError> {
    let lba = reads[runner.random.below(reads.len() as u64) as usize];
    Ok(runner.serve(Operation::Read, lba)?.0)
}
