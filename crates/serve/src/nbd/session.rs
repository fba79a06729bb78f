//! One connection, from the greeting to the last answer.

use flashkeel_engine::Holds;

use super::handshake::{ALLOCATION_ID, Agreed, Export, Handshake, Step};
use super::wire::{self, MOST_BYTES, Put, REQUEST_BYTES, Reader};

/// Requests that are inside at most; more are read once one has been answered.
const MOST_INSIDE: usize = 1024;

/// Bytes of memory that a client keeps for what comes and goes while nothing does: longer requests are
/// seldom, and all clients together would keep as much as they have ever needed.
const MOST_KEPT: usize = 4 << 20;

/// As what requests are counted that cannot be served, by their commands: reads, writes, flushes,
/// trims and writes of zeros; and last all others.
const REFUSED: [&[u16]; 5] = {
    use wire::command::*;
    [&[READ], &[WRITE], &[FLUSH], &[TRIM, WRITE_ZEROES], &[]]
};

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The client is done.
    Done,
    /// It did what the protocol does not allow, in words.
    Fault(&'static str),
}

/// What a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask<'a> {
    /// Names the request in its answer, of this session alone.
    pub cookie: u64,
    /// What.
    pub kind: Kind,
    /// First byte; 0 for a flush.
    pub from: u64,
    /// Bytes; 0 for a flush.
    pub length: u32,
    /// Whether a change is answered once it is durable.
    pub fua: bool,
    /// The bytes of a write.
    pub data: &'a [u8],
}

impl Ask<'_> {
    /// Bytes that it takes in memory until it has been answered.
    pub fn held(&self) -> u32 {
        if matches!(self.kind, Kind::Read | Kind::Write) { self.length } else { 0 }
    }
}

/// Kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Read the range.
    Read,
    /// Write it.
    Write,
    /// Make what was answered before durable.
    Flush,
    /// Deallocate it.
    Trim,
    /// Make it read as zeros.
    WriteZeroes,
    /// Say what of it holds data; whether one extent is enough.
    Status(bool),
}

impl Kind {
    fn is_change(self) -> bool {
        matches!(self, Kind::Write | Kind::Trim | Kind::WriteZeroes)
    }
}

/// How a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The export takes no writes.
    NotPermitted,
    /// The device failed.
    Io,
    /// The request is none that can be served, or is not known.
    Invalid,
    /// There is no room for a write.
    NoSpace,
}

impl Failure {
    fn number(self) -> u32 {
        match self {
            Failure::NotPermitted => 1,
            Failure::Io => 5,
            Failure::Invalid => 22,
            Failure::NoSpace => 28,
        }
    }
}

/// A range of an export, and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes.
    pub length: u32,
    /// What is there.
    pub holds: Holds,
}

/// The state of a connection.
#[derive(Clone, Debug)]
pub struct Session {
    export: Export,
    phase: Phase,
    /// What has come and was not taken yet, behind what was.
    input: Vec<u8>,
    taken: usize,
    /// What is to go, behind what has gone.
    output: Vec<u8>,
    gone: usize,
    inside: usize,
    /// Requests that were answered here, by [`REFUSED`].
    refused: [u64; REFUSED.len()],
    /// Why nothing more is taken.
    closed: Option<Closed>,
}

#[derive(Clone, Debug)]
enum Phase {
    Handshake(Handshake),
    Transmission(Agreed),
}

/// A request as it stands on the wire.
struct Header {
    flags: u16,
    command: u16,
    cookie: u64,
    from: u64,
    length: u32,
}

impl Header {
    /// Bytes that come behind it.
    fn carried(&self) -> usize {
        if self.command == wire::command::WRITE { self.length as usize } else { 0 }
    }
}

impl Session {
    /// A client has connected: the greeting is to go.
    pub fn new(export: Export) -> Session {
        let mut output = Vec::new();
        let phase = Phase::Handshake(Handshake::new(&mut output));
        let (input, refused) = (Vec::new(), [0; REFUSED.len()]);
        Session { export, phase, input, taken: 0, output, gone: 0, inside: 0, refused, closed: None }
    }

