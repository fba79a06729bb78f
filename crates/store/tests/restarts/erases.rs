//! When blocks that were erased may be programmed again.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use flashkeel_device::{BlockId, Cycle};
use flashkeel_engine::Time;
use flashkeel_store::{Header, SectionShape, Store};

use crate::film::Film;

#[test]
fn an_erase_is_synchronised_before_anybody_waits_for_it() {
    let shape = SectionShape { lpns: 8, ppns: 16, units_per_block: 8, slots: 8 };
    let header = Header::new(8 * 4096, vec![shape], "", "").expect("a header");
    let (wake, awake) = channel();
    let wake = Box::new(move || {
        let _ = wake.send(());
    });
    let film = Arc::new(Film::of_zeros(header.bytes()));
    let mut store =
        Store::create(film, &header, Some(wake), &mut |_, _| ControlFlow::Continue(())).expect("a store");
    store.complete().expect("it is whole");
    while awake.recv_timeout(Duration::from_millis(20)).is_ok() {}
    let before = store.synced();
    let mut media = store.media(0..1);
    media[0].erase(BlockId(0), Cycle::default());
    store.settle(Time::ZERO);
    awake.recv_timeout(Duration::from_secs(1)).expect("it is synchronised");
    assert!(store.synced() > before);
}
