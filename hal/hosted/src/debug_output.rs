//! Debug output: standard error, which may be a pipe without a reader.
//!
//! The writer itself writes what the stream takes without blocking, so that the order among outputs is kept.
//! The rest goes to a thread through a queue of [`QUEUE_BYTES`]; when the queue is full, lines are dropped and counted, and
//! the count is reported once there is room. Deliberately not here: sanitizing lines, which the kernel does.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use crate::output::{self, Output};
use crate::service;

/// Size of the queue.
const QUEUE_BYTES: usize = 64 * 1024;
/// Maximum bytes that the thread writes at once.
const CHUNK_BYTES: usize = 4096;
const THREAD_STACK_BYTES: usize = 64 * 1024;
/// Polling interval of a flush.
const LOOK: Duration = Duration::from_millis(2);

struct Queue {
    bytes: VecDeque<u8>,
    /// Lines dropped since the last report.
    dropped: u64,
    /// Whether the thread is writing a chunk.
    writing: bool,
    thread_started: bool,
}

static QUEUE: Mutex<Queue> =
    Mutex::new(Queue { bytes: VecDeque::new(), dropped: 0, writing: false, thread_started: false });
static FILLED: Condvar = Condvar::new();

/// Writes whole lines. Never blocks on a reader.
pub(crate) fn write(lines: &[u8]) {
    match service::stamped(lines) {
        Some(stamped) => write_as_it_is(stamped.as_bytes()),
        None => write_as_it_is(lines),
    }
}

fn write_as_it_is(lines: &[u8]) {
    let output = output::standard_error();
    let mut queue = lock();
    let rest = if queue.is_idle() { write_now(output, lines) } else { lines };
    if rest.is_empty() {
        return;
    }
    // The rest of a partially written line is not dropped.
    if rest.len() == lines.len() && !queue.has_room(lines.len()) {
        queue.dropped += lines.iter().filter(|&&byte| byte == b'\n').count() as u64;
    } else {
        queue.say_dropped();
        queue.bytes.extend(rest);
    }
    queue.start_thread();
    drop(queue);
    FILLED.notify_one();
}

/// Waits until the queue is empty, at most for the limit. Never blocks on the lock, which a panicking caller may hold.
pub(crate) fn flush(limit: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < limit {
        match QUEUE.try_lock() {
            Ok(queue) if queue.is_idle() => return,
            Err(TryLockError::Poisoned(queue)) if queue.get_ref().is_idle() => return,
            _ => thread::sleep(LOOK),
        }
    }
}

impl Queue {
    /// Returns whether nothing is queued or being written.
    fn is_idle(&self) -> bool {
        self.bytes.is_empty() && !self.writing && self.dropped == 0
    }

    /// Returns whether a number of bytes is accepted. After lines were dropped, that takes more room: else each
    /// accepted line would be preceded by a count.
    fn has_room(&self, bytes: usize) -> bool {
        let limit = if self.dropped > 0 { QUEUE_BYTES / 2 } else { QUEUE_BYTES };
        self.bytes.len() + bytes <= limit
    }

    fn say_dropped(&mut self) {
        let (dropped, plural) = match std::mem::take(&mut self.dropped) {
            0 => return,
            1 => (1, ""),
            dropped => (dropped, "s"),
        };
        let line = format!("singularity: {dropped} line{plural} of debug output dropped\n");
        self.bytes.extend(service::stamped(line.as_bytes()).unwrap_or(line).into_bytes());
    }

    fn start_thread(&mut self) {
        if !self.thread_started {
            let thread = thread::Builder::new().name("debug output".into()).stack_size(THREAD_STACK_BYTES);
            // Without a thread the queue fills up, and lines are dropped.
            self.thread_started = thread.spawn(work).is_ok();
        }
    }
}

/// Writes what the stream takes without blocking and returns the rest; nothing if the stream is broken.
fn write_now<'a>(output: &Output, mut bytes: &'a [u8]) -> &'a [u8] {
    while !bytes.is_empty() {
        match output.write_now(bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return bytes,
            Err(_) => return &[],
        }
    }
    bytes
}

/// Runs the thread.
fn work() {
    let output = output::standard_error();
    let mut queue = lock();
    loop {
        if queue.bytes.is_empty() {
            queue.say_dropped();
        }
        if queue.bytes.is_empty() {
            queue = FILLED.wait(queue).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        let count = queue.bytes.len().min(CHUNK_BYTES);
        let chunk: Vec<u8> = queue.bytes.drain(..count).collect();
        queue.writing = true;
        drop(queue);
        let mut rest = chunk.as_slice();
        while !rest.is_empty() {
            // A broken stream: the rest of the chunk is dropped.
            let Ok(written @ 1..) = output.write(rest) else { break };
            rest = rest.get(written..).unwrap_or_default();
        }
        queue = lock();
        queue.writing = false;
    }
}

fn lock() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}
