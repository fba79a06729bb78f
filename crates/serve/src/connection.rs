//! A client: its socket and its session.

use std::time::{Duration, Instant};

use flashkeel_engine::{Span, Time};

use crate::clock::Clock;
use crate::drive::Answer;
use crate::lateness::Lateness;
use crate::nbd::{Export, Session};
use crate::sockets::{Stream, is_for_later};

/// How long a client may take to choose an export, and to take an answer.
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
        Connection { number, stream, session, owes_since: None, due, is_ending: false, is_gone: false }
    }

    /// Reads what has come.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) {
        match self.stream.read(buffer) {
            Ok(0) => self.is_gone = true,
            Ok(bytes) => self.session.receive(&buffer[..bytes]),
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
        self.is_gone |= is_over || self.owes_since.is_some_and(|since| since.elapsed() > PATIENCE);
    }

    /// Whether more may be read of it.
    pub(crate) fn is_heard(&self) -> bool {
        !self.is_ending && self.session.wants_more() && self.session.output().len() < MOST_UNSENT
    }
}
