//! A server in ordinary Rust, which knows nothing of this system: it echoes in capitals what each connection sends.
//!
//! It serves the listening sockets that it was given, greets the connections that it was given, and ends when one sends
//! `quit`. One thread waits for all of them by `poll`.

use std::env;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::time::Duration;

/// Bytes that are read at once, and bytes for a client that does not read at which no more are read from it.
const PART: usize = 16 << 10;

/// Pause before a listener that failed is tried again.
const PAUSE: Duration = Duration::from_millis(50);

const IN: i16 = 1;
const OUT: i16 = 2;

/// What `poll` of WASI's C library waits for.
#[repr(C)]
struct Wanted {
    fd: RawFd,
    events: i16,
    ready: i16,
}

unsafe extern "C" {
    fn poll(wanted: *mut Wanted, count: usize, timeout_ms: i32) -> i32;
}

struct Client {
    stream: TcpStream,
    unsent: Vec<u8>,
    has_ended: bool,
}

/// The descriptors of a kind that the program was given.
fn given(kind: &str) -> std::ops::Range<RawFd> {
    let number = |name: String| env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let first = number(format!("{kind}_FDS_FIRST"));
    first..first + number(format!("{kind}_FDS"))
}

fn main() -> Result<()> {
    // SAFETY: these descriptors were opened for this program, and each becomes one value.
    let listeners: Vec<_> = given("LISTEN").map(|fd| unsafe { TcpListener::from_raw_fd(fd) }).collect();
    let mut clients = Vec::new();
    for fd in given("CONNECT") {
        // SAFETY: as above.
        clients.push(Client::new(unsafe { TcpStream::from_raw_fd(fd) }, b"hello\n")?);
    }
    for listener in &listeners {
        listener.set_nonblocking(true)?;
    }
    println!("serving {} listeners and {} connections", listeners.len(), clients.len());
    while !clients.is_empty() || !listeners.is_empty() {
        wait(&listeners, &clients);
        for listener in &listeners {
            match listener.accept() {
                Ok((stream, _)) => clients.push(Client::new(stream, b"")?),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The network stack has ended, and is started again.
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
        for client in &mut clients {
            match client.serve() {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => {
                    println!("a connection failed: {}", error.kind());
                    (client.has_ended, client.unsent) = (true, Vec::new());
                }
            }
        }
        clients.retain(|client| !client.has_ended || !client.unsent.is_empty());
    }
    Ok(())
}

/// Waits until there is something to do.
fn wait(listeners: &[TcpListener], clients: &[Client]) {
    let mut wanted: Vec<Wanted> =
        listeners.iter().map(|listener| Wanted { fd: listener.as_raw_fd(), events: IN, ready: 0 }).collect();
    for client in clients {
        let events = if client.unsent.is_empty() { IN } else { OUT };
        wanted.push(Wanted { fd: client.stream.as_raw_fd(), events, ready: 0 });
    }
    // SAFETY: the elements are there, and nobody else uses them.
    unsafe { poll(wanted.as_mut_ptr(), wanted.len(), -1) };
}

impl Client {
    fn new(stream: TcpStream, greeting: &[u8]) -> Result<Client> {
        stream.set_nonblocking(true)?;
        Ok(Client { stream, unsent: greeting.to_vec(), has_ended: false })
    }

    /// Sends or receives what can be without waiting; returns whether to quit.
    fn serve(&mut self) -> Result<bool> {
        if !self.unsent.is_empty() {
            let count = self.stream.write(&self.unsent)?;
            self.unsent.drain(..count);
            return Ok(false);
        }
        let mut part = [0; PART];
        match self.stream.read(&mut part)? {
            0 => self.has_ended = true,
            count if part[..count] == *b"quit\n" => return Ok(true),
            count => self.unsent.extend(part[..count].iter().map(u8::to_ascii_uppercase)),
        }
        Ok(false)
    }
}
