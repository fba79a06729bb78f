//! Pages of something without flash, kept and found again.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use flashkeel_device::{BlockId, Cycle, Lpn, MediumShape, Place, Ppn};
use flashkeel_engine::{Keeper, PageBytes, Stream, Time};
use flashkeel_store::{Header, Opened, SectionShape, Store, Synced};

use crate::film::{End, Film};
use crate::world::bytes;

const PAGES: u32 = 200;

/// What may be found of a page: nothing, or a version.
type Held = Option<u64>;

/// A keeper beside what it should have.
struct Desk {
    film: Film,
    store: Store,
    keeper: Box<dyn Keeper>,
    /// What each page has held since all was durable, and at that time.
    pages: Vec<Vec<Held>>,
    /// Pages that have been handed over since then, and before.
    handed_over: BTreeMap<usize, bool>,
    synced: Synced,
}

fn header() -> Header {
    Header::new(u64::from(PAGES) * 4096, vec![SectionShape::of_pages(PAGES, PAGES)], "", "")
        .expect("it has room")
}

fn page_bytes(page: usize, version: u64) -> PageBytes {
    bytes(page, version).try_into().expect("a page")
}

impl Desk {
    fn new() -> Desk {
        let film = Film::of_zeros(header().bytes());
        let mut store =
            Store::create(Arc::new(film.clone()), &header(), None, &mut |_, _| ControlFlow::Continue(()))
                .expect("no disk fails");
        store.complete().expect("no disk fails");
        let pages = vec![vec![None]; PAGES as usize];
        let (keeper, synced) = (store.keeper(0), store.synced());
        Desk { film, keeper, store, pages, handed_over: BTreeMap::new(), synced }
    }

    /// Whatever has been told up to now is durable, if anything has been made so.
    fn look(&mut self) {
        if self.store.synced() == self.synced {
            return;
        }
        self.synced = self.store.synced();
        self.pages.iter_mut().for_each(|held| drop(held.drain(..held.len() - 1)));
        self.handed_over.values_mut().for_each(|is_durable| *is_durable = true);
    }

    fn step(&mut self, version: u64, random: &mut Stream) {
        let page = random.below(PAGES.into()) as usize;
        match random.below(12) {
            0 => {
                self.keeper.clear(page as u32);
                self.look();
                self.pages[page].push(None);
                self.handed_over.remove(&page);
            }
            1 | 2 if self.keeper.has(page as u32) => {
                self.keeper.hand_over(page as u32);
                self.handed_over.entry(page).or_insert(false);
            }
            _ => {
                let version = if random.below(8) == 0 { 0 } else { version };
                let bytes = (version != 0).then(|| page_bytes(page, version));
                self.keeper.keep(page as u32, bytes.as_ref());
                // What made room for it came before.
                self.look();
                // What was handed over may have been given up before.
                let was_durable = self.handed_over.remove(&page) == Some(true);
                self.pages[page].extend(was_durable.then_some(None));
                self.pages[page].push(Some(version));
            }
        }
        if random.below(3) == 0 {
            self.store.settle(Time::ZERO);
            self.look();
        }
    }

    fn restart(&mut self, end: End, random: &mut Stream) {
        self.store.settle(Time::ZERO);
        self.look();
        self.film = self.film.left(end, random);
        let watch = &mut |_, _| ControlFlow::Continue(());
        let opened = Store::resume(Arc::new(self.film.clone()), &header(), None, watch).expect("it is fit");
        let Opened::Old(mut store, mut found, _) = opened else { panic!("nothing is begun on a disk") };
        store.complete().expect("no disk fails");
        let whole = |page: Option<_>| page.expect("nothing is damaged");
        let found = found.remove(0).held.into_iter();
        let found = found.map(|(place, page)| (place.lpn.0 as usize, whole(page)));
        let found: BTreeMap<usize, Box<PageBytes>> = found.collect();
        self.keeper = store.keeper(0);
        (self.synced, self.store) = (store.synced(), store);
        for page in 0..PAGES as usize {
            let held = &mut self.pages[page];
            let mut may = if end == End::Killed { held[held.len() - 1..].to_vec() } else { held.clone() };
            may.extend((self.handed_over.get(&page) == Some(&true)).then_some(None));
            let is = |version: &Held| match (version, found.get(&page)) {
                (None, None) => true,
                (&Some(version), Some(bytes)) => **bytes == page_bytes(page, version),
                _ => false,
            };
            let version = may.iter().copied().find(is);
            *held = vec![version.unwrap_or_else(|| panic!("page {page}: none of {may:?} is found"))];
            assert_eq!(self.keeper.has(page as u32), found.contains_key(&page));
        }
        self.handed_over.clear();
    }
}

