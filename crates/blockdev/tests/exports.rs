//! Exports of servers as drives, of servers that do as they should and of others.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use flashkeel_blockdev::{Access, Export, Fault, World};
use flashkeel_engine::{
    Arena, Completion, Lba, Leaf, Operation, Outside, Request, RequestId, Status, Submit, Time,
};
use flashkeel_nbd::{Put, command, info, option, reply, transmission};

const BYTES: usize = 1 << 20;
const ALL: u16 = transmission::HAS_FLAGS
    | transmission::SEND_FLUSH
    | transmission::SEND_FUA
    | transmission::SEND_TRIM
    | transmission::SEND_WRITE_ZEROES;

/// A server that talks to one client after the other; returns its URI.
fn serve(talk: impl Fn(UnixStream) + Send + 'static) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("a socket");
    thread::spawn(move || {
        for line in listener.incoming().flatten() {
            talk(line);
        }
    });
    format!("nbd+unix:///disk?socket={}", path.display())
}

fn answer(about: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let mut said = Vec::new();
    said.u64(flashkeel_nbd::OPTION_REPLY);
    said.u32(about);
    said.u32(kind);
    said.u32(data.len() as u32);
    said.put(data);
    said
}

fn take<const N: usize>(line: &mut UnixStream) -> [u8; N] {
    let mut bytes = [0; N];
    let _ = line.read_exact(&mut bytes);
    bytes
}

/// The negotiation; whether the export is used then.
fn agree(line: &mut UnixStream, flags: u16, bytes: u64) -> bool {
    let _ = line.write_all(b"NBDMAGICIHAVEOPT\0\x03");
    take::<4>(line);
    let head: [u8; 16] = take(line);
    let about = u32::from_be_bytes([head[8], head[9], head[10], head[11]]);
    let mut data = vec![0; u32::from_be_bytes([head[12], head[13], head[14], head[15]]) as usize];
    let _ = line.read_exact(&mut data);
    assert_eq!(&data[4..8], b"disk");
    let mut export = Vec::new();
    export.u16(info::EXPORT);
    export.u64(bytes);
    export.u16(flags);
    let mut blocks = Vec::new();
    blocks.u16(info::BLOCK_SIZE);
    [512, 4096, 65536].into_iter().for_each(|bytes| blocks.u32(bytes));
    for said in [
        answer(about, reply::INFO, &export),
        answer(about, reply::INFO, &blocks),
        answer(about, reply::ACK, b""),
    ] {
        let _ = line.write_all(&said);
    }
    about == option::GO
}

fn replied(error: u32, cookie: u64, data: &[u8]) -> Vec<u8> {
    let mut said = Vec::new();
    said.u32(flashkeel_nbd::SIMPLE_REPLY);
    said.u32(error);
    said.u64(cookie);
    said.put(data);
    said
}

/// What a client asks for: flags and command, cookie, place and data.
type Asked = ((u16, u16), u64, (u64, u32), Vec<u8>);

fn asked(line: &mut UnixStream) -> Option<Asked> {
    let mut head = [0; 28];
    line.read_exact(&mut head).ok()?;
    let mut reader = flashkeel_nbd::Reader(&head);
    assert_eq!(reader.u32(), Some(flashkeel_nbd::REQUEST));
    let kind = (reader.u16()?, reader.u16()?);
    let (cookie, place) = (reader.u64()?, (reader.u64()?, reader.u32()?));
    let mut data = vec![0; if kind.1 == command::WRITE { place.1 as usize } else { 0 }];
    line.read_exact(&mut data).ok()?;
    Some((kind, cookie, place, data))
}

/// Serves memory.
fn memory(flags: u16) -> impl Fn(UnixStream) + Send {
    move |mut line| {
        if !agree(&mut line, flags, BYTES as u64 + 100) {
            return;
        }
        let mut memory = vec![1; BYTES];
        while let Some(((_, kind), cookie, (offset, length), data)) = asked(&mut line) {
            let range = offset as usize..offset as usize + length as usize;
            let mut found = Vec::new();
            match kind {
                command::READ => found = memory[range].to_vec(),
                command::WRITE => memory[range].copy_from_slice(&data),
                command::WRITE_ZEROES => memory[range].fill(0),
                command::DISCONNECT => return,
                _ => {}
            }
            // In two parts, as lines like to do.
            let said = replied(0, cookie, &found);
            let (one, two) = said.split_at(said.len() * 2 / 3);
            let _ = line.write_all(one).and_then(|()| line.write_all(two));
        }
    }
}

/// An export, and whoever drives it.
struct Driven {
    world: World,
    export: Export,
    data: Arena,
    next: u64,
}

impl Driven {
    fn open(uri: &str, access: Access) -> Driven {
        let world = World::new().expect("a world");
        let export = Export::open(&world, uri, access, 4).unwrap_or_else(|why| panic!("{why}"));
        Driven { world, export, data: Arena::new(), next: 0 }
    }

