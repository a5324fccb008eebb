//! The access log: a line per response, buffered and written periodically.
//!
//! A log that cannot be written, for example because its volume is full, delays no response: up to
//! [`MAX_BUFFERED_BYTES`] of lines are buffered, further ones counted and dropped. A log that exceeds its maximum size
//! is rotated. The file is reopened every second, so that logrotate(8) can rename it.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::ops::Range;

use contracts::file::ImpReadyAfterAppend;
use http::access_log::{self, Line};
use http::date;
use sip::{Deadline, time};
use stdio::report;

use crate::Server;
use crate::address::AddressText;
use crate::answers::Sent;
use crate::blocks::PIECE_BYTES;
use crate::plan::Noted;
use crate::store::{FileChannel, StoreError};

/// Interval between writes, in milliseconds.
const PAUSE_MS: u64 = 250;
/// Interval at which the file is reopened, as it may have been renamed, in milliseconds.
const OPEN_MS: u64 = 1000;
/// Retry delay after a failed write, in milliseconds.
const LONG_PAUSE_MS: u64 = 2000;
const MAX_BUFFERED_BYTES: usize = 4 << 20;
/// Suffix of the rotated log.
const ROTATED: &str = ".1";

/// Lines waiting to be written.
pub(crate) struct AccessLog {
    path: String,
    /// Size at which the log is rotated, in bytes.
    max_bytes: u64,
    /// Rotation failed, and this was reported.
    rotation_failed: Cell<bool>,
    waiting: RefCell<Vec<u8>>,
    /// Buffer for lines that arrive during a write.
    spare: Cell<Vec<u8>>,
    /// Dropped lines not yet reported.
    lost: Cell<u64>,
    /// Dropped lines already reported.
    reported_lost: Cell<u64>,
    date: Cell<(i64, [u8; date::LOG_BYTES])>,
}

impl AccessLog {
    /// A log to the file at this path of the namespace, disabled if the path is empty. It is rotated at `max_bytes`.
    pub(crate) fn new(path: &str, max_bytes: u64) -> AccessLog {
        AccessLog {
            path: String::from(path),
            max_bytes,
            rotation_failed: Cell::new(false),
            waiting: RefCell::new(Vec::new()),
            spare: Cell::new(Vec::new()),
            lost: Cell::new(0),
            reported_lost: Cell::new(0),
            date: Cell::new((0, date::log(0))),
        }
    }

    /// Logs a response. `head` is the request head that `noted` refers to.
    pub(crate) fn note(&self, server: &Server, address: &AddressText, head: &[u8], noted: Option<&Noted>, sent: Sent) {
        if self.path.is_empty() {
            return;
        }
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() > MAX_BUFFERED_BYTES {
            self.lost.set(self.lost.get() + 1);
            return;
        }
        let bytes = |range: &Range<u32>| head.get(range.start as usize..range.end as usize).unwrap_or(&[]);
        let text = |range: &Range<u32>| core::str::from_utf8(bytes(range)).unwrap_or("");
        let line = Line {
            address: address.as_str(),
            date: &self.date(server.wall_s()),
            request: noted.map(|noted| (text(&noted.method), text(&noted.target), noted.minor_version)),
            status: sent.status,
            content_bytes: sent.content_bytes,
            referer: noted.and_then(|noted| noted.referer.as_ref()).map(bytes),
            user_agent: noted.and_then(|noted| noted.user_agent.as_ref()).map(bytes),
        };
        access_log::push(&mut waiting, &line);
    }

    /// Returns the number of dropped lines.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.get() + self.reported_lost.get()
    }

    fn date(&self, now: i64) -> [u8; date::LOG_BYTES] {
        let (second, text) = self.date.get();
        if second == now {
            return text;
        }
        let text = date::log(now);
        self.date.set((now, text));
        text
    }
}

