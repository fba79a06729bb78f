//! Files as they are made, and what becomes of them under a server.

use std::fs::{self, OpenOptions};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use flashkeel_device::Lpn;
use flashkeel_engine::Time;
use flashkeel_store::{Header, Opened, Refused, SectionShape, Store};

fn header() -> Header {
    let shape = SectionShape { lpns: 1 << 17, ppns: 1 << 17, units_per_block: 1 << 10, slots: 8 };
    Header::new(8 * 4096, vec![shape], "", "").expect("a header")
}

/// The folder and the path of a new file, and the store in it, which is whole.
fn stored(name: &str) -> (PathBuf, PathBuf, Store) {
    let folder = std::env::temp_dir().join(format!("flashkeel-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("drive.data");
    let wake = Some(Box::new(|| {}) as Box<dyn Fn() + Send>);
    let go_on = &mut |_: &'static str, _| ControlFlow::Continue(());
    let Ok(Opened::New(mut store)) = Store::open(&path, &header(), wake, go_on) else { panic!("a store") };
    store.complete().expect("it is whole");
    (folder, path, store)
}

#[test]
fn making_a_file_is_told_of_and_leaves_nothing_where_it_is_broken_off() {
    let folder = std::env::temp_dir().join(format!("flashkeel-break-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let mut told = Vec::new();
    let watch = &mut |phase, fraction| {
        told.push((phase, fraction));
        if told.len() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let refused = Store::open(&folder.join("drive.data"), &header(), None, watch);
    assert!(matches!(refused, Err(Refused::Failed(error)) if error.kind() == io::ErrorKind::Interrupted));
    assert!(told.iter().all(|&(phase, fraction)| phase == "format" && fraction > 0.0 && fraction <= 1.0));
    assert!(told.is_sorted_by(|one, next| one.1 < next.1));
    fs::remove_dir(folder).expect("it is empty");
}

/// What is noticed by itself of harm that is done to a file, and only then.
fn noticed(name: &str, harm: impl FnOnce(&Path) -> io::Result<()>) -> String {
    let (folder, path, store) = stored(name);
    sleep(Duration::from_millis(250));
    assert!(store.fault().is_none());
    harm(&path).expect("it is there");
    let until = Instant::now() + Duration::from_secs(10);
    while store.fault().is_none() && Instant::now() < until {
        sleep(Duration::from_millis(10));
    }
    assert!(store.close(Time::ZERO).is_err());
    fs::remove_dir_all(folder).expect("it is ours");
    store.fault().expect("it is noticed").to_string()
}

#[test]
fn a_file_that_is_deleted_or_cut_short_is_noticed_by_itself() {
    assert_eq!(noticed("deleted", |path| fs::remove_file(path)), "it was found deleted");
    let said = noticed("short", |path| OpenOptions::new().write(true).open(path)?.set_len(4096));
    assert!(said.starts_with("it was found cut short, to 4096 bytes of "), "{said}");
}

#[test]
fn what_is_written_to_a_deleted_file_never_passes_for_durable() {
    let (folder, path, store) = stored("flushed");
    fs::remove_file(path).expect("it is there");
    store.media(0..1)[0].trim(Lpn(5), 2);
    let flushed = store.begin_sync();
    sleep(Duration::from_millis(50));
    assert!(store.synced() < flushed);
    fs::remove_dir_all(folder).expect("it is ours");
}
