//! Connections, and the loop that keeps the time.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use flashkeel_engine::{Leaf, Time};
use flashkeel_store::Store;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::clock::Clock;
use crate::complaints::Complaints;
use crate::connection::{Connection, share};
use crate::drive::Drive;
use crate::lateness::{Late, Lateness};
use crate::nbd::{Closed, Export};
use crate::sleep::Sleep;
use crate::sockets::{Address, Listener, is_for_later};
use crate::window::{Look, Snapshot, Window};

/// Clients at a time at most.
const MOST_CLIENTS: usize = 64;

/// Nothing is listened to before a completion that is so near: asking the system what there
/// is takes as long.
const AT_ONCE: Duration = Duration::from_micros(2);

/// For so long after an answer the next request is awaited awake, where there is another
/// processor for the client, as to fall asleep and be woken takes longer than many answers.
const LINGER: Duration = Duration::from_micros(50);

/// How often it is asked whether to stop.
const ASK: Duration = Duration::from_millis(100);

/// Who asks what is seen is answered so seldom, with all who have asked meanwhile: clients wait while
/// that is read off.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// What is read from a connection at a time.
const READ_BYTES: usize = 256 << 10;

/// Answers are kept back for so long at most while there are requests to take, or others are
/// about to end: to send several at a time costs less, and to wake a client that sleeps takes
/// the system as long as this, while nothing else is answered.
const PROMPT: Duration = Duration::from_micros(16);

/// Requests of one client are taken for so long at a time, and one at least: what others have sent
/// meanwhile is not even read before. Some, as of what is stored, are answered as they are taken.
const TURN: Duration = Duration::from_micros(50);

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
    /// How much longer requests took until what they were about was durable.
    pub synced: Late,
}

/// What a served device's bytes are kept in.
pub struct Kept {
    /// The store.
    pub store: Store,
    /// The device's time as it was found.
    pub from: Time,
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

    /// Whether to stop, after so many requests of clients have failed.
    fn stops(&mut self, failed: u64) -> bool;

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
            Listener::Unix(_, path, _) => Address::Unix(path.clone()),
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
        // What else sleep ends late by, 50 us in Linux, is there to save the machine's power.
        let _ = rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN));
        let mut complaints = Complaints::default();
        let served = run(&self, &clock, &mut drive, settings, &mut complaints, watch);
        let closed = drive.close(clock.now());
        complaints.add_damage(drive.damage());
        complaints.rest().iter().for_each(|sentence| watch.says(sentence));
        served.and_then(|served| closed.map(|()| served))
    }
}

/// Who is connected, and what they are told.
#[derive(Default)]
struct Clients {
    all: Vec<Connection>,
    /// Those that have gone, of whose requests so many have yet to end: they are in memory.
    gone: Vec<(usize, usize)>,
    /// Requests that were answered.
    answered: u64,
    late: Lateness,
    /// Since when an answer has not been sent.
    unsent: Option<Time>,
    /// Until when the next request is awaited awake, if at all.
    lingers_until: Option<Instant>,
    /// Until when nobody more is let in, after the system could not.
    closed_until: Option<Instant>,
}

impl Clients {
    /// Whether one more is let in.
    fn has_room(&self) -> bool {
        self.all.len() + self.gone.len() < MOST_CLIENTS
            && self.closed_until.is_none_or(|until| Instant::now() >= until)
    }

    /// Says how much each may hold, as there are so many.
    fn share(&mut self) {
        let most = share(self.all.len() + self.gone.len());
        self.all.iter_mut().for_each(|client| client.most_held = most);
    }

    /// Answers what has ended by now, which is returned.
    fn advance<L: Leaf>(&mut self, drive: &mut Drive<L>, clock: &Clock) -> io::Result<Time> {
        let now = clock.now();
        drive.advance(now, |whose, due, answer| {
            if let Some(client) = self.all.iter_mut().find(|client| client.number == whose.session) {
                client.held -= u64::from(whose.held);
                client.put(whose.cookie, due, answer);
                self.answered += 1;
                self.unsent.get_or_insert(now);
            } else if let Some(at) = self.gone.iter().position(|(number, _)| *number == whose.session) {
                self.gone[at].1 -= 1;
                if self.gone[at].1 == 0 {
                    self.gone.swap_remove(at);
                }
            }
        })?;
        Ok(now)
    }

    /// Parts with those that have gone. The place of one is another's once its last request has ended.
    fn part<L: Leaf>(&mut self, drive: &mut Drive<L>) {
        for client in self.all.extract_if(.., |client| client.is_gone) {
            let left = drive.forget(client.number);
            self.gone.extend((left > 0).then_some((client.number, left)));
        }
    }

