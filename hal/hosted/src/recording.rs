//! The file of a recording, which is written as the machine runs, by a thread of its own.
//!
//! The machine's threads fill buffers; the writer takes full ones in order. Where the file system allows it, the bytes
//! pass by the host's page cache, whose fresh pages would cost more than all the rest of recording them, and would push
//! out the pages of others. What is in the buffers is lost if the process is killed; such a file has no end, and is
//! refused anyway.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::host;

/// Size of a buffer: one write.
const BUFFER_BYTES: usize = 1024 * 1024;
/// Buffers: one is filled, one is written, and two wait for a slow moment of the disk.
const BUFFERS: usize = 4;
/// Alignment of addresses, offsets and lengths of writes past the page cache, in bytes: no disk asks for more.
const ALIGNMENT: usize = 4096;
const THREAD_STACK_BYTES: usize = 64 * 1024;

/// The recording of a machine.
#[derive(Debug)]
pub(crate) struct Recording {
    shared: Arc<Shared>,
    /// Held by a thread that appends, also while it waits for a buffer, so that its bytes stay together.
    appending: Mutex<()>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// A buffer is full, or the recording is to be written to its end.
    full: Condvar,
    /// A buffer was written.
    written: Condvar,
}

#[derive(Debug)]
struct State {
    filling: Buffer,
    /// Full, in order.
    full: VecDeque<Buffer>,
    empty: Vec<Buffer>,
    /// Whether the file could not be written; bytes are dropped from then on.
    has_failed: bool,
}

impl Recording {
    /// Starts the thread that writes to this file, from its beginning.
    ///
    /// # Errors
    /// The host creates no thread.
    pub(crate) fn start(file: File) -> io::Result<Self> {
        let mut empty: Vec<Buffer> = (0..BUFFERS).map(|_| Buffer::new()).collect();
        let filling = empty.pop().unwrap_or_else(Buffer::new);
        let state = State { filling, full: VecDeque::with_capacity(BUFFERS), empty, has_failed: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), full: Condvar::new(), written: Condvar::new() });
        let (mut writer, writers) = (Writer::new(file), Arc::clone(&shared));
        let thread = thread::Builder::new().name("recording".into()).stack_size(THREAD_STACK_BYTES);
        thread.spawn(move || writers.write_all(|bytes| writer.write(bytes)))?;
        Ok(Self { shared, appending: Mutex::new(()) })
    }

    /// Appends bytes; waits while all buffers are full. The first failure to write is reported, and ends the recording,
    /// not the machine.
    pub(crate) fn append(&self, mut bytes: &[u8]) {
        let _appending = self.appending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.shared.lock();
        while !state.has_failed && !bytes.is_empty() {
            bytes = state.filling.fill(bytes);
            if state.filling.room() == 0 {
                state = self.shared.pass_on(state);
            }
        }
    }

    /// Waits until all bytes are written.
    pub(crate) fn flush(&self) {
        let _appending = self.appending.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.shared.lock();
        if state.filling.length > 0 {
            state = self.shared.pass_on(state);
        }
        // The one that is filled, and all the others.
        let is_written = |state: &State| state.has_failed || state.empty.len() == BUFFERS - 1;
        drop(self.shared.written.wait_while(state, |state| !is_written(state)));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the buffer that was filled to the writer, and takes an empty one.
    fn pass_on<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let must_wait = |state: &mut State| state.empty.is_empty() && !state.has_failed;
        let mut state = self.written.wait_while(state, must_wait).unwrap_or_else(PoisonError::into_inner);
        if let Some(empty) = state.empty.pop() {
            let full = std::mem::replace(&mut state.filling, empty);
            state.full.push_back(full);
            self.full.notify_one();
        }
        state
    }

    /// Writes full buffers until it fails.
    fn write_all(&self, mut write: impl FnMut(&[u8]) -> io::Result<()>) {
        let mut state = self.lock();
        loop {
            let Some(mut buffer) = state.full.pop_front() else {
                state = self.full.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            let result = write(buffer.bytes());
            buffer.length = 0;
            state = self.lock();
            state.empty.push(buffer);
            state.has_failed |= result.is_err();
            self.written.notify_all();
            if let Err(error) = result {
                return host::say(&format!(
                    "the recording cannot be written ({error}); it ends here and is of no use, and the system goes on"
                ));
            }
        }
    }
}

/// Memory for the bytes of one write.
#[derive(Debug)]
struct Buffer {
    memory: Vec<u8>,
    /// Index of the first byte, which is aligned.
    first: usize,
    length: usize,
}

impl Buffer {
    fn new() -> Buffer {
        let memory = vec![0; BUFFER_BYTES + ALIGNMENT];
        let first = memory.as_ptr().addr().next_multiple_of(ALIGNMENT) - memory.as_ptr().addr();
        Buffer { memory, first, length: 0 }
    }

