//! The access log: a line for each answer, gathered here and written now and then.
//!
//! A log that cannot be written, as when its volume is full, stops nobody: lines wait up to [`MAX_WAITING_BYTES`], and
//! what comes then is counted and not kept. A log that has grown long becomes the one before, and a new one begins. The
//! file is opened again every second, so that one that was renamed, as logrotate(8) does, is left alone from then on.

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

/// How often lines are written.
const PAUSE_MS: u64 = 250;
/// The file may have another name after this time.
const OPEN_MS: u64 = 1000;
/// How long it is waited before a log that could not be written is tried again.
const LONG_PAUSE_MS: u64 = 2000;
const MAX_WAITING_BYTES: usize = 4 << 20;
/// What is put behind the name of the log before.
const BEFORE: &str = ".1";

/// Lines that are on their way to the file.
pub(crate) struct AccessLog {
    path: String,
    /// Bytes after which a new one begins.
    max_bytes: u64,
    /// It could not have the name of the one before, which was said.
    cannot_begin_anew: Cell<bool>,
    waiting: RefCell<Vec<u8>>,
    /// Memory for those that come while others are written.
    spare: Cell<Vec<u8>>,
    /// Lines that were not kept, and were not told of yet.
    lost: Cell<u64>,
    /// Those that were told of.
    told_lost: Cell<u64>,
    date: Cell<(i64, [u8; date::LOG_BYTES])>,
}

impl AccessLog {
    /// A log to the file at this path of the namespace; without a path, none. A new one begins after so many bytes.
    pub(crate) fn new(path: &str, max_bytes: u64) -> AccessLog {
        AccessLog {
            path: String::from(path),
            max_bytes,
            cannot_begin_anew: Cell::new(false),
            waiting: RefCell::new(Vec::new()),
            spare: Cell::new(Vec::new()),
            lost: Cell::new(0),
            told_lost: Cell::new(0),
            date: Cell::new((0, date::log(0))),
        }
    }

    /// Notes an answer. `head` are the bytes that `noted` speaks of.
    pub(crate) fn note(&self, server: &Server, address: &AddressText, head: &[u8], noted: Option<&Noted>, sent: Sent) {
        if self.path.is_empty() {
            return;
        }
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() > MAX_WAITING_BYTES {
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

    /// Lines that were not kept.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.get() + self.told_lost.get()
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

/// Writes what waits until the server ends, and then the rest.
pub(crate) async fn write_regularly(server: Rc<Server>) {
    let log = &server.log;
    if log.path.is_empty() {
        server.ending.or(Deadline::NEVER).await;
        return;
    }
    let mut open: Option<FileChannel> = None;
    let mut reopen = Deadline::PASSED;
    let mut has_told = false;
    while !server.ending.has_begun() {
        server.ending.or(Deadline::after_ms(PAUSE_MS)).await;
        if log.waiting.borrow().is_empty() {
            continue;
        }
        if reopen.as_ns() <= time::monotonic() {
            open = None;
            reopen = Deadline::after_ms(OPEN_MS);
        }
        open = match open.take() {
            Some(file) => write(&server, file).await,
            None => match server.store.open_log(&log.path).await {
                Ok(file) => write(&server, file).await,
                Err(_) => None,
            },
        };
        if open.is_some() {
            has_told = false;
            continue;
        }
        if !has_told {
            report::error(format_args!("{} cannot be written; it is tried again", log.path));
            has_told = true;
        }
        server.ending.or(Deadline::after_ms(LONG_PAUSE_MS)).await;
    }
}

/// Appends what waits; the file if that was done. What was not written waits on, as far as there is room.
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
        log.told_lost.set(log.told_lost.get() + lost);
        report::error(format_args!("{}: {lost} lines had no room and are not in it", log.path));
    }
    keep(log, rest);
    if lines.capacity() <= MAX_WAITING_BYTES {
        lines.clear();
        log.spare.set(lines);
    }
    if bytes >= log.max_bytes && !log.cannot_begin_anew.get() {
        drop(file);
        return begin_anew(server).await;
    }
    Some(file)
}

/// Gives the log the name of the one before, which is no more then, and opens a new one. Where it cannot have that
/// name, it grows on.
async fn begin_anew(server: &Server) -> Option<FileChannel> {
    let log = &server.log;
    match server.store.rename(&log.path, &format!("{}{BEFORE}", log.path)).await {
        Ok(()) => {}
        // It is still long when there is a file system again.
        Err(StoreError::Unavailable) => return None,
        Err(_) => {
            log.cannot_begin_anew.set(true);
            report::error(format_args!("{} is long and cannot be renamed; it grows on", log.path));
        }
    }
    server.store.open_log(&log.path).await.ok()
}

/// Puts lines back in front of those that came meanwhile.
fn keep(log: &AccessLog, lines: &[u8]) {
    if lines.is_empty() {
        return;
    }
    let mut waiting = log.waiting.borrow_mut();
    let mut all = Vec::from(lines);
    all.extend_from_slice(&waiting);
    *waiting = all;
}
