//! The line to a server, and what the two agree on at its beginning.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use flashkeel_engine::{SECTOR_BYTES, reason};
use flashkeel_nbd::{self as wire, LONGEST_OPTION, Put, Reader};

use super::uri::{Server, Uri};

/// A server that has not said by then what its export is, is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers to one option at most: an export has not as much to say.
const MOST_ANSWERS: usize = 64;

/// The longest block that a server may ask for ("Block size constraints").
const LONGEST_BLOCK: u32 = 64 << 10;

/// A socket of any kind.
pub(super) trait Line: Read + Write + AsFd + Send {
    fn set_read_timeout(&self, most: Option<Duration>) -> io::Result<()>;
    fn set_nonblocking(&self) -> io::Result<()>;
}

impl Line for UnixStream {
    fn set_read_timeout(&self, most: Option<Duration>) -> io::Result<()> {
        UnixStream::set_read_timeout(self, most)
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        UnixStream::set_nonblocking(self, true)
    }
}

impl Line for TcpStream {
    fn set_read_timeout(&self, most: Option<Duration>) -> io::Result<()> {
        TcpStream::set_read_timeout(self, most)
    }

    fn set_nonblocking(&self) -> io::Result<()> {
        TcpStream::set_nonblocking(self, true)
    }
}

/// What a server says of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub bytes: u64,
    /// Of [`wire::transmission`].
    pub flags: u16,
    /// Requests begin and end at multiples of it.
    pub block_bytes: u32,
    /// And like to at multiples of this.
    pub preferred_bytes: u32,
    /// The longest request.
    pub most_bytes: u32,
}

/// Asks what an export is, without using it.
pub(super) fn ask(uri: &Uri) -> Result<Terms, String> {
    let mut greeted = Greeted::new(uri)?;
    let terms = greeted.choose(wire::option::INFO, &uri.export)?;
    // As a courtesy: nothing depends on it.
    let _ = greeted.option(wire::option::ABORT, &[]);
    Ok(terms)
}

/// Begins to use an export. The line does not wait from now on.
pub(super) fn begin(uri: &Uri) -> Result<(Box<dyn Line>, Terms), String> {
    let mut greeted = Greeted::new(uri)?;
    let terms = greeted.choose(wire::option::GO, &uri.export)?;
    greeted.line.set_read_timeout(None).map_err(|error| reason(&error))?;
    greeted.line.set_nonblocking().map_err(|error| reason(&error))?;
    Ok((greeted.line, terms))
}

/// A server that has said who it is.
struct Greeted {
    line: Box<dyn Line>,
    deadline: Instant,
}

impl Greeted {
    fn new(uri: &Uri) -> Result<Greeted, String> {
        let line = connect(&uri.server).map_err(|error| format!("no server there: {}", reason(&error)))?;
        let mut greeted = Greeted { line, deadline: Instant::now() + PATIENCE };
        let greeting: [u8; 18] = greeted.receive()?;
        if greeting[..8] != wire::GREETING[..8] {
            return Err("whoever answers there is no server of network block devices".into());
        }
        let offered = u32::from(u16::from_be_bytes([greeting[16], greeting[17]]));
        if greeting[..16] != wire::GREETING[..] || offered & wire::handshake::FIXED_NEWSTYLE == 0 {
            return Err("the server knows no fixed newstyle negotiation".into());
        }
        let flags = wire::handshake::FIXED_NEWSTYLE | offered & wire::handshake::NO_ZEROES;
        greeted.send(&flags.to_be_bytes())?;
        Ok(greeted)
    }

    /// Sends an option.
    fn option(&mut self, option: u32, data: &[u8]) -> Result<(), String> {
        let mut sent = Vec::new();
        sent.u64(wire::OPTION);
        sent.u32(option);
        sent.u32(data.len() as u32);
        sent.put(data);
        self.send(&sent)
    }

