//! The requests of a trace that has been looked through, packed in memory: for a replay
//! they need not be read, unpacked and understood a second time.

use std::sync::Arc;

use flashkeel_engine::Operation;

use super::pass::Selected;
use crate::{Basis, Counts};

/// Requests packed together: as many as a source is asked for at a time.
const CHUNK: usize = 1024;
/// Most bytes that are kept of a trace: those of some 25 million requests. One that needs
/// more is read again.
pub(super) const MOST_BYTES: usize = 256 << 20;
/// Bytes behind the last request of a chunk, so that any number is read and written as eight.
const SLACK: usize = 8;

/// What a trace may hold, by its number.
const OPERATIONS: [Operation; 5] =
    [Operation::Read, Operation::Write, Operation::Trim, Operation::Flush, Operation::WriteZeroes];

// The head of a request: its operation, and the lengths of the numbers behind it.
const OPERATION_BITS: u32 = 3;
const SECTORS_AT: u32 = 3;
const HAS_ASKED: u16 = 1 << 6;
const HAS_DEVICE: u16 = 1 << 7;
const GAP_AT: u32 = 8;
const LBA_AT: u32 = 12;

/// All that a pass through a trace delivers.
pub(super) struct Kept {
    chunks: Vec<Chunk>,
    pub requests: u64,
    /// What became of the input behind the last request.
    rest: Counts,
    /// Time of the last request, by the trace's own clock.
    latest_ns: u64,
    pub basis: Basis,
    pub bytes: usize,
    /// Whether the pass went to the end of what is to be delivered.
    pub is_whole: bool,
}

/// Some requests in a row.
struct Chunk {
    packed: Box<[u8]>,
    requests: usize,
    /// What became of the input from the chunk before up to the last of them.
    counts: Counts,
}

/// Most bytes of a request: its head and five numbers.
const LONGEST: usize = 2 + 8 + 8 + 4 + 4 + 4;

/// Keeps what a pass delivers.
pub(super) struct Keeper {
    chunks: Vec<Chunk>,
    bytes: usize,
    /// The chunk at hand, how much of it is filled, and with how many.
    packed: Vec<u8>,
    filled: usize,
    requests: usize,
    time_ns: u64,
    device: u32,
}

impl Keeper {
    pub fn new() -> Keeper {
        let packed = vec![0; CHUNK * LONGEST + SLACK];
        Keeper { chunks: Vec::new(), bytes: 0, packed, filled: 0, requests: 0, time_ns: 0, device: 0 }
    }

    /// Takes the next request. `counts` say what has become of the input since a chunk was
    /// last full; they begin anew where one is now.
    #[inline]
    pub fn take(&mut self, selected: &Selected, counts: &mut Counts) {
        let Selected { operation, lba, sectors, asked_sectors, device, time_ns, .. } = *selected;
        let (packed, mut at) = (&mut self.packed[self.filled..], 2);
        // Eight bytes are written, and those that count are passed.
        let mut put = |number: u64, bytes: usize| {
            packed[at..at + 8].copy_from_slice(&number.to_le_bytes());
            at += bytes;
            bytes as u16
        };
        let gap_ns = time_ns - self.time_ns;
        let mut head = operation as u16;
        head |= put(gap_ns, bytes_of(gap_ns)) << GAP_AT;
        head |= put(lba, bytes_of(lba)) << LBA_AT;
        head |= put(sectors.into(), bytes_of(sectors.into())) << SECTORS_AT;
        if asked_sectors != sectors {
            put(asked_sectors.into(), 4);
            head |= HAS_ASKED;
        }
        if device != self.device {
            put(device.into(), 4);
            head |= HAS_DEVICE;
        }
        packed[..2].copy_from_slice(&head.to_le_bytes());
        self.filled += at;
        (self.time_ns, self.device) = (time_ns, device);
        self.requests += 1;
        if self.requests == CHUNK {
            self.close(std::mem::take(counts));
        }
    }

    #[cold]
    fn close(&mut self, counts: Counts) {
        let packed = &self.packed[..self.filled + SLACK];
        self.bytes += packed.len() + size_of::<Chunk>();
        if self.bytes > MOST_BYTES {
            self.chunks = Vec::new();
        } else {
            self.chunks.push(Chunk { packed: packed.into(), requests: self.requests, counts });
        }
        (self.filled, self.requests) = (0, 0);
    }

    /// Nothing more comes: what has been kept, if it is all and any. `rest` are the counts
    /// of what was not yet taken.
    pub fn finish(mut self, mut rest: Counts, latest_ns: u64, basis: Basis, is_whole: bool) -> Option<Kept> {
        if self.requests > 0 {
            self.close(std::mem::take(&mut rest));
        }
        let Keeper { chunks, bytes, .. } = self;
        let requests = chunks.iter().map(|chunk| chunk.requests as u64).sum();
        (!chunks.is_empty() && bytes <= MOST_BYTES).then_some(Kept {
            chunks,
            requests,
            rest,
            latest_ns,
            basis,
            bytes,
            is_whole,
        })
    }
}

/// Bytes that a number takes.
#[inline]
fn bytes_of(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()).div_ceil(8) as usize
}

/// A pass through what has been kept.
pub(super) struct Again {
    kept: Arc<Kept>,
    /// Chunks that have been begun.
    begun: usize,
    /// Where the next request is in the chunk at hand, and how many are left there.
    at: usize,
    left: usize,
    time_ns: u64,
    device: u32,
}