/// Writes buffered lines periodically until shutdown begins. Returns the file if it is open.
pub(crate) async fn write_regularly(server: Rc<Server>) -> Option<FileChannel> {
    let log = &server.log;
    if log.path.is_empty() {
        server.ending.or(Deadline::NEVER).await;
        return None;
    }
    let mut open: Option<FileChannel> = None;
    let mut reopen = Deadline::PASSED;
    let mut has_reported = false;
    while !server.ending.has_begun() {
        server.ending.or(Deadline::after_ms(PAUSE_MS)).await;
        if log.waiting.borrow().is_empty() {
            continue;
        }
        if reopen.as_ns() <= time::monotonic() {
            open = None;
            reopen = Deadline::after_ms(OPEN_MS);
        }
        open = write_waiting(&server, open.take()).await;
        if open.is_some() {
            has_reported = false;
            continue;
        }
        if !has_reported {
            report::error(format_args!("{} cannot be written; retrying", log.path));
            has_reported = true;
        }
        server.ending.or(Deadline::after_ms(LONG_PAUSE_MS)).await;
    }
    open
}

/// Writes the lines that are still buffered, before the server exits.
pub(crate) async fn write_rest(server: &Server, open: Option<FileChannel>) {
    let log = &server.log;
    if log.waiting.borrow().is_empty() {
        return;
    }
    if write_waiting(server, open).await.is_none() {
        report::error(format_args!("{} cannot be written; the last lines are dropped", log.path));
    }
}

/// Writes the buffered lines to the file, which is opened if it is not. Returns the file on success.
async fn write_waiting(server: &Server, open: Option<FileChannel>) -> Option<FileChannel> {
    let file = match open {
        Some(file) => file,
        None => server.store.open_log(&server.log.path).await.ok()?,
    };
    write(server, file).await
}

/// Appends the buffered lines; returns the file on success. Unwritten lines stay buffered, as far as there is room.
async fn write(server: &Server, mut file: FileChannel) -> Option<FileChannel> {
    let log = &server.log;
    let mut lines = log.waiting.replace(log.spare.take());
    let mut rest = lines.as_slice();
    let mut bytes = 0;
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(rest.len().min(PIECE_BYTES));
        let Ok(mut block) = server.blocks.take(piece.len()) else { break };
        block[..piece.len()].copy_from_slice(piece);
        match file.append(block, piece.len() as u32).receive_async().await {
            ImpReadyAfterAppend::Appended { data, next, offset } => {
                server.blocks.give(data);
                file = next;
                rest = later;
                bytes = offset.saturating_add(piece.len() as u64);
            }
            ImpReadyAfterAppend::WriteFailed { written, .. } => {
                keep(log, rest.get(written as usize..).unwrap_or(&[]));
                return None;
            }
            ImpReadyAfterAppend::ChannelClosed(_) => {
                keep(log, rest);
                return None;
            }
        }
    }
    let lost = log.lost.replace(0);
    if lost > 0 {
        log.reported_lost.set(log.reported_lost.get() + lost);
        report::error(format_args!("{}: {lost} lines were dropped", log.path));
    }
    keep(log, rest);
    if lines.capacity() <= MAX_BUFFERED_BYTES {
        lines.clear();
        log.spare.set(lines);
    }
    if bytes >= log.max_bytes && !log.rotation_failed.get() {
        drop(file);
        return rotate(server).await;
    }
    Some(file)
}

/// Rotates the log, replacing the previous one, and opens a new file. If the rename fails, the log keeps growing.
async fn rotate(server: &Server) -> Option<FileChannel> {
    let log = &server.log;
    match server.store.rename(&log.path, &format!("{}{ROTATED}", log.path)).await {
        Ok(()) => {}
        // Retried once the file system is back.
        Err(StoreError::Unavailable) => return None,
        Err(_) => {
            log.rotation_failed.set(true);
            report::error(format_args!("{} cannot be rotated; it keeps growing", log.path));
        }
    }
    server.store.open_log(&log.path).await.ok()
}

/// Puts unwritten lines back in front of newer ones.
fn keep(log: &AccessLog, lines: &[u8]) {
    if lines.is_empty() {
        return;
    }
    let mut waiting = log.waiting.borrow_mut();
    let mut all = Vec::from(lines);
    all.extend_from_slice(&waiting);
    *waiting = all;
}
