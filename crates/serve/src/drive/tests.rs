use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use flashkeel_engine::{Limits, Wake};
use flashkeel_store::{Disk, Header};

use super::*;

/// A device that ends at once what it takes, and takes so many requests, unless it refuses all.
struct Prompt {
    room: usize,
    refuses: bool,
    taken: Vec<Request>,
    status: Status,
    ended: Vec<Completion>,
}

impl Leaf for Prompt {
    fn limits(&self) -> Limits {
        unreachable!("nobody asks")
    }

    fn submit(&mut self, now: Time, request: &Request, _data: &mut Arena) -> Submit {
        if self.room == 0 {
            return Submit::Busy;
        }
        if self.refuses {
            return Submit::Refused(self.status);
        }
        self.room -= 1;
        let ledger = flashkeel_engine::Ledger::ZERO;
        self.taken.push(*request);
        self.ended.push(Completion { id: request.id, time: now, status: self.status, ledger });
        Submit::Accepted
    }

    fn next_event(&self) -> Wake {
        Wake::new(self.ended.first().map(|end| end.time), false)
    }

    fn advance(&mut self, _now: Time, _data: &mut Arena, completions: &mut Vec<Completion>) {
        completions.append(&mut self.ended);
    }

    fn cut_power(&mut self, _now: Time, _data: &mut Arena) {}
}

/// A disk in memory, which synchronises while nobody holds it up.
#[derive(Default)]
struct Memory {
    bytes: Mutex<Vec<u8>>,
    held_up: Mutex<()>,
}

impl Disk for Memory {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let from = offset as usize;
        bytes.copy_from_slice(&self.bytes.lock().unwrap()[from..from + bytes.len()]);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (mut all, from) = (self.bytes.lock().unwrap(), offset as usize);
        let end = (from + bytes.len()).max(all.len());
        all.resize(end, 0);
        all[from..from + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        drop(self.held_up.lock().unwrap());
        Ok(())
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn look(&self, _least: u64) -> io::Result<()> {
        Ok(())
    }
}

fn store(disk: &Arc<Memory>) -> Store {
    let header = Header::new(1 << 20, vec![], "", "").expect("a header");
    let disk: Arc<dyn Disk> = Arc::<Memory>::clone(disk);
    Store::create(disk, &header, Some(Box::new(|| {})), &mut |_, _| ControlFlow::Continue(()))
        .expect("a store")
}

fn drive(room: usize, store: Option<Store>) -> Drive<Prompt> {
    let device = Prompt { room, refuses: false, taken: vec![], status: Status::Ok, ended: vec![] };
    Drive::new(Time::ZERO, device, store)
}

fn ask(kind: Kind, cookie: u64, length: u32) -> Ask<'static> {
    Ask { cookie, kind, from: 0, length, fua: false, data: &[] }
}

/// The requests that are answered by `now`.
fn answered(drive: &mut Drive<Prompt>, now: Time) -> Vec<u64> {
    let mut cookies = Vec::new();
    drive.advance(now, |client, _, _| cookies.push(client.cookie)).expect("nothing has failed");
    cookies
}

#[test]
fn a_flush_that_has_nothing_to_make_durable_is_answered_at_once() {
    let mut store = store(&Arc::default());
    store.complete().expect("it is whole");
    let mut drive = drive(8, Some(store));
    for cookie in 0..2 {
        assert!(drive.submit(Time::ZERO, 0, &ask(Kind::Flush, cookie, 0)).is_none());
        assert_eq!(answered(&mut drive, Time::ZERO), [cookie]);
    }
}

#[test]
fn room_for_what_has_ended_is_kept_for_what_ends_next() {
    let mut drive = drive(8, None);
    for cookie in 0..2 {
        assert!(drive.submit(Time::ZERO, 0, &ask(Kind::Flush, cookie, 0)).is_none());
        assert_eq!(answered(&mut drive, Time::ZERO), [cookie]);
    }
    assert!(drive.completions.capacity() > 0 && drive.ended.capacity() > 0);
}

#[test]
fn what_waits_of_a_client_that_has_gone_is_forgotten() {
    let mut drive = drive(1, None);
    for (session, cookie) in [(0, 0), (0, 1), (1, 2), (0, 3)] {
        assert!(drive.submit(Time::ZERO, session, &ask(Kind::Read, cookie, 4096)).is_none());
    }
    assert_eq!(drive.forget(0), 1, "the device has one");
    assert_eq!(drive.data.taken(), 2);
    assert_eq!(answered(&mut drive, Time::ZERO), [0]);
    assert_eq!(drive.forget(0), 0);
    drive.device.room = 8;
    drive.offer(Time::ZERO);
    assert!(!drive.is_idle());
    assert_eq!(answered(&mut drive, Time::ZERO), [2]);
    assert!(drive.is_idle());
    assert_eq!(drive.data.taken(), 0);
}

