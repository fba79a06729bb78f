//! Which volume an address lies in: what the model says of it, laid out for a request.

use flashkeel_engine::Request;

use crate::DeviceModel;

/// The volume bits of a drive, in runs of neighbours, which move together.
#[derive(Clone, Debug)]
pub(super) struct Placing {
    /// Sectors that lie in one volume, and the bits of an address within them. Where there are several
    /// runs the former are 0, so that no request is taken to lie in one at first sight.
    simple: u64,
    stretch: u64,
    within: u64,
    /// The lowest run, which is the only one of most drives, and the others.
    first: Run,
    others: Vec<Run>,
}

/// Bits of an address, and where they stand in the number of its volume.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    shift: u32,
    mask: u64,
}

impl Placing {
    pub fn new(model: &DeviceModel) -> Placing {
        let mut runs: Vec<Run> = Vec::new();
        let mut above = None;
        for (place, &bit) in model.volume_bits.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if above == Some(bit) => run.mask |= 1 << place,
                _ => runs.push(Run { shift: bit - place as u32, mask: 1 << place }),
            }
            above = Some(bit + 1);
        }
        let stretch = model.volume_bits.first().map_or(u64::MAX, |&bit| 1 << bit);
        let within = if stretch == u64::MAX { 0 } else { stretch - 1 };
        let first = runs.first().copied().unwrap_or_default();
        let simple = if runs.len() > 1 { 0 } else { stretch };
        Placing { simple, stretch, within, first, others: runs.into_iter().skip(1).collect() }
    }

    /// The volume that a request lies in, if it is one.
    #[inline]
    pub fn only_volume(&self, request: &Request) -> Option<usize> {
        let lba = request.lba.0;
        match (lba & self.within) + u64::from(request.sectors) <= self.simple {
            true => Some((lba >> self.first.shift & self.first.mask) as usize),
            false => self.on_second_look(request),
        }
    }

    #[cold]
    fn on_second_look(&self, request: &Request) -> Option<usize> {
        let lba = request.lba.0;
        let of = |run: &Run| (lba >> run.shift & run.mask) as usize;
        let is_one = (lba & self.within) + u64::from(request.sectors) <= self.stretch;
        is_one.then(|| self.others.iter().fold(of(&self.first), |all, run| all | of(run)))
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::{Lba, Operation, RequestId};

    use super::*;
    use crate::model::tests::with_bits;

    #[test]
    fn it_is_the_volume_that_the_model_says() {
        for bits in [vec![], vec![4], vec![4, 5, 6], vec![4, 6], vec![3, 4, 8, 9, 10, 19]] {
            let model = with_bits(bits);
            let placing = Placing::new(&model);
            for number in 0..5_000_u64 {
                let (lba, sectors) = (number * 12_345_677 % (1 << 20), 1 + number as u32 * 7 % 24);
                let request = Request::new(RequestId(0), Operation::Read, Lba(lba), sectors);
                // What runs on into another stretch is looked at the long way, whatever volume that is of.
                let stretch = |sector| model.volume_bits.first().map(|&bit| sector >> bit);
                let lies_in_one = stretch(lba) == stretch(lba + u64::from(sectors) - 1);
                let volume = lies_in_one.then(|| model.volume_of(lba));
                assert_eq!(placing.only_volume(&request), volume, "{request:?} {:?}", model.volume_bits);
            }
        }
    }
}
