//! What something over a store goes through.

use std::collections::BTreeMap;
use std::ops::Range;

use flashkeel_engine::{Operation, Stream};
use flashkeel_store::Disk;

use crate::film::End;
use crate::world::{PAGE, Subject, World, bytes};

/// The byte of a page that changes, where it does not matter which.
const ROTS_AT: usize = 100;

impl<S: Subject> World<S> {
    /// Its process or host ends, bits change somewhere, and another process takes over.
    fn end_and_rot(&mut self, end: End, random: &mut Stream) {
        let film = self.film.left(end, random);
        film.sync().expect("it does not fail");
        let mut known = BTreeMap::new();
        for (number, page) in self.pages.iter().enumerate() {
            let versions = page.versions.iter().map(|&(version, _)| version);
            for version in versions.chain(page.written.iter().chain(&page.or).copied()) {
                known.insert(bytes(number, version), (number, version));
            }
        }
        let pages = self.store.pages_at(0);
        for place in film.some_filled(1 + random.below(8), random) {
            match known.get(&film.block(place)) {
                Some((_, 0)) => continue,
                Some(&(number, version)) => {
                    let rotten = self.pages[number].rotten.get_or_insert(version);
                    if *rotten != version {
                        continue;
                    }
                }
                // Parity, or what nobody needs.
                None if pages.contains(&place) => {}
                None => continue,
            }
            film.flip(place + random.below(PAGE as u64));
        }
        for page in &mut self.pages {
            let newest = page.newest();
            let is_rotten = |&(version, _): &(u64, u64)| page.rotten == Some(version);
            if end == End::PowerLost && page.versions.iter().any(is_rotten) {
                // It may be taken for what was being written: that the last synchronisation is over
                // is lost with the power.
                page.or.extend(&page.given);
            } else if end == End::Killed && page.rotten != Some(newest) {
                page.versions.drain(..page.versions.len() - 1);
            }
        }
        self.open(film);
    }

    /// Its process ends in good order, bits of these pages change wherever they lie, and another
    /// one takes over, which cannot read them.
    pub fn damage(&mut self, pages: Range<usize>, random: &mut Stream) {
        self.close();
        self.rot_pages(&pages.clone().collect::<Vec<_>>(), random);
        self.find();
        assert_eq!(self.lost(), pages.collect::<Vec<_>>());
    }

    /// Its process has ended in good order; bits of these pages change wherever they lie, and another
    /// one takes over.
    pub fn rot_pages(&mut self, pages: &[usize], random: &mut Stream) {
        let film = self.film.left(End::Killed, random);
        for &number in pages {
            let version = self.pages[number].newest();
            let places = film.places(&bytes(number, version));
            assert!(!places.is_empty(), "page {number} is not there");
            places.iter().for_each(|place| film.flip(*place + ROTS_AT as u64));
            self.pages[number].rotten = Some(version);
        }
        self.pages.iter_mut().for_each(|page| drop(page.versions.drain(..page.versions.len() - 1)));
        self.open(film);
    }

    /// Where what has become of pages lies by now.
    pub fn rotten_places(&self, pages: &[usize]) -> Vec<Vec<u64>> {
        let places = |&number: &usize| {
            let mut page = bytes(number, self.pages[number].newest());
            page[ROTS_AT] ^= 4;
            self.film.places(&page)
        };
        pages.iter().map(places).collect()
    }

    /// Its process ends in good order, bits of some pages change, and another one takes over: what
    /// those held is found as it was, or not at all. Returns how many these are, and how many of
    /// all are not.
    pub fn decay(&mut self, random: &mut Stream) -> (usize, usize) {
        self.drain();
        self.close();
        let (film, mut damaged) = (self.film.left(End::Killed, random), 0);
        for _ in 0..1 + random.below(8) {
            let number = random.below(self.pages.len() as u64) as usize;
            let page = &self.pages[number];
            let version = page.newest();
            let places = film.places(&bytes(number, version));
            if version == 0 || !page.or.is_empty() || places.is_empty() {
                continue;
            }
            let one = random.below(places.len() as u64) as usize;
            let rots = if random.below(2) == 0 { &places[one..one + 1] } else { &places };
            rots.iter().for_each(|place| film.flip(place + random.below(PAGE as u64)));
            self.pages[number].rotten = Some(version);
            damaged += 1;
        }
        for page in &mut self.pages {
            page.versions.drain(..page.versions.len() - 1);
        }
        self.open(film);
        self.find();
        (damaged, self.lost().len())
    }

