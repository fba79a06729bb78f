//! Connections, and the loop that keeps the time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use flashkeel_engine::{Leaf, Time};
use flashkeel_store::Store;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::clock::Clock;
use crate::drive::{Answer, Drive};
use crate::lateness::Late;
use crate::nbd::{Closed, Export, Session};
use crate::window::{Look, Snapshot, Window};

/// Clients at a time at most.
const MOST_CLIENTS: usize = 64;

/// How long a client may take to choose an export, and to take an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long before its time a completion is waited for awake: sleep ends late by the
/// timer's slack (50 us in Linux) and by what it takes to be run.
const AWAKE: Duration = Duration::from_micros(80);

/// Nothing is listened to before a completion that is so near: asking the system what there
/// is takes as long.
const AT_ONCE: Duration = Duration::from_micros(2);

/// How often it is asked whether to stop.
const ASK: Duration = Duration::from_millis(100);

/// What is read from a connection at a time.
const READ_BYTES: usize = 256 << 10;

/// Answers that a client has not taken before nothing more is read from it.
const MOST_UNSENT: usize = 64 << 20;

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A host and a port.
    Tcp(SocketAddr),
}

/// How a device is served.
#[derive(Clone, Debug)]
pub struct Settings {
    /// As what.
    pub export: Export,
    /// How many times slower than the wall clock the device is.
    pub time_scale: f64,
}

/// What was served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Connections.
    pub clients: u64,
    /// Those that did what the protocol does not allow.
    pub faults: u64,
    /// Requests that were answered.
    pub requests: u64,
    /// By how much answers were later than the model says.
    pub late: Late,
    /// How much longer flushes took until what they were about was durable.
    pub synced: Late,
}

/// What a served device's bytes are kept in.
pub struct Kept {
    /// The store.
    pub store: Store,
    /// The device's time as it was found.
    pub from: Time,
}

enum Listener {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Listener {
    fn bind(address: &Address) -> io::Result<Listener> {
        let listener = match address {
            Address::Unix(path) => {
                // That of a server that was killed is in nobody's way.
                let is_socket = std::fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket());
                let refuses = |error: io::Error| error.kind() == ErrorKind::ConnectionRefused;
                if is_socket && UnixStream::connect(path).is_err_and(refuses) {
                    std::fs::remove_file(path)?;
                }
                Listener::Unix(UnixListener::bind(path)?, path.clone())
            }
            Address::Tcp(address) => Listener::Tcp(TcpListener::bind(address)?),
        };
        match &listener {
            Listener::Unix(listener, _) => listener.set_nonblocking(true)?,
            Listener::Tcp(listener) => listener.set_nonblocking(true)?,
        }
        Ok(listener)
    }

    fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Stream::Unix(stream))
            }
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(listener, _) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    /// The socket goes with its server.
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        }
    }
}

/// A client.
struct Connection {
    /// Of all that have been.
    number: usize,
    stream: Stream,
    session: Session,
    /// Since when it owes something: the choice of an export, or to take an answer.
    owes_since: Option<Instant>,
    /// It is to be closed once what is unsent has gone and what is inside has ended.
    is_ending: bool,
    is_gone: bool,
}

impl Connection {
    /// Reads what has come; whether something has.
    fn read(&mut self, buffer: &mut [u8]) {
        match self.stream.read(buffer) {
            Ok(0) => self.is_gone = true,
            Ok(bytes) => self.session.receive(&buffer[..bytes]),
            Err(error) if is_for_later(&error) => {}
            Err(_) => self.is_gone = true,
        }
    }

    /// Sends what it can.
    fn send(&mut self) {
        while !self.session.output().is_empty() && !self.is_gone {
            match self.stream.write(self.session.output()) {
                Ok(0) => self.is_gone = true,
                Ok(bytes) => {
                    self.session.sent(bytes);
                    self.owes_since = None;
                }
                Err(error) if is_for_later(&error) => break,
                Err(_) => self.is_gone = true,
            }
        }
        let owes = !self.session.is_open() || !self.session.output().is_empty();
        self.owes_since = if owes { self.owes_since.or_else(|| Some(Instant::now())) } else { None };
        let is_over = self.is_ending && self.session.output().is_empty() && self.session.inside() == 0;
        self.is_gone |= is_over || self.owes_since.is_some_and(|since| since.elapsed() > PATIENCE);
    }

