//! A disk in memory that knows what a loss of power may leave of it.

use std::io;
use std::sync::{Arc, Mutex};

use flashkeel_engine::Stream;
use flashkeel_store::Disk;

/// What is written as a whole.
const SECTOR: usize = 512;
/// What the page cache writes back.
const BLOCK: usize = 4096;

#[derive(Default)]
struct State {
    /// What reads see.
    bytes: Vec<u8>,
    /// What outlasts a loss of power.
    durable: Vec<u8>,
    /// Writes since the last synchronisation.
    log: Vec<(u64, Vec<u8>)>,
    /// Writes that are still carried out: its owner is killed then.
    left: Option<u32>,
}

/// The disk.
#[derive(Clone, Default)]
pub struct Film(Arc<Mutex<State>>);

/// How its owner ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is killed: what it has written is there.
    Killed,
    /// Its host loses power: of what has not been synchronised anything may be there.
    PowerLost,
}

impl Film {
    /// A disk of zeros.
    pub fn of_zeros(bytes: u64) -> Film {
        let zeros = vec![0; bytes as usize];
        let state = State { bytes: zeros.clone(), durable: zeros, ..State::default() };
        Film(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().expect("no test panics here")
    }

    /// Lets its owner be killed after so many writes.
    pub fn kill_after(&self, writes: u32) {
        self.state().left = Some(writes);
    }

    /// Whether its owner has been.
    pub fn is_dead(&self) -> bool {
        self.state().left == Some(0)
    }

    /// What is found on it after an end.
    pub fn left(&self, end: End, random: &mut Stream) -> Film {
        let state = self.state();
        let bytes = match end {
            End::Killed => state.bytes.clone(),
            End::PowerLost => state.after_loss(random),
        };
        let left = State { durable: bytes.clone(), bytes, ..State::default() };
        Film(Arc::new(Mutex::new(left)))
    }

    /// What is found if a loss of power leaves one of the last writes and none of the others
    /// since the last synchronisation.
    pub fn with_one(&self, from_the_end: usize) -> Film {
        let state = self.state();
        let mut bytes = state.durable.clone();
        let (offset, written) = &state.log[state.log.len() - 1 - from_the_end];
        bytes[*offset as usize..][..written.len()].copy_from_slice(written);
        Film(Arc::new(Mutex::new(State { durable: bytes.clone(), bytes, ..State::default() })))
    }

    /// Where a page lies, as often as it does.
    pub fn places(&self, page: &[u8]) -> Vec<u64> {
        let state = self.state();
        let blocks = (0..).step_by(BLOCK).zip(state.bytes.chunks(BLOCK));
        blocks.filter(|(_, block)| *block == page).map(|(place, _)| place).collect()
    }

    /// Changes a bit for good.
    pub fn flip(&self, offset: u64) {
        let mut state = self.state();
        state.bytes[offset as usize] ^= 4;
        state.durable[offset as usize] = state.bytes[offset as usize];
    }

    /// Cuts it off.
    pub fn truncate(&self, bytes: u64) {
        self.state().bytes.truncate(bytes as usize);
    }
}

impl State {
    /// Each block as after any of the writes to it, or before all; or, torn, each sector.
    fn after_loss(&self, random: &mut Stream) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        let writes = self.log.len() as u64;
        for (number, block) in bytes.chunks_mut(BLOCK).enumerate() {
            let start = (number * BLOCK) as u64;
            let touching: Vec<_> = (0..writes)
                .filter(|&write| {
                    let (offset, bytes) = &self.log[write as usize];
                    *offset < start + BLOCK as u64 && start < offset + bytes.len() as u64
                })
                .collect();
            if touching.is_empty() {
                continue;
            }
            let upto = |random: &mut Stream| random.below(touching.len() as u64 + 1) as usize;
            let whole = upto(random);
            let is_torn = random.below(4) == 0;
            for (at, sector) in block.chunks_mut(SECTOR).enumerate() {
                let upto = if is_torn { upto(random) } else { whole };
                let from = start + (at * SECTOR) as u64;
                for &write in &touching[..upto] {
                    let (offset, written) = &self.log[write as usize];
                    for (place, byte) in (from..).zip(sector.iter_mut()) {
                        let within = place.checked_sub(*offset).and_then(|at| written.get(at as usize));
                        *byte = within.copied().unwrap_or(*byte);
                    }
                }
            }
        }
        bytes
    }
}

impl Disk for Film {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let state = self.state();
        let start = offset as usize;
        let found = state.bytes.get(start..start + bytes.len());
        bytes.copy_from_slice(found.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state();
        match &mut state.left {
            Some(0) => return Ok(()),
            Some(left) => *left -= 1,
            None => {}
        }
        let start = offset as usize;
        state.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        state.log.push((offset, bytes.to_vec()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.left != Some(0) {
            for (offset, bytes) in std::mem::take(&mut state.log) {
                state.durable[offset as usize..][..bytes.len()].copy_from_slice(&bytes);
            }
        }
        Ok(())
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.state().bytes.len() as u64)
    }
}
