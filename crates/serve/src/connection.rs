//! A client: its socket and its session.

use std::time::{Duration, Instant};

use flashkeel_engine::{Span, Time};

use crate::clock::Clock;
use crate::drive::Answer;
use crate::lateness::Lateness;
use crate::nbd::{Export, Session};
use crate::sockets::{Stream, is_for_later};

/// How long a client may take to choose an export and to take an answer, and say nothing in
/// the middle of a request.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers that a client has not taken before nothing more is read from it.
const MOST_UNSENT: usize = 64 << 20;

/// A client.
pub(crate) struct Connection {
    /// Of all that have been.
    pub(crate) number: usize,
    pub(crate) stream: Stream,
    pub(crate) session: Session,
    /// Since when it owes something: the choice of an export, or to take an answer.
    owes_since: Option<Instant>,
    /// When it last said something.
    heard: Instant,
    /// When answers were due that nobody has tried to send.
    due: Vec<Time>,
    /// It is to be closed once what is unsent has gone and what is inside has ended.
    pub(crate) is_ending: bool,
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
            owes_since: None,
            heard: Instant::now(),
            due,
            is_ending: false,
            is_gone: false,
        }
    }

    /// Reads what has come.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) {
        match self.stream.read(buffer) {
            Ok(0) => self.is_gone = true,
            Ok(bytes) => {
                self.session.receive(&buffer[..bytes]);
                self.heard = Instant::now();
            }
            Err(error) if is_for_later(&error) => {}
            Err(_) => self.is_gone = true,
        }
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
        let stalls = self.session.is_amid() && self.heard.elapsed() > PATIENCE;
        let is_late = self.owes_since.is_some_and(|since| since.elapsed() > PATIENCE);
        self.is_gone |= is_over || stalls || is_late;
    }

    /// Whether more may be read of it.
    pub(crate) fn is_heard(&self) -> bool {
        !self.is_ending && self.session.wants_more() && self.session.output().len() < MOST_UNSENT
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
            while let Ok(Some(_)) = self.server.session.next_ask() {}
            self.turn();
        }

        fn turn(&mut self) {
            self.server.send(&self.clock, &mut Lateness::default());
        }

        /// Whether it is disconnected if it goes on as now for as long as it may, and longer.
        fn times_out(mut self) -> bool {
            assert!(!self.server.is_gone);
            let before =
                Instant::now().checked_sub(PATIENCE + Duration::from_secs(1)).expect("it is running");
            self.server.heard = before;
            self.server.owes_since = self.server.owes_since.map(|_| before);
            self.turn();
            self.server.is_gone
        }
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
    fn who_is_at_rest_or_waits_for_the_drive_stays() {
        assert!(!Talk::open().times_out());
        let mut talk = Talk::open();
        talk.say(&request(command::READ, 4096));
        assert_eq!(talk.server.session.inside(), 1);
        assert!(!talk.times_out());
    }
}