#[test]
fn what_is_kept_is_found_however_it_ends_and_what_was_handed_over_stays_until_it_is_durable() {
    for seed in 0..6 {
        let mut random = Stream::new(seed, "desk");
        let (mut desk, mut version) = (Desk::new(), 1);
        for round in 0..5 {
            // In some all places are used up before anything else makes them durable.
            let steps = if round == 2 { 9000 } else { random.below(800) };
            for _ in 0..steps {
                desk.step(version, &mut random);
                version += 1;
                if round != 2 && random.below(100) == 0 {
                    desk.store.begin_sync();
                    desk.look();
                }
            }
            desk.restart(if random.below(3) == 0 { End::Killed } else { End::PowerLost }, &mut random);
        }
    }
}

/// Once the former place of a page was given up before the new one had been found, which may
/// wait until all that was given up is durable.
#[test]
fn a_page_of_the_write_buffer_that_changes_again_and_again_is_always_found() {
    let shape = MediumShape { lpns: 8, ppns: 8, units_per_block: 8, held: 1 };
    let header = Header::new(8 * 4096, vec![shape.into()], "", "").expect("it has room");
    let places = u64::from(header.sections[0].slots);
    let film = Film::of_zeros(header.bytes());
    let mut store =
        Store::create(Arc::new(film.clone()), &header, None, &mut |_, _| ControlFlow::Continue(()))
            .expect("no disk fails");
    store.complete().expect("no disk fails");
    let mut medium = store.media(0..1).remove(0);
    for sequence in 1..=2 * places + 2 {
        medium.hold(0, Place { lpn: Lpn(3), sequence }, Some(&page_bytes(3, sequence)));
        store.settle(Time::ZERO);
        // Only once all places have been used is anything durable.
        if sequence < 2 * places - 4 {
            continue;
        }
        for from_the_end in 0..2 {
            let film = film.with_one(from_the_end);
            let watch = &mut |_, _| ControlFlow::Continue(());
            let opened = Store::resume(Arc::new(film), &header, None, watch).expect("it is fit");
            let Opened::Old(_, found, _) = opened else { panic!("nothing is begun on a disk") };
            let newest = found[0].held.iter().map(|(place, _)| place.sequence).max();
            assert!(newest >= Some(places), "after {sequence}: {newest:?} is found");
        }
    }
}

