//! The recording of a machine in QEMU: its memory is shared with this program, which takes the recording out of a ring in it
//! ([`recording::ring`]) and writes the file.
//!
//! Deliberately not here: what a recording has in it.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use recording::ring::{self, BYTES_AT, CLOSED_AT, IDENTITY, IDENTITY_AT, SYMBOL, TAKEN_AT, WRITTEN_AT};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::bare::kernel::{self, Variant};
use crate::failure::{Failure, Outcome};
use crate::repository::Repository;

/// Memory that a machine needs in addition: the ring, and each processor's events that are not in it yet.
pub const MEBIBYTES: u32 = 16;
/// Polling interval while nothing new is in the ring.
const LOOK: Duration = Duration::from_millis(1);
/// Bytes taken at once.
const PIECE_BYTES: usize = 1 << 20;

/// A machine's memory, and the file of its recording.
#[derive(Debug)]
pub struct Recording {
    memory: Arc<File>,
    /// Where the ring is in it.
    ring: u64,
    file: File,
}

impl Recording {
    /// Makes memory for a machine with the kernel that records, which has been built, and creates the file.
    ///
    /// # Errors
    /// The host gives no memory, the file cannot be created, or the kernel has no ring.
    pub fn new(repository: &Repository, path: &Path, mebibytes: u32) -> Outcome<Recording> {
        // The kernel lies at its addresses in low memory, with which the file begins.
        let ring = kernel::address_of(repository, Variant::Recording, SYMBOL)?;
        let refused = |error| Failure::new(format!("the host gives no memory to share with the machine: {error}"));
        let memory =
            memfd_create("machine", MemfdFlags::CLOEXEC).map_err(|error| refused(std::io::Error::from(error)))?;
        let memory = File::from(memory);
        memory.set_len(u64::from(mebibytes) << 20).map_err(refused)?;
        let file = File::create(path).map_err(|error| Failure::file("create the recording", path, &error))?;
        Ok(Recording { memory: Arc::new(memory), ring, file })
    }

    /// Path by which QEMU, a child of this process, opens the memory.
    pub fn memory_path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.memory.as_raw_fd()).into()
    }

    /// Takes what the machine records, until [`Taking::finish`].
    ///
    /// # Errors
    /// The host has no more descriptors.
    pub fn take(&self) -> Outcome<Taking> {
        let file =
            self.file.try_clone().map_err(|error| Failure::new(format!("cannot write the recording: {error}")))?;
        let mut ring = Ring { memory: Arc::clone(&self.memory), at: self.ring, taken: 0, is_closed: false };
        let ends = Arc::new(AtomicBool::new(false));
        let is_end = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            let mut file = file;
            loop {
                // What was written before the end is taken after it.
                let ends = is_end.load(Ordering::Acquire);
                if ring.take(&mut file) == 0 {
                    if ends {
                        return;
                    }
                    thread::sleep(LOOK);
                }
            }
        });
        Ok(Taking { ends, thread })
    }
}

/// The thread that takes a recording.
#[derive(Debug)]
pub struct Taking {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Taking {
    /// Takes what is left of a machine that has ended.
    pub fn finish(self) {
        self.ends.store(true, Ordering::Release);
        // It reports failures itself.
        let _ = self.thread.join();
    }
}

struct Ring {
    memory: Arc<File>,
    at: u64,
    taken: u64,
    /// Whether the file cannot be written any more.
    is_closed: bool,
}

impl Ring {
    fn word(&self, at: usize) -> std::io::Result<u64> {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, self.at + at as u64)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn set(&self, at: usize, value: u64) -> std::io::Result<()> {
        self.memory.write_all_at(&value.to_le_bytes(), self.at + at as u64)
    }

    /// Takes some bytes and returns their number. The first failure is reported, and ends the recording, not the machine.
    fn take(&mut self, to: &mut impl Write) -> usize {
        if self.is_closed {
            return 0;
        }
        self.try_take(to).unwrap_or_else(|error| {
            self.is_closed = true;
            let _ = self.set(CLOSED_AT, 1);
            eprintln!(
                "sing: the recording cannot be written ({error}); it ends here and is of no use, and the system goes on"
            );
            0
        })
    }

    fn try_take(&mut self, to: &mut impl Write) -> std::io::Result<usize> {
        if self.word(IDENTITY_AT)? != IDENTITY {
            return Ok(0);
        }
        let found = ring::filled(self.word(WRITTEN_AT)?, self.taken)
            .ok_or_else(|| std::io::Error::other("the machine's memory is not as its kernel leaves it"))?;
        let mut bytes = vec![0; found.len().min(PIECE_BYTES)];
        self.memory.read_exact_at(&mut bytes, self.at + (BYTES_AT + found.start) as u64)?;
        to.write_all(&bytes)?;
        self.taken += bytes.len() as u64;
        if !bytes.is_empty() {
            self.set(TAKEN_AT, self.taken)?;
        }
        Ok(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::ring::{BYTES, WHOLE_BYTES};

    fn ring() -> Ring {
        let memory = tempfile::tempfile().expect("a file");
        memory.set_len(4096 + WHOLE_BYTES as u64).expect("room");
        let ring = Ring { memory: Arc::new(memory), at: 4096, taken: 0, is_closed: false };
        ring.set(IDENTITY_AT, IDENTITY).expect("written");
        ring
    }

    /// Writes as the machine does.
    fn write(ring: &Ring, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let written = ring.word(WRITTEN_AT).expect("a word");
            let room = ring::room(written, ring.word(TAKEN_AT).expect("a word"), bytes.len());
            assert!(!room.is_empty(), "there is room");
            let (now, rest) = bytes.split_at(room.len());
            ring.memory.write_all_at(now, ring.at + (BYTES_AT + room.start) as u64).expect("written");
            ring.set(WRITTEN_AT, written + now.len() as u64).expect("written");
            bytes = rest;
        }
    }

    #[test]
    fn what_is_written_comes_out_across_the_end_of_the_ring() {
        let mut ring = ring();
        let bytes: Vec<u8> = (0..BYTES * 3 / 4).map(|at| (at % 251) as u8).collect();
        for _ in 0..3 {
            write(&ring, &bytes);
            let mut file = Vec::new();
            while ring.take(&mut file) > 0 {}
            assert!(file == bytes, "the same bytes");
        }
    }

    #[test]
    fn a_machine_that_has_not_begun_gives_nothing() {
        let mut ring = ring();
        ring.set(IDENTITY_AT, 0).expect("written");
        ring.set(WRITTEN_AT, 5).expect("written");
        assert_eq!(ring.take(&mut Vec::new()), 0);
        assert!(!ring.is_closed);
    }

    #[test]
    fn a_file_that_cannot_be_written_closes_the_ring() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut ring = ring();
        write(&ring, b"events");
        assert_eq!(ring.take(&mut Full), 0);
        assert_eq!((ring.word(CLOSED_AT).expect("a word"), ring.taken), (1, 0));
        assert_eq!(ring.take(&mut Vec::new()), 0, "nothing is taken any more");
    }

    #[test]
    fn positions_that_no_machine_makes_close_the_ring() {
        let mut ring = ring();
        ring.set(WRITTEN_AT, BYTES as u64 + 1).expect("written");
        assert_eq!(ring.take(&mut Vec::new()), 0);
        assert!(ring.is_closed);
    }
}
