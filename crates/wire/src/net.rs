//! Connects to a server, and transfers bytes before a deadline.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::cancel::CancelFlag;
use crate::error::WireError;
use crate::options::Endpoint;

/// Interval at which a blocking call checks the cancellation flag.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A connected socket whose calls end at a deadline or when a flag is set.
#[derive(Debug)]
pub struct Socket {
    stream: Stream,
    cancel: Option<CancelFlag>,
}

#[derive(Debug)]
enum Stream {
    Unix(UnixStream),
    /// With Nagle's delay off.
    Tcp(TcpStream),
}

impl Socket {
    /// Connects before `deadline`.
    ///
    /// # Errors
    /// Unknown host, missing socket, refused connection or timeout, each with a remedy; [`WireError::Cancelled`].
    pub fn connect(
        endpoint: &Endpoint,
        deadline: Instant,
        cancel: Option<&CancelFlag>,
    ) -> Result<Self, WireError> {
        let limit = Limit { deadline, cancel: cancel.map(|flag| &**flag) };
        let connected = match endpoint {
            Endpoint::Unix(path) => connect_unix(path, limit).map(Stream::Unix),
            Endpoint::Tcp { host, port } => connect_tcp(host, *port, limit).map(Stream::Tcp),
        };
        match connected {
            Ok(stream) => Ok(Self { stream, cancel: cancel.cloned() }),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                Err(WireError::Cancelled { during: "connecting" })
            }
            Err(source) => Err(match endpoint {
                Endpoint::Unix(path) => unreachable_socket(path, endpoint, source),
                Endpoint::Tcp { .. } => unreachable_host(endpoint, source),
            }),
        }
    }

    /// Receives some bytes; 0 is the end.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::TimedOut`] at the deadline, [`io::ErrorKind::Interrupted`] once the flag
    /// is set.
    pub fn receive(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        let limit = Limit { deadline, cancel: self.cancel.as_deref() };
        loop {
            let timeout = Some(limit.slice()?);
            let result = match &mut self.stream {
                Stream::Unix(s) => s.set_read_timeout(timeout).and_then(|()| s.read(buffer)),
                Stream::Tcp(s) => s.set_read_timeout(timeout).and_then(|()| s.read(buffer)),
            };
            match result {
                Err(e) if retry(&e) => {}
                other => return other,
            }
        }
    }

    /// Sends all bytes.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub fn send_all(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        let limit = Limit { deadline, cancel: self.cancel.as_deref() };
        while !bytes.is_empty() {
            let timeout = Some(limit.slice()?);
            let result = match &mut self.stream {
                Stream::Unix(s) => s.set_write_timeout(timeout).and_then(|()| s.write(bytes)),
                Stream::Tcp(s) => s.set_write_timeout(timeout).and_then(|()| s.write(bytes)),
            };
            match result {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => bytes = &bytes[sent..],
                Err(e) if retry(&e) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// The process at the other end of a Unix socket, as it was when it began to listen (SO_PEERCRED, unix(7)).
    /// `None` over TCP and where it lives in a process namespace that is not visible here.
    pub fn peer_pid(&self) -> Option<u32> {
        let Stream::Unix(stream) = &self.stream else { return None };
        // SAFETY: ucred is plain integers, for which all zeroes is a value.
        let mut credentials: libc::ucred = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: the descriptor is open, and the pointers are to a value and its length that outlive the call.
        let result = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut credentials).cast(),
                &raw mut length,
            )
        };
        (result == 0 && credentials.pid > 0).then_some(credentials.pid as u32)
    }

    /// The descriptor, with no time limits left on it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn into_fd(self) -> io::Result<OwnedFd> {
        match self.stream {
            Stream::Unix(s) => {
                s.set_read_timeout(None)?;
                s.set_write_timeout(None)?;
                Ok(s.into())
            }
            Stream::Tcp(s) => {
                s.set_read_timeout(None)?;
                s.set_write_timeout(None)?;
                Ok(s.into())
            }
        }
    }
}

/// The instant after `timeout`; a time that the clock cannot represent counts as a year.
pub(crate) fn deadline_in(timeout: Duration) -> Instant {
    const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + timeout.min(LONGEST)
}

/// Until when a call may block, and the flag that ends it before.
#[derive(Clone, Copy)]
struct Limit<'a> {
    deadline: Instant,
    cancel: Option<&'a AtomicBool>,
}

impl Limit<'_> {
    /// Time to the deadline, never zero.
    fn left(&self) -> io::Result<Duration> {
        if self.cancel.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(left.max(Duration::from_micros(1))),
        }
    }

    /// How long a system call may block before the flag and the deadline are checked again; never zero, which would
    /// mean forever.
    fn slice(&self) -> io::Result<Duration> {
        let left = self.left()?;
        Ok(if self.cancel.is_some() { left.min(POLL_INTERVAL) } else { left })
    }
}

