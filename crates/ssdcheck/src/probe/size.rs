//! How much the write buffer holds: the distance at which writes wait for its flushes, or
//! reads beside writes do.

use flashkeel_engine::Span;

use super::buffer::{AGREEING, FLUSHES, Test, WRITES};
use super::flushes::{Sight, watch};
use super::places::Where;
use super::runner::{ProbeError, Runner};
use super::statistics::median;

/// Think times of the writer (§III-B3), and others for drives that flush all the time at
/// a shorter one or that are done with a flush sooner.
const THINK: [Span; 5] = [
    Span::from_us(1_000),
    Span::from_us(200),
    Span::from_us(5_000),
    Span::from_us(50),
    Span::from_us(20_000),
];
/// Runs of writes alone, at most.
const RUNS: usize = 3;
/// Fewer pages than this are no buffer: they leave for flash as they come.
const LEAST_PAGES: u64 = 8;
/// Of the waits of a drive from which pages leave by themselves, too, so many have to be at
/// the distance.
const STRICT: f64 = 0.8;
/// A read beside writes may be submitted so many writes from the flush that it shows.
const NEAR: u64 = 2;
/// Points kept for the picture.
const POINTS: usize = 4_000;

/// A buffer that was found.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub pages: u64,
    pub place: Where,
    pub sight: Sight,
    /// From one flush to the next where the writer does not think.
    pub cycle_ns: u64,
}

/// What writes without a pause show.
#[derive(Clone, Copy)]
pub(super) struct Rhythm {
    place: Where,
    /// The distance at which they wait.
    pages: Option<u64>,
    /// Whether nearly every wait is at that distance.
    pub is_strict: bool,
    /// Whether most waits lie so close together that pages leave a few at a time.
    is_close: bool,
    per_write_ns: u64,
}

impl Rhythm {
    fn size(&self, pages: u64, sight: Sight) -> Size {
        Size { pages, place: self.place, sight, cycle_ns: pages * self.per_write_ns }
    }
}

