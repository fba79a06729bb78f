//! What lies outside: the wall clock, and the drives that have something to say.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex};
use std::thread::available_parallelism;
use std::time::Instant;

use flashkeel_engine::{Outside, Time};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Times shorter than this are not slept: a sleep lasts about so much longer than it was
/// told to (prctl(2), `PR_SET_TIMERSLACK`: 50 us).
const SPIN_NS: u64 = 60_000;

/// What ends within this time is waited for awake, where there is another processor for whoever
/// ends it: to wake somebody who sleeps takes up to 110 us where the machine is a virtual one,
/// as long as a read of flash takes.
const AWAKE_NS: u64 = 150_000;

/// The wall clock, and what is heard of the drives that were opened in it. Copies are of
/// the same.
#[derive(Clone)]
pub struct World {
    start: Instant,
    /// How long it waits awake before it sleeps.
    awake_ns: u64,
    /// Counts up when a request to one of the drives has ended.
    ended: Arc<OwnedFd>,
    /// Ready when that has, or when something has come over a line.
    ears: Arc<OwnedFd>,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    touched: Vec<Touched>,
    drives: Vec<Watched>,
    /// The first of each drive, by its number.
    faults: Vec<(usize, Fault)>,
    has_lines: bool,
}

/// A drive as it was when it was opened.
struct Watched {
    number: usize,
    path: String,
    file: File,
    bytes: u64,
    /// It is no longer as it was, and takes no requests.
    is_gone: bool,
}

impl Watched {
    /// What is no longer as it was.
    fn change(&self) -> Option<String> {
        let is_deleted = self.file.metadata().is_ok_and(|metadata| metadata.nlink() == 0);
        let bytes = (&self.file).seek(SeekFrom::End(0)).unwrap_or(0);
        if is_deleted {
            return Some(format!("{}: it has been deleted", self.path));
        }
        let (path, before) = (&self.path, self.bytes);
        (bytes != before).then(|| format!("{path}: it holds {bytes} bytes now, and held {before}"))
    }
}

/// What went wrong on a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It was asked for what it is not allowed to do.
    Refused(String),
    /// It failed, is full or gone.
    Failed(String),
}

/// What has been written to one drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// What it is called.
    pub path: String,
    /// Bytes written, each as often as it was.
    pub bytes: u64,
    /// The first and the last byte's address, if any was written.
    pub range: Option<(u64, u64)>,
}