    fn room(&self) -> usize {
        BUFFER_BYTES - self.length
    }

    /// Takes as many bytes as there is room for, and returns the others.
    fn fill<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (taken, others) = bytes.split_at(bytes.len().min(self.room()));
        let end = self.first + self.length;
        self.memory[end..end + taken.len()].copy_from_slice(taken);
        self.length += taken.len();
        others
    }

    fn bytes(&self) -> &[u8] {
        &self.memory[self.first..self.first + self.length]
    }
}

/// The file as the writer has it open.
#[derive(Debug)]
struct Writer {
    file: File,
    /// Whether it is a regular file, in which writes have an offset.
    is_regular: bool,
    /// The same file, past the page cache; none if it is not regular, or its file system cannot.
    direct: Option<File>,
    offset: u64,
}

impl Writer {
    fn new(file: File) -> Writer {
        let is_regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let open = || rustix::fs::open(path, OFlags::WRONLY | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty());
        let direct = if is_regular { open().ok().map(File::from) } else { None };
        Writer { file, is_regular, direct, offset: 0 }
    }

    /// Writes the next bytes: a whole buffer, or the last ones.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_regular {
            return self.file.write_all(bytes);
        }
        let direct = self.direct.as_ref().filter(|_| bytes.len().is_multiple_of(ALIGNMENT));
        let result = direct.unwrap_or(&self.file).write_all_at(bytes, self.offset);
        let is_refused = |error: &io::Error| Errno::from_io_error(error) == Some(Errno::INVAL);
        if direct.is_some() && result.as_ref().is_err_and(is_refused) {
            // The file system wants another alignment, or none of this after all.
            self.direct = None;
            return self.write(bytes);
        }
        self.offset += bytes.len() as u64;
        result
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn file(name: &str) -> File {
        let path = std::env::temp_dir().join(format!("singularity-recording-{name}-{}", std::process::id()));
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
        std::fs::remove_file(path).expect("it was made");
        file
    }

    /// Bytes that are different in each place.
    fn bytes(count: usize) -> Vec<u8> {
        (0..count).map(|index| (index ^ index >> 8 ^ index >> 16) as u8).collect()
    }

    #[test]
    fn all_bytes_are_in_the_file_in_order_after_a_flush() {
        for count in [0, 1, ALIGNMENT, BUFFER_BYTES - 1, BUFFER_BYTES, BUFFER_BYTES + 1, 9 * BUFFER_BYTES + 77] {
            let file = file("whole");
            let recording = Recording::start(file.try_clone().expect("a descriptor")).expect("a thread");
            let expected = bytes(count);
            expected.chunks(100_003).for_each(|part| recording.append(part));
            recording.flush();
            recording.flush();
            let mut found = vec![0; count];
            file.read_exact_at(&mut found, 0).expect("it is as long");
            assert_eq!((file.metadata().expect("it is open").len(), found == expected), (count as u64, true));
        }
    }

    #[test]
    fn threads_append_each_whole_pieces_and_lose_none() {
        let file = file("threads");
        let recording = Recording::start(file.try_clone().expect("a descriptor")).expect("a thread");
        // Buffers end in the middle of pieces.
        const PIECE: usize = 99_991;
        let appended = AtomicUsize::new(0);
        thread::scope(|scope| {
            for byte in 1..=4_u8 {
                let (recording, appended) = (&recording, &appended);
                scope.spawn(move || {
                    for _ in 0..100 {
                        recording.append(&[byte; PIECE]);
                        appended.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        recording.flush();
        let mut found = Vec::new();
        (&file).read_to_end(&mut found).expect("it can be read");
        assert_eq!(found.len(), appended.into_inner() * PIECE);
        assert!(found.chunks(PIECE).all(|piece| piece.iter().all(|byte| *byte == piece[0] && *byte > 0)));
    }

    #[test]
    fn what_cannot_be_written_keeps_nobody_waiting() {
        let full = File::options().write(true).open("/dev/full").expect("every Linux has it");
        let recording = Recording::start(full).expect("a thread");
        (0..20).for_each(|_| recording.append(&bytes(BUFFER_BYTES)));
        recording.flush();
        assert!(recording.shared.lock().has_failed);
    }

    #[test]
    fn a_pipe_gets_the_bytes_too() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let recording = Recording::start(File::from(std::os::fd::OwnedFd::from(writer))).expect("a thread");
        let expected = bytes(2 * BUFFER_BYTES + 5);
        let mut found = vec![0; expected.len()];
        thread::scope(|scope| {
            scope.spawn(|| {
                recording.append(&expected);
                recording.flush();
            });
            reader.read_exact(&mut found).expect("all of it");
        });
        assert!(found == expected);
    }
}
