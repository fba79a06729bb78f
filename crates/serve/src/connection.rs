//! A client: its socket and its session.

use std::time::{Duration, Instant};

use flashkeel_engine::{Span, Time};

use crate::clock::Clock;
use crate::drive::Answer;
use crate::lateness::Lateness;
use crate::nbd::{Ask, Closed, Export, Session};
use crate::sockets::{Stream, is_for_later};

/// How long a client may take to choose an export and to take an answer, and say nothing in
/// the middle of a request.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of a client's requests that are inside and of answers that it has not taken before nothing
/// more is read from it, and no more requests are taken: they are in memory.
const MOST_HELD: u64 = 64 << 20;

/// The same of all clients. Beyond it each has a share, so that who takes no answers does not keep
/// the others waiting.
const MOST_HELD_BY_ALL: u64 = 1 << 30;

/// Bytes of each of so many clients.
pub(crate) fn share(clients: usize) -> u64 {
    MOST_HELD.min(MOST_HELD_BY_ALL / clients.max(1) as u64)
}

/// A client.
pub(crate) struct Connection {
    /// Of all that have been.
    pub(crate) number: usize,
    pub(crate) stream: Stream,
    pub(crate) session: Session,
    /// Bytes of requests that are inside.
    pub(crate) held: u64,
    /// Its [`share`] of all of them, and of answers that have not been taken.
    pub(crate) most_held: u64,
    /// When it has connected.
    since: Instant,
    /// Since when it has not taken an answer.
    owes_since: Option<Instant>,
    /// When it last said something.
    heard: Instant,
    /// When answers were due that nobody has tried to send.
    due: Vec<Time>,
    /// Its turn was over before its requests were.
    pub(crate) is_behind: bool,
    /// It is to be closed once what is unsent has gone and what is inside has ended.
    pub(crate) is_ending: bool,
    /// It takes no more answers. What it has asked before counts all the same.
    is_deaf: bool,
    /// Nothing more comes of it.
    is_silent: bool,
    pub(crate) is_gone: bool,
}

impl Connection {
    /// A client has connected, the `number`th.
    pub(crate) fn new(number: usize, stream: Stream, export: Export) -> Connection {
        let (session, due) = (Session::new(export), Vec::new());
        Connection {
            number,
            stream,
            session,
            held: 0,
            most_held: MOST_HELD,
            since: Instant::now(),
            owes_since: None,
            heard: Instant::now(),
            due,
            is_behind: false,
            is_ending: false,
            is_deaf: false,
            is_silent: false,
            is_gone: false,
        }
    }

    /// Reads what has come.
    fn read(&mut self, buffer: &mut [u8]) {
        match self.stream.read(buffer) {
            Ok(0) => self.is_silent = true,
            Ok(bytes) => {
                self.session.receive(&buffer[..bytes]);
                self.heard = Instant::now();
            }
            Err(error) if is_for_later(&error) => {}
            Err(_) => self.is_silent = true,
        }
    }