    fn wait(&mut self, count: usize) -> Vec<Completion> {
        let mut ended = Vec::new();
        while ended.len() < count {
            let now = self.world.wait(self.export.next_event().time());
            self.export.advance(now, &mut self.data, &mut ended);
        }
        ended
    }

    fn request(&mut self, operation: Operation, page: u64) -> Request {
        let sectors = if operation == Operation::Flush { 0 } else { 8 };
        self.next += 1;
        Request::new(RequestId(self.next), operation, Lba(page * 8), sectors)
    }

    /// Serves one request with these bytes, or as many; returns what it read.
    fn serve(&mut self, operation: Operation, page: u64, bytes: Option<&[u8]>) -> (Status, Vec<u8>) {
        let mut request = self.request(operation, page);
        request.payload = self.data.take(8);
        if let Some(bytes) = bytes {
            self.data.write(request.payload, 8).expect("room").copy_from_slice(bytes);
        }
        let now = self.world.now();
        let status = match self.export.submit(now, &request, &mut self.data) {
            Submit::Accepted => self.wait(1)[0].status,
            Submit::Refused(status) => status,
            Submit::Busy => panic!("it has nothing to do"),
        };
        let read = self.data.read(request.payload, 8).expect("bytes").to_vec();
        self.data.give_back(request.payload);
        (status, read)
    }

