//! The supervisor's socket of sd_notify(3), which takes datagrams with the service's state.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The environment variable with the socket's address.
const VARIABLE: &str = "NOTIFY_SOCKET";
/// By then a system has noticed changed files, which it checks every second.
const MAX_RENEWAL: Duration = Duration::from_secs(2);

/// Service states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Ready.
    Ready,
    /// Reloading.
    Reloading,
    /// Stopping.
    Stopping,
}

impl State {
    fn assignments(self) -> String {
        match self {
            State::Ready => "READY=1".into(),
            State::Reloading => format!("RELOADING=1\nMONOTONIC_USEC={}", monotonic_us()),
            State::Stopping => "STOPPING=1".into(),
        }
    }
}

/// systemd requires it with `RELOADING=1`, to match this reload's `READY=1`.
fn monotonic_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither is negative.
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1_000
}

/// Notifies the supervisor of a reload, which is complete when this returns: changes made before the call are in
/// effect.
///
/// # Errors
/// As [`tell`].
pub fn reload() -> io::Result<()> {
    tell(State::Reloading)?;
    thread::sleep(MAX_RENEWAL);
    tell(State::Ready)
}

/// Requests for a reload. One that arrives while a reload is in progress is not lost: another reload follows.
pub struct Reloads(AtomicU8);

impl Reloads {
    /// No reload is in progress.
    pub const fn new() -> Reloads {
        Reloads(AtomicU8::new(0))
    }

    /// Requests a reload; returns whether the caller has to run it, and [`finish`](Self::finish) it.
    pub fn request(&self) -> bool {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| Some(2.min(count + 1))) == Ok(0)
    }

    /// Ends a reload; returns whether the caller has to run another.
    pub fn finish(&self) -> bool {
        self.0.fetch_sub(1, Ordering::SeqCst) == 2
    }
}

impl Default for Reloads {
    fn default() -> Reloads {
        Reloads::new()
    }
}

/// Notifies the supervisor, if there is one.
///
/// # Errors
/// The socket does not accept datagrams, or its address is of an unknown kind.
pub fn tell(state: State) -> io::Result<()> {
    match env::var_os(VARIABLE) {
        Some(socket) if !socket.is_empty() => send(&socket, state),
        _ => Ok(()),
    }
}

fn send(socket: &OsStr, state: State) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(socket)?,
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither a path nor an abstract name")),
    };
    UnixDatagram::unbound()?.send_to_addr(state.assignments().as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 64];
        let count = socket.recv(&mut bytes).expect("a datagram");
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }

    #[test]
    fn a_reload_that_is_asked_for_during_another_follows_it() {
        let reloads = Reloads::new();
        assert!(reloads.request());
        assert!(!reloads.request() && !reloads.request(), "one is in progress");
        assert!(reloads.finish(), "those asked for meanwhile are one more");
        assert!(!reloads.finish());
        assert!(reloads.request() && !reloads.finish());
    }

    #[test]
    fn a_socket_with_a_path_and_an_abstract_one_are_told() {
        let path = env::temp_dir().join(format!("host-service-{}.socket", std::process::id()));
        let at_path = UnixDatagram::bind(&path).expect("a socket");
        send(path.as_os_str(), State::Ready).expect("it listens");
        assert_eq!(received(&at_path), "READY=1");
        std::fs::remove_file(&path).expect("the socket's file");

        let name = format!("host-service-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let abstract_one = UnixDatagram::bind_addr(&address).expect("a socket");
        send(OsStr::new(&format!("@{name}")), State::Stopping).expect("it listens");
        assert_eq!(received(&abstract_one), "STOPPING=1");
    }

    #[test]
    fn a_reload_is_told_with_its_time() {
        let (before, told, after) = (monotonic_us(), State::Reloading.assignments(), monotonic_us());
        let time = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").and_then(|time| time.parse().ok());
        assert!(time.is_some_and(|time| (before..=after).contains(&time)), "{told}");
    }

    #[test]
    fn a_socket_that_nobody_has_and_one_of_another_kind_are_errors() {
        assert!(send(OsStr::new("/no/such/socket"), State::Ready).is_err());
        assert!(send(OsStr::new("vsock:2:1234"), State::Ready).is_err());
    }
}