impl Again {
    pub fn new(kept: Arc<Kept>) -> Again {
        Again { kept, begun: 0, at: 0, left: 0, time_ns: 0, device: 0 }
    }

    pub fn basis(&self) -> Basis {
        self.kept.basis
    }

    /// Time of the last request, by the trace's own clock.
    pub fn latest_ns(&self) -> u64 {
        self.kept.latest_ns
    }

    /// Fraction that has been delivered.
    pub fn progress(&self) -> f64 {
        self.begun as f64 / self.kept.chunks.len() as f64
    }

    /// Puts the next request into `next`; whether there was one. `counts` go forward by
    /// chunks.
    #[inline]
    pub fn next(&mut self, next: &mut Selected, counts: &mut Counts) -> bool {
        if self.left == 0 && !self.begin_chunk(counts) {
            return false;
        }
        self.left -= 1;
        let packed = &*self.kept.chunks[self.begun - 1].packed;
        let head = u16::from_le_bytes([packed[self.at], packed[self.at + 1]]);
        self.at += 2;
        let mut number = |bytes: u16| {
            let (word, _) = packed[self.at..].split_first_chunk().expect("there is slack behind a number");
            self.at += usize::from(bytes);
            u64::from_le_bytes(*word) & MASKS[usize::from(bytes & 15)]
        };
        self.time_ns += number(head >> GAP_AT & 15);
        let lba = number(head >> LBA_AT);
        let sectors = number(head >> SECTORS_AT & 7) as u32;
        let asked_sectors = if head & HAS_ASKED != 0 { number(4) as u32 } else { sectors };
        if head & HAS_DEVICE != 0 {
            self.device = number(4) as u32;
        }
        *next = Selected {
            time_ns: self.time_ns,
            item: 0,
            device: self.device,
            operation: OPERATIONS[usize::from(head & ((1 << OPERATION_BITS) - 1))],
            lba,
            sectors,
            asked_sectors,
            response_ns: 0,
        };
        true
    }

    #[cold]
    fn begin_chunk(&mut self, counts: &mut Counts) -> bool {
        let kept = &*self.kept;
        match kept.chunks.get(self.begun) {
            Some(chunk) => {
                counts.add(&chunk.counts);
                (self.begun, self.at, self.left) = (self.begun + 1, 0, chunk.requests);
                true
            }
            None => {
                counts.add(&kept.rest);
                false
            }
        }
    }
}

/// By how many bytes count of eight.
const MASKS: [u64; 16] = {
    let mut masks = [u64::MAX; 16];
    let mut bytes = 0;
    while bytes < 8 {
        masks[bytes] = (1 << (8 * bytes)) - 1;
        bytes += 1;
    }
    masks
};

#[cfg(test)]
mod tests {
    use flashkeel_engine::Stream;

    use super::*;

    #[test]
    fn operations_stand_by_their_numbers() {
        assert!((0..).zip(OPERATIONS).all(|(number, operation)| operation as usize == number));
    }

    #[test]
    fn what_comes_back_is_what_was_taken_and_what_became_of_the_rest() {
        let mut random = Stream::new(1, "kept");
        let (mut keeper, mut counts, mut taken) = (Keeper::new(), Counts::default(), Vec::new());
        let (mut time_ns, mut all) = (0u64, Counts::default());
        for _ in 0..3 * CHUNK + 7 {
            // Numbers of any length.
            let mut any = |bits: u64| random.word() >> (64 - random.between(1, bits));
            time_ns += any(48);
            let (sectors, lba, asked) = (any(32) as u32, any(64), any(4) as u32);
            let selected = Selected {
                time_ns,
                item: 0,
                device: if asked == 3 { any(32) as u32 } else { 0 },
                operation: OPERATIONS[sectors as usize % OPERATIONS.len()],
                lba,
                sectors,
                asked_sectors: if asked % 2 == 0 { sectors } else { asked },
                response_ns: 0,
            };
            counts.read += 1 + u64::from(asked);
            all.read += 1 + u64::from(asked);
            keeper.take(&selected, &mut counts);
            taken.push(selected);
        }
        counts.not_io = 5;
        let kept = Arc::new(keeper.finish(counts, 17, Basis::Trace, true).unwrap());
        assert!(kept.bytes < taken.len() * size_of::<Selected>());
        for _ in 0..2 {
            let (mut again, mut counts) = (Again::new(kept.clone()), Counts::default());
            let mut next = Selected::EMPTY;
            let back: Vec<Selected> =
                std::iter::from_fn(|| again.next(&mut next, &mut counts).then_some(next)).collect();
            assert_eq!(back, taken);
            assert_eq!((counts, again.latest_ns()), (Counts { not_io: 5, ..all.clone() }, 17));
            assert_eq!(again.progress(), 1.0);
        }
    }

    #[test]
    fn nothing_and_too_much_are_not_kept() {
        let finish = |keeper: Keeper| keeper.finish(Counts::default(), 0, Basis::Trace, true);
        assert!(finish(Keeper::new()).is_none());
        let mut keeper = Keeper { bytes: MOST_BYTES, ..Keeper::new() };
        let selected = Selected {
            time_ns: 0,
            item: 0,
            device: 0,
            operation: Operation::Write,
            lba: 0,
            sectors: 8,
            asked_sectors: 8,
            response_ns: 0,
        };
        (0..CHUNK).for_each(|_| keeper.take(&selected, &mut Counts::default()));
        assert!(keeper.chunks.is_empty());
        assert!(finish(keeper).is_none());
    }
}
