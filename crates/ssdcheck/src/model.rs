//! What is known of a drive: the device model file.

use serde::{Deserialize, Serialize};

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceModel {
    /// Capacity in 512-byte sectors.
    pub sectors: u64,
    /// Bits of the 512-byte LBA that select an allocation volume, rising.
    pub volume_bits: Vec<u32>,
    /// Bits that select a garbage-collection volume, rising.
    pub gc_volume_bits: Vec<u32>,
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
}

impl DeviceModel {
    /// The internal volume of an LBA: its volume bits, the lowest first.
    #[inline]
    pub fn volume_of(&self, lba: u64) -> usize {
        let bits = self.volume_bits.iter().enumerate();
        bits.fold(0, |volume, (index, &bit)| volume | ((lba >> bit & 1) as usize) << index)
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
        for (key, bits) in [("volume_bits", &self.volume_bits), ("gc_volume_bits", &self.gc_volume_bits)] {
            if bits.len() > 6 || bits.iter().any(|&bit| bit >= 48) {
                return Err(format!("{key}: at most 6 bits, each below 48"));
            }
        }
        if self.thresholds_ns.read == 0 || self.thresholds_ns.write == 0 {
            return Err("thresholds_ns: a threshold is above 0".into());
        }
        if self.write_buffer.bytes.is_some_and(|bytes| !(4_096..=1 << 34).contains(&bytes)) {
            return Err("write_buffer.bytes lies between 4 KiB and 16 GiB".into());
        }
        Ok(())
    }
}
