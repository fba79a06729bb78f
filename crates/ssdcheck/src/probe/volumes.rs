//! The bits that select a volume: pages that differ in them fill buffers of their own.

use super::buffer::{AGREEING, Test};
use super::flushes::{Sight, Watch, is_one_buffer};
use super::places::{Where, highest};
use super::runner::{ProbeError, Runner};
use super::size::Size;

impl Test<'_> {
    /// The bits that select a buffer, and those of which that cannot be told.
    pub fn bits(
        &self,
        runner: &mut Runner<'_>,
        fallen: &[u32],
        size: &Size,
    ) -> Result<(Vec<u32>, Vec<u32>), ProbeError> {
        let (mut selecting, mut unclear) = (Vec::new(), Vec::new());
        // Pages that differ in lower bits than the first have filled one buffer.
        let (highest, first) = match size.place {
            Where::One(page) => (page, 0),
            Where::Without(mask) | Where::Round(mask, _) => {
                let highest = highest(mask, runner.pages());
                (highest, u64::BITS - highest.leading_zeros())
            }
        };
        let others: Vec<u32> = runner
            .bits()
            .filter(|bit| *bit >= first && !fallen.contains(bit) && runner.holds(highest ^ 1 << bit))
            .collect();
        let mut groups: Vec<Vec<u32>> = fallen.iter().map(|&bit| vec![bit]).collect();
        let (mut together, mut flip) = (Vec::new(), 0);
        for &bit in &others {
            let more = flip | 1u64 << bit;
            if runner.holds(highest ^ more) {
                together.push(bit);
                flip = more;
            } else {
                groups.push(vec![bit]);
            }
        }
        if !together.is_empty() {
            groups.push(together);
        }
        // Where none of a group selects a buffer, all do not; otherwise its halves are asked.
        while let Some(mut group) = groups.pop() {
            let flip = group.iter().fold(0, |flip, bit| flip | 1u64 << bit);
            match self.is_one(runner, self.watched, size, flip)? {
                Some(true) => {}
                Some(false) if group.len() == 1 => selecting.extend(group),
                None if group.len() == 1 => unclear.extend(group),
                _ => {
                    let rest = group.split_off(group.len() / 2);
                    groups.extend([group, rest]);
                }
            }
        }
        selecting.sort_unstable();
        unclear.sort_unstable();
        Ok((selecting, unclear))
    }

    /// Asks again where the first answer is none, and there are no halves to be asked.
    pub fn is_one(
        &self,
        runner: &mut Runner<'_>,
        watched: Watch<'_>,
        size: &Size,
        flip: u64,
    ) -> Result<Option<bool>, ProbeError> {
        let (mut told, times) = (None, if flip.count_ones() == 1 { AGREEING } else { 1 });
        for _ in 0..times {
            told = match size.sight {
                Sight::Rested { rest, first } => {
                    self.is_one_from_rest(runner, size.place, (rest, first), flip)?
                }
                _ => is_one_buffer(runner, watched, size.sight, size.place, size.pages, flip)?,
            };
            if told.is_some() {
                break;
            }
        }
        Ok(told)
    }
}