    /// Answers what has ended and sends what has been kept back for long, if anything; returns
    /// the time.
    fn keep_up<L: Leaf>(&mut self, drive: &mut Drive<L>, clock: &Clock) -> io::Result<Time> {
        let mut now = clock.now();
        if drive.next_event().is_some_and(|due| due <= now) {
            now = self.advance(drive, clock)?;
        }
        if self.unsent.is_some_and(|since| now >= since + clock.span(PROMPT)) {
            self.send(clock);
        }
        Ok(now)
    }

    /// Takes requests of the client at this place, for a turn; returns what it has just done that
    /// the protocol does not allow, if anything.
    fn take_turn<L: Leaf>(
        &mut self,
        at: usize,
        drive: &mut Drive<L>,
        clock: &Clock,
    ) -> io::Result<Option<&'static str>> {
        let mut until = None;
        loop {
            // Each is asked at its own time: what comes last of many waits for none of them.
            let now = self.keep_up(drive, clock)?;
            let client = &mut self.all[at];
            client.is_behind = now > *until.get_or_insert(now + clock.span(TURN));
            if client.is_behind {
                return Ok(None);
            }
            let number = client.number;
            match client.next_ask() {
                Ok(Some(ask)) => {
                    let cookie = ask.cookie;
                    if let Some(answer) = drive.submit(now, number, &ask) {
                        self.answered += 1;
                        self.unsent.get_or_insert(now);
                        client.put(cookie, None, answer);
                    }
                }
                Ok(None) => return Ok(None),
                Err(closed) => {
                    let was_ending = std::mem::replace(&mut client.is_ending, true);
                    return Ok(match closed {
                        Closed::Fault(reason) if !was_ending => Some(reason),
                        _ => None,
                    });
                }
            }
        }
    }

    /// Goes on with what is served a piece at a time: one, when each client has had its turn.
    fn give_piece<L: Leaf>(&mut self, drive: &mut Drive<L>, clock: &Clock) -> io::Result<()> {
        if drive.has_piece() {
            let now = self.keep_up(drive, clock)?;
            drive.give_piece(now);
        }
        Ok(())
    }

    /// Answers what ends next to at once, and then what follows as closely, so that it goes
    /// along: to wake a client that sleeps takes the system longer than all of it.
    fn await_next<L: Leaf>(&mut self, drive: &mut Drive<L>, clock: &Clock) -> io::Result<()> {
        let is_near = |due: &Time| clock.until(*due) <= AT_ONCE;
        while !drive.is_idle()
            && let Some(due) = drive.next_event().filter(is_near)
        {
            while clock.now() < due {
                std::hint::spin_loop();
            }
            let now = self.advance(drive, clock)?;
            if self.unsent.is_none_or(|since| now >= since + clock.span(PROMPT)) {
                break;
            }
        }
        Ok(())
    }

    /// Sends what each takes.
    fn send(&mut self, clock: &Clock) {
        self.all.iter_mut().for_each(|client| client.send(clock, &mut self.late));
        if self.unsent.take().is_some() {
            self.lingers_until = Some(Instant::now() + LINGER);
        }
    }

    /// Whether the next request is awaited awake.
    fn lingers(&mut self) -> bool {
        self.lingers_until = self.lingers_until.filter(|&until| Instant::now() < until);
        self.lingers_until.is_some()
    }
}