#[test]
fn how_long_a_flush_waits_is_told_in_the_time_of_the_model() {
    let disk = Arc::<Memory>::default();
    let mut drive = drive(8, Some(store(&disk)));
    let held_up = disk.held_up.lock().unwrap();
    assert!(drive.submit(Time::ZERO, 0, &ask(Kind::Flush, 5, 0)).is_none());
    assert!(answered(&mut drive, Time::ZERO).is_empty());
    assert!(!drive.is_idle(), "it waits to be durable");
    drop(held_up);
    let hour = 3_600_000_000_000;
    while answered(&mut drive, Time(hour)).is_empty() {
        std::hint::spin_loop();
    }
    assert!(drive.synced().max_ns.abs_diff(hour) < hour / 1000, "{:?}", drive.synced());
}

const MIB: u32 = 1 << 20;

#[test]
fn a_long_trim_is_served_piece_by_piece_and_answered_once() {
    let mut drive = drive(100, None);
    let trim = Ask { from: 512 << 10, ..ask(Kind::Trim, 0, 3 * MIB) };
    assert!(drive.submit(Time::ZERO, 0, &trim).is_none());
    for (now, last) in [(10, false), (20, false), (30, false), (40, true)] {
        assert!(drive.has_piece() && !drive.is_idle());
        drive.give_piece(Time(now));
        drive.give_piece(Time(now));
        // Somebody else is served as soon.
        assert!(drive.submit(Time(now), 1, &ask(Kind::Read, now, 4096)).is_none());
        assert_eq!(answered(&mut drive, Time(now)), if last { vec![0, now] } else { vec![now] });
    }
    assert!(!drive.has_piece() && drive.is_idle());
    let trims = drive.device.taken.iter().filter(|request| request.operation == Operation::Trim);
    let pieces: Vec<_> = trims.map(|piece| (piece.lba.0, piece.sectors)).collect();
    assert_eq!(pieces, [(1024, 1024), (2048, 2048), (4096, 2048), (6144, 1024)]);
    let tallies = drive.seen().tallies();
    let tally = tallies.iter().find(|tally| tally.bytes == 3 << 20).expect("it is one request");
    let took: u64 = tally.took_ns.iter().sum();
    assert_eq!((tally.count, took, tally.owned_ns.iter().sum()), (1, 40, took));
}

#[test]
fn clients_have_their_long_trims_served_in_turn_each_its_own_in_order() {
    let mut drive = drive(100, None);
    for (session, cookie) in [(0, 0), (0, 1), (1, 2)] {
        assert!(drive.submit(Time::ZERO, session, &ask(Kind::WriteZeroes, cookie, 2 * MIB)).is_none());
    }
    let ends: Vec<Vec<u64>> = (1..=6)
        .map(|now| {
            drive.give_piece(Time(now));
            answered(&mut drive, Time(now))
        })
        .collect();
    assert_eq!(ends, [vec![], vec![], vec![0], vec![2], vec![], vec![1]]);
}

#[test]
fn a_long_trim_ends_with_the_first_piece_that_fails() {
    let mut drive = drive(100, None);
    assert!(drive.submit(Time::ZERO, 0, &ask(Kind::Trim, 7, 3 * MIB)).is_none());
    drive.device.status = Status::MediaError;
    drive.give_piece(Time(1));
    assert_eq!(answered(&mut drive, Time(1)), [7]);
    assert!(drive.is_idle() && !drive.has_piece());
}

#[test]
fn a_piece_that_is_refused_is_not_taken_before_the_last_has_ended() {
    let mut drive = drive(100, None);
    assert!(drive.submit(Time::ZERO, 0, &ask(Kind::Trim, 7, 3 * MIB)).is_none());
    drive.give_piece(Time(10));
    assert!(answered(&mut drive, Time(20)).is_empty());
    (drive.device.refuses, drive.device.status) = (true, Status::ReadOnly);
    drive.give_piece(Time(30));
    assert_eq!(answered(&mut drive, Time(30)), [7]);
}

#[test]
fn of_a_client_that_has_gone_no_further_piece_is_served() {
    for room in 0..2 {
        let mut drive = drive(room, None);
        for (session, cookie) in [(0, 0), (0, 1), (1, 2)] {
            assert!(drive.submit(Time::ZERO, session, &ask(Kind::Trim, cookie, 2 * MIB)).is_none());
        }
        drive.give_piece(Time(1));
        assert_eq!(drive.forget(0), room, "what the device has");
        drive.device.room = 100;
        assert_eq!(answered(&mut drive, Time(1)), vec![0; room]);
        drive.give_piece(Time(2));
        assert!(answered(&mut drive, Time(2)).is_empty());
        drive.give_piece(Time(3));
        assert_eq!(answered(&mut drive, Time(3)), [2]);
        assert!(drive.is_idle() && !drive.has_piece());
    }
}