    fn failure(&self) -> String {
        match self.world.fault() {
            Some(Fault::Failed(why)) => why,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_written_is_read_again() {
    // Of a server that knows all, and of one that knows nothing beside reads and writes.
    for flags in [ALL, transmission::HAS_FLAGS] {
        let uri = serve(memory(flags));
        assert_eq!(Export::find(&uri), Ok(BYTES as u64));
        let mut driven = Driven::open(&uri, Access::Destroy);
        assert_eq!(driven.export.limits().sectors, BYTES as u64 / 512);
        assert_eq!(driven.serve(Operation::Read, 3, None), (Status::Ok, vec![1; 4096]));
        assert_eq!(driven.serve(Operation::Write, 3, Some(&[7; 4096])).0, Status::Ok);
        for operation in [Operation::WriteZeroes, Operation::Trim, Operation::Flush, Operation::Demote] {
            assert_eq!(driven.serve(operation, 4, None).0, Status::Ok, "{operation:?}");
        }
        assert_eq!(driven.serve(Operation::Read, 3, None), (Status::Ok, vec![7; 4096]));
        assert_eq!(driven.serve(Operation::Read, 4, None), (Status::Ok, vec![0; 4096]));
        assert_eq!(driven.export.bytes(), (3 * 4096, 2 * 4096));
        // The trim too, where it was asked for.
        let touched = if flags == ALL { 3 } else { 2 };
        assert_eq!(driven.world.touched()[0].bytes, touched * 4096);
        assert_eq!(driven.serve(Operation::Read, 256, None).0, Status::Invalid);
        assert_eq!(driven.world.fault(), None);
        assert!(driven.world.heard().is_err(), "who does not wait in the world would hear nothing");
    }
}

#[test]
fn forced_unit_access_is_a_flush_where_the_server_knows_none() {
    let (told, heard) = std::sync::mpsc::channel();
    let uri = serve(move |mut line| {
        agree(&mut line, transmission::HAS_FLAGS | transmission::SEND_FLUSH, BYTES as u64);
        while let Some(((flags, kind), cookie, ..)) = asked(&mut line) {
            told.send((flags, kind)).expect("somebody hears");
            let _ = line.write_all(&replied(0, cookie, b""));
        }
    });
    let mut driven = Driven::open(&uri, Access::Destroy);
    let request = Request { fua: true, ..driven.request(Operation::Write, 0) };
    assert_eq!(driven.export.submit(Time(0), &request, &mut driven.data), Submit::Accepted);
    assert_eq!(driven.wait(1)[0].status, Status::Ok);
    assert_eq!([heard.recv(), heard.recv()], [Ok((0, command::WRITE)), Ok((0, command::FLUSH))]);
}

#[test]
fn forced_unit_access_is_a_plain_write_where_the_server_has_no_caches() {
    let uri = serve(|mut line| {
        agree(&mut line, transmission::HAS_FLAGS, BYTES as u64);
        while let Some(((_, kind), cookie, ..)) = asked(&mut line) {
            let error = if kind == command::FLUSH { 22 } else { 0 };
            let _ = line.write_all(&replied(error, cookie, b""));
        }
    });
    let mut driven = Driven::open(&uri, Access::Destroy);
    for operation in [Operation::Write, Operation::WriteZeroes] {
        let request = Request { fua: true, ..driven.request(operation, 0) };
        assert_eq!(driven.export.submit(driven.world.now(), &request, &mut driven.data), Submit::Accepted);
        assert_eq!(driven.wait(1)[0].status, Status::Ok, "{:?}", driven.world.fault());
    }
}

#[test]
fn every_change_has_its_forced_unit_access_where_the_server_knows_it() {
    let (told, heard) = std::sync::mpsc::channel();
    let uri = serve(move |mut line| {
        agree(&mut line, ALL, BYTES as u64);
        while let Some(((flags, kind), cookie, ..)) = asked(&mut line) {
            told.send((flags, kind)).expect("somebody hears");
            let _ = line.write_all(&replied(0, cookie, b""));
        }
    });
    let mut driven = Driven::open(&uri, Access::Destroy);
    for (operation, kind) in [
        (Operation::Write, command::WRITE),
        (Operation::WriteZeroes, command::WRITE_ZEROES),
        (Operation::Trim, command::TRIM),
    ] {
        let request = Request { fua: true, ..driven.request(operation, 0) };
        assert_eq!(driven.export.submit(driven.world.now(), &request, &mut driven.data), Submit::Accepted);
        assert_eq!(driven.wait(1)[0].status, Status::Ok);
        assert_eq!(heard.recv(), Ok((command::FUA, kind)));
    }
}

#[test]
fn answers_come_in_any_order_and_no_more_are_asked_than_allowed() {
    let uri = serve(|mut line| {
        agree(&mut line, ALL, BYTES as u64);
        let mut all: Vec<_> = (0..4).filter_map(|_| asked(&mut line)).collect();
        all.reverse();
        for (_, cookie, (offset, length), _) in all {
            let _ = line.write_all(&replied(0, cookie, &vec![(offset / 4096) as u8; length as usize]));
        }
        asked(&mut line);
    });
    let mut driven = Driven::open(&uri, Access::ReadOnly);
    let mut requests = Vec::new();
    for page in 0..4 {
        let mut request = driven.request(Operation::Read, page);
        request.payload = driven.data.take(8);
        assert_eq!(driven.export.submit(driven.world.now(), &request, &mut driven.data), Submit::Accepted);
        requests.push(request);
    }
    let more = driven.request(Operation::Read, 4);
    assert_eq!(driven.export.submit(driven.world.now(), &more, &mut driven.data), Submit::Busy);
    let ended = driven.wait(4);
    assert!(ended.iter().map(|end| end.id.0).eq([4, 3, 2, 1]), "{ended:?}");
    for (page, request) in requests.iter().enumerate() {
        let read = driven.data.read(request.payload, 8).expect("bytes");
        assert!(read.iter().all(|&byte| usize::from(byte) == page));
    }
}

#[test]
fn a_server_that_goes_in_mid_run_takes_what_was_on_its_way() {
    let uri = serve(|mut line| {
        agree(&mut line, ALL, BYTES as u64);
        asked(&mut line);
    });
    let mut driven = Driven::open(&uri, Access::Destroy);
    assert_eq!(driven.serve(Operation::Read, 0, None).0, Status::Gone);
    assert!(driven.failure().contains("with 1 requests on their way"), "{}", driven.failure());
    assert_eq!(driven.serve(Operation::Read, 0, None).0, Status::Gone);
}

#[test]
fn an_error_of_the_server_is_one_of_the_request() {
    let uri = serve(|mut line| {
        agree(&mut line, ALL, BYTES as u64);
        while let Some((_, cookie, ..)) = asked(&mut line) {
            let _ = line.write_all(&replied(28, cookie, b""));
        }
    });
    let mut driven = Driven::open(&uri, Access::Destroy);
    assert_eq!(driven.serve(Operation::Write, 2, None).0, Status::NoSpace);
    let why = driven.failure();
    assert!(why.ends_with("a write of 4096 bytes at byte 8192 failed: No space left on device"), "{why}");
}

#[test]
fn nothing_is_written_unless_it_may_be_destroyed() {
    for (flags, access, words) in [
        (ALL, Access::ReadOnly, "--destroy"),
        (ALL | transmission::READ_ONLY, Access::Destroy, "the server lets nobody write to it"),
    ] {
        let mut driven = Driven::open(&serve(memory(flags)), access);
        assert_ne!(driven.serve(Operation::Write, 0, None).0, Status::Ok);
        assert!(matches!(driven.world.fault(), Some(Fault::Refused(why)) if why.contains(words)));
        assert_eq!(driven.serve(Operation::Read, 0, None).0, Status::Ok);
    }
}

#[test]
fn a_request_longer_than_the_server_takes_is_refused() {
    let mut driven = Driven::open(&serve(memory(ALL)), Access::ReadOnly);
    let long = Request { sectors: 136, ..driven.request(Operation::Read, 0) };
    assert_eq!(driven.export.submit(Time(0), &long, &mut driven.data), Submit::Refused(Status::Invalid));
    let Some(Fault::Refused(why)) = driven.world.fault() else { panic!("it says nothing") };
    assert!(why.ends_with("a request of 69632 bytes, of at most 65536 that its server takes"), "{why}");
}

#[test]
fn longer_trims_and_zeros_go_piece_by_piece_and_are_forced_as_a_whole() {
    let (flush, fua) = (transmission::SEND_FLUSH, transmission::SEND_FUA);
    for (operation, knows, kind) in [
        (Operation::Trim, transmission::SEND_TRIM, command::TRIM),
        (Operation::WriteZeroes, transmission::SEND_WRITE_ZEROES, command::WRITE_ZEROES),
        (Operation::WriteZeroes, 0, command::WRITE),
    ] {
        for forced in [flush, flush | fua] {
            let (told, heard) = std::sync::mpsc::channel();
            let uri = serve(move |mut line| {
                agree(&mut line, transmission::HAS_FLAGS | knows | forced, BYTES as u64);
                while let Some((kind, cookie, place, _)) = asked(&mut line) {
                    told.send((kind, place)).expect("somebody hears");
                    let _ = line.write_all(&replied(0, cookie, b""));
                }
            });
            let mut driven = Driven::open(&uri, Access::Destroy);
            let request = Request { sectors: 136, fua: true, ..driven.request(operation, 1) };
            assert_eq!(
                driven.export.submit(driven.world.now(), &request, &mut driven.data),
                Submit::Accepted
            );
            assert_eq!(driven.wait(1)[0].status, Status::Ok);
            let flag = if forced == flush { 0 } else { command::FUA };
            let mut wanted = vec![((flag, kind), (4096, 65536)), ((flag, kind), (69632, 4096))];
            wanted.extend((forced == flush).then_some(((0, command::FLUSH), (0, 0))));
            assert_eq!(heard.try_iter().collect::<Vec<_>>(), wanted);
        }
    }
}

#[test]
fn hostile_answers_end_it() {
    let no_reply = [0; 16].to_vec();
    for (said, words) in [
        (no_reply, "no reply where one has to be"),
        (replied(0, 3, b""), "a reply to 3, which nobody asked"),
        (replied(0, u64::MAX, b""), "which nobody asked"),
        // Twice the same.
        ([replied(0, 0, &[0; 4096]), replied(0, 0, b"")].concat(), "a reply to 0, which nobody asked"),
    ] {
        let uri = serve(move |mut line| {
            agree(&mut line, ALL, BYTES as u64);
            asked(&mut line);
            let _ = line.write_all(&said);
            asked(&mut line);
        });
        let mut driven = Driven::open(&uri, Access::Destroy);
        driven.serve(Operation::Read, 0, None);
        let why = driven.failure();
        assert!(why.contains("the server breaks the protocol") && why.contains(words), "{why}");
    }
}

#[test]
fn who_is_no_such_server_is_said() {
    let greeting = b"NBDMAGICIHAVEOPT\0\x03";
    for (said, words) in [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "no server of network block devices"),
        (b"NBDMAGIC\x00\x00\x42\x02\x81\x86\x12\x53\0\0".to_vec(), "no fixed newstyle"),
        (b"NBDMAGIC".to_vec(), "hangs up before"),
        ([&greeting[..], &answer(option::INFO, reply::UNKNOWN, b"")].concat(), "no export \"disk\""),
        ([&greeting[..], &answer(option::INFO, reply::UNSUPPORTED, b"")].concat(), "no option GO"),
        ([&greeting[..], &answer(option::INFO, reply::ACK, b"")].concat(), "how large its export is"),
        ([&greeting[..], &answer(option::LIST, reply::ACK, b"")].concat(), "no answer where one"),
        ([&greeting[..], &answer(option::INFO, (1 << 31) + 2, b"go\x07 away")].concat(), "\"go away\""),
        (
            [&greeting[..], &answer(option::INFO, reply::INFO, &[0; 20000])].concat(),
            "an answer of 20000 bytes",
        ),
        (
            [&greeting[..], &answer(option::INFO, reply::INFO, &[0; 4]).repeat(100)].concat(),
            "does not end its answer",
        ),
    ] {
        let uri = serve(move |mut line| {
            let _ = line.write_all(&said);
            let _ = line.shutdown(std::net::Shutdown::Write);
            while line.read(&mut [0; 100]).is_ok_and(|count| count > 0) {}
        });
        let why = Export::find(&uri).expect_err(words);
        assert!(why.contains(words), "{why}");
    }
    let nobody = Export::find("nbd+unix:///disk?socket=/nowhere").expect_err("nobody is there");
    assert_eq!(nobody, "no server there: No such file or directory");
}
