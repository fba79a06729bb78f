//! A disk in memory that knows what a loss of power may leave of it.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use flashkeel_engine::Stream;
use flashkeel_store::Disk;

/// What is written as a whole.
const SECTOR: usize = 512;
/// What the page cache writes back.
const BLOCK: usize = 4096;
/// What the system says of a disk that has failed.
const EIO: i32 = 5;

/// Bytes by blocks, of which a copy shares those that are alike; zeros where there is none.
#[derive(Clone, Default)]
struct Blocks {
    blocks: Vec<Option<Arc<[u8; BLOCK]>>>,
    length: usize,
}

impl Blocks {
    fn of_zeros(length: usize) -> Blocks {
        Blocks { blocks: vec![None; length.div_ceil(BLOCK)], length }
    }

    /// Takes a range apart: its block, the place in that, and the place in the range.
    fn parts(offset: usize, length: usize) -> impl Iterator<Item = (usize, Range<usize>, Range<usize>)> {
        (offset / BLOCK..(offset + length).div_ceil(BLOCK)).map(move |block| {
            let (from, to) = (offset.max(block * BLOCK), (offset + length).min((block + 1) * BLOCK));
            (block, from - block * BLOCK..to - block * BLOCK, from - offset..to - offset)
        })
    }

    fn read(&self, bytes: &mut [u8], offset: usize) -> io::Result<()> {
        if offset + bytes.len() > self.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (block, within, part) in Blocks::parts(offset, bytes.len()) {
            match &self.blocks[block] {
                Some(block) => bytes[part].copy_from_slice(&block[within]),
                None => bytes[part].fill(0),
            }
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], offset: usize) {
        for (block, within, part) in Blocks::parts(offset, bytes.len()) {
            let block = self.blocks[block].get_or_insert_with(|| Arc::new([0; BLOCK]));
            Arc::make_mut(block)[within].copy_from_slice(&bytes[part]);
        }
    }
}

#[derive(Default)]
struct State {
    /// What reads see.
    bytes: Blocks,
    /// What outlasts a loss of power.
    durable: Blocks,
    /// Writes since the last synchronisation.
    log: Vec<(u64, Vec<u8>)>,
    /// Writes that are still carried out: its owner is killed then.
    left: Option<u32>,
    /// The next synchronisation fails.
    fails: bool,
}

/// The disk.
#[derive(Clone, Default)]
pub struct Film(Arc<Mutex<State>>, Arc<Gate>);

/// What a slow disk's synchronisation waits for, in another thread.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    changed: Condvar,
    is_slow: bool,
}