/// Interrupted, or a time limit of the socket reached: the deadline decides whether to go on.
fn retry(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Longest path of a Unix socket: `sun_path` without its NUL.
pub const MAX_SOCKET_PATH: usize = 107;

fn connect_unix(path: &Path, limit: Limit<'_>) -> io::Result<UnixStream> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() > MAX_SOCKET_PATH || bytes.contains(&0) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("the path has {} bytes, a socket's may have {MAX_SOCKET_PATH}", bytes.len()),
        ));
    }
    // SAFETY: plain constants; the result is checked.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and open, and nothing else owns it.
    let stream = UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    // SAFETY: sockaddr_un is plain integers, for which all zeroes is a value.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    loop {
        // A server whose queue is full lets connect wait; the send timeout bounds that (socket(7)).
        stream.set_write_timeout(Some(limit.slice()?))?;
        // SAFETY: the descriptor is open; the address and its size are those of one value that outlives the call.
        let result = unsafe {
            libc::connect(fd, (&raw const address).cast(), size_of::<libc::sockaddr_un>() as libc::socklen_t)
        };
        if result == 0 {
            return Ok(stream);
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => {}
            _ => return Err(error),
        }
    }
}

fn connect_tcp(host: &str, port: u16, limit: Limit<'_>) -> io::Result<TcpStream> {
    let addresses = resolve(host, port, limit)?;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for (i, address) in addresses.iter().enumerate() {
        // Addresses share the time, so that one without an answer leaves some to the others.
        let share = limit.left()? / u32::try_from(addresses.len() - i).unwrap_or(1);
        match connect_address(*address, share.max(Duration::from_millis(1)), limit) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
            Err(e) => last = e,
        }
    }
    Err(last)
}

/// Connects to one address within `share`. If it takes longer than a moment, a thread continues, so that this one can
/// check the flag; a late thread is abandoned.
fn connect_address(address: SocketAddr, share: Duration, limit: Limit<'_>) -> io::Result<TcpStream> {
    let first = if limit.cancel.is_some() { share.min(POLL_INTERVAL) } else { share };
    match TcpStream::connect_timeout(&address, first) {
        Err(e) if e.kind() == io::ErrorKind::TimedOut && first < share => {
            let rest = share - first;
            let until = Limit { deadline: Instant::now() + rest, ..limit };
            in_a_thread("connect", until, move || TcpStream::connect_timeout(&address, rest))
        }
        other => other,
    }
}

/// Addresses of a host. The system's resolver has no deadline, so it runs in a thread.
fn resolve(host: &str, port: u16, limit: Limit<'_>) -> io::Result<Vec<SocketAddr>> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let name = host.to_owned();
    in_a_thread("resolve", limit, move || {
        let found = (name.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        // getaddrinfo's own errors carry no kind.
        found.map_err(|e| io::Error::new(io::ErrorKind::NotFound, e))
    })
}

/// Runs `work` in a separate thread, which is detached when the deadline passes.
fn in_a_thread<T: Send + 'static>(
    name: &str,
    limit: Limit<'_>,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        // The receiver is dropped when the deadline has passed.
        let _ = sender.send(work());
    })?;
    loop {
        match receiver.recv_timeout(limit.slice()?) {
            Ok(result) => return result,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Whether a path leads to a socket; one that cannot be examined counts as one.
fn is_socket(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |about| about.file_type().is_socket())
}

fn unreachable_socket(path: &Path, endpoint: &Endpoint, source: io::Error) -> WireError {
    let remedy = match source.kind() {
        io::ErrorKind::NotFound => format!(
            "no socket is there: start the server, or name its socket (--socket; the server shows it by SELECT @@socket{})",
            if path.is_absolute() { "" } else { ", as an absolute path" }
        ),
        io::ErrorKind::ConnectionRefused if !is_socket(path) => format!(
            "{} is there, but it is no socket: name the server's socket (--socket; the server shows it by SELECT @@socket)",
            path.display()
        ),
        io::ErrorKind::ConnectionRefused => {
            "the socket exists but no server listens on it: the server is down or was killed; start it"
                .to_owned()
        }
        io::ErrorKind::PermissionDenied => "run as a user who may use the socket and its folder".to_owned(),
        io::ErrorKind::TimedOut => {
            "the server does not accept: see its error log and its back_log".to_owned()
        }
        io::ErrorKind::InvalidInput => "use a shorter path, by a symbolic link if need be".to_owned(),
        _ => "see the server's error log".to_owned(),
    };
    WireError::Unreachable { endpoint: endpoint.to_string(), source, remedy }
}

fn unreachable_host(endpoint: &Endpoint, source: io::Error) -> WireError {
    let remedy = match source.kind() {
        io::ErrorKind::NotFound => "there is no such host: check the name (--host)",
        io::ErrorKind::ConnectionRefused => {
            "no server listens there: check the port (--port), that the server runs, and its bind_address and \
             skip_networking"
        }
        io::ErrorKind::TimedOut => "no answer: check host, port and firewalls, or allow more time",
        _ => "check the host and the network",
    };
    WireError::Unreachable { endpoint: endpoint.to_string(), source, remedy: remedy.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn refusal(path: &Path) -> String {
        let deadline = Instant::now() + Duration::from_secs(10);
        Socket::connect(&Endpoint::Unix(path.to_owned()), deadline, None).unwrap_err().to_string()
    }

    #[test]
    fn a_folder_or_a_file_in_the_place_of_the_socket_is_no_server_that_is_down() {
        let folder = tempfile::tempdir().unwrap();
        let (file, socket) = (folder.path().join("file"), folder.path().join("socket"));
        std::fs::write(&file, "").unwrap();
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        for path in [folder.path(), &file] {
            let error = refusal(path);
            assert!(error.contains("it is no socket") && !error.contains("is down"), "{error}");
        }
        assert!(refusal(&socket).contains("no server listens on it"), "{}", refusal(&socket));
    }
}
