//! Standard output and standard error, written to without blocking on the reader.
//!
//! Key type: [`Output`]. Other processes share the host's descriptors, so they must not be made non-blocking
//! themselves: pipes and terminals are opened a second time. Neighbours: `console` and `debug_output`, which queue what
//! a stream does not take at once. Deliberately not here: queues and threads.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::sync::OnceLock;
use std::time::Duration;

use crate::clock::Clock;
use crate::transfer::{self, Source};

static STANDARD_OUTPUT: OnceLock<Output> = OnceLock::new();
static STANDARD_ERROR: OnceLock<Output> = OnceLock::new();

/// An output stream of the process.
#[derive(Debug)]
pub(crate) struct Output {
    descriptor: RawFd,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// A file, which never blocks, or a closed descriptor.
    File,
    /// A pipe or a terminal, reopened as a non-blocking open file of this process.
    Reopened(File),
    /// A socket.
    Socket,
    /// One that cannot be reopened: each write may block.
    Blocking,
}

/// Returns standard output.
pub(crate) fn standard_output() -> &'static Output {
    STANDARD_OUTPUT.get_or_init(|| Output::new(libc::STDOUT_FILENO))
}

/// Returns standard error. Async-signal-safe after the first call.
pub(crate) fn standard_error() -> &'static Output {
    STANDARD_ERROR.get_or_init(|| Output::new(libc::STDERR_FILENO))
}

impl Output {
    fn new(descriptor: RawFd) -> Self {
        let path = format!("/proc/self/fd/{descriptor}");
        let kind = match std::fs::metadata(&path).map(|metadata| metadata.file_type()) {
            Ok(kind) if kind.is_fifo() || kind.is_char_device() => {
                let mut options = OpenOptions::new();
                options.write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
                options.open(&path).map_or(Kind::Blocking, Kind::Reopened)
            }
            Ok(kind) if kind.is_socket() => Kind::Socket,
            Ok(_) => Kind::File,
            Err(error) if error.kind() == io::ErrorKind::NotFound && std::path::Path::new("/proc/self/fd").exists() => {
                Kind::File
            }
            Err(_) => Kind::Blocking,
        };
        Self { descriptor, kind }
    }

    /// Writes what the stream takes without blocking; `WouldBlock` if that is nothing. Async-signal-safe.
    pub(crate) fn write_now(&self, source: impl Source) -> io::Result<usize> {
        match &self.kind {
            Kind::File => transfer::write(self.descriptor, source),
            Kind::Reopened(file) => transfer::write(file.as_raw_fd(), source),
            Kind::Socket => transfer::send_now(self.descriptor, source),
            Kind::Blocking => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Writes some bytes, blocking until the stream takes them. Not for processors.
    pub(crate) fn write(&self, source: impl Source + Copy) -> io::Result<usize> {
        loop {
            let written = match self.kind {
                Kind::Blocking => transfer::write(self.descriptor, source),
                _ => self.write_now(source),
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    transfer::wait_for(self.descriptor, libc::POLLOUT, None);
                }
                other => return other,
            }
        }
    }

    /// Writes as many bytes as the stream takes within the limit, for a process that is about to end.
    /// Async-signal-safe.
    pub(crate) fn write_within(&self, mut bytes: &[u8], limit: Duration) {
        let clock = Clock::start();
        while !bytes.is_empty() {
            let elapsed = Duration::from_nanos(clock.elapsed_ns());
            let Some(rest) = limit.checked_sub(elapsed) else { return };
            if !transfer::wait_for(self.descriptor, libc::POLLOUT, Some(rest)) {
                continue;
            }
            let written = match self.kind {
                Kind::Blocking => transfer::write(self.descriptor, first_page(bytes)),
                _ => self.write_now(bytes),
            };
            match written {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
                Err(_) => return,
            }
        }
    }
}

/// Returns what a writable pipe takes without blocking (POSIX: PIPE_BUF; Linux: a page).
fn first_page(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(4096)]
}