    /// Bytes have come.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.drain(..std::mem::take(&mut self.taken));
        self.input.extend_from_slice(bytes);
    }

    /// Whether more may be read now: not while more is inside than is bounded.
    pub fn wants_more(&self) -> bool {
        self.inside < MOST_INSIDE && self.input.len() - self.taken < 2 * MOST_BYTES as usize
    }

    /// Bytes that are to go.
    pub fn output(&self) -> &[u8] {
        &self.output[self.gone..]
    }

    /// So many of them have gone.
    pub fn sent(&mut self, bytes: usize) {
        self.gone += bytes;
        if self.gone == self.output.len() {
            self.output.clear();
            self.output.shrink_to(MOST_KEPT);
            self.gone = 0;
        } else if self.gone > self.output.len() / 2 {
            self.output.drain(..std::mem::take(&mut self.gone));
        }
    }

    /// Whether an export has been chosen, so that a client that is slow now is at rest.
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Transmission(_))
    }

    /// Whether a part of a request has come, and the rest of it has not.
    pub fn is_amid(&self) -> bool {
        self.is_open() && self.inside < MOST_INSIDE && self.taken < self.input.len()
    }

    /// Whether a whole request has come and has not been taken.
    pub fn has_ask(&self) -> bool {
        let input = &self.input[self.taken..];
        let is_whole = |header: Header| input.len() - REQUEST_BYTES >= header.carried();
        self.closed.is_none()
            && self.is_open()
            && header(input).is_ok_and(|header| header.is_some_and(is_whole))
    }

    /// Requests that have not been answered.
    pub fn inside(&self) -> usize {
        self.inside
    }

    /// How many requests could not be served since this was last asked: reads, writes, flushes, trims
    /// and writes of zeros, and others.
    pub fn take_refused(&mut self) -> [u64; REFUSED.len()] {
        std::mem::take(&mut self.refused)
    }

    /// The next request, if a whole one has come. What cannot be served is answered here.
    ///
    /// # Errors
    /// If the connection is to be closed once the [`output`](Self::output) has gone; so it
    /// stays.
    pub fn next_ask(&mut self) -> Result<Option<Ask<'_>>, Closed> {
        if let Some(closed) = self.closed {
            return Err(closed);
        }
        if self.taken == self.input.len() {
            self.input.clear();
            self.input.shrink_to(MOST_KEPT);
            self.taken = 0;
        }
        loop {
            let agreed = match &mut self.phase {
                Phase::Handshake(handshake) => {
                    match handshake.take(&self.export, &self.input[self.taken..], &mut self.output) {
                        Err(closed) => return Err(*self.closed.insert(closed)),
                        Ok(Step::Wait) => return Ok(None),
                        Ok(Step::Took(bytes)) => self.taken += bytes,
                        Ok(Step::Begin(bytes, agreed)) => {
                            self.taken += bytes;
                            self.phase = Phase::Transmission(agreed);
                        }
                    }
                    continue;
                }
                Phase::Transmission(agreed) => *agreed,
            };
            if self.inside >= MOST_INSIDE {
                return Ok(None);
            }
            let header = match header(&self.input[self.taken..]) {
                Ok(Some(header)) => header,
                Ok(None) => return Ok(None),
                Err(closed) => return Err(*self.closed.insert(closed)),
            };
            let carried = header.carried();
            if carried > MOST_BYTES as usize {
                return Err(*self.closed.insert(Closed::Fault("a write longer than was agreed on")));
            }
            let begin = self.taken + REQUEST_BYTES;
            if self.input.len() - begin < carried {
                return Ok(None);
            }
            self.taken = begin + carried;
            if header.command == wire::command::DISCONNECT {
                return Err(*self.closed.insert(Closed::Done));
            }
            self.inside += 1;
            match self.check(&header, agreed) {
                Ok(kind) => {
                    let Header { cookie, from, length, flags, .. } = header;
                    let (from, length) = if kind == Kind::Flush { (0, 0) } else { (from, length) };
                    // Some clients set it on whatever they send.
                    let fua = kind.is_change() && flags & wire::command::FUA != 0;
                    let data = &self.input[begin..begin + carried];
                    return Ok(Some(Ask { cookie, kind, from, length, fua, data }));
                }
                Err(failure) => {
                    let sort = REFUSED.iter().position(|commands| commands.contains(&header.command));
                    self.refused[sort.unwrap_or(REFUSED.len() - 1)] += 1;
                    self.fail(header.cookie, has_data(header.command), failure);
                }
            }
        }
    }

    /// What a request asks, if it can be served.
    fn check(&self, header: &Header, agreed: Agreed) -> Result<Kind, Failure> {
        use wire::command::*;
        let (kind, known) = match header.command {
            READ => (Kind::Read, if agreed.is_structured { DONT_FRAGMENT } else { 0 }),
            WRITE => (Kind::Write, FUA),
            FLUSH => (Kind::Flush, 0),
            TRIM => (Kind::Trim, FUA),
            // Zeros take no room, and none is wanting where they are overwritten.
            WRITE_ZEROES => (Kind::WriteZeroes, FUA | NO_HOLE),
            BLOCK_STATUS if agreed.has_contexts => (Kind::Status(header.flags & ONE_EXTENT != 0), ONE_EXTENT),
            _ => return Err(Failure::Invalid),
        };
        // It goes with anything, and means something for changes alone.
        if header.flags & !(known | FUA) != 0 {
            return Err(Failure::Invalid);
        }
        if kind == Kind::Flush {
            return Ok(kind);
        }
        if kind.is_change() && self.export.is_read_only {
            return Err(Failure::NotPermitted);
        }
        let block = u64::from(self.export.block_bytes);
        let is_whole = header.from.is_multiple_of(block) && u64::from(header.length).is_multiple_of(block);
        let end = header.from.checked_add(u64::from(header.length));
        if header.length == 0 || !is_whole || kind == Kind::Read && header.length > MOST_BYTES {
            return Err(Failure::Invalid);
        }
        match end.filter(|&end| end <= self.export.bytes) {
            Some(_) => Ok(kind),
            None if matches!(kind, Kind::Write | Kind::WriteZeroes) => Err(Failure::NoSpace),
            None => Err(Failure::Invalid),
        }
    }

    /// A request has failed; whether its answer would have had data.
    pub fn fail(&mut self, cookie: u64, has_data: bool, failure: Failure) {
        self.inside -= 1;
        if has_data && self.is_structured() {
            chunk(&mut self.output, wire::chunk::ERROR, cookie, 6);
            self.output.u32(failure.number());
            self.output.u16(0);
        } else {
            self.simple(cookie, failure.number());
        }
    }

    /// A request without data in its answer has been served.
    pub fn done(&mut self, cookie: u64) {
        self.inside -= 1;
        self.simple(cookie, 0);
    }

    /// A read from byte `from` on has been served.
    pub fn read(&mut self, cookie: u64, from: u64, data: &[u8]) {
        self.inside -= 1;
        if self.is_structured() {
            chunk(&mut self.output, wire::chunk::OFFSET_DATA, cookie, 8 + data.len() as u32);
            self.output.u64(from);
        } else {
            self.simple(cookie, 0);
        }
        self.output.put(data);
    }

    /// What is stored, from where was asked on.
    pub fn status(&mut self, cookie: u64, extents: &[Extent]) {
        self.inside -= 1;
        chunk(&mut self.output, wire::chunk::BLOCK_STATUS, cookie, 4 + 8 * extents.len() as u32);
        self.output.u32(ALLOCATION_ID);
        for extent in extents {
            self.output.u32(extent.length);
            self.output.u32(match extent.holds {
                Holds::Data => 0,
                Holds::Zeros => wire::state::ZERO,
                Holds::Nothing => wire::state::HOLE | wire::state::ZERO,
            });
        }
    }

    fn is_structured(&self) -> bool {
        matches!(self.phase, Phase::Transmission(Agreed { is_structured: true, .. }))
    }

    fn simple(&mut self, cookie: u64, error: u32) {
        self.output.u32(wire::SIMPLE_REPLY);
        self.output.u32(error);
        self.output.u64(cookie);
    }
}

