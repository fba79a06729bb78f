//! Whether the bits found at one place tell volumes apart all over the drive. Where volumes are
//! no power of two, as in a stripe over three drives, or unlike, as where two models lie end to
//! end, no bits do, though some change the volume of one page.

use flashkeel_engine::LOGICAL_PAGE_SECTORS;
use serde::Serialize;

use super::buffer::{READ, Test};
use super::flushes::Watch;
use super::places::{Where, highest};
use super::runner::{ProbeError, Runner};
use super::size::Size;

/// Pairs of pages that the bits put into one volume, and of such that differ in several of the
/// bits. Of a stripe over three drives two of three pairs of the first kind are of two volumes.
const ALIKE: usize = 8;
const UNLIKE: usize = 4;
/// Pairs without which bits are in doubt where the time given is over.
pub(super) const ENOUGH: usize = 4;
/// Pairs are drawn so often, at most, before one has room.
const DRAWS: usize = 64;
/// Of a pair or two it may not show; of more, their buffers are of another size.
const UNCLEAR: usize = 2;

/// What two pages showed, one far from the other.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PairEvidence {
    /// Where they are.
    pub lbas: [u64; 2],
    /// Whether the bits put them into one volume.
    pub is_one_expected: bool,
    /// Whether they fill one buffer of the size found, if that can be told.
    pub is_one: Option<bool>,
}

/// Why bits found at one place do not tell the volumes of others; `None` if they do.
pub(super) fn contradiction(pairs: &[PairEvidence]) -> Option<&'static str> {
    let differs = |pair: &&PairEvidence| pair.is_one.is_some_and(|is_one| is_one != pair.is_one_expected);
    match pairs.iter().find(differs) {
        Some(PairEvidence { is_one: Some(false), .. }) => Some(
            "bits change the volume of some pages, but others that agree in these bits fill two buffers, as in \
             a stripe over three drives",
        ),
        Some(_) => Some(
            "bits change the volume of some pages, but others that differ in several of these bits fill one \
             buffer",
        ),
        None if pairs.iter().filter(|pair| pair.is_one.is_none()).count() > UNCLEAR => Some(
            "other places of the drive fill buffers that are not clearly of this size, as where it is of \
             unlike parts",
        ),
        None => None,
    }
}

impl Test<'_> {
    /// Asks pairs of pages from all over the drive, up to one that contradicts the bits.
    pub fn look_elsewhere(
        &mut self,
        runner: &mut Runner<'_>,
        bits: &[u32],
        size: &Size,
    ) -> Result<(), ProbeError> {
        let unlike = if bits.len() > 1 { UNLIKE } else { 0 };
        for index in 0..ALIKE + unlike {
            let is_one_expected = index % 3 != 2 || unlike == 0;
            let Some((place, flip)) = draw(runner, bits, size.place, is_one_expected) else { continue };
            let first = match place {
                Where::One(page) => page,
                Where::Without(_) | Where::Round(..) => 0,
            };
            // Reads beside writes have to meet the flushes of one of the two.
            let mut reads = runner.pool_where(|lba| bits.iter().all(|bit| (lba ^ first) >> bit & 1 == 0));
            reads.sort_unstable();
            reads.truncate(READ);
            let reads = if reads.is_empty() { self.watched.reads } else { &reads };
            let watched = Watch { reads, ..self.watched };
            let is_one = self.is_one(runner, watched, &Size { place, ..*size }, flip)?;
            let lbas = [first, first ^ flip];
            self.evidence.pairs.push(PairEvidence { lbas, is_one_expected, is_one });
            if contradiction(&self.evidence.pairs).is_some() {
                break;
            }
        }
        Ok(())
    }
}

/// Where the first page of a pair is, and in which bits the second differs: in none of `bits`, or
/// in at least two. Many pages stay where they have filled one buffer, and differ in bits above.
fn draw(runner: &mut Runner<'_>, bits: &[u32], place: Where, is_one_expected: bool) -> Option<(Where, u64)> {
    for _ in 0..DRAWS {
        let (place, flip, last) = match place {
            Where::One(_) => {
                let (page, other) = (runner.page(), runner.page());
                (Where::One(page), page ^ other, page)
            }
            Where::Without(mask) | Where::Round(mask, _) => {
                let last = highest(mask, runner.pages());
                let within = u64::MAX.checked_shr(last.leading_zeros()).unwrap_or(0);
                (place, runner.page() & !(within & !mask), last)
            }
        };
        let among: Vec<u64> = bits.iter().map(|bit| flip & 1u64 << bit).collect();
        let mask = bits.iter().fold(0, |mask, bit| mask | 1u64 << bit);
        let flip = if is_one_expected { flip & !mask } else { flip };
        let is_fit = is_one_expected || among.iter().filter(|&&differs| differs != 0).count() > 1;
        if is_fit && flip >= LOGICAL_PAGE_SECTORS && runner.holds(last ^ flip) {
            return Some((place, flip));
        }
    }
    None
}
