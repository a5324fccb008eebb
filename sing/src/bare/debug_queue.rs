//! Queue of debug text for standard error, which may be a pipe without a reader: the machine must not wait for it.
//!
//! A thread writes from a queue; when that is full, lines are dropped and counted. The hosted machine has such a queue
//! itself.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Maximum queued pieces of text, each of some KiB at most; a busy machine may write single bytes.
const PIECES: usize = 4096;
/// Timeout at the end for a stalled reader.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Polling interval at the end.
const LOOK: Duration = Duration::from_millis(2);

/// A stream that never blocks. Dropping it drains the queue as long as the reader makes progress.
pub struct DebugQueue {
    pieces: Option<SyncSender<Vec<u8>>>,
    writer: JoinHandle<()>,
    /// Pieces written.
    written: Arc<AtomicU64>,
    /// Lines dropped since the last report of it.
    dropped: usize,
}

impl DebugQueue {
    /// Creates a queue for a stream that may block.
    pub fn new(mut to: impl Write + Send + 'static) -> DebugQueue {
        let (pieces, queued) = sync_channel::<Vec<u8>>(PIECES);
        let written = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&written);
        let writer = thread::spawn(move || {
            for piece in queued {
                // Debug text that cannot be shown is no reason to stop the machine.
                let _ = to.write_all(&piece).and_then(|()| to.flush());
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        DebugQueue { pieces: Some(pieces), writer, written, dropped: 0 }
    }

    fn queue(&self, piece: Vec<u8>) -> Result<(), TrySendError<Vec<u8>>> {
        self.pieces.as_ref().map_or(Ok(()), |pieces| pieces.try_send(piece))
    }

    /// Reports the number of dropped lines, once there is room.
    fn say_dropped(&mut self) {
        if self.dropped > 0 {
            let plural = if self.dropped == 1 { "" } else { "s" };
            let said = format!("sing: {} line{plural} of debug output dropped\n", self.dropped).into_bytes();
            if self.queue(said).is_ok() {
                self.dropped = 0;
            }
        }
    }
}

impl Write for DebugQueue {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.say_dropped();
        if self.dropped > 0 || self.queue(text.to_vec()).is_err() {
            self.dropped += text.iter().filter(|&&byte| byte == b'\n').count();
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for DebugQueue {
    fn drop(&mut self) {
        let begin = Instant::now();
        while self.dropped > 0 && begin.elapsed() < TIMEOUT {
            self.say_dropped();
            thread::sleep(LOOK);
        }
        self.pieces = None;
        let (mut before, mut since) = (self.written.load(Ordering::Relaxed), Instant::now());
        while !self.writer.is_finished() && since.elapsed() < TIMEOUT {
            thread::sleep(LOOK);
            let now = self.written.load(Ordering::Relaxed);
            if now != before {
                (before, since) = (now, Instant::now());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_stream_that_nobody_reads_stops_nothing_and_what_is_dropped_is_counted() {
        const LINES: usize = 5000;
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let mut queue = DebugQueue::new(writer);
        let line = [&[b'x'; 199][..], b"\n"].concat();
        let begin = Instant::now();
        for _ in 0..LINES {
            queue.write_all(&line).expect("it takes all");
        }
        assert!(begin.elapsed() < Duration::from_secs(5), "writing waited for a reader");
        let end = thread::spawn(move || drop(queue));
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("text");
        end.join().expect("the queue ends");
        let kept = text.lines().filter(|line| line.starts_with('x')).count();
        let dropped: usize = text
            .lines()
            .filter_map(|line| line.strip_prefix("sing: ")?.split_once(" line"))
            .map(|(count, _)| count.parse::<usize>().expect("a count"))
            .sum();
        assert!(kept < LINES && kept + dropped == LINES, "{kept} kept, {dropped} dropped");
    }

    #[test]
    fn the_end_does_not_wait_for_ever() {
        let (_reader, writer) = io::pipe().expect("a pipe");
        let mut queue = DebugQueue::new(writer);
        for _ in 0..2 * PIECES {
            queue.write_all(&[b'\n'; 4096]).expect("it takes all");
        }
        let begin = Instant::now();
        drop(queue);
        assert!(begin.elapsed() < 4 * TIMEOUT, "the end took {:?}", begin.elapsed());
    }
}