    /// Whether more may be read of it.
    fn is_heard(&self) -> bool {
        !self.is_ending && self.session.wants_more() && self.session.output().len() < MOST_UNSENT
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Where clients can connect; they wait there until a device is served.
pub struct Server {
    listener: Listener,
    /// Wakes the loop from other threads.
    wakes: Arc<OwnedFd>,
    /// Wakes it when something has happened outside.
    outside: Option<OwnedFd>,
    window: Window,
    looks: Receiver<Look>,
}

fn waker(wakes: &Arc<OwnedFd>) -> impl Fn() + Send + Sync + use<> {
    let wakes = Arc::clone(wakes);
    move || {
        let _ = rustix::io::write(&*wakes, &1u64.to_ne_bytes());
    }
}

/// What concerns those who serve a device, once in a while.
pub trait Watch<L> {
    /// What the device says of itself at `now`, in whatever words they like.
    fn reads_off(&mut self, device: &mut L, now: Time) -> String;

    /// Whether to stop.
    fn stops(&mut self) -> bool;

    /// Something that has to be said, a sentence.
    fn says(&mut self, sentence: &str);
}

impl Server {
    /// Lets clients connect.
    ///
    /// # Errors
    /// If somebody else is there, or it may not be.
    pub fn bind(address: &Address) -> io::Result<Server> {
        let wakes = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let (window, looks) = Window::new(Arc::new(waker(&wakes)));
        Ok(Server { listener: Listener::bind(address)?, wakes, outside: None, window, looks })
    }

    /// What wakes the server when a store has made something durable.
    pub fn waker(&self) -> Box<dyn Fn() + Send> {
        Box::new(waker(&self.wakes))
    }

    /// A window on what is served.
    pub fn window(&self) -> Window {
        self.window.clone()
    }

    /// Where that is; the port is the one that was found where 0 was asked for.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<Address> {
        Ok(match &self.listener {
            Listener::Unix(_, path) => Address::Unix(path.clone()),
            Listener::Tcp(listener) => Address::Tcp(listener.local_addr()?),
        })
    }

    /// Serves a device, which keeps bytes, until `watch` says so. Where something outside has
    /// a say in when its requests end, `outside` can be read when it has said something.
    ///
    /// # Errors
    /// If waiting fails, or what keeps the bytes.
    pub fn run<L: Leaf>(
        mut self,
        device: L,
        kept: Option<Kept>,
        outside: Option<OwnedFd>,
        settings: &Settings,
        watch: &mut impl Watch<L>,
    ) -> io::Result<Served> {
        self.outside = outside;
        let from = kept.as_ref().map_or(Time::ZERO, |kept| kept.from);
        let clock = Clock::start(from, settings.time_scale);
        let mut drive = Drive::new(from, device, kept.map(|kept| kept.store));
        let served = run(&self, &clock, &mut drive, settings, watch);
        let closed = drive.close(clock.now());
        drive.damage().iter().for_each(|sentence| watch.says(sentence));
        served.and_then(|served| closed.map(|()| served))
    }
}

fn run<L: Leaf>(
    server: &Server,
    clock: &Clock,
    drive: &mut Drive<L>,
    settings: &Settings,
    watch: &mut impl Watch<L>,
) -> io::Result<Served> {
    let listener = &server.listener;
    let mut clients: Vec<Connection> = Vec::new();
    let mut served = Served::default();
    let mut buffer = vec![0; READ_BYTES];
    let mut asked = Instant::now();
    loop {
        if asked.elapsed() >= ASK {
            drive.damage().iter().for_each(|sentence| watch.says(sentence));
            if watch.stops() {
                break;
            }
            asked = Instant::now();
        }
        let ready = wait(server, &clients, drive.next_event().map(|due| clock.until(due)))?;
        if ready[0] && clients.len() < MOST_CLIENTS {
            match listener.accept() {
                Ok(stream) => {
                    let number = served.clients as usize;
                    served.clients += 1;
                    let session = Session::new(settings.export.clone());
                    let (owes_since, is_ending, is_gone) = (None, false, false);
                    clients.push(Connection { number, stream, session, owes_since, is_ending, is_gone });
                }
                Err(error) if is_for_later(&error) => {}
                Err(_) => {}
            }
        }
        if ready[1] {
            let _ = rustix::io::read(&*server.wakes, &mut [0; 8]);
        }
        if ready[2]
            && let Some(outside) = &server.outside
        {
            let _ = rustix::io::read(outside, &mut [0; 8]);
        }
        for (client, _) in clients.iter_mut().zip(&ready[3..]).filter(|(_, is_ready)| **is_ready) {
            if client.is_heard() {
                client.read(&mut buffer);
            }
        }
        let now = clock.now();
        advance(drive, now, &mut clients, &mut served)?;
        for client in &mut clients {
            loop {
                match client.session.next_ask() {
                    Ok(Some(ask)) => {
                        let cookie = ask.cookie;
                        if let Some(answer) = drive.submit(now, client.number, &ask) {
                            served.requests += 1;
                            put(&mut client.session, cookie, answer);
                        }
                    }
                    Ok(None) => break,
                    Err(closed) => {
                        if let Closed::Fault(reason) = closed
                            && !client.is_ending
                        {
                            served.faults += 1;
                            watch.says(&format!("client {} is disconnected: {reason}", client.number));
                        }
                        client.is_ending = true;
                        break;
                    }
                }
            }
        }
        if let Some(due) = drive.next_event().filter(|&due| clock.until(due) <= AT_ONCE) {
            while clock.now() < due {
                std::hint::spin_loop();
            }
            advance(drive, clock.now(), &mut clients, &mut served)?;
        }
        clients.iter_mut().for_each(Connection::send);
        clients.retain(|client| !client.is_gone);
        if ready[1] {
            server.looks.try_iter().for_each(|look| show(look, now, drive, clients.len(), watch));
        }
    }
    (served.late, served.synced) = (drive.late(), drive.synced());
    Ok(served)
}

/// Answers what has ended by `now`.
fn advance<L: Leaf>(
    drive: &mut Drive<L>,
    now: Time,
    clients: &mut [Connection],
    served: &mut Served,
) -> io::Result<()> {
    drive.advance(now, |whose, answer| {
        let mut found = clients.iter_mut();
        if let Some(client) = found.find(|client| client.number == whose.session) {
            served.requests += 1;
            put(&mut client.session, whose.cookie, answer);
        }
    })
}

/// Answers somebody who asks what is seen.
fn show<L: Leaf>(look: Look, now: Time, drive: &mut Drive<L>, clients: usize, watch: &mut impl Watch<L>) {
    let snapshot = Snapshot {
        now,
        tallies: drive.seen().tallies(),
        late: drive.late(),
        synced: drive.synced(),
        clients,
        device: watch.reads_off(drive.device(), now),
        recent: look.with_recent.then(|| drive.seen().recent(now)),
    };
    // Whoever has stopped waiting does not want to know.
    let _ = look.answer.send(snapshot);
}

/// Puts an answer into a session.
fn put(session: &mut Session, cookie: u64, answer: Answer<'_>) {
    match answer {
        Answer::Data(from, data) => session.read(cookie, from, data),
        Answer::Status(extents) => session.status(cookie, &extents),
        Answer::Done => session.done(cookie),
        Answer::Failed(has_data, failure) => session.fail(cookie, has_data, failure),
    }
}

/// Waits until a client or the listener has something, or `due` is over: asleep at first,
/// then awake. Returns who has, the listener first, then those who wake the server, then
/// what is outside.
fn wait(server: &Server, clients: &[Connection], due: Option<Duration>) -> io::Result<Vec<bool>> {
    let sleeps = due.map_or(ASK, |due| due.saturating_sub(AWAKE)).min(ASK);
    let flags = |client: &Connection| {
        let heard = if client.is_heard() { PollFlags::IN } else { PollFlags::empty() };
        heard | if client.session.output().is_empty() { PollFlags::empty() } else { PollFlags::OUT }
    };
    let listening = if clients.len() < MOST_CLIENTS { PollFlags::IN } else { PollFlags::empty() };
    let mut watched = vec![
        PollFd::from_borrowed_fd(server.listener.as_fd(), listening),
        PollFd::from_borrowed_fd(server.wakes.as_fd(), PollFlags::IN),
        // Where there is nothing outside, nothing is asked for twice.
        PollFd::from_borrowed_fd(
            server.outside.as_ref().unwrap_or(&server.wakes).as_fd(),
            if server.outside.is_some() { PollFlags::IN } else { PollFlags::empty() },
        ),
    ];
    watched
        .extend(clients.iter().map(|client| PollFd::from_borrowed_fd(client.stream.as_fd(), flags(client))));
    let timeout = Timespec { tv_sec: sleeps.as_secs() as i64, tv_nsec: i64::from(sleeps.subsec_nanos()) };
    match poll(&mut watched, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(watched.iter().map(|each| !each.revents().is_empty()).collect())
}