/// How long somebody else may wait for that, until it goes on by itself.
const PATIENCE: Duration = Duration::from_millis(1);

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
        Film::of(Blocks::of_zeros(bytes as usize), false)
    }

    /// The same, which takes its time to synchronise, while its owner goes on.
    pub fn slow(bytes: u64) -> Film {
        Film::of(Blocks::of_zeros(bytes as usize), true)
    }

    fn of(bytes: Blocks, is_slow: bool) -> Film {
        Film::with(State { durable: bytes.clone(), bytes, ..State::default() }, is_slow)
    }

    fn with(state: State, is_slow: bool) -> Film {
        Film(Arc::new(Mutex::new(state)), Arc::new(Gate { is_slow, ..Gate::default() }))
    }

    /// Whether it takes its time.
    pub fn is_slow(&self) -> bool {
        self.1.is_slow
    }

    /// Lets what synchronises it now go on.
    pub fn go_on(&self) {
        *self.1.is_open.lock().expect("no test panics here") = true;
        self.1.changed.notify_all();
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().expect("no test panics here")
    }

    /// Lets its owner be killed after so many writes.
    pub fn kill_after(&self, writes: u32) {
        self.state().left = Some(writes);
    }

    /// Lets the next synchronisation fail, as the system does: once, and what has been written
    /// since the last is read as written, but not on the disk.
    pub fn fail_once(&self) {
        self.state().fails = true;
    }

    /// Writes since the last synchronisation.
    pub fn unsynced(&self) -> usize {
        self.state().log.len()
    }

    /// Whether its owner has been.
    pub fn is_dead(&self) -> bool {
        self.state().left == Some(0)
    }

    /// What is found on it after an end. What its owner had not synchronised when it was killed
    /// may still be lost with the power.
    pub fn left(&self, end: End, random: &mut Stream) -> Film {
        let state = self.state();
        match end {
            End::Killed => {
                let State { bytes, durable, log, .. } = &*state;
                let (bytes, durable, log) = (bytes.clone(), durable.clone(), log.clone());
                Film::with(State { bytes, durable, log, ..State::default() }, self.is_slow())
            }
            End::PowerLost => Film::of(state.after_loss(random), self.is_slow()),
        }
    }

    /// What is found if a loss of power leaves one of the last writes and none of the others
    /// since the last synchronisation.
    pub fn with_one(&self, from_the_end: usize) -> Film {
        let state = self.state();
        let mut bytes = state.durable.clone();
        let (offset, written) = &state.log[state.log.len() - 1 - from_the_end];
        bytes.write(written, *offset as usize);
        Film::of(bytes, false)
    }

    /// Where a page lies, as often as it does.
    pub fn places(&self, page: &[u8]) -> Vec<u64> {
        let state = self.state();
        let blocks = (0..).step_by(BLOCK).zip(&state.bytes.blocks);
        blocks
            .filter(|(_, block)| block.as_ref().is_some_and(|block| block[..] == *page))
            .map(|(place, _)| place)
            .collect()
    }

    /// Some places of those that have been written to, records included.
    pub fn some_filled(&self, count: u64, random: &mut Stream) -> Vec<u64> {
        let state = self.state();
        let blocks = (0..).step_by(BLOCK).zip(&state.bytes.blocks);
        let filled: Vec<u64> = blocks.filter(|(_, block)| block.is_some()).map(|(place, _)| place).collect();
        (0..count).map(|_| filled[random.below(filled.len() as u64) as usize]).collect()
    }

    /// The page at a place.
    pub fn block(&self, place: u64) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        self.read_at(&mut block, place).expect("a place on it");
        block
    }

    /// Changes a bit for good.
    pub fn flip(&self, offset: u64) {
        let mut state = self.state();
        let mut byte = [0];
        state.bytes.read(&mut byte, offset as usize).expect("a place on it");
        byte[0] ^= 4;
        state.bytes.write(&byte, offset as usize);
        state.durable.write(&byte, offset as usize);
    }

    /// Loses a block: there are zeros.
    pub fn lose(&self, block: u64) {
        let mut state = self.state();
        state.bytes.write(&[0; BLOCK], block as usize);
        state.durable.write(&[0; BLOCK], block as usize);
    }

    /// Cuts it off.
    pub fn truncate(&self, bytes: u64) {
        self.state().bytes.length = bytes as usize;
    }
}

impl State {
    /// Each block as after any of the writes to it, or before all; or, torn, each sector.
    fn after_loss(&self, random: &mut Stream) -> Blocks {
        let mut bytes = self.durable.clone();
        let mut touching: BTreeMap<usize, Vec<Part<'_>>> = BTreeMap::new();
        for (offset, written) in &self.log {
            for (block, within, part) in Blocks::parts(*offset as usize, written.len()) {
                touching.entry(block).or_default().push((within.start, &written[part]));
            }
        }
        for (number, writes) in touching {
            let upto = |random: &mut Stream| random.below(writes.len() as u64 + 1) as usize;
            let whole = upto(random);
            let is_torn = random.below(4) == 0;
            for sector in (0..BLOCK).step_by(SECTOR) {
                let upto = if is_torn { upto(random) } else { whole };
                for &(start, written) in &writes[..upto] {
                    let (from, to) = (start.max(sector), (start + written.len()).min(sector + SECTOR));
                    if from < to {
                        bytes.write(&written[from - start..to - start], number * BLOCK + from);
                    }
                }
            }
        }
        bytes
    }
}

/// What is written within a block, and where.
type Part<'a> = (usize, &'a [u8]);

impl Disk for Film {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.state().bytes.read(bytes, offset as usize)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state();
        match &mut state.left {
            Some(0) => return Ok(()),
            Some(left) => *left -= 1,
            None => {}
        }
        state.bytes.write(bytes, offset as usize);
        state.log.push((offset, bytes.to_vec()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        // What is written meanwhile may be lost.
        let written = self.state().log.len();
        if self.is_slow() {
            let open = self.1.is_open.lock().expect("no test panics here");
            let waited = self.1.changed.wait_timeout_while(open, PATIENCE, |is_open| !*is_open);
            *waited.expect("no test panics here").0 = false;
        }
        let mut state = self.state();
        if std::mem::take(&mut state.fails) {
            state.log.drain(..written);
            return Err(io::Error::from_raw_os_error(EIO));
        }
        if state.left != Some(0) {
            let State { log, durable, .. } = &mut *state;
            log.drain(..written).for_each(|(offset, bytes)| durable.write(&bytes, offset as usize));
        }
        Ok(())
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.state().bytes.length as u64)
    }

    fn look(&self, _least: u64) -> io::Result<()> {
        Ok(())
    }
}
