//! Sockets in the file system and at addresses.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::sockopt;

/// Bytes that the address of a socket has for its path, but for the zero at its end (unix(7)).
const LONGEST_PATH: usize = 107;

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
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
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
/// not be there.
pub fn listen_at(path: &Path) -> io::Result<UnixListener> {
    if path.as_os_str().len() > LONGEST_PATH {
        let message = format!("the path of a socket has at most {LONGEST_PATH} bytes");
        return Err(io::Error::new(ErrorKind::InvalidInput, message));
    }
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "something that is no socket is there"));
        }
        Ok(_) => match UnixStream::connect(path) {
            // That of a server that was killed is in nobody's way.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
            _ => return Err(io::Error::new(ErrorKind::AddrInUse, "it is in use: somebody listens there")),
        },
        Err(_) => {}
    }
    UnixListener::bind(path)
}

impl Listener {
    pub(crate) fn bind(address: &Address) -> io::Result<Listener> {
        let listener = match address {
            Address::Unix(path) => Listener::Unix(listen_at(path)?, path.clone()),
            Address::Tcp(address) => Listener::Tcp(TcpListener::bind(address)?),
        };
        match &listener {
            Listener::Unix(listener, _) => listener.set_nonblocking(true)?,
            Listener::Tcp(listener) => listener.set_nonblocking(true)?,
        }
        Ok(listener)
    }

    pub(crate) fn accept(&self) -> io::Result<Stream> {
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
                keep_alive(&stream)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
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
    use super::*;

    #[test]
    fn a_peer_that_does_not_take_what_is_on_its_way_is_gone_after_a_minute() {
        let listener = Listener::bind(&Address::Tcp(([127, 0, 0, 1], 0).into())).expect("a port");
        let Listener::Tcp(port) = &listener else { unreachable!("as it was bound") };
        let _client = TcpStream::connect(port.local_addr().expect("an address")).expect("it listens");
        let Ok(Stream::Tcp(stream)) = listener.accept() else { panic!("a client has connected") };
        assert_eq!(sockopt::tcp_user_timeout(&stream), Ok(60_000));
    }
}
