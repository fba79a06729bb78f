//! What is known of a drive: the device model file.

use flashkeel_engine::Request;
use serde::{Deserialize, Serialize};

use crate::Learned;

/// Longest time of a drive: sums of a few do not overflow.
pub(crate) const LONGEST_NS: u64 = 1_000_000_000_000;
/// Most bits that may select a volume.
pub(crate) const MOST_BITS: usize = 6;

/// Whether a write waits for the flush that it causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BufferType {
    /// No: another buffer takes writes while the first is flushed.
    Back,
    /// Yes.
    Fore,
    /// Not determined.
    Unknown,
}

/// What starts a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlushTrigger {
    /// The buffer is full.
    Full,
    /// A read arrives.
    ReadTrigger,
}

/// The write buffer of each internal volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteBuffer {
    /// Data written between two flushes; `None` where it is not determined.
    pub bytes: Option<u64>,
    /// Whether writes wait for their flush.
    #[serde(rename = "type")]
    pub kind: BufferType,
    /// What starts a flush; empty where it is not determined.
    pub flush: Vec<FlushTrigger>,
}

impl WriteBuffer {
    /// Nothing is known.
    pub const UNKNOWN: WriteBuffer =
        WriteBuffer { bytes: None, kind: BufferType::Unknown, flush: Vec::new() };

    /// Whether a read starts a flush.
    pub fn is_flushed_by_reads(&self) -> bool {
        self.flush.contains(&FlushTrigger::ReadTrigger)
    }
}

/// Pages of 4 KiB that so many sectors from `lba` on lie in, or a part of them does.
#[inline]
pub(crate) fn pages(lba: u64, sectors: u32) -> u32 {
    (lba % 8 + u64::from(sectors)).div_ceil(8) as u32
}

/// Latencies above which a request is slow, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// Of a read.
    pub read: u64,
    /// Of a write.
    pub write: u64,
}

/// Typical times of the drive in nanoseconds; 0 where one was not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latencies {
    /// A 4 KiB read that nothing interferes with.
    pub read: u64,
    /// A 4 KiB write that nothing interferes with.
    pub write: u64,
    /// What each further 4 KiB may add to a read without making it slow.
    #[serde(default)]
    pub read_page: u64,
    /// The same of a write.
    #[serde(default)]
    pub write_page: u64,
    /// A flush of the whole buffer.
    pub flush: u64,
    /// A flush with garbage collection.
    pub collection: u64,
}

/// A drive that sleeps when nothing is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sleep {
    /// Silence after which it sleeps, in nanoseconds.
    pub after_ns: u64,
    /// Time that waking adds to the next request, in nanoseconds.
    pub wake_ns: u64,
}

/// What is known of a drive from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceModel {
    /// Capacity in 512-byte sectors; of one that is not determined, what is known to be there.
    pub sectors: u64,
    /// Bits of the 512-byte LBA that select an allocation volume, rising.
    pub volume_bits: Vec<u32>,
    /// Bits that select a garbage-collection volume, rising; `None` where they are
    /// not determined.
    pub gc_volume_bits: Option<Vec<u32>>,
    /// The write buffer.
    pub write_buffer: WriteBuffer,
    /// When a request counts as slow.
    pub thresholds_ns: Thresholds,
    /// Typical times.
    pub latencies_ns: Latencies,
    /// Sleep, if the drive was seen to sleep.
    pub sleep: Option<Sleep>,
    /// What could not be determined, and why.
    pub undetermined: Vec<String>,
    /// What an engine has learnt on the drive, if one was saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned: Option<Box<Learned>>,
}

impl DeviceModel {
    /// Takes note that there are so many sectors; whether the drive may have them.
    pub fn reaches(&mut self, sectors: u64) -> bool {
        let of = |reason: &String| {
            reason.split(':').next().is_some_and(|keys| keys.split(", ").any(|key| key == "sectors"))
        };
        if self.undetermined.iter().any(of) {
            self.sectors = self.sectors.max(sectors.next_multiple_of(8));
        }
        sectors <= self.sectors
    }

    /// The model for a drive of so many sectors: what was read off a log knows those that it
    /// reached, and is for a drive that has more, too.
    ///
    /// # Errors
    /// What it is of instead, as the rest of a sentence.
    pub fn of_drive(&self, sectors: u64) -> Result<DeviceModel, String> {
        let mut model = self.clone();
        if model.reaches(sectors) && model.sectors <= sectors.next_multiple_of(8) {
            return Ok(DeviceModel { sectors, ..model });
        }
        Err(format!("of a device of {} sectors, this one has {sectors}", self.sectors))
    }