/// Whether answers to a command have data.
fn has_data(command: u16) -> bool {
    matches!(command, wire::command::READ | wire::command::BLOCK_STATUS)
}

/// Begins the only chunk of a structured reply.
fn chunk(output: &mut Vec<u8>, kind: u16, cookie: u64, length: u32) {
    output.u32(wire::STRUCTURED_REPLY);
    output.u16(wire::chunk::DONE);
    output.u16(kind);
    output.u64(cookie);
    output.u32(length);
}

/// The request that comes next, without its data, if that much has come.
fn header(input: &[u8]) -> Result<Option<Header>, Closed> {
    let mut reader = Reader(input);
    let Some(magic) = reader.u32() else { return Ok(None) };
    if magic != wire::REQUEST {
        return Err(Closed::Fault("no request where one has to be"));
    }
    let mut found = || {
        Some(Header {
            flags: reader.u16()?,
            command: reader.u16()?,
            cookie: reader.u64()?,
            from: reader.u64()?,
            length: reader.u32()?,
        })
    };
    Ok(found())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_requests_and_answers_nothing_stays_in_memory() {
        let mut session = Session::new(Export {
            name: "disk".into(),
            description: String::new(),
            bytes: 1 << 30,
            block_bytes: 512,
            preferred_bytes: 4096,
            is_read_only: false,
        });
        let long = 2 * MOST_KEPT;
        (session.input, session.taken) = (vec![0; long], long);
        session.output.resize(long, 0);
        session.sent(long);
        assert_eq!(session.next_ask(), Ok(None));
        assert!(session.input.capacity() <= MOST_KEPT && session.output.capacity() <= MOST_KEPT);
    }
}
