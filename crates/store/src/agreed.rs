//! Pages that have been made the same in all of their places, such as on the copies of a mirror,
//! but not durably so: a loss of power would make them differ again, and then one that is older
//! than what has been read could be all that is left.

use std::collections::VecDeque;
use std::ops::Range;

/// Pages in runs, with the epochs in which they came to agree, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Agreed(VecDeque<(u32, Range<u32>)>);

impl Agreed {
    /// Pages have come to agree in an epoch; returns how many runs there are.
    pub fn add(&mut self, epoch: u32, pages: Range<u32>) -> usize {
        match self.0.back_mut() {
            Some((last, run)) if *last == epoch && run.end == pages.start => run.end = pages.end,
            _ => self.0.push_back((epoch, pages)),
        }
        self.0.len()
    }

    /// The epoch that has to end before some pages agree for good, if that has not.
    pub fn settled_by(&mut self, pages: &Range<u32>, synced: u32) -> Option<u32> {
        while self.0.front().is_some_and(|(epoch, _)| *epoch <= synced) {
            self.0.pop_front();
        }
        let overlaps = |run: &Range<u32>| run.start < pages.end && pages.start < run.end;
        self.0.iter().rev().find(|(_, run)| overlaps(run)).map(|&(epoch, _)| epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_agree_for_good_once_their_epoch_has_ended() {
        let mut agreed = Agreed::default();
        assert_eq!(agreed.add(3, 0..8), 1);
        assert_eq!(agreed.add(3, 8..16), 1);
        assert_eq!(agreed.add(3, 20..24), 2);
        assert_eq!(agreed.add(4, 24..32), 3);
        assert_eq!(agreed.settled_by(&(15..17), 2), Some(3));
        assert_eq!(agreed.settled_by(&(16..20), 2), None);
        assert_eq!(agreed.settled_by(&(0..32), 2), Some(4));
        assert_eq!(agreed.settled_by(&(0..24), 3), None);
        assert_eq!(agreed.settled_by(&(31..40), 3), Some(4));
        assert_eq!(agreed.settled_by(&(0..40), 4), None);
    }
}
