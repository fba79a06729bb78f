//! Whether what recurs among writes is a buffer that is full, where reads beside them do not tell.

use flashkeel_engine::{Operation, Span};

use super::buffer::{FLUSHES, Test, WRITES};
use super::flushes::{Flushes, watch};
use super::places::{Pages, Where};
use super::runner::{ProbeError, Runner};
use super::size::{Rhythm, Size};

/// Buffers of fewer pages have to be told from slots before chips.
const SMALL_PAGES: u64 = 24;
/// How often a drive rests, for so long that its slots are empty and old pages have left, and after
/// how many of these writes have to wait where they did.
const REST: Span = Span::from_us(250_000);
const RESTS: usize = 4;
const RESTS_SMALL: usize = 12;
const COUNTED_SMALL: usize = 11;

impl Test<'_> {
    /// Whether writes wait for a buffer that is full, not for something that recurs as
    /// regularly, where reads do not tell. `is_again` says that writes elsewhere wait as often.
    pub fn is_sure(
        &mut self,
        runner: &mut Runner<'_>,
        rhythm: &Rhythm,
        size: &Size,
        is_again: bool,
    ) -> Result<bool, ProbeError> {
        let is_doubtful = self.leave_early && !rhythm.is_strict && matches!(size.place, Where::One(_));
        let is_small = size.pages < SMALL_PAGES;
        // Slots before chips fill as regularly as a small buffer, but reads do not wait for that.
        if is_doubtful || is_small && !(rhythm.is_strict && self.counts_on(runner, size)?) {
            return Ok(false);
        }
        if is_again {
            return Ok(true);
        }
        let is_sure = match size.place {
            Where::One(_) => self.is_elsewhere(runner, size)?,
            _ => self.keeps_newest(runner, size)?,
        };
        if is_small || self.leave_early && !rhythm.is_strict {
            return Ok(is_sure);
        }
        if is_sure || self.waits(runner, size)? == Some(true) {
            return Ok(true);
        }
        self.why = Some("writes are slow at regular intervals, but reads beside them are not");
        Ok(false)
    }

    /// Whether writes to many pages of the volume wait as often as those to one: collection comes
    /// at other times where it has data to move.
    fn is_elsewhere(&mut self, runner: &mut Runner<'_>, size: &Size) -> Result<bool, ProbeError> {
        let is_same = |seen: &Flushes| {
            seen.period(0) == Some(size.pages) || seen.fits(size.pages) || seen.is_in_phase(size.pages)
        };
        let (watched, shortest_wait_ns) = (self.watched, self.shortest_wait_ns);
        let is_so = |runner: &mut Runner<'_>, mask| {
            let other = watch(runner, watched, size.sight, Where::Without(mask), WRITES)?;
            Ok::<bool, ProbeError>(is_same(&other) || is_same(&other.above(shortest_wait_ns)))
        };
        if is_so(runner, self.mask)? {
            return Ok(true);
        }
        // They may be of several volumes.
        let volumes = match self.volumes.take() {
            Some(volumes) => volumes,
            None => self.bits(runner, &[], size)?,
        };
        let mask = volumes.0.iter().fold(self.mask, |mask, bit| mask | 1u64 << bit);
        self.volumes = Some(volumes);
        if mask == self.mask { Ok(false) } else { is_so(runner, mask) }
    }

    /// Whether a buffer keeps only the newest of each page, so that a few pages less than it
    /// holds never fill it, written in turn, and a few more do.
    fn keeps_newest(&self, runner: &mut Runner<'_>, size: &Size) -> Result<bool, ProbeError> {
        let beside = (size.pages / 16).max(2);
        let writes = size.pages * FLUSHES;
        let fewer = Where::Round(self.mask, size.pages - beside);
        // What was written before may fill it once.
        let seen = watch(runner, self.watched, size.sight, fewer, writes)?;
        if seen.at.iter().any(|&at| at > 2 * size.pages) {
            return Ok(false);
        }
        let more = Where::Round(self.mask, size.pages + beside);
        Ok(watch(runner, self.watched, size.sight, more, writes)?.period(0) == Some(size.pages))
    }

    /// Whether writes still wait after as many pages as before where the drive has rested meanwhile,
    /// whenever that was: a buffer that nothing leaves counts pages, but slots before chips have
    /// emptied.
    pub fn counts_on(&self, runner: &mut Runner<'_>, size: &Size) -> Result<bool, ProbeError> {
        let mut pages = Pages::new(size.place, runner.pages());
        let mut at = vec![0; size.pages as usize];
        let mut written = 0;
        let (rests, counted, buffers) =
            if size.pages < SMALL_PAGES { (RESTS_SMALL, COUNTED_SMALL, 4) } else { (RESTS, RESTS, 2) };
        for _ in 0..rests {
            let (mut last, mut is_after) = (None, false);
            for _ in 0..runner.random.between(buffers * size.pages, 3 * buffers * size.pages / 2) {
                let page = pages.next(&mut runner.random, 0);
                let waited = runner.serve(Operation::Write, page)?.0 > self.watched.slow_write_ns;
                if waited && !is_after {
                    last = Some(written % size.pages);
                }
                (is_after, written) = (waited, written + 1);
            }
            let Some(last) = last else { return Ok(false) };
            at[last as usize] += 1;
            runner.wait(REST)?;
        }
        Ok(at.iter().any(|&rests| rests >= counted))
    }
}
