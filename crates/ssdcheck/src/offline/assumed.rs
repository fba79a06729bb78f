//! A model of a drive of which only a log is there: what is slow, and nothing else.

use super::{LEAST, Measured};
use crate::probe::{READ_COVER, quantile, rounded_up};
use crate::{DeviceModel, Latencies, Thresholds, WriteBuffer};
use flashkeel_engine::Operation;

/// Pages of 4 KiB from which on requests tell what each further page takes.
const LARGE: u32 = 8;
/// How much more than in the median further pages may take, as in a probe.
const FURTHER: f64 = 1.25;

/// A model that knows what is slow from the first half of a log, in which a request of the smallest
/// frequent size of its kind is slow above three times their median, and a larger one above that and what
/// its further pages may take, as in a probe. The engine has to learn the rest. Its capacity is as far as the log's requests reach.
pub fn assume(requests: &[Measured]) -> DeviceModel {
    let end = requests.iter().map(|request| request.lba.0 + u64::from(request.sectors)).max();
    let first_half = &requests[..requests.len() / 2];
    let mut undetermined = vec![
        "sectors, volume_bits, write_buffer, sleep: no probe; the log alone does not tell them".to_owned(),
    ];
    let [write, read] = [Operation::Write, Operation::Read].map(|operation| {
        let of: Vec<&Measured> = first_half.iter().filter(|request| request.operation == operation).collect();
        if (of.len() as u64) < LEAST {
            undetermined.push(format!(
                "thresholds_ns.{}: {} of them in the first half, fewer than {LEAST}",
                if operation == Operation::Read { "read" } else { "write" },
                of.len()
            ));
        }
        Kind::of(&of)
    });
    let threshold =
        |kind: &Kind, other: &Kind| if kind.small > 0 { kind.threshold_ns() } else { other.threshold_ns() };
    DeviceModel {
        sectors: end.unwrap_or(8).div_ceil(8) * 8,
        volume_bits: Vec::new(),
        gc_volume_bits: None,
        write_buffer: WriteBuffer::UNKNOWN,
        thresholds_ns: Thresholds { read: threshold(&read, &write), write: threshold(&write, &read) },
        latencies_ns: Latencies {
            read: read.base_ns(),
            write: write.base_ns(),
            read_page: read.page_ns,
            write_page: write.page_ns,
            flush: 0,
            collection: 0,
        },
        sleep: None,
        undetermined,
        learned: None,
    }
}

/// What requests of one kind take.
#[derive(Default)]
struct Kind {
    /// Pages of the smallest size that is frequent, and what one of them takes.
    small: u32,
    median_ns: u64,
    /// Each further page.
    page_ns: u64,
}

impl Kind {
    fn of(requests: &[&Measured]) -> Kind {
        let pages = |request: &Measured| request.sectors.div_ceil(8).max(1);
        let median_of = |keep: &dyn Fn(u32) -> bool| {
            let mut kept: Vec<u64> = requests
                .iter()
                .filter(|request| keep(pages(request)))
                .map(|request| request.latency.0)
                .collect();
            let is_enough = kept.len() as u64 >= LEAST || kept.len() == requests.len() && !kept.is_empty();
            is_enough.then(|| quantile(&mut kept, 0.5))
        };
        let smallest = (0..32).find_map(|octave: u32| {
            let median_ns = median_of(&|pages| pages.ilog2() == octave)?;
            Some((1 << octave, median_ns))
        });
        let Some((small, median_ns)) = smallest.or_else(|| Some((1, median_of(&|_| true)?))) else {
            return Kind::default();
        };
        // Of the largest that are frequent.
        let large = (LARGE.ilog2()..32).rev().find_map(|octave| {
            let median_ns = median_of(&|pages| pages.ilog2() == octave)?;
            Some((1_u32 << octave, median_ns))
        });
        let page_ns = large.filter(|(pages, _)| *pages > small).map_or(0, |(pages, large_ns)| {
            (large_ns.saturating_sub(median_ns) as f64 * FURTHER) as u64 / u64::from(pages - small)
        });
        Kind { small, median_ns, page_ns }
    }

    /// What the pages beyond the first add to one of the smallest size.
    fn further_ns(&self) -> u64 {
        self.page_ns * u64::from(self.small.saturating_sub(1))
    }

    /// A model's base is one page.
    fn base_ns(&self) -> u64 {
        self.median_ns.saturating_sub(self.further_ns()).max(u64::from(self.small > 0))
    }

    /// The threshold of one page, so that one of the smallest size has three times its median.
    fn threshold_ns(&self) -> u64 {
        let small_ns = (self.median_ns as f64 * READ_COVER) as u64;
        rounded_up(small_ns.saturating_sub(self.further_ns()).max(self.base_ns()))
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::{Lba, Span, Time};

    use super::*;

    #[test]
    fn what_is_slow_follows_from_kind_and_size() {
        let measured = |index: u64| {
            let (operation, sectors, us) = match index % 3 {
                0 => (Operation::Read, 8, 100),
                1 => (Operation::Write, 8, 20),
                _ => (Operation::Read, 128, 250),
            };
            Measured {
                submitted: Time(index),
                latency: Span::from_us(us),
                operation,
                lba: Lba(index * 8),
                sectors,
            }
        };
        let log: Vec<Measured> = (0..600).map(measured).collect();
        let model = assume(&log);
        assert_eq!(model.validate(), Ok(()));
        assert_eq!((model.thresholds_ns.read, model.thresholds_ns.write), (300_000, 60_000));
        assert_eq!(model.latencies_ns.read_page, 150_000 * 5 / 4 / 15);
        assert_eq!(model.sectors, 599 * 8 + 128);
        assert_eq!(model.undetermined.len(), 1);
        // Another log of the drive may reach further.
        let mut longer = model.clone();
        assert!(longer.reaches(1 << 20) && longer.reaches(1 << 10));
        assert_eq!(longer, DeviceModel { sectors: 1 << 20, ..model.clone() });
        let mut probed = DeviceModel { undetermined: vec!["sleep: no time".into()], ..model };
        assert!(probed.reaches(599 * 8 + 128) && !probed.reaches(599 * 8 + 129));
        assert_eq!(assume(&log[..1]).validate(), Ok(()));
    }

    /// Once what one page takes was guessed from the slope, three times of which is less than what is usual.
    #[test]
    fn none_is_slow_that_takes_little_more_than_is_usual_for_its_size() {
        let log: Vec<Measured> = (0..2_000)
            .map(|index| {
                let pages = if index % 2 == 0 { 16 } else { 128 };
                let part = 0.7 + 0.6 * (index * 37 % 100) as f64 / 100.0;
                let latency = Span((f64::from(pages) * 12_500.0 * part) as u64);
                let (operation, sectors) = (Operation::Read, 8 * pages);
                Measured { submitted: Time(index), latency, operation, lba: Lba(index * 8), sectors }
            })
            .collect();
        let model = assume(&log);
        assert_eq!(model.validate(), Ok(()));
        let is_slow = |of: &Measured| of.latency.0 > model.expectation(true, of.sectors).0;
        assert!(!log.iter().any(is_slow), "{model:?}");
        let threshold_ns = model.expectation(true, 128).0;
        assert!((590_000..620_000).contains(&threshold_ns), "three times 200 us: {threshold_ns}");
    }
}
