//! A machine with an interactive terminal: a pseudo-terminal, key input, and the output shown.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Timeout for expected output.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Interval of checks whether the terminal is to be closed.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

type Shown = Arc<(Mutex<Vec<u8>>, Condvar)>;

/// A machine at a terminal of 100 columns and 40 lines.
pub struct Terminal {
    child: Child,
    keyboard: Option<File>,
    /// Whether the terminal is to be closed.
    hung_up: Arc<AtomicBool>,
    shown: Shown,
    /// End of the last match, in the output without control sequences.
    looked_at: usize,
    started: Instant,
}

impl Terminal {
    /// Starts a program at a new terminal.
    pub fn start(mut command: Command) -> Terminal {
        let (controller, screen) = pair().expect("a pseudo-terminal can be made");
        let end = |fd: &OwnedFd| File::from(fd.try_clone().expect("a descriptor can be copied"));
        let started = Instant::now();
        let child = command
            .env("TERM", "xterm")
            .stdin(end(&screen))
            .stdout(end(&screen))
            .stderr(end(&screen))
            .spawn()
            .expect("the program starts");
        // The command holds copies of the terminal's descriptors; end of file is reported once all are closed.
        drop((command, screen));
        let shown = Shown::default();
        let mut reader = end(&controller);
        let sink = Arc::clone(&shown);
        let hung_up = Arc::new(AtomicBool::new(false));
        let is_hung_up = Arc::clone(&hung_up);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while !is_hung_up.load(Ordering::Acquire) {
                if !matches!(poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&LOOK)), Ok(1..)) {
                    continue;
                }
                // A terminal whose program has ended returns an error: that is its end of file.
                let Ok(count @ 1..) = reader.read(&mut buffer) else { return };
                lock(&sink.0).extend_from_slice(&buffer[..count]);
                sink.1.notify_all();
            }
        });
        Terminal { child, keyboard: Some(File::from(controller)), hung_up, shown, looked_at: 0, started }
    }

    /// Time since the start.
    pub fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Process id of the program.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends keys: text, `\r` for Enter, `\x03` for Ctrl-C.
    pub fn press(&mut self, keys: &str) {
        let keyboard = self.keyboard.as_mut().expect("the terminal has not gone away");
        keyboard.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Resizes the window.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let keyboard = self.keyboard.as_ref().expect("the terminal has not gone away");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(keyboard, size).expect("a terminal has a size");
    }

    /// Waits until `text` is shown after the last match; control sequences are ignored.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        let begin = Instant::now();
        let mut shown = lock(&self.shown.0);
        loop {
            let all = plain(&shown);
            let fresh = all.get(self.looked_at..).unwrap_or_default();
            if let Some(place) = fresh.find(text) {
                // Enter is sent after the last character of a line, so the line end that closes this match may also
                // begin the next.
                self.looked_at += place + text.trim_end_matches('\n').len();
                return;
            }
            let left = TIMEOUT.saturating_sub(begin.elapsed());
            assert!(!left.is_zero(), "`{text}` was not shown within {TIMEOUT:?}; but:\n{fresh}");
            shown = self.shown.1.wait_timeout(shown, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// All output, without control sequences.
    pub fn screen(&self) -> String {
        plain(&lock(&self.shown.0))
    }

    /// All output, as the terminal received it.
    pub fn bytes(&self) -> Vec<u8> {
        lock(&self.shown.0).clone()
    }

    /// Closes the terminal, like a closed window, and waits for the program to end. Returns its exit status.
    #[track_caller]
    pub fn hang_up(mut self) -> Option<i32> {
        self.hung_up.store(true, Ordering::Release);
        self.keyboard = None;
        self.end()
    }

    /// Waits for the program to end and returns its exit status.
    #[track_caller]
    pub fn end(mut self) -> Option<i32> {
        let begin = Instant::now();
        while begin.elapsed() < TIMEOUT {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return status.code();
            }
            thread::sleep(Duration::from_millis(2));
        }
        panic!("the machine did not end within {TIMEOUT:?}; it showed:\n{}", self.screen());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // After a failed test nothing else ends it; after `end` it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lock(shown: &Mutex<Vec<u8>>) -> std::sync::MutexGuard<'_, Vec<u8>> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pair() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&controller)?;
    unlockpt(&controller)?;
    let name = ptsname(&controller, Vec::new())?;
    let screen = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    tcsetwinsize(&controller, Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 })?;
    Ok((controller, screen))
}

/// Strips the sequences that move the cursor and set colours.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\x1b' => match characters.next() {
                Some('[') => while characters.next().is_some_and(|next| !('@'..='~').contains(&next)) {},
                Some(']') => while characters.next().is_some_and(|next| next != '\x07') {},
                _ => {}
            },
            '\r' => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_are_left_out() {
        assert_eq!(plain(b"\x1b[1;32ma\x1b[0m\x1b]0;title\x07b\r\nc\x1b[K"), "ab\nc");
    }
}