    /// The internal volume of an LBA: its volume bits, the lowest first.
    #[inline]
    pub fn volume_of(&self, lba: u64) -> usize {
        self.volume_bits.iter().rev().fold(0, |volume, &bit| volume << 1 | (lba >> bit & 1) as usize)
    }

    /// Sectors from `lba` up to the end of its stretch in one volume.
    #[inline]
    fn stretch(&self, lba: u64) -> u64 {
        self.volume_bits.first().map_or(u64::MAX, |&bit| (1 << bit) - (lba & ((1 << bit) - 1)))
    }

    /// The internal volumes that a request touches, rising.
    #[inline]
    pub fn volumes_of(&self, request: &Request) -> impl Iterator<Item = usize> + use<> {
        let (mut lba, mut left) = (request.lba.0, u64::from(request.sectors));
        let mut touched = 1u64 << self.volume_of(lba);
        while left > self.stretch(lba) {
            let stretch = self.stretch(lba);
            (lba, left) = (lba + stretch, left - stretch);
            touched |= 1 << self.volume_of(lba);
        }
        std::iter::from_fn(move || {
            let volume = touched.trailing_zeros();
            touched &= touched.wrapping_sub(1);
            (volume < u64::BITS).then_some(volume as usize)
        })
    }

    /// Pages of 4 KiB of a request that lie in an internal volume.
    #[inline]
    pub fn pages_in(&self, volume: usize, request: &Request) -> u32 {
        let (mut lba, mut left) = (request.lba.0, u64::from(request.sectors));
        if left <= self.stretch(lba) {
            // Nearly every request.
            return if self.volume_of(lba) == volume { pages(lba, request.sectors) } else { 0 };
        }
        // The first page counts as a whole.
        let mut sectors = if self.volume_of(lba) == volume { lba % 8 } else { 0 };
        while left > 0 {
            let run = left.min(self.stretch(lba));
            if self.volume_of(lba) == volume {
                sectors += run;
            }
            (lba, left) = (lba + run, left - run);
        }
        sectors.div_ceil(8) as u32
    }

    /// Internal volumes.
    pub fn volumes(&self) -> usize {
        1 << self.volume_bits.len()
    }

    /// Latency above which a request of `sectors` sectors is slow, and what it
    /// takes if nothing interferes, in nanoseconds.
    #[inline]
    pub fn expectation(&self, is_read: bool, sectors: u32) -> (u64, u64) {
        let (thresholds, latencies) = (&self.thresholds_ns, &self.latencies_ns);
        let further = u64::from(sectors.div_ceil(8).saturating_sub(1));
        if is_read {
            let more = further * latencies.read_page;
            (thresholds.read + more, latencies.read + more)
        } else {
            let more = further * latencies.write_page;
            (thresholds.write + more, latencies.write + more)
        }
    }