    /// `INFO` or `GO`, and what the server says to that.
    fn choose(&mut self, option: u32, export: &str) -> Result<Terms, String> {
        if export.len() > wire::LONGEST_STRING {
            return Err(format!("the export's name is longer than {} bytes", wire::LONGEST_STRING));
        }
        let mut data = Vec::new();
        data.u32(export.len() as u32);
        data.put(export.as_bytes());
        data.u16(1);
        data.u16(wire::info::BLOCK_SIZE);
        self.option(option, &data)?;
        let (mut size, mut blocks) = (None, None);
        for _ in 0..MOST_ANSWERS {
            let (reply, data) = self.answer(option)?;
            let mut reader = Reader(&data);
            match reply {
                wire::reply::INFO => match reader.u16() {
                    Some(wire::info::EXPORT) => size = reader.u64().zip(reader.u16()),
                    Some(wire::info::BLOCK_SIZE) => {
                        blocks = reader.u32().zip(reader.u32()).zip(reader.u32());
                    }
                    _ => {}
                },
                wire::reply::ACK => return terms(size, blocks),
                wire::reply::UNSUPPORTED => return Err("the server knows no option GO".into()),
                wire::reply::UNKNOWN => return Err(format!("the server has no export {export:?}")),
                other => {
                    let words = String::from_utf8_lossy(&data);
                    let words: String = words.chars().filter(|c| !c.is_control()).take(200).collect();
                    return Err(format!("the server refuses, with {other:#x} {words:?}"));
                }
            }
        }
        Err("the server does not end its answer".into())
    }

    /// One answer to an option.
    fn answer(&mut self, option: u32) -> Result<(u32, Vec<u8>), String> {
        let head: [u8; wire::OPTION_REPLY_BYTES] = self.receive()?;
        let mut reader = Reader(&head);
        let (magic, about) = (reader.u64(), reader.u32());
        let (reply, length) = (reader.u32().unwrap_or(0), reader.u32().unwrap_or(0));
        if magic != Some(wire::OPTION_REPLY) || about != Some(option) {
            return Err("the server breaks the protocol: no answer where one has to be".into());
        }
        if length as usize > LONGEST_OPTION {
            return Err(format!("the server breaks the protocol: an answer of {length} bytes"));
        }
        let mut data = vec![0; length as usize];
        self.fill(&mut data)?;
        Ok((reply, data))
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.line.write_all(bytes).map_err(|error| format!("the server hangs up: {}", reason(&error)))
    }

    fn receive<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, mut room: &mut [u8]) -> Result<(), String> {
        while !room.is_empty() {
            let left = self.deadline.saturating_duration_since(Instant::now());
            // No time at all would be taken for any.
            let left = left.max(Duration::from_millis(1));
            let read = self.line.set_read_timeout(Some(left)).and_then(|()| self.line.read(room));
            match read {
                Ok(0) => return Err("the server hangs up before it has said what its export is".into()),
                Ok(count) => room = &mut room[count..],
                // Who interrupts does not want to wait for it.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    return Err("a signal came before the server had said what its export is".into());
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(format!("the server says nothing within {} s", PATIENCE.as_secs()));
                }
                Err(error) => return Err(format!("the server hangs up: {}", reason(&error))),
            }
            if Instant::now() > self.deadline && !room.is_empty() {
                return Err(format!("the server is not done within {} s", PATIENCE.as_secs()));
            }
        }
        Ok(())
    }
}

fn connect(server: &Server) -> io::Result<Box<dyn Line>> {
    let (host, port) = match server {
        Server::Unix(path) => return Ok(Box::new(UnixStream::connect(path)?)),
        Server::Tcp(host, port) => (host.as_str(), *port),
    };
    let mut refused = io::Error::other("the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(line) => {
                // Requests are short, and each is waited for.
                line.set_nodelay(true)?;
                return Ok(Box::new(line));
            }
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// What an export is, if that makes sense.
fn terms(size: Option<(u64, u16)>, blocks: Option<((u32, u32), u32)>) -> Result<Terms, String> {
    let Some((bytes, flags)) = size else {
        return Err("the server breaks the protocol: it does not say how large its export is".into());
    };
    // What clients may assume where nobody says anything.
    let ((block, preferred), most) = blocks.unwrap_or(((512, 4096), wire::MOST_BYTES));
    let is_too_short = most < block.max(SECTOR_BYTES as u32);
    if !block.is_power_of_two() || block > LONGEST_BLOCK || is_too_short || !preferred.is_power_of_two() {
        return Err(format!(
            "the server breaks the protocol: blocks of {block} bytes, {preferred} preferred, {most} at most"
        ));
    }
    Ok(Terms { bytes, flags, block_bytes: block, preferred_bytes: preferred, most_bytes: most })
}
