//! A model of a drive of which only a log is there: what is slow, and nothing else.

use super::{LEAST, Measured};
use crate::probe::{READ_COVER, STEP_NS, quantile};
use crate::{DeviceModel, Latencies, Thresholds, WriteBuffer};
use flashkeel_engine::Operation;

/// Pages of 4 KiB from which on requests tell what each further page takes.
const LARGE: u32 = 8;
/// How much more than in the median further pages may take, as in a probe.
const FURTHER: f64 = 1.25;

/// A model that knows what is slow from the first half of a log, in which a request is
/// slow above three times the median of its kind and size, as in a probe. The engine has to
/// learn the rest. Its capacity is as far as the log's requests reach.
pub fn assume(requests: &[Measured]) -> DeviceModel {
    let end = requests.iter().map(|request| request.lba.0 + u64::from(request.sectors)).max();
    let first_half = &requests[..requests.len().div_ceil(2)];
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
    let threshold = |kind: &Kind, other: &Kind| {
        let median_ns = if kind.median_ns > 0 { kind.median_ns } else { other.median_ns };
        ((median_ns as f64 * READ_COVER) as u64).div_ceil(STEP_NS).max(1) * STEP_NS
    };
    DeviceModel {
        sectors: end.unwrap_or(8).div_ceil(8) * 8,
        volume_bits: Vec::new(),
        gc_volume_bits: None,
        write_buffer: WriteBuffer::UNKNOWN,
        thresholds_ns: Thresholds { read: threshold(&read, &write), write: threshold(&write, &read) },
        latencies_ns: Latencies {
            read: read.median_ns,
            write: write.median_ns,
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
    /// One of the smallest size that is frequent.
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
        // A model's base is one page.
        let base_ns = median_ns.saturating_sub(page_ns * u64::from(small - 1)).max(1);
        Kind { median_ns: base_ns, page_ns }
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
}
