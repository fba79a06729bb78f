//! Real files as drives.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flashkeel_blockdev::{Access, Drive, Fault, Touched, World, find};
use flashkeel_engine::{
    Arena, Completion, Lba, Leaf, Operation, Outside, Request, RequestId, Status, Submit, Time, Wake,
};

const BYTES: usize = 1 << 20;

/// A file with these bytes in a folder of its own.
fn file(bytes: &[u8]) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}", std::process::id()));
    fs::write(&path, bytes).expect("a file");
    path
}

/// A drive, and whoever drives it.
struct Driven {
    world: World,
    drive: Drive,
    data: Arena,
    next: u64,
}

impl Driven {
    fn open(path: &Path, access: Access) -> Driven {
        let world = World::new().expect("a world");
        let drive = Drive::open(&world, path, access, 4).expect("a drive");
        Driven { world, drive, data: Arena::new(), next: 0 }
    }

    /// Waits for the end of what is on its way.
    fn wait(&mut self, count: usize) -> Vec<Completion> {
        let mut ended = Vec::new();
        while ended.len() < count {
            assert!(self.drive.next_event().hears_outside());
            let now = self.world.wait(self.drive.next_event().time());
            self.drive.advance(now, &mut self.data, &mut ended);
        }
        ended
    }

    /// Serves one request with these bytes, or as many; returns what it read.
    fn serve(&mut self, operation: Operation, page: u64, bytes: Option<&[u8]>) -> (Status, Vec<u8>) {
        let sectors = if operation == Operation::Flush { 0 } else { 8 };
        let mut request = Request::new(RequestId(self.next), operation, Lba(page * 8), sectors);
        self.next += 1;
        request.payload = self.data.take(8);
        if let Some(bytes) = bytes {
            self.data.write(request.payload, 8).expect("room").copy_from_slice(bytes);
        }
        let now = self.world.now();
        let status = match self.drive.submit(now, &request, &mut self.data) {
            Submit::Accepted => {
                let end = self.wait(1)[0];
                assert_eq!(end.id, request.id);
                assert!(end.time >= now);
                end.status
            }
            Submit::Refused(status) => status,
            Submit::Busy => panic!("it has nothing to do"),
        };
        let read = self.data.read(request.payload, 8).expect("bytes").to_vec();
        self.data.give_back(request.payload);
        (status, read)
    }
}

#[test]
fn what_is_written_is_read_again_and_is_in_the_file() {
    let path = file(&[1; BYTES]);
    let mut driven = Driven::open(&path, Access::Destroy);
    assert_eq!(driven.drive.limits().sectors, BYTES as u64 / 512);
    assert_eq!(driven.serve(Operation::Read, 3, None), (Status::Ok, vec![1; 4096]));
    assert_eq!(driven.serve(Operation::Write, 3, Some(&[7; 4096])).0, Status::Ok);
    assert_eq!(driven.serve(Operation::WriteZeroes, 4, None).0, Status::Ok);
    assert_eq!(driven.serve(Operation::Trim, 5, None).0, Status::Ok);
    assert_eq!(driven.serve(Operation::Flush, 0, None).0, Status::Ok);
    assert_eq!(driven.serve(Operation::Demote, 0, None).0, Status::Ok);
    assert_eq!(driven.serve(Operation::Read, 3, None), (Status::Ok, vec![7; 4096]));
    assert_eq!(driven.serve(Operation::Read, 4, None), (Status::Ok, vec![0; 4096]));
    assert_eq!(driven.drive.bytes(), (3 * 4096, 2 * 4096));
    let (path, range) = (path.display().to_string(), Some((3 * 4096, 6 * 4096 - 1)));
    assert_eq!(driven.world.touched(), [Touched { path: path.clone(), bytes: 3 * 4096, range }]);
    assert_eq!(driven.world.fault(), None);
    drop(driven);
    let inside = fs::read(&path).expect("it is there");
    assert!(inside[3 * 4096..4 * 4096].iter().all(|&byte| byte == 7));
    assert!(inside[4 * 4096..5 * 4096].iter().all(|&byte| byte == 0));
    assert!(inside[..3 * 4096].iter().chain(&inside[6 * 4096..]).all(|&byte| byte == 1));
}

#[test]
fn several_are_on_their_way_and_no_more_than_allowed() {
    let mut driven = Driven::open(&file(&[1; BYTES]), Access::ReadOnly);
    let mut accepted = 0;
    for id in 0..4 {
        let request = Request::new(RequestId(id), Operation::Read, Lba(8 * id), 8);
        accepted += u64::from(driven.drive.submit(Time(0), &request, &mut driven.data) == Submit::Accepted);
    }
    assert_eq!(accepted, 4);
    let request = Request::new(RequestId(4), Operation::Read, Lba(0), 8);
    assert_eq!(driven.drive.submit(Time(0), &request, &mut driven.data), Submit::Busy);
    let ended = driven.wait(4);
    assert!(ended.iter().all(|end| end.status == Status::Ok && end.ledger.total().0 == end.time.0));
    assert_eq!(driven.drive.next_event(), Wake::OUTSIDE);
}