impl World {
    /// Its time begins now.
    ///
    /// # Errors
    /// If the kernel gives nothing to listen to.
    pub fn new() -> io::Result<World> {
        let ended = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let ears = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&ears, &ended, EventData::new_u64(0), EventFlags::IN)?;
        let (ended, ears) = (Arc::new(ended), Arc::new(ears));
        let is_alone = available_parallelism().map_or(true, |processors| processors.get() == 1);
        let awake_ns = if is_alone { 0 } else { AWAKE_NS };
        Ok(World { start: Instant::now(), awake_ns, ended, ears, log: Arc::default() })
    }

    /// Its time begins now, and not before.
    pub fn restart(&mut self) {
        self.start = Instant::now();
    }

    /// The time now.
    pub fn now(&self) -> Time {
        Time(self.start.elapsed().as_nanos() as u64)
    }

    /// The first thing that went wrong on a drive, such as that it is full or gone.
    pub fn fault(&self) -> Option<Fault> {
        self.log().faults.first().map(|(_, fault)| fault.clone())
    }

    /// The first thing that went wrong on each drive, in the order in which it did.
    pub fn faults(&self) -> Vec<Fault> {
        self.log().faults.iter().map(|(_, fault)| fault.clone()).collect()
    }

    /// What has been written, drive by drive.
    pub fn touched(&self) -> Vec<Touched> {
        self.log().touched.clone()
    }

    /// Something to poll for whoever listens to more than this world: it can be read once a
    /// request has ended, until somebody has read from it.
    ///
    /// # Errors
    /// If there are too many open files, or exports in it, which ring otherwise.
    pub fn heard(&self) -> io::Result<OwnedFd> {
        if self.log().has_lines {
            return Err(io::Error::other("an export is not served again"));
        }
        self.ended.try_clone()
    }

    /// Looks whether the drives still are what they were; what is not is a fault, and gone.
    pub fn look(&self) {
        let log = &mut *self.log();
        for drive in log.drives.iter_mut().filter(|drive| !drive.is_gone) {
            if let Some(change) = drive.change() {
                drive.is_gone = true;
                note(&mut log.faults, drive.number, || Fault::Failed(change));
            }
        }
    }

    /// Whether a drive was found to be no longer what it was.
    pub(crate) fn is_gone(&self, number: usize) -> bool {
        self.log().drives.iter().any(|drive| drive.number == number && drive.is_gone)
    }

    /// Looks after a drive that holds so many bytes, until it is closed.
    pub(crate) fn look_after(&self, number: usize, path: &str, file: File, bytes: u64) {
        self.log().drives.push(Watched { number, path: path.to_owned(), file, bytes, is_gone: false });
    }

    /// A drive is closed.
    pub(crate) fn leave(&self, number: usize) {
        self.log().drives.retain(|drive| drive.number != number);
    }

    /// What counts up when a request has ended.
    pub(crate) fn bell(&self) -> RawFd {
        self.ended.as_raw_fd()
    }

    /// Listens to a line too, until that is closed.
    pub(crate) fn hear(&self, line: BorrowedFd<'_>) -> io::Result<()> {
        self.log().has_lines = true;
        Ok(epoll::add(&self.ears, line, EventData::new_u64(0), EventFlags::IN)?)
    }

    /// Whether it wants to know when there is room on the line, beside what has come.
    pub(crate) fn hear_room(&self, line: BorrowedFd<'_>, wants_room: bool) -> io::Result<()> {
        let room = if wants_room { EventFlags::OUT } else { EventFlags::empty() };
        Ok(epoll::modify(&self.ears, line, EventData::new_u64(0), EventFlags::IN | room)?)
    }

    /// Listens to a line no more.
    pub(crate) fn forget(&self, line: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.ears, line);
    }

    /// Begins to count what is written to a drive; returns its number.
    pub(crate) fn enter(&self, path: &str) -> usize {
        let mut log = self.log();
        log.touched.push(Touched { path: path.to_owned(), bytes: 0, range: None });
        log.touched.len() - 1
    }

    /// So many bytes are being written to a drive.
    pub(crate) fn touch(&self, drive: usize, offset: u64, bytes: u64) {
        let touched = &mut self.log().touched[drive];
        let last = offset + bytes - 1;
        touched.bytes += bytes;
        touched.range =
            Some(touched.range.map_or((offset, last), |(low, high)| (low.min(offset), high.max(last))));
    }

    /// Something went wrong on a drive.
    pub(crate) fn fail(&self, number: usize, what: impl FnOnce() -> Fault) {
        note(&mut self.log().faults, number, what);
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Waits at most this long for a request to end, however short or never.
    fn listen(&self, most_ns: Option<u64>) -> bool {
        let most = most_ns
            .map(|ns| Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ });
        let mut heard = [PollFd::new(&*self.ears, PollFlags::IN)];
        // A signal ends the wait, as if something had happened: whoever waits looks again.
        let is_heard = poll(&mut heard, most.as_ref()).map_or(true, |count| count > 0);
        if is_heard {
            let _ = rustix::io::read(&*self.ended, &mut [0; 8]);
        }
        is_heard
    }
}

/// Notes what went wrong on a drive, if it is the first of it.
fn note(faults: &mut Vec<(usize, Fault)>, number: usize, what: impl FnOnce() -> Fault) {
    if faults.iter().all(|&(drive, _)| drive != number) {
        faults.push((number, what()));
    }
}

impl Outside for World {
    fn wait(&mut self, until: Option<Time>) -> Time {
        let sleeps_at = self.now().0 + self.awake_ns;
        loop {
            let now = self.now();
            let left_ns = until.map(|until| until.0.saturating_sub(now.0));
            let heard = match left_ns {
                Some(0) => return now,
                _ if now.0 < sleeps_at => self.listen(Some(0)),
                Some(left_ns) if left_ns <= SPIN_NS => self.listen(Some(0)),
                Some(left_ns) => self.listen(Some(left_ns - SPIN_NS)),
                None => self.listen(None),
            };
            if heard {
                return self.now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flashkeel_engine::Span;

    use super::*;

    #[test]
    fn a_wait_ends_when_it_is_time() {
        let mut world = World::new().expect("a world");
        let until = world.now() + Span::from_us(2_000);
        assert!(world.wait(Some(until)) >= until);
        assert!(world.wait(Some(Time(0))) >= until, "what is over is not waited for");
    }

    #[test]
    fn what_was_written_where_is_known() {
        let world = World::new().expect("a world");
        let drive = world.enter("disk");
        world.touch(drive, 8192, 4096);
        world.touch(drive, 0, 4096);
        let expected = Touched { path: "disk".into(), bytes: 8192, range: Some((0, 12_287)) };
        assert_eq!(world.touched(), [expected]);
        let (failed, refused) =
            (|text: &str| Fault::Failed(text.into()), |text: &str| Fault::Refused(text.into()));
        world.fail(drive, || failed("first"));
        world.fail(drive, || refused("second"));
        world.fail(drive + 1, || refused("of another"));
        assert_eq!(world.fault(), Some(failed("first")));
        assert_eq!(world.faults(), [failed("first"), refused("of another")]);
    }
}
