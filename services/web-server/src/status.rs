//! The server's counters, and the file `/status/web` that shows them.
//!
//! Key types: [`Counters`]; [`serve`] gives each client a snapshot of the time of opening, a line per counter: its
//! name, a space, its value. The counters start at zero with each process.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use core::cell::Cell;

use contracts::file::{self, ExpReady, FileAttributes, FileError, states};

use crate::Server;

/// Permission bits of the file.
const PERMISSIONS: u32 = 0o444;

/// Counters since the start of the process.
#[derive(Default)]
pub(crate) struct Counters {
    /// Accepted connections.
    taken: Cell<u64>,
    /// Maximum number of concurrent connections.
    peak: Cell<usize>,
    /// Responses by the first digit of their status.
    answers: [Cell<u64>; 6],
    /// Truncated responses.
    cut: Cell<u64>,
    /// Content sent, in bytes.
    content_bytes: Cell<u64>,
}

fn add(counter: &Cell<u64>, count: u64) {
    counter.set(counter.get().wrapping_add(count));
}

impl Counters {
    /// Counts an accepted connection; `now` are open.
    pub(crate) fn note_connection(&self, now: usize) {
        add(&self.taken, 1);
        self.peak.set(self.peak.get().max(now));
    }

    /// Counts a response and its content.
    pub(crate) fn note_answer(&self, status: u16, content_bytes: u64) {
        if let Some(counter) = self.answers.get(usize::from(status / 100)) {
            add(counter, 1);
        }
        add(&self.content_bytes, content_bytes);
    }

    /// Counts a response as truncated that was counted as sent.
    pub(crate) fn note_cut_later(&self, status: u16, content_bytes: u64) {
        if let Some(counter) = self.answers.get(usize::from(status / 100)) {
            add(counter, 1u64.wrapping_neg());
        }
        add(&self.content_bytes, content_bytes.wrapping_neg());
        self.note_cut();
    }

    /// Counts a truncated response.
    pub(crate) fn note_cut(&self) {
        add(&self.cut, 1);
    }
}

/// The text of the file.
fn text(server: &Server) -> String {
    let counters = &server.counters;
    let (hits, misses) = server.cache.looked_up();
    let mut text = String::with_capacity(1024);
    let mut line = |name: &str, value: u64| {
        text.push_str(&format!("{name} {value}\n"));
    };
    line("uptime-s", server.update_clock().saturating_sub(server.started_ns) / 1_000_000_000);
    line("connections", server.connections.get() as u64);
    line("connections-at-most", counters.peak.get() as u64);
    line("connections-allowed", server.limits.connections as u64);
    line("connections-taken", counters.taken.get());
    line("requests", counters.answers.iter().map(Cell::get).sum::<u64>().wrapping_add(counters.cut.get()));
    for class in 2..=5 {
        line(&format!("answers-{class}xx"), counters.answers[class].get());
    }
    line("answers-cut", counters.cut.get());
    line("content-bytes", counters.content_bytes.get());
    line("open-files", server.cache.count() as u64);
    line("open-files-found", hits);
    line("open-files-missed", misses);
    line("kept-content-bytes", server.cache.warm_bytes() as u64);
    line("kept-gzip-bytes", server.coded.bytes() as u64);
    line("blocks-allocated", server.blocks.allocated());
    line("log-lines-lost", server.log.lost());
    for application in &server.applications {
        text.push_str(&application.describe());
    }
    text
}

/// Serves the file to one client.
pub(crate) async fn serve(server: Rc<Server>, client: file::Exp<states::Start>) {
    let text = text(&server);
    server.update_clock();
    let modified_s = server.wall_s();
    // The client may keep the file open for long; do not keep the server alive.
    drop(server);
    let size_bytes = text.len() as u64;
    let attributes = FileAttributes {
        size_bytes,
        allocated_bytes: size_bytes,
        node: 1,
        modified_s,
        permissions: PERMISSIONS,
        links: 1,
    };
    let mut client = client.success();
    loop {
        client = match client.receive_async().await {
            ExpReady::GetAttributes { next } => next.attributes(attributes),
            ExpReady::Read { mut data, offset, count, next } => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
                let wanted = (text.len() - start).min(count as usize).min(data.len());
                data[..wanted].copy_from_slice(&text.as_bytes()[start..start + wanted]);
                next.read_done(data, wanted as u32)
            }
            ExpReady::Write { data, next, .. } => next.write_failed(data, FileError::ReadOnly, 0),
            ExpReady::Append { data, next, .. } => next.write_failed(data, FileError::ReadOnly, 0),
            ExpReady::SetSize { next, .. } => next.failed(FileError::ReadOnly),
            ExpReady::Sync { next } => next.done(),
            // Nobody writes to it.
            ExpReady::Lock { next, .. } => next.failed(FileError::ReadOnly),
            ExpReady::Unlock { next, .. } => next.done(),
            ExpReady::TestLock { next, .. } => next.free(),
            ExpReady::ChannelClosed(_) => return,
        };
    }
}
