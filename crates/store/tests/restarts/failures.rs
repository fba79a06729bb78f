//! A synchronisation that fails: nothing is made durable, or written, after it. A page that cannot
//! be read: all others are served.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use flashkeel_device::{BlockId, Cycle, Lpn, Medium, Place, Ppn};
use flashkeel_engine::{Stream, Time};
use flashkeel_store::{Disk, Header, Opened, SectionShape, Store};

use crate::film::{End, Film};

fn header() -> Header {
    let shape = SectionShape { lpns: 8, ppns: 16, units_per_block: 8, slots: 8 };
    Header::new(8 * 4096, vec![shape], "", "").expect("a header")
}

/// A new store, and what hears of each synchronisation that has ended.
fn store() -> (Store, Film, Receiver<()>) {
    let (wake, awake) = channel();
    let wake = Box::new(move || {
        let _ = wake.send(());
    });
    let film = Film::of_zeros(header().bytes());
    let mut store =
        Store::create(Arc::new(film.clone()), &header(), Some(wake), &mut |_, _| ControlFlow::Continue(()))
            .expect("a store");
    store.complete().expect("it is whole");
    rest(&awake);
    (store, film, awake)
}

fn rest(awake: &Receiver<()>) {
    while awake.recv_timeout(Duration::from_millis(20)).is_ok() {}
}

fn erased(times: u32) -> Cycle {
    Cycle { erases: times, ..Cycle::default() }
}

#[test]
fn what_was_flushed_outlasts_a_synchronisation_that_fails_before_the_host_loses_power() {
    for case in 0..20 {
        let (store, film, awake) = store();
        let flash = &mut store.media(0..1)[0];
        flash.erase(BlockId(0), erased(1));
        flash.erase(BlockId(1), erased(1));
        flash.program(Ppn(0), Place { lpn: Lpn(0), sequence: 1 }, Some(&[7; 4096]));
        let flushed = store.begin_sync();
        rest(&awake);
        assert!(store.synced() >= flushed);

        // It is moved, and its block erased; that does not become durable.
        flash.copy(Ppn(0), Ppn(8), Place { lpn: Lpn(0), sequence: 1 });
        flash.erase(BlockId(0), erased(2));
        film.fail_once();
        let failed = store.begin_sync();
        rest(&awake);
        // Somebody else flushes before anybody has asked what has failed.
        flash.trim(Lpn(5), 2);
        let next = store.begin_sync();
        rest(&awake);
        assert!(store.synced() < failed && store.synced() < next);
        flash.program(Ppn(0), Place { lpn: Lpn(1), sequence: 3 }, Some(&[9; 4096]));
        store.settle(Time::ZERO);
        assert!(store.fault().is_some());

        let left = Arc::new(film.left(End::PowerLost, &mut Stream::new(case, "failure")));
        let found = Store::resume(left, &header(), None, &mut |_, _| ControlFlow::Continue(()));
        let Ok(Opened::Old(store, found, _)) = found else { panic!("it is there") };
        let is_first = |place: &Option<Place>| place.is_some_and(|place| place.lpn == Lpn(0));
        let ppn = found[0].places.iter().position(is_first).expect("it is found") as u32;
        assert_eq!(store.media(0..1)[0].read(Ppn(ppn)).map(|page| page[0]), Some(7));
    }
}

#[test]
fn nothing_is_written_after_a_failure_and_closing_says_so() {
    let film = Film::of_zeros(header().bytes());
    let mut store =
        Store::create(Arc::new(film.clone()), &header(), None, &mut |_, _| ControlFlow::Continue(()))
            .expect("a store");
    store.complete().expect("it is whole");
    let flash = &mut store.media(0..1)[0];
    film.fail_once();
    flash.trim(Lpn(5), 2);
    store.begin_sync();
    assert!(store.fault().is_some());
    let written = film.unsynced();
    flash.trim(Lpn(6), 3);
    flash.erase(BlockId(0), erased(1));
    store.settle(Time::ZERO);
    assert!(store.close(Time::ZERO).is_err(), "however often it has been asked for");
    assert_eq!(film.unsynced(), written);
}

#[test]
fn a_page_is_damaged_wherever_it_is_copied_once_its_record_cannot_be_read() {
    let film = Film::of_zeros(header().bytes());
    let mut store =
        Store::create(Arc::new(film.clone()), &header(), None, &mut |_, _| ControlFlow::Continue(()))
            .expect("a store");
    store.complete().expect("it is whole");
    let flash = &mut store.media(0..1)[0];
    flash.erase(BlockId(0), erased(1));
    flash.erase(BlockId(1), erased(1));
    let place = Place { lpn: Lpn(0), sequence: 1 };
    flash.program(Ppn(0), place, Some(&[7; 4096]));
    store.settle(Time::ZERO);
    // Behind the header, two records of the last epoch, and what is known of the blocks.
    film.write_at(&[255; 32], 4 * 4096).expect("it is written");
    assert_eq!(flash.read(Ppn(0)), None);

    flash.copy(Ppn(0), Ppn(8), place);
    // Of its own bytes nothing is known, so nothing is rebuilt that could be others.
    let is_damaged = |flash: &dyn Medium| {
        flash.read(Ppn(8)).is_none()
            && !flash.matches(Ppn(8), &[0; 4096])
            && !flash.matches(Ppn(8), &[7; 4096])
    };
    assert!(is_damaged(&**flash));
    flash.erase(BlockId(0), erased(2));
    flash.program(Ppn(0), Place { lpn: Lpn(1), sequence: 2 }, Some(&[9; 4096]));
    assert_eq!(flash.read(Ppn(0)).map(|page| page[0]), Some(9));
    store.close(Time::ZERO).expect("serving goes on");

    let found = Store::resume(Arc::new(film), &header(), None, &mut |_, _| ControlFlow::Continue(()));
    let Ok(Opened::Old(store, found, _)) = found else { panic!("it is there") };
    assert_eq!(found[0].places[8], Some(place));
    let flash = &store.media(0..1)[0];
    assert!(is_damaged(&**flash));
    assert_eq!(flash.read(Ppn(0)).map(|page| page[0]), Some(9));
}