    /// Random requests, and in between the end of the process or its host; where it `rots`, bits
    /// change then, too. Returns how many pages were damaged, and how often one was found that could
    /// not be read.
    pub fn live(&mut self, random: &mut Stream, rounds: u32, rots: bool) -> (usize, usize) {
        let (total, mut damaged, mut lost) = (self.pages(), 0, 0);
        for _ in 0..rounds {
            let rots = rots && random.below(2) == 0;
            if !rots && random.below(2) == 0 {
                self.kill_after(random.below(400) as u32);
            }
            let steps = random.below(300);
            // Some hosts hardly ever flush: then much is written that is not durable.
            let synchronises = random.below(2) == 0;
            self.ask(random, steps, synchronises);
            if rots {
                let decayed = self.decay(random);
                (damaged, lost) = (damaged + decayed.0, lost + decayed.1);
                continue;
            }
            let end = if self.is_dead() || random.below(2) == 0 { End::Killed } else { End::PowerLost };
            self.restart(end, random);
        }
        // It takes as much as ever.
        for _ in 0..2 {
            for first in (0..total).step_by(8) {
                self.submit(Operation::Write, first..(first + 8).min(total), false);
            }
        }
        self.drain();
        self.restart(End::Killed, random);
        (damaged, lost)
    }

    /// Random requests, at most so many, until its process ends.
    fn ask(&mut self, random: &mut Stream, steps: u64, synchronises: bool) {
        let (total, is_shared) = (self.pages(), random.below(4) == 0);
        for _ in 0..steps {
            let first = random.below(total as u64) as usize;
            let pages = first..(first + 1 + random.below(9) as usize).min(total);
            let fua = synchronises && random.below(8) == 0;
            // Clients that do not wait for one another.
            let at_once = is_shared && random.below(2) == 0;
            match random.below(16) {
                0 if synchronises || random.below(20) == 0 => self.submit(Operation::Flush, 0..0, false),
                1 => self.submit_among(Operation::Trim, pages, fua, at_once),
                2 => self.submit_among(Operation::WriteZeroes, pages, fua, at_once),
                3 | 4 => self.submit(Operation::Read, pages, false),
                5 => (0..random.below(60)).for_each(|_| self.progress()),
                _ => self.submit_among(Operation::Write, pages, fua, at_once),
            }
            if self.is_dead() {
                break;
            }
        }
    }

    /// The same in brief lives: each is over before what the one before has left is in order, some
    /// even before they have found it. Where it `rots`, bits change then, too.
    pub fn live_briefly(&mut self, random: &mut Stream, rounds: u32, rots: bool) {
        for _ in 0..rounds {
            if random.below(3) == 0 {
                self.kill_after(random.below(60) as u32);
            }
            let (steps, synchronises) = (random.below(40), random.below(2) == 0);
            self.ask(random, steps, synchronises);
            let end = if random.below(3) == 0 { End::Killed } else { End::PowerLost };
            if rots && random.below(3) == 0 {
                self.end_and_rot(end, random);
            } else if random.below(4) == 0 {
                // And then of those that take over, one after the other.
                let mut film = self.film.left(end, random);
                for _ in 0..1 + random.below(3) {
                    film.kill_after(random.below(40) as u32);
                    drop(self.subject.find(&film));
                    let end = if random.below(3) == 0 { End::Killed } else { End::PowerLost };
                    film = film.left(end, random);
                }
                self.open(film);
            } else {
                self.end_and_open(end, random);
            }
            if random.below(2) == 0 {
                self.find();
                continue;
            }
            // What is not looked for now may be found later.
            for page in &mut self.pages {
                let (newest, _) = page.versions.pop().expect("there is one");
                let former = page.versions.drain(..).map(|(version, _)| version);
                page.or.extend(former.chain(page.written.drain(..)));
                page.versions.push((newest, 0));
            }
        }
        self.find();
    }
}
