//! Saving and restoring a preconditioned partition.

use std::io::{self, Read, Write};

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{BlockState, Tables};
use crate::address::BlockId;
use crate::sched::Task;

/// Bytes that are written and read at once: few enough to be in the processor's cache
/// still for whoever looks at them on their way.
const SLICE: usize = 128 << 10;

/// Writes words in this machine's order.
pub(super) fn write_words<T: IntoBytes + Immutable>(out: &mut dyn Write, words: &[T]) -> io::Result<()> {
    words.as_bytes().chunks(SLICE).try_for_each(|slice| out.write_all(slice))
}

/// Reads words that [`write_words`] wrote.
pub(super) fn read_words<T: IntoBytes + FromBytes>(input: &mut dyn Read, words: &mut [T]) -> io::Result<()> {
    words.as_mut_bytes().chunks_mut(SLICE).try_for_each(|slice| input.read_exact(slice))
}

fn take_words(input: &mut dyn Read, count: usize) -> io::Result<Vec<u32>> {
    let mut words = vec![0; count];
    read_words(input, &mut words)?;
    Ok(words)
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("saved device state is damaged: {what}"))
}

impl Tables {
    /// Writes the state of a partition at rest: map, blocks, write points and map
    /// cache contents.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        self.map.save(out)?;
        self.blocks.save(|words| write_words(out, words))?;
        let points: Vec<u32> = self
            .points
            .open_blocks()
            .flat_map(|(writer, chip, block, page)| [writer as u32, chip, block.0, page])
            .collect();
        write_words(out, &[points.len() as u32])?;
        write_words(out, &points)?;
        let cached = self.cache.as_ref().map(|cache| cache.contents()).unwrap_or_default();
        write_words(out, &[cached.len() as u32])?;
        write_words(out, &cached)
    }

    /// Restores what [`save`](Self::save) wrote into an empty partition of the
    /// same configuration. Whoever kept it sees to it that it is whole: the map is
    /// taken as it is.
    ///
    /// # Errors
    /// If the input ends early or contradicts itself.
    pub fn restore(&mut self, input: &mut dyn Read) -> io::Result<()> {
        self.map.restore(input)?;
        let valid = self.map.valid_of_each(self.shape.units_per_block);
        self.blocks.restore(&valid, |count| take_words(input, count)).map_err(|error| {
            if error.kind() == io::ErrorKind::InvalidData { damaged("block states") } else { error }
        })?;
        let count = take_words(input, 1)?[0] as usize;
        if !count.is_multiple_of(4) || count > Task::ALL.len() * 4 * self.blocks.len() as usize {
            return Err(damaged("write points"));
        }
        for point in take_words(input, count)?.chunks_exact(4) {
            let writer = *Task::ALL.get(point[0] as usize).ok_or_else(|| damaged("write points"))?;
            let [chip, block, page] = [point[1], point[2], point[3]];
            let is_open = block < self.blocks.len() && self.blocks.state(BlockId(block)) == BlockState::Open;
            if !is_open || self.blocks.chip(BlockId(block)) != chip || page >= self.shape.pages_per_block {
                return Err(damaged("write points"));
            }
            self.points.reopen(writer, chip, BlockId(block), page);
        }
        let count = take_words(input, 1)?[0] as usize;
        let pages = self.cache.as_ref().map_or(0, |cache| cache.pages() as usize);
        if count > pages {
            return Err(damaged("map cache"));
        }
        for page in take_words(input, count)? {
            let cache = self.cache.as_mut().expect("a count above zero");
            if page as usize >= pages || cache.touch(page, true) {
                return Err(damaged("map cache"));
            }
            cache.loaded(page);
            cache.touch(page, true);
        }
        Ok(())
    }
}