/// Once places were given up too early whose section had been quiet since the last
/// synchronisation, where another had not.
#[test]
fn pages_of_a_write_buffer_are_needed_until_they_are_held_again_whatever_other_sections_do() {
    let shape = MediumShape { lpns: 8, ppns: 8, units_per_block: 8, held: 4 };
    let header = Header::new(2 * 8 * 4096, vec![shape.into(), shape.into()], "", "").expect("it has room");
    let resumed = |film: &Film| {
        let watch = &mut |_, _| ControlFlow::Continue(());
        let opened = Store::resume(Arc::new(film.clone()), &header, None, watch).expect("it is fit");
        let Opened::Old(store, found, _) = opened else { panic!("nothing is begun on a disk") };
        (store, found)
    };
    let film = Film::of_zeros(header.bytes());
    let mut store =
        Store::create(Arc::new(film.clone()), &header, None, &mut |_, _| ControlFlow::Continue(()))
            .expect("no disk fails");
    store.complete().expect("no disk fails");
    let mut media = store.media(0..2);
    let mut hold = |section: usize, entry: u32, sequence: u64| {
        let page = page_bytes(entry as usize, sequence);
        media[section].hold(entry, Place { lpn: Lpn(entry), sequence }, Some(&page));
    };
    [(0, 1), (1, 2), (0, 3)].into_iter().for_each(|(entry, sequence)| hold(0, entry, sequence));
    store.begin_sync();
    hold(1, 0, 1);
    store.settle(Time::ZERO);
    let film = film.left(End::Killed, &mut Stream::new(1, "sections"));
    let (store, mut found) = resumed(&film);
    let mut medium = store.media(0..1).remove(0);
    let held: Vec<_> = found.remove(0).held.into_iter().map(|(place, page)| (place.lpn, page)).collect();
    assert_eq!(held.iter().map(|held| held.0).collect::<Vec<_>>(), [Lpn(0), Lpn(1), Lpn(0)]);
    for (entry, (lpn, page)) in (0..).zip(held.into_iter().skip(1)) {
        let place = Place { lpn, sequence: 4 + u64::from(entry) };
        medium.hold(entry, place, page.as_deref());
        store.settle(Time::ZERO);
        for from_the_end in 0..2 {
            let (_, found) = resumed(&film.with_one(from_the_end));
            let found = found[0].held.iter().map(|(place, page)| (place.lpn.0, page.as_deref()));
            let found: BTreeMap<u32, Option<&PageBytes>> = found.collect();
            assert_eq!(found, [(0, Some(&page_bytes(0, 3))), (1, Some(&page_bytes(1, 2)))].into());
        }
    }
}

/// Once the copy of a damaged page was taken for one that was being written, where the power had
/// taken the record of the last synchronisation: then something older was found.
#[test]
fn a_damaged_page_that_has_been_moved_is_found_damaged() {
    let shape = MediumShape { lpns: 8, ppns: 24, units_per_block: 8, held: 1 };
    let header = Header::new(8 * 4096, vec![shape.into()], "", "").expect("it has room");
    let film = Film::of_zeros(header.bytes());
    let mut store =
        Store::create(Arc::new(film.clone()), &header, None, &mut |_, _| ControlFlow::Continue(()))
            .expect("no disk fails");
    store.complete().expect("no disk fails");
    let mut medium = store.media(0..1).remove(0);
    let cycle = |erases| Cycle { erases, ..Cycle::default() };
    (0..3).for_each(|block| medium.erase(BlockId(block), cycle(0)));
    let place = |sequence| Place { lpn: Lpn(3), sequence };
    for sequence in [1, 2] {
        medium.program(Ppn(8 * (sequence as u32 - 1)), place(sequence), Some(&page_bytes(3, sequence)));
    }
    store.close(Time::ZERO).expect("no disk fails");
    film.flip(film.places(&page_bytes(3, 2))[0]);
    medium.copy(Ppn(8), Ppn(16), place(2));
    medium.erase(BlockId(1), cycle(1));
    medium.program(Ppn(8), Place { lpn: Lpn(4), sequence: 3 }, Some(&page_bytes(4, 3)));
    store.settle(Time::ZERO);
    for seed in 0..40 {
        let film = film.left(End::PowerLost, &mut Stream::new(seed, "moved"));
        let watch = &mut |_, _| ControlFlow::Continue(());
        let opened = Store::resume(Arc::new(film), &header, None, watch).expect("it is fit");
        let Opened::Old(store, found, _) = opened else { panic!("nothing is begun on a disk") };
        let newest = (0..).zip(&found[0].places).filter(|(_, found)| **found == Some(place(2)));
        let newest: Vec<u32> = newest.map(|(ppn, _)| ppn).collect();
        assert!(newest.contains(&16), "{newest:?}");
        assert_eq!(store.media(0..1)[0].read(Ppn(16)), None);
    }
}

#[test]
fn what_was_flushed_is_not_flushed_again() {
    let mut desk = Desk::new();
    desk.keeper.keep(3, Some(&page_bytes(3, 1)));
    let flushed = desk.store.begin_sync();
    assert_eq!(desk.store.begin_sync(), flushed);
    // What is told after it has to wait for a later one.
    desk.keeper.hand_over(3);
    let later = desk.store.begin_sync();
    assert!(later > flushed);
}