fn run<L: Leaf>(
    server: &Server,
    clock: &Clock,
    drive: &mut Drive<L>,
    settings: &Settings,
    complaints: &mut Complaints,
    watch: &mut impl Watch<L>,
) -> io::Result<Served> {
    let listener = &server.listener;
    let mut clients = Clients::default();
    let mut served = Served::default();
    let (mut looks, mut shown) = (Vec::new(), None::<Instant>);
    let mut buffer = vec![0; READ_BYTES];
    let mut asked = Instant::now();
    let is_alone = available_parallelism().map_or(true, |processors| processors.get() == 1);
    let mut sleep = Sleep::new(is_alone);
    loop {
        if asked.elapsed() >= ASK {
            complaints.add_damage(drive.damage());
            complaints.due(Instant::now()).iter().for_each(|sentence| watch.says(sentence));
            if watch.stops(drive.seen().failed()) {
                break;
            }
            asked = Instant::now();
        }
        // What the device does by itself may come late, as nobody sees when: for a window that begins,
        // say, nobody has to be awake in time.
        let ends_before = if drive.is_idle() { Duration::ZERO } else { sleep.ends_before() };
        let mut due = drive.next_event().map(|due| clock.until(due));
        if clients.all.iter().any(|client| client.is_behind) {
            due = Some(Duration::ZERO);
        }
        // There may be more to prepare, where nobody asks for anything.
        if due.is_none_or(|due| due > ends_before)
            && (drive.device().prepare() || !is_alone && clients.lingers())
        {
            due = Some(Duration::ZERO);
        }
        let mut sleeps = due.map_or(ASK, |due| due.saturating_sub(ends_before)).min(ASK);
        if !looks.is_empty() {
            sleeps =
                sleeps.min(shown.map_or(Duration::ZERO, |at| BETWEEN_LOOKS.saturating_sub(at.elapsed())));
        }
        clients.share();
        let ready = wait(server, &clients, sleeps, &mut sleep)?;
        if ready[0] {
            match listener.accept() {
                Ok(stream) => {
                    let number = served.clients as usize;
                    served.clients += 1;
                    clients.all.push(Connection::new(number, stream, settings.export.clone()));
                }
                Err(error) if is_for_later(&error) => {}
                // Too many files are open, say. Whoever waits goes on waiting, and would be
                // heard at once again.
                Err(_) => clients.closed_until = Some(Instant::now() + ASK),
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
        let watched = clients.all.iter_mut().filter(|client| client.is_watched());
        for (client, _) in watched.zip(&ready[3..]).filter(|(_, is_ready)| **is_ready) {
            client.is_ready(&mut buffer);
        }
        clients.advance(drive, clock)?;
        for at in 0..clients.all.len() {
            if let Some(reason) = clients.take_turn(at, drive, clock)? {
                served.faults += 1;
                complaints.add_fault(clients.all[at].number, reason);
            }
            let refused = clients.all[at].session.take_refused();
            clients.answered += refused.iter().sum::<u64>();
            drive.seen().refuse(&refused);
        }
        clients.await_next(drive, clock)?;
        clients.send(clock);
        clients.part(drive);
        clients.give_piece(drive, clock)?;
        looks.extend(server.looks.try_iter());
        if !looks.is_empty() && shown.is_none_or(|at| at.elapsed() >= BETWEEN_LOOKS) {
            show(&mut looks, clock, drive, &clients, watch);
            shown = Some(Instant::now());
        }
    }
    served.requests = clients.answered;
    (served.late, served.synced) = (clients.late.report(), drive.synced());
    Ok(served)
}

/// Answers those who ask what is seen, all the same.
fn show<L: Leaf>(
    looks: &mut Vec<Look>,
    clock: &Clock,
    drive: &mut Drive<L>,
    clients: &Clients,
    watch: &mut impl Watch<L>,
) {
    let now = clock.now();
    let with_recent = looks.iter().any(|look| look.with_recent);
    let snapshot = Arc::new(Snapshot {
        now,
        time_scale: clock.scale(),
        tallies: drive.seen().tallies(),
        late: clients.late.report(),
        synced: drive.synced(),
        clients: clients.all.len(),
        device: watch.reads_off(drive.device(), now),
        recent: with_recent.then(|| drive.seen().recent(now)),
    });
    for look in looks.drain(..) {
        // Whoever has stopped waiting does not want to know.
        let _ = look.answer.send(Arc::clone(&snapshot));
    }
}

/// Sleeps until a client or the listener has something, or `sleeps` is over; returns who has, the
/// listener first, then those who wake the server, then what is outside.
fn wait(server: &Server, clients: &Clients, sleeps: Duration, sleep: &mut Sleep) -> io::Result<Vec<bool>> {
    let flags = |client: &Connection| {
        let heard = if client.is_heard() { PollFlags::IN } else { PollFlags::empty() };
        heard | if client.session.output().is_empty() { PollFlags::empty() } else { PollFlags::OUT }
    };
    let listening = if clients.has_room() { PollFlags::IN } else { PollFlags::empty() };
    let mut watched = vec![
        PollFd::from_borrowed_fd(server.listener.as_fd(), listening),
        PollFd::from_borrowed_fd(server.wakes.as_fd(), PollFlags::IN),
        // Where there is nothing outside, nothing is asked for twice.
        PollFd::from_borrowed_fd(
            server.outside.as_ref().unwrap_or(&server.wakes).as_fd(),
            if server.outside.is_some() { PollFlags::IN } else { PollFlags::empty() },
        ),
    ];
    let each = clients.all.iter().filter(|client| client.is_watched());
    watched.extend(each.map(|client| PollFd::from_borrowed_fd(client.stream.as_fd(), flags(client))));
    let timeout = Timespec { tv_sec: sleeps.as_secs() as i64, tv_nsec: i64::from(sleeps.subsec_nanos()) };
    let begun = Instant::now();
    match poll(&mut watched, Some(&timeout)) {
        Ok(0) if !sleeps.is_zero() => sleep.ended(begun.elapsed().saturating_sub(sleeps)),
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(watched.iter().map(|each| !each.revents().is_empty()).collect())
}