    /// Checks a model that was read from a file.
    ///
    /// # Errors
    /// A sentence naming the key.
    pub fn validate(&self) -> Result<(), String> {
        if !(1..=1 << 48).contains(&self.sectors) {
            return Err("sectors lies between 1 and 2^48".into());
        }
        let collecting = self.gc_volume_bits.as_deref().unwrap_or_default();
        for (key, bits) in [("volume_bits", &self.volume_bits[..]), ("gc_volume_bits", collecting)] {
            let is_within = bits.iter().all(|&bit| bit < 48 && 1 << bit < self.sectors);
            if bits.len() > MOST_BITS || !is_within || !bits.is_sorted_by(|a, b| a < b) {
                return Err(format!("{key}: at most {MOST_BITS} bits, rising, within the capacity"));
            }
        }
        let Latencies { read, write, read_page, write_page, flush, collection } = self.latencies_ns;
        let Thresholds { read: slow_read, write: slow_write } = self.thresholds_ns;
        let sleep = self.sleep.map_or([0; 2], |sleep| [sleep.after_ns, sleep.wake_ns]);
        let times = [read, write, read_page, write_page, flush, collection, slow_read, slow_write];
        if times.iter().chain(&sleep).any(|&ns| ns > LONGEST_NS) {
            return Err(format!("a time is longer than {} s", LONGEST_NS / 1_000_000_000));
        }
        if self.thresholds_ns.read == 0 || self.thresholds_ns.write == 0 {
            return Err("thresholds_ns: a threshold is above 0".into());
        }
        if self.write_buffer.bytes.is_some_and(|bytes| !(4_096..=1 << 34).contains(&bytes)) {
            return Err("write_buffer.bytes lies between 4 KiB and 16 GiB".into());
        }
        self.learned.as_ref().map_or(Ok(()), |learned| learned.validate())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use flashkeel_engine::{Lba, Operation, RequestId};

    use super::*;

    /// A drive of which nothing but its volume bits is known.
    pub(crate) fn with_bits(volume_bits: Vec<u32>) -> DeviceModel {
        DeviceModel {
            sectors: 1 << 20,
            volume_bits,
            gc_volume_bits: None,
            write_buffer: WriteBuffer::UNKNOWN,
            thresholds_ns: Thresholds { read: 1, write: 1 },
            latencies_ns: Latencies::default(),
            sleep: None,
            undetermined: vec![],
            learned: None,
        }
    }

    #[test]
    fn a_request_may_touch_several_volumes() {
        let model = with_bits(vec![4, 6]);
        let told = |page: u64, pages: u32| {
            let request = Request::new(RequestId(0), Operation::Write, Lba(page * 8), pages * 8);
            let volumes = model.volumes_of(&request);
            volumes.map(|volume| (volume, model.pages_in(volume, &request))).collect::<Vec<_>>()
        };
        // Two pages lie in a stretch; bit 6 changes every eight.
        assert_eq!(told(0, 2), [(0, 2)]);
        assert_eq!(told(1, 2), [(0, 1), (1, 1)]);
        assert_eq!(told(6, 4), [(1, 2), (2, 2)]);
        assert_eq!(told(0, 16), [(0, 4), (1, 4), (2, 4), (3, 4)]);
        assert_eq!(told(5, 0), [(0, 0)]);
    }

    #[test]
    fn a_part_of_a_page_is_a_page() {
        let model = with_bits(vec![4]);
        let told = |lba: u64, sectors: u32| {
            let request = Request::new(RequestId(0), Operation::Write, Lba(lba), sectors);
            [0, 1].map(|volume| model.pages_in(volume, &request))
        };
        assert_eq!([told(0, 1), told(7, 1), told(7, 2), told(4, 8)], [[1, 0], [1, 0], [2, 0], [2, 0]]);
        assert_eq!([told(15, 2), told(12, 16), told(7, 20)], [[1, 1], [1, 2], [2, 2]]);
    }

    /// Once it was refused unless the log had reached the last page.
    #[test]
    fn what_was_read_off_a_log_is_for_a_drive_that_has_more() {
        let undetermined = vec!["sectors, volume_bits, sleep: no probe".to_owned()];
        let logged = DeviceModel { undetermined, ..with_bits(vec![]) };
        let probed = with_bits(vec![]);
        assert_eq!(logged.of_drive(1 << 21), Ok(DeviceModel { sectors: 1 << 21, ..logged.clone() }));
        assert_eq!(probed.of_drive(1 << 20), Ok(probed.clone()));
        for (model, sectors) in [(&logged, 1 << 19), (&probed, 1 << 19), (&probed, 1 << 21)] {
            let why = model.of_drive(sectors).unwrap_err();
            assert_eq!(why, format!("of a device of 1048576 sectors, this one has {sectors}"));
        }
    }

    #[test]
    fn a_model_that_no_drive_can_have_is_refused() {
        let model = with_bits(vec![4, 6]);
        assert_eq!(model.validate(), Ok(()));
        for bits in [vec![6, 4], vec![4, 4], vec![20], vec![1, 2, 3, 4, 5, 6, 7]] {
            let other = DeviceModel { volume_bits: bits.clone(), ..model.clone() };
            assert!(other.validate().unwrap_err().starts_with("volume_bits"), "{bits:?}");
            let other = DeviceModel { gc_volume_bits: Some(bits.clone()), ..model.clone() };
            assert!(other.validate().unwrap_err().starts_with("gc_volume_bits"), "{bits:?}");
        }
        assert!(DeviceModel { sectors: 0, ..model.clone() }.validate().is_err());
        let sleep = Some(Sleep { after_ns: u64::MAX, wake_ns: 1 });
        assert!(DeviceModel { sleep, ..model.clone() }.validate().is_err());
    }
}
