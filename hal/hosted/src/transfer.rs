//! Transfers between files and memory that the kernel lends for a request.
//!
//! Key type: [`Memory`], the range of an arena named by a device request. Deliberately not here:
//! queues and threads.

use std::io;
use std::os::fd::RawFd;
use std::ptr;
use std::time::Duration;

use crate::arena::Reservation;

/// Memory that a device request lends to the machine until its completion.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    address: usize,
    bytes: usize,
}

/// Whether a read may block on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocking {
    /// Read only from the host's page cache.
    Never,
    /// Block as long as it takes.
    Wait,
}

impl Memory {
    /// Checks that the range lies in an arena of readable and writable memory.
    pub fn checked(reservation: &Reservation, address: usize, bytes: usize) -> Option<Self> {
        reservation.holds_data(address, bytes).then_some(Self { address, bytes })
    }

    /// Returns its length in bytes.
    pub fn bytes(self) -> usize {
        self.bytes
    }

    /// Returns the rest after the first `bytes`.
    pub fn after(self, bytes: usize) -> Self {
        let bytes = bytes.min(self.bytes);
        Self { address: self.address + bytes, bytes: self.bytes - bytes }
    }

    /// Returns at most the first `bytes`.
    pub fn first(self, bytes: usize) -> Self {
        Self { address: self.address, bytes: self.bytes.min(bytes) }
    }

    /// Copies as many bytes as fit into it and returns how many.
    pub fn fill(self, source: &[u8]) -> usize {
        let bytes = source.len().min(self.bytes);
        // SAFETY: the range lies in a readable and writable arena that is mapped for the life of the
        // process (`checked`), and nothing else accesses it until the request completes.
        unsafe { ptr::copy_nonoverlapping(source.as_ptr(), ptr::with_exposed_provenance_mut(self.address), bytes) };
        bytes
    }

    /// Copies as many of its bytes as fit from an offset on into `target` and returns how many.
    pub fn copy_out(self, offset: usize, target: &mut [u8]) -> usize {
        let source = self.after(offset);
        let bytes = target.len().min(source.bytes);
        // SAFETY: as in `fill`; `target` is host memory, which no arena overlaps.
        unsafe { ptr::copy_nonoverlapping(ptr::with_exposed_provenance(source.address), target.as_mut_ptr(), bytes) };
        bytes
    }

    /// Returns it for a system call, which uses it only until the call returns.
    pub(crate) fn io_vector(self) -> libc::iovec {
        libc::iovec { iov_base: ptr::with_exposed_provenance_mut(self.address), iov_len: self.bytes }
    }
}

/// Reads from a file at an offset into memory. The read may be short.
pub(crate) fn read_at(file: RawFd, offset: u64, memory: Memory, blocking: Blocking) -> io::Result<usize> {
    let vector = memory.io_vector();
    let flags = if blocking == Blocking::Never { libc::RWF_NOWAIT } else { 0 };
    let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
    // SAFETY: the vector names `memory`, which is mapped, writable and lent for the request (`Memory`).
    count(unsafe { libc::preadv2(file, &vector, 1, offset, flags) })
}

/// Writes memory to a file at an offset. The write may be short.
pub(crate) fn write_at(file: RawFd, offset: u64, memory: Memory) -> io::Result<usize> {
    let vector = memory.io_vector();
    let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
    // SAFETY: the vector names `memory`, which is mapped, readable and lent for the request (`Memory`).
    count(unsafe { libc::pwritev2(file, &vector, 1, offset, 0) })
}

/// Data for a write to a stream.
pub(crate) trait Source {
    /// Returns it for a system call: readable as long as the value lives.
    fn vector(&self) -> libc::iovec;
}

impl Source for Memory {
    fn vector(&self) -> libc::iovec {
        self.io_vector()
    }
}

impl Source for &[u8] {
    fn vector(&self) -> libc::iovec {
        libc::iovec { iov_base: self.as_ptr().cast_mut().cast(), iov_len: self.len() }
    }
}

/// Writes to a stream. The write may be short. Async-signal-safe.
pub(crate) fn write(file: RawFd, source: impl Source) -> io::Result<usize> {
    let vector = source.vector();
    // SAFETY: the vector names memory that is readable for as long as `source` lives (`Source`).
    count(unsafe { libc::write(file, vector.iov_base, vector.iov_len) })
}

/// Sends what a socket takes without blocking. The write may be short. Async-signal-safe.
pub(crate) fn send_now(socket: RawFd, source: impl Source) -> io::Result<usize> {
    let vector = source.vector();
    // SAFETY: as in `write`.
    count(unsafe { libc::send(socket, vector.iov_base, vector.iov_len, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) })
}

/// Reads from a stream into a buffer, blocking for at least one byte; 0: end of stream.
pub(crate) fn read_stream(file: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        // SAFETY: the pointer and length are those of a live, exclusively borrowed slice.
        match count(unsafe { libc::read(file, buffer.as_mut_ptr().cast(), buffer.len()) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_for(file, libc::POLLIN, None);
            }
            other => return other,
        }
    }
}

/// Blocks until a stream is ready for an event of poll(2); false after the limit or a signal. Async-signal-safe.
pub(crate) fn wait_for(file: RawFd, event: libc::c_short, limit: Option<Duration>) -> bool {
    let timeout_ms = limit.map_or(-1, |limit| libc::c_int::try_from(limit.as_millis()).unwrap_or(libc::c_int::MAX));
    let mut request = libc::pollfd { fd: file, events: event, revents: 0 };
    // SAFETY: `request` is one live pollfd.
    unsafe { libc::poll(&mut request, 1, timeout_ms) > 0 }
}

/// Fills memory with random bytes of the host; the read may be short. Blocks only right after the host has booted.
pub(crate) fn random(memory: Memory) -> io::Result<usize> {
    let vector = memory.io_vector();
    // SAFETY: the vector names `memory`, which is mapped, writable and lent for the request (`Memory`).
    count(unsafe { libc::getrandom(vector.iov_base, vector.iov_len, 0) })
}

/// Makes previous writes to a file durable.
pub(crate) fn flush(file: RawFd) -> io::Result<()> {
    // SAFETY: fdatasync touches no memory of this process.
    count(unsafe { libc::fdatasync(file) } as isize).map(|_| ())
}

fn count(answer: isize) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}