impl Test<'_> {
    /// Looks for the buffer's size: by writes to one page, or, where a buffer keeps only
    /// the newest of what is written again, by writes to many. `trigger` says whether reads
    /// start flushes.
    pub fn size(
        &mut self,
        runner: &mut Runner<'_>,
        trigger: Option<bool>,
    ) -> Result<Option<Size>, ProbeError> {
        // Low enough for every bit to be flipped.
        let page = (runner.random.below(runner.pages() / 16) * 8) & !self.mask;
        let mut rhythms: Vec<Rhythm> = Vec::new();
        let (mut has_rested, mut volumes) = (false, None);
        for place in [Where::One(page), Where::Without(self.mask)] {
            let rhythm = self.rhythm(runner, place)?;
            if let Some(pages) = rhythm.pages {
                let size = rhythm.size(pages, Sight::Waits(Span::ZERO));
                // Who reads beside the writes may start flushes.
                if trigger == Some(true) {
                    return Ok(self.plausible(size));
                }
                let again = rhythms.first().copied().filter(|first| first.pages == Some(pages));
                let beside = match pages {
                    ..LEAST_PAGES => Some(false),
                    _ => self.is_beside(runner, &rhythm, &size)?,
                };
                let is_buffer = match beside {
                    Some(is_buffer) => is_buffer,
                    None => {
                        if self.leave_early && rhythm.is_strict {
                            self.leave_early = !self.counts_on(runner, &size)?;
                        }
                        // Where they leave by themselves a silence empties the buffer.
                        if rhythms.is_empty() && self.leave_early {
                            has_rested = true;
                            let at_rest = self.size_from_rest(runner, place, &[pages])?;
                            if at_rest.is_some() {
                                return Ok(at_rest);
                            }
                        }
                        self.is_sure(runner, &rhythm, &size, again.is_some())?
                    }
                };
                match again.filter(|first| first.is_strict) {
                    // Writes to one page wait for nothing else.
                    Some(first) if is_buffer => {
                        self.volumes = volumes;
                        return Ok(Some(first.size(pages, size.sight)));
                    }
                    None if is_buffer => return Ok(Some(size)),
                    _ => volumes = self.volumes.take().filter(|(_, unclear)| unclear.is_empty()),
                }
            }
            rhythms.push(rhythm);
        }
        if trigger == Some(true) { Ok(None) } else { self.size_besides(runner, &rhythms, has_rested) }
    }

    /// The size where writes without a pause do not tell: from rest, by writes to one page unless
    /// that has been tried and to many, or by reads.
    fn size_besides(
        &mut self,
        runner: &mut Runner<'_>,
        rhythms: &[Rhythm],
        has_rested: bool,
    ) -> Result<Option<Size>, ProbeError> {
        let waited: Vec<u64> = rhythms.iter().filter_map(|rhythm| rhythm.pages).collect();
        // Where waits come closer together than any buffer's, pages leave a few at a time, and do so
        // at rest, too.
        let is_few = |rhythm: &Rhythm| rhythm.is_close || rhythm.pages.is_some_and(|of| of < LEAST_PAGES);
        if !rhythms.iter().any(is_few) {
            for rhythm in &rhythms[usize::from(has_rested)..] {
                let at_rest = self.size_from_rest(runner, rhythm.place, &waited)?;
                if at_rest.is_some() {
                    return Ok(at_rest);
                }
            }
        }
        self.volumes = None;
        for rhythm in rhythms {
            if let Some(size) = self.by_reads(runner, rhythm)? {
                return Ok(self.plausible(size));
            }
        }
        Ok(None)
    }

    /// Writes without a pause, until two runs agree.
    fn rhythm(&mut self, runner: &mut Runner<'_>, place: Where) -> Result<Rhythm, ProbeError> {
        let (mut waited, mut cycles) = (Vec::new(), Vec::new());
        let (mut is_strict, mut is_close) = (false, false);
        while cycles.len() < RUNS && agreed(&waited).is_none() {
            let mut seen = watch(runner, self.watched, Sight::Waits(Span::ZERO), place, WRITES)?;
            let mut pages = seen.period(0);
            if pages.is_none() && self.shortest_wait_ns < self.watched.slow_write_ns {
                seen = seen.above(self.shortest_wait_ns);
                pages = seen.period(0);
                if pages.is_some() {
                    self.watched.slow_write_ns = self.shortest_wait_ns;
                }
            }
            waited.extend(pages);
            is_strict = pages.is_some_and(|pages| seen.whole(pages, 0) >= STRICT);
            is_close = seen.are_close();
            cycles.push(seen.took_ns / seen.writes.max(1));
            self.flush_ns.extend(&seen.waits_ns);
            self.evidence.slow_writes = seen.at;
            if waited.is_empty() && cycles.len() >= AGREEING {
                break;
            }
        }
        Ok(Rhythm { place, pages: agreed(&waited), is_strict, is_close, per_write_ns: median(&mut cycles) })
    }

    /// Whether reads beside writes meet the flushes that writes wait for, if they meet any.
    fn is_beside(
        &mut self,
        runner: &mut Runner<'_>,
        rhythm: &Rhythm,
        size: &Size,
    ) -> Result<Option<bool>, ProbeError> {
        let beside = self.beside(runner, rhythm, Span(2 * rhythm.per_write_ns.max(self.read_ns)))?;
        // Otherwise writes wait for something rarer than flushes, or reads do.
        Ok(beside.map(|seen| seen == size.pages || (seen > size.pages && seen.is_multiple_of(size.pages))))
    }

    /// The distance at which reads wait beside a writer that thinks so long.
    fn beside(
        &mut self,
        runner: &mut Runner<'_>,
        rhythm: &Rhythm,
        think: Span,
    ) -> Result<Option<u64>, ProbeError> {
        let writes = rhythm.pages.map_or(WRITES / 2, |pages| (pages * FLUSHES).min(WRITES));
        let seen = watch(runner, self.watched, Sight::Beside(think), rhythm.place, writes)?;
        if self.evidence.reads.is_empty() {
            self.evidence.reads = seen.reads.iter().copied().take(POINTS).collect();
        }
        let pages = rhythm.pages.filter(|&pages| seen.fits(pages)).or(seen.period(NEAR));
        // Fewer leave by themselves where they come slowly.
        let pages = pages.filter(|&pages| pages >= LEAST_PAGES || rhythm.pages.is_none());
        if rhythm.pages.is_none() && pages.is_some() {
            self.flush_ns.extend(&seen.waits_ns);
        }
        self.leave_early |= seen.are_close();
        self.evidence.flushes.push((think.0, seen.at));
        Ok(pages)
    }

    /// By reads beside writes, of which two runs have to agree.
    fn by_reads(&mut self, runner: &mut Runner<'_>, rhythm: &Rhythm) -> Result<Option<Size>, ProbeError> {
        let thinks: Vec<Span> = match rhythm.pages {
            Some(_) => [1, 4, 16].map(|times| Span(times * rhythm.per_write_ns.max(self.read_ns))).to_vec(),
            None => THINK.to_vec(),
        };
        let (mut found, mut seen) = (Vec::new(), Vec::new());
        for think in thinks {
            let Some(pages) = self.beside(runner, rhythm, think)? else { continue };
            found.push(pages);
            seen.push((think, pages));
            if rhythm.pages == Some(pages) {
                return Ok(Some(rhythm.size(pages, Sight::Waits(Span::ZERO))));
            }
            if agreed(&found).is_some() {
                // Bits are told sooner where the writer thinks less.
                let those = seen.iter().filter(|&&(_, of)| of == pages).map(|&(think, _)| think);
                let think = those.min().unwrap_or(think);
                let is_finer = rhythm.pages.is_none_or(|waited| waited.is_multiple_of(pages));
                return Ok(is_finer.then(|| rhythm.size(pages, Sight::Beside(think))));
            }
        }
        if !found.is_empty() {
            self.why = Some("runs with other think times find other sizes");
        }
        Ok(None)
    }

    fn plausible(&mut self, size: Size) -> Option<Size> {
        if size.pages < LEAST_PAGES {
            self.why = Some("pages leave for flash a few at a time, as they come");
            return None;
        }
        Some(size)
    }
}

/// What two of the runs have found.
fn agreed(found: &[u64]) -> Option<u64> {
    found.iter().copied().find(|&one| found.iter().filter(|&&other| other == one).count() >= AGREEING)
}