    /// The next request, if a whole one has come and there is room for it.
    ///
    /// # Errors
    /// As for [`Session::next_ask`].
    pub(crate) fn next_ask(&mut self) -> Result<Option<Ask<'_>>, Closed> {
        if !self.has_room() {
            return Ok(None);
        }
        let ask = self.session.next_ask()?;
        self.held += ask.as_ref().map_or(0, |ask| u64::from(ask.held()));
        Ok(ask)
    }

    fn has_room(&self) -> bool {
        self.held + (self.session.output().len() as u64) < self.most_held
    }

    /// Puts an answer where it waits to be sent; by the model it was `due` then.
    pub(crate) fn put(&mut self, cookie: u64, due: Option<Time>, answer: Answer<'_>) {
        match answer {
            Answer::Data(from, data) => self.session.read(cookie, from, data),
            Answer::Status(extents) => self.session.status(cookie, &extents),
            Answer::Done => self.session.done(cookie),
            Answer::Failed(has_data, failure) => self.session.fail(cookie, has_data, failure),
        }
        self.due.extend(due);
    }

    /// Sends what it can; how long the client and the system take to take it is not the server's
    /// error.
    pub(crate) fn send(&mut self, clock: &Clock, late: &mut Lateness) {
        if !self.due.is_empty() {
            let now = clock.now();
            self.due.drain(..).for_each(|due| late.record(Span(now.0.saturating_sub(due.0))));
        }
        while !self.session.output().is_empty() && !self.is_deaf {
            match self.stream.write(self.session.output()) {
                Ok(0) => self.is_deaf = true,
                Ok(bytes) => {
                    self.session.sent(bytes);
                    self.owes_since = None;
                }
                Err(error) if is_for_later(&error) => break,
                Err(_) => self.is_deaf = true,
            }
        }
        if self.is_deaf {
            self.session.sent(self.session.output().len());
        }
        let owes = !self.session.output().is_empty();
        self.owes_since = if owes { self.owes_since.or_else(|| Some(Instant::now())) } else { None };
        let is_served = self.session.output().is_empty() && self.session.inside() == 0;
        // Who has said that he goes is served to the end; who is silent without has asked all that he will.
        let has_asked = self.is_silent && !self.is_behind && !self.session.has_ask();
        let is_over = if self.is_ending { is_served } else { has_asked && (is_served || self.is_deaf) };
        if !self.is_heard() {
            // What it says meanwhile stays where it is.
            self.heard = Instant::now();
        }
        let stalls = self.session.is_amid() && self.heard.elapsed() > PATIENCE;
        // However much it says before it has chosen an export.
        let chooses_since = (!self.session.is_open()).then_some(self.since);
        let is_late =
            [self.owes_since, chooses_since].into_iter().flatten().any(|since| since.elapsed() > PATIENCE);
        self.is_gone |= is_over || stalls || is_late;
    }

    /// The system has something of it. Where nothing was asked for, it has hung up.
    pub(crate) fn is_ready(&mut self, buffer: &mut [u8]) {
        if self.is_heard() {
            self.read(buffer);
        } else if self.session.output().is_empty() {
            self.is_deaf = true;
        }
    }

    /// Whether the system has anything to say of it that is of use.
    pub(crate) fn is_watched(&self) -> bool {
        self.is_heard() || !self.is_deaf
    }

    /// Whether more may be read of it.
    pub(crate) fn is_heard(&self) -> bool {
        !self.is_ending && !self.is_silent && !self.is_behind && self.has_room() && self.session.wants_more()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use flashkeel_nbd::{Put, REQUEST, command, handshake, option};

    use super::*;

    struct Talk {
        client: UnixStream,
        server: Connection,
        clock: Clock,
    }

    impl Talk {
        fn new() -> Talk {
            let (client, stream) = UnixStream::pair().expect("a pair of sockets");
            stream.set_nonblocking(true).expect("it does not block");
            let export = Export {
                name: "disk".into(),
                description: String::new(),
                bytes: 1 << 30,
                block_bytes: 512,
                preferred_bytes: 4096,
                is_read_only: false,
            };
            let server = Connection::new(0, Stream::Unix(stream), export);
            Talk { client, server, clock: Clock::start(Time::ZERO, 1.0) }
        }

        /// Past the choice of an export.
        fn open() -> Talk {
            let mut talk = Talk::new();
            let mut said = Vec::new();
            said.u32(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
            said.put(b"IHAVEOPT");
            said.u32(option::EXPORT_NAME);
            said.u32(0);
            talk.say(&said);
            assert!(talk.server.session.is_open());
            talk
        }

        fn say(&mut self, bytes: &[u8]) {
            self.client.write_all(bytes).expect("it is said");
            self.server.read(&mut [0; 4096]);
            self.ask();
            self.turn();
        }

        /// Takes what is asked, and tells of how much.
        fn ask(&mut self) -> usize {
            let mut asked = 0;
            loop {
                match self.server.next_ask() {
                    Ok(Some(_)) => asked += 1,
                    Ok(None) => return asked,
                    Err(_) => {
                        self.server.is_ending = true;
                        return asked;
                    }
                }
            }
        }

        /// Hears it as long as there is room; tells of how much is asked.
        fn hear(&mut self) -> usize {
            let mut asked = 0;
            while self.server.is_heard() {
                self.server.is_ready(&mut [0; 4096]);
                asked += self.ask();
            }
            asked
        }

        fn turn(&mut self) {
            self.server.send(&self.clock, &mut Lateness::default());
        }

        /// Whether it is disconnected if it goes on as now for as long as it may, and longer.
        fn times_out(mut self) -> bool {
            assert!(!self.server.is_gone);
            self.server.heard = long_ago();
            self.server.since = long_ago();
            self.server.owes_since = self.server.owes_since.map(|_| long_ago());
            self.turn();
            self.server.is_gone
        }
    }

    fn long_ago() -> Instant {
        Instant::now().checked_sub(PATIENCE + Duration::from_secs(1)).expect("it is running")
    }

    fn request(kind: u16, length: u32) -> Vec<u8> {
        let mut said = Vec::new();
        said.u32(REQUEST);
        said.u16(0);
        said.u16(kind);
        said.u64(1);
        said.u64(0);
        said.u32(length);
        said
    }

    #[test]
    fn who_chooses_no_export_times_out() {
        let mut talk = Talk::new();
        talk.turn();
        assert!(talk.times_out());
    }

    #[test]
    fn who_asks_for_this_and_that_and_chooses_no_export_times_out() {
        let mut talk = Talk::new();
        let mut said = Vec::new();
        said.u32(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
        talk.say(&said);
        talk.server.since = long_ago();
        let mut said = Vec::new();
        said.put(b"IHAVEOPT");
        said.u32(option::LIST);
        said.u32(0);
        talk.say(&said);
        assert!(talk.server.is_gone);
    }

    #[test]
    fn who_says_nothing_more_in_the_middle_of_a_request_times_out() {
        let mut talk = Talk::open();
        talk.say(&request(command::WRITE, 4096));
        talk.say(&[1; 1000]);
        assert!(talk.times_out());
        let mut talk = Talk::open();
        talk.say(&request(command::READ, 4096)[..10]);
        assert!(talk.times_out());
    }

    #[test]
    fn who_does_not_take_an_answer_times_out() {
        let mut talk = Talk::open();
        talk.say(&request(command::READ, 8 << 20));
        talk.server.put(1, None, Answer::Data(0, &vec![0; 8 << 20]));
        talk.turn();
        assert!(!talk.server.session.output().is_empty());
        assert!(talk.times_out());
    }

    #[test]
    fn no_more_is_taken_of_a_client_than_there_is_room_for() {
        let mut talk = Talk::open();
        let reads: Vec<u8> = (0..50).flat_map(|_| request(command::READ, 32 << 20)).collect();
        talk.say(&reads);
        assert_eq!(talk.server.session.inside(), 2);
        for left in (0..25).rev() {
            for _ in 0..2 {
                talk.server.held -= 32 << 20;
                talk.server.put(1, None, Answer::Data(0, &vec![0; 32 << 20]));
            }
            // What it does not take is in memory, too.
            assert_eq!(talk.ask(), 0);
            talk.server.session.sent(talk.server.session.output().len());
            assert_eq!(talk.ask(), if left > 0 { 2 } else { 0 });
        }
        assert!(!talk.times_out());
    }

    #[test]
    fn of_many_clients_each_has_a_share_of_what_all_may_hold() {
        assert_eq!([0, 1, 16, 64].map(share), [64 << 20, 64 << 20, 64 << 20, 16 << 20]);
        let mut talk = Talk::open();
        talk.server.most_held = share(64);
        let reads: Vec<u8> = (0..2).flat_map(|_| request(command::READ, 32 << 20)).collect();
        talk.say(&reads);
        assert_eq!(talk.server.session.inside(), 1, "one is always taken");
        talk.server.most_held = share(1);
        assert_eq!(talk.ask(), 1);
    }

    #[test]
    fn who_was_not_heard_for_long_may_go_on() {
        let mut talk = Talk::open();
        (0..1024).for_each(|_| talk.say(&request(command::FLUSH, 0)));
        assert_eq!(talk.server.session.inside(), 1024);
        talk.say(&request(command::FLUSH, 0)[..10]);
        assert!(!talk.server.is_heard());
        talk.server.heard = long_ago();
        talk.turn();
        talk.server.put(1, None, Answer::Done);
        talk.turn();
        assert!(talk.server.is_heard() && !talk.server.is_gone);
    }

    /// Hangs up after so many flushes.
    fn left(flushes: usize, says_so: bool) -> Talk {
        let mut talk = Talk::open();
        let mut said: Vec<u8> = (0..flushes).flat_map(|_| request(command::FLUSH, 0)).collect();
        if says_so {
            said.extend(request(command::DISCONNECT, 0));
        }
        talk.client.write_all(&said).expect("it is said");
        talk.client.shutdown(std::net::Shutdown::Both).expect("it is connected");
        talk.hear();
        talk
    }

    #[test]
    fn who_hangs_up_is_gone_once_all_that_he_asked_is_taken() {
        let mut talk = left(2_000, false);
        assert_eq!(talk.server.session.inside(), 1024);
        talk.server.is_ready(&mut [0; 4096]);
        assert!(!talk.server.is_watched(), "of whom there is nothing to hear for now");
        talk.turn();
        assert!(!talk.server.is_gone);
        for _ in 0..1_000 {
            talk.server.put(1, None, Answer::Done);
        }
        let asked = talk.ask();
        talk.turn();
        assert!(talk.server.is_heard() && !talk.server.is_gone, "there may be more");
        assert_eq!(asked + talk.hear(), 976);
        talk.turn();
        assert!(talk.server.is_gone);
    }

    #[test]
    fn who_says_that_he_goes_stays_until_all_that_he_asked_is_served() {
        let mut talk = left(3, true);
        talk.server.is_ready(&mut [0; 4096]);
        for left in (0..3).rev() {
            talk.turn();
            assert!(!talk.server.is_gone && talk.server.session.output().is_empty());
            talk.server.put(1, None, Answer::Done);
            assert_eq!(talk.server.session.inside(), left);
        }
        talk.turn();
        assert!(talk.server.is_gone);
    }

    #[test]
    fn who_is_at_rest_or_waits_for_the_drive_stays() {
        assert!(!Talk::open().times_out());
        let mut talk = Talk::open();
        talk.say(&request(command::READ, 4096));
        assert_eq!(talk.server.session.inside(), 1);
        assert!(!talk.times_out());
    }
}
