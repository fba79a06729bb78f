//! Sockets in the file system and at addresses.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use flashkeel_engine::reason;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::sockopt;

/// Bytes that the address of a socket has for its path, but for the zero at its end (unix(7)).
const LONGEST_PATH: usize = 107;

/// How long somebody may have the folder of a socket locked.
const MOST_LOCKED: Duration = Duration::from_secs(1);

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system.
    Unix(PathBuf),
    /// A host and a port.
    Tcp(SocketAddr),
}

/// Where clients are waited for.
pub(crate) enum Listener {
    /// With its path, and what is there.
    Unix(UnixListener, PathBuf, Inode),
    Tcp(TcpListener),
}

/// What is at a path, by its device and number there.
#[derive(PartialEq, Eq)]
pub(crate) struct Inode(u64, u64);

impl Inode {
    fn at(path: &Path) -> io::Result<Inode> {
        fs::symlink_metadata(path).map(|found| Inode(found.dev(), found.ino()))
    }
}

/// A connection to one.
pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

/// Listens at a socket in the file system.
///
/// # Errors
/// If something is there that is no socket, or one at which somebody listens, or it may
/// not be there, or somebody else has its folder locked.
pub fn listen_at(path: &Path) -> io::Result<UnixListener> {
    if path.as_os_str().len() > LONGEST_PATH {
        let message = format!("the path of a socket has at most {LONGEST_PATH} bytes");
        return Err(io::Error::new(ErrorKind::InvalidInput, message));
    }
    // Of several that find the socket of a killed server one takes its place. Who is not there yet,
    // or does not listen yet, looks the same as the dead.
    let _locked = lock_folder(path)?;
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "something that is no socket is there"));
        }
        Ok(_) => match UnixStream::connect(path) {
            // That of a server that was killed is in nobody's way.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path)?,
            Err(error) => {
                let why = format!("whether somebody listens there cannot be told: {}", reason(&error));
                return Err(io::Error::new(error.kind(), why));
            }
            Ok(_) => {
                return Err(io::Error::new(ErrorKind::AddrInUse, "it is in use: somebody listens there"));
            }
        },
        Err(_) => {}
    }
    UnixListener::bind(path)
}

/// Locks the folder of a path, until the file is closed.
fn lock_folder(path: &Path) -> io::Result<File> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let folder = File::open(folder)?;
    let until = Instant::now() + MOST_LOCKED;
    loop {
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(folder),
            Err(Errno::WOULDBLOCK) if Instant::now() < until => thread::sleep(Duration::from_millis(1)),
            Err(Errno::WOULDBLOCK) => {
                return Err(io::Error::new(ErrorKind::WouldBlock, "somebody has its folder locked"));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

impl Listener {
    pub(crate) fn bind(address: &Address) -> io::Result<Listener> {
        let listener = match address {
            Address::Unix(path) => {
                let listener = listen_at(path)?;
                Listener::Unix(listener, path.clone(), Inode::at(path)?)
            }
            Address::Tcp(address) => Listener::Tcp(TcpListener::bind(address)?),
        };
        match &listener {
            Listener::Unix(listener, ..) => listener.set_nonblocking(true)?,
            Listener::Tcp(listener) => listener.set_nonblocking(true)?,
        }
        Ok(listener)
    }

    pub(crate) fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Unix(listener, ..) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Stream::Unix(stream))
            }
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                keep_alive(&stream)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(listener, ..) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    /// The socket goes with its server, which is heard up to then: if it is still there, nobody
    /// puts another in its place meanwhile.
    fn drop(&mut self) {
        if let Listener::Unix(_, path, inode) = self
            && Inode::at(path).is_ok_and(|found| found == *inode)
        {
            let _ = fs::remove_file(path);
        }
    }
}

impl Stream {
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        }
    }
}

/// How long a peer may be out of reach.
const OUT_OF_REACH: Duration = Duration::from_secs(60);

/// Asks a peer that says nothing whether it is still there: one that is not is gone after a
/// minute, and its place is free. Nobody is asked while something is on its way to him: then it is
/// that which has to arrive in time.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(30))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(10))?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    Ok(sockopt::set_tcp_user_timeout(stream, OUT_OF_REACH.as_millis() as u32)?)
}

/// Whether nothing is wrong: there is nothing now.
pub(crate) fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;
    use std::sync::Barrier;

    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("flashkeel-{name}-{}.sock", std::process::id()))
    }

    #[test]
    fn of_several_that_find_the_socket_of_a_killed_server_one_takes_its_place() {
        let path = path("dead");
        let together = Barrier::new(4);
        let listen = || {
            together.wait();
            listen_at(&path)
        };
        for _ in 0..300 {
            drop(UnixListener::bind(&path).expect("a socket"));
            let ended: Vec<_> = thread::scope(|scope| {
                let all: Vec<_> = (0..4).map(|_| scope.spawn(listen)).collect();
                all.into_iter().map(|one| one.join().expect("it does not panic")).collect()
            });
            assert_eq!(ended.iter().flatten().count(), 1);
            UnixStream::connect(&path).expect("somebody listens");
            fs::remove_file(&path).expect("it is there");
        }
    }

    #[test]
    fn a_socket_that_cannot_be_asked_is_left_alone_and_not_said_to_be_in_use() {
        let path = path("datagrams");
        let _other = UnixDatagram::bind(&path).expect("a socket");
        let error = listen_at(&path).expect_err("it is of another kind").to_string();
        assert!(error.starts_with("whether somebody listens there cannot be told: "), "{error}");
        fs::remove_file(&path).expect("it is there");
    }

    #[test]
    fn a_server_that_ends_leaves_the_socket_of_another() {
        let path = path("other");
        let first = Listener::bind(&Address::Unix(path.clone())).expect("a socket");
        fs::remove_file(&path).expect("it is there");
        let second = Listener::bind(&Address::Unix(path.clone())).expect("a socket");
        drop(first);
        UnixStream::connect(&path).expect("somebody listens");
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn a_peer_that_does_not_take_what_is_on_its_way_is_gone_after_a_minute() {
        let listener = Listener::bind(&Address::Tcp(([127, 0, 0, 1], 0).into())).expect("a port");
        let Listener::Tcp(port) = &listener else { unreachable!("as it was bound") };
        let _client = TcpStream::connect(port.local_addr().expect("an address")).expect("it listens");
        let Ok(Stream::Tcp(stream)) = listener.accept() else { panic!("a client has connected") };
        assert_eq!(sockopt::tcp_user_timeout(&stream), Ok(60_000));
    }
}
