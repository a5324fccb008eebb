//! The log of posted forms: a file, or memory if no file is given.

use alloc::collections::VecDeque;
use alloc::string::String;

use client::access::AccessError;
use client::answer::{REQUEST_LIMIT, wait_async};
use contracts::file;
use sip::exheap::ExVec;
use sip::time::wall;
use task_sync::Mutex;

use crate::files::Files;
use crate::record::{LINE_BYTES, Posted};

/// Maximum lines kept in memory; new ones displace the oldest.
const MAX_LINES: usize = 32 * 1024;

/// The log.
pub struct Log {
    path: Option<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Total number of lines; unknown until the file is opened.
    count: Option<u64>,
    file: Option<file::Imp<file::states::Ready>>,
    lines: VecDeque<String>,
}

impl Log {
    /// Creates a log in the file at this path, or in memory.
    pub fn new(path: Option<&str>) -> Log {
        Log { path: path.map(String::from), state: Mutex::default() }
    }

    /// Path of its file.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// Appends a line. Lines are serialized, and each is written whole.
    pub async fn add(&self, files: &Files, posted: &Posted, cookie: u32) -> Result<u64, AccessError> {
        let mut state = self.state.lock().await;
        let Some(path) = &self.path else {
            let count = state.count.unwrap_or(0) + 1;
            if state.lines.len() == MAX_LINES {
                state.lines.pop_front();
            }
            state.lines.push_back(line(posted, count, cookie));
            state.count = Some(count);
            return Ok(count);
        };
        let is_new = state.file.is_none();
        match state.append(files, path, posted, cookie).await {
            // The file was opened for an earlier line, and its server may have been restarted since.
            Err(error) if error.may_pass() && !is_new => state.append(files, path, posted, cookie).await,
            other => other,
        }
    }

    /// Clears the log.
    pub async fn reset(&self, files: &Files) -> Result<(), AccessError> {
        let mut state = self.state.lock().await;
        *state = State::default();
        let Some(path) = &self.path else { return Ok(()) };
        let (file, _) = files.open_to_append(path).await?;
        match wait_async(file.set_size(0), REQUEST_LIMIT).await? {
            file::ImpReadyAfterSetSize::Done { .. } => Ok(()),
            file::ImpReadyAfterSetSize::Failed { error, .. } => Err(error.into()),
            file::ImpReadyAfterSetSize::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Returns the lines of a log in memory.
    pub async fn lines(&self) -> String {
        self.state.lock().await.lines.iter().map(String::as_str).collect()
    }
}

impl State {
    async fn append(&mut self, files: &Files, path: &str, posted: &Posted, cookie: u32) -> Result<u64, AccessError> {
        let (file, count) = match (self.file.take(), self.count) {
            (Some(file), Some(count)) => (file, count),
            _ => {
                let (file, bytes) = files.open_to_append(path).await?;
                (file, bytes / LINE_BYTES as u64)
            }
        };
        let count = count + 1;
        let data = ExVec::from_slice(line(posted, count, cookie).as_bytes())?;
        let bytes = data.len() as u32;
        match wait_async(file.append(data, bytes), REQUEST_LIMIT).await? {
            file::ImpReadyAfterAppend::Appended { next, .. } => {
                (self.file, self.count) = (Some(next), Some(count));
                Ok(count)
            }
            file::ImpReadyAfterAppend::WriteFailed { error, .. } => Err(error.into()),
            file::ImpReadyAfterAppend::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }
}

fn line(posted: &Posted, count: u64, cookie: u32) -> String {
    posted.line(count, wall() / 1_000_000_000, sip::process::id(), cookie)
}