#[test]
fn nothing_is_written_unless_it_may_be_destroyed() {
    let path = file(&[1; BYTES]);
    let mut driven = Driven::open(&path, Access::ReadOnly);
    for operation in [Operation::Write, Operation::Trim, Operation::WriteZeroes] {
        assert_eq!(driven.serve(operation, 0, Some(&[9; 4096])).0, Status::ReadOnly);
    }
    assert!(matches!(driven.world.fault(), Some(Fault::Refused(why)) if why.contains("--destroy")));
    assert!(fs::read(&path).expect("it is there").iter().all(|&byte| byte == 1));
}

#[test]
fn what_lies_outside_is_refused() {
    let mut driven = Driven::open(&file(&[1; BYTES]), Access::Destroy);
    assert_eq!(driven.serve(Operation::Read, BYTES as u64 / 4096, None).0, Status::Invalid);
    assert_eq!(driven.world.fault(), None);
}

#[test]
fn a_file_that_shrinks_is_a_failure_with_its_place() {
    let path = file(&[1; BYTES]);
    let mut driven = Driven::open(&path, Access::Destroy);
    fs::OpenOptions::new().write(true).open(&path).expect("it is there").set_len(4096).expect("shorter");
    assert_eq!(driven.serve(Operation::Read, 2, None).0, Status::MediaError);
    let Some(Fault::Failed(why)) = driven.world.fault() else { panic!("it says nothing") };
    assert!(why.ends_with("a read of 4096 bytes at byte 8192 failed: 0 bytes were done"), "{why}");
}

#[test]
fn what_is_no_longer_as_it_was_is_a_failure() {
    let path = file(&[1; BYTES]);
    let shrunk = Driven::open(&path, Access::Destroy);
    shrunk.world.look();
    assert_eq!(shrunk.world.fault(), None);
    fs::OpenOptions::new().write(true).open(&path).expect("it is there").set_len(8192).expect("shorter");
    shrunk.world.look();
    let Some(Fault::Failed(why)) = shrunk.world.fault() else { panic!("it says nothing") };
    assert!(why.ends_with("it holds 8192 bytes now, and held 1048576"), "{why}");
    drop(shrunk);
    let gone = Driven::open(&path, Access::ReadOnly);
    fs::remove_file(&path).expect("it is there");
    gone.world.look();
    let Some(Fault::Failed(why)) = gone.world.fault() else { panic!("it says nothing") };
    assert!(why.ends_with("it has been deleted"), "{why}");
}

#[test]
fn long_requests_are_served_piece_by_piece() {
    const LONG: usize = 9 << 20;
    let path = file(&[1; LONG + 4096]);
    let mut driven = Driven::open(&path, Access::Destroy);
    let sectors = (LONG / 512) as u32;
    let mut serve = |operation, bytes: Option<&[u8]>| {
        let mut request = Request::new(RequestId(0), operation, Lba(8), sectors);
        request.payload = driven.data.take(sectors);
        if let Some(bytes) = bytes {
            driven.data.write(request.payload, sectors).expect("room").copy_from_slice(bytes);
        }
        assert_eq!(driven.drive.submit(Time(0), &request, &mut driven.data), Submit::Accepted);
        assert_eq!(driven.wait(1)[0].status, Status::Ok);
        let read = driven.data.read(request.payload, sectors).expect("bytes").to_vec();
        driven.data.give_back(request.payload);
        read
    };
    let bytes: Vec<u8> = (0..LONG).map(|at| (at >> 12) as u8 ^ (at >> 20) as u8).collect();
    serve(Operation::Write, Some(&bytes));
    assert!(serve(Operation::Read, None) == bytes);
    serve(Operation::WriteZeroes, None);
    assert!(serve(Operation::Read, None).iter().all(|&byte| byte == 0));
    assert_eq!(driven.drive.bytes(), (2 * LONG as u64, 2 * LONG as u64));
    assert!(fs::read(&path).expect("it is there")[..4096].iter().all(|&byte| byte == 1));
}

#[test]
fn a_drive_has_one_who_writes_to_it() {
    let path = file(&[1; BYTES]);
    let world = World::new().expect("a world");
    let one = Drive::open(&world, &path, Access::Destroy, 1).expect("the first");
    let refused = |access| Drive::open(&world, &path, access, 1).err().expect("another is there");
    assert_eq!(refused(Access::Destroy), "another process works with it");
    assert_eq!(refused(Access::ReadOnly), "another process works with it");
    drop(one);
    let _readers = [(); 2].map(|()| Drive::open(&world, &path, Access::ReadOnly, 1).expect("readers"));
    assert_eq!(refused(Access::Destroy), "another process works with it");
}

#[test]
fn what_is_no_drive_is_refused() {
    assert!(find(&PathBuf::from("/nowhere")).unwrap_err().contains("No such file"));
    assert_eq!(find(&PathBuf::from("/dev/null")).unwrap_err(), "neither a regular file nor a block device");
    assert_eq!(find(&file(&[1; 4095])).unwrap_err(), "4095 bytes, less than a block of 4096");
    let found = find(&file(&[1; 8200])).expect("two blocks");
    assert_eq!((found.bytes, found.tail_bytes), (8192, 8));
}
