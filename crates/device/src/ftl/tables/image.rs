//! Saving and restoring a preconditioned partition.

use std::io::{self, Read, Write};

use super::{BlockState, Tables};
use crate::address::{BlockId, Home, Lpn, NONE, Ppn};
use crate::sched::Task;

/// Pages whose physical side is fetched ahead of its use.
const AHEAD: usize = 32;

fn write_words(out: &mut dyn Write, words: &[u32]) -> io::Result<()> {
    let mut bytes = [0u8; 16 << 10];
    for chunk in words.chunks(bytes.len() / 4) {
        for (word, place) in chunk.iter().zip(bytes.chunks_exact_mut(4)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        out.write_all(&bytes[..chunk.len() * 4])?;
    }
    Ok(())
}

fn read_words(input: &mut dyn Read, count: usize) -> io::Result<Vec<u32>> {
    let mut words = Vec::with_capacity(count);
    let mut bytes = [0u8; 16 << 10];
    while words.len() < count {
        let length = (count - words.len()).min(bytes.len() / 4) * 4;
        input.read_exact(&mut bytes[..length])?;
        words.extend(
            bytes[..length].chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().expect("four bytes"))),
        );
    }
    Ok(words)
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("saved device state is damaged: {what}"))
}

impl Tables {
    /// Writes the state of a partition at rest: homes, blocks, write points
    /// and map cache contents.
    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        write_words(out, self.map.homes())?;
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
    /// same configuration.
    ///
    /// # Errors
    /// If the input ends early or contradicts itself.
    pub fn restore(&mut self, input: &mut dyn Read) -> io::Result<()> {
        let homes = read_words(input, self.map.lpns() as usize)?;
        let mut valid = vec![0u32; self.blocks.len() as usize];
        for (lpn, &home) in homes.iter().enumerate() {
            if let Some(&later) = homes.get(lpn + AHEAD) {
                self.map.prefetch_held(Ppn(later));
            }
            if home == NONE {
                continue;
            }
            if home >= self.map.ppns() || self.map.is_valid(Ppn(home)) {
                return Err(damaged("a page without a home of its own"));
            }
            self.map.set_home(Lpn(lpn as u32), Home(home));
            self.map.set_valid(Ppn(home), Lpn(lpn as u32));
            valid[self.shape.block_of(Ppn(home)).0 as usize] += 1;
        }
        self.blocks.restore(&valid, |count| read_words(input, count)).map_err(|error| {
            if error.kind() == io::ErrorKind::InvalidData { damaged("block states") } else { error }
        })?;
        let count = read_words(input, 1)?[0] as usize;
        if !count.is_multiple_of(4) || count > Task::ALL.len() * 4 * self.blocks.len() as usize {
            return Err(damaged("write points"));
        }
        for point in read_words(input, count)?.chunks_exact(4) {
            let writer = *Task::ALL.get(point[0] as usize).ok_or_else(|| damaged("write points"))?;
            let [chip, block, page] = [point[1], point[2], point[3]];
            let is_open = block < self.blocks.len() && self.blocks.state(BlockId(block)) == BlockState::Open;
            if !is_open || self.blocks.chip(BlockId(block)) != chip || page >= self.shape.pages_per_block {
                return Err(damaged("write points"));
            }
            self.points.reopen(writer, chip, BlockId(block), page);
        }
        let count = read_words(input, 1)?[0] as usize;
        let pages = self.cache.as_ref().map_or(0, |cache| cache.pages() as usize);
        if count > pages {
            return Err(damaged("map cache"));
        }
        for page in read_words(input, count)? {
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
