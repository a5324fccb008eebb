//! Asynchronous file access for many tasks.
//!
//! Recently read files stay open, because most requests are for few of them, and blocks are reused. If the file
//! server ends in the middle of a read, the file is opened again and the read repeated. Deliberately not here: the
//! content of the files.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use client::access::AccessError;
use client::answer::{REQUEST_LIMIT, wait_async};
use client::namespace::{TIMEOUT_MS, block};
use contracts::directory::{self, NameError};
use contracts::file::{self, FileError};
use sip::channel::TypedEndpoint;
use sip::executor::sleep_until;
use sip::exheap::ExVec;
use sip::time::monotonic_coarse;
use sip::{Deadline, Status};
use task_sync::Mutex;

/// Maximum bytes per read.
pub const PIECE_BYTES: usize = 64 * 1024;

/// Lifetime of an open file in nanoseconds: its name may refer to another file meanwhile.
const OPEN_NS: u64 = 1_000_000_000;

/// Interval in nanoseconds at which expired files are closed.
const SWEEP_NS: u64 = OPEN_NS / 4;

/// Maximum number of cached open files.
const MAX_OPEN: usize = 512;

/// Size in bytes of the smallest block; each larger size class is twice the one before.
const MIN_BLOCK_BYTES: usize = 1024;

/// Maximum number of blocks kept for reuse.
const MAX_BLOCKS: usize = 32;

/// Initial and maximum delay before an ended server is tried again, in milliseconds.
const RETRY_MS: (u64, u64) = (2, 50);

type Folder = directory::Imp<directory::states::Ready>;
type Channel = file::Imp<file::states::Ready>;

/// The files accessible to the application.
pub struct Files {
    names: Mutex<Option<Folder>>,
    /// Cached open files by path; several for a path that is read concurrently.
    open: RefCell<BTreeMap<String, Vec<Open>>>,
    /// Their number.
    open_count: Cell<usize>,
    swept_ns: Cell<u64>,
    blocks: RefCell<Vec<ExVec<u8>>>,
}

struct Open {
    channel: Channel,
    bytes: u64,
    since_ns: u64,
}

impl Open {
    /// Whether it has not expired.
    fn is_good(&self, now: u64) -> bool {
        now.saturating_sub(self.since_ns) < OPEN_NS
    }
}

/// An open file.
pub struct OpenFile<'a> {
    files: &'a Files,
    path: String,
    open: Open,
}

impl Files {
    /// Serves the files below this folder; without one there are none.
    pub fn new(names: Option<Folder>) -> Files {
        Files {
            names: Mutex::new(names),
            open: RefCell::default(),
            open_count: Cell::new(0),
            swept_ns: Cell::new(0),
            blocks: RefCell::default(),
        }
    }

    /// Opens a file for reading.
    pub async fn open(&self, path: &str) -> Result<OpenFile<'_>, AccessError> {
        let open = match self.take_open(path) {
            Some(open) => open,
            None => self.open_anew(path).await?,
        };
        Ok(OpenFile { files: self, path: path.to_string(), open })
    }

    /// Opens a file for reading without the cache.
    pub async fn open_now(&self, path: &str) -> Result<OpenFile<'_>, AccessError> {
        drop(self.take_open(path));
        Ok(OpenFile { files: self, path: path.to_string(), open: self.open_anew(path).await? })
    }

    fn take_open(&self, path: &str) -> Option<Open> {
        let now = monotonic_coarse();
        if now.saturating_sub(self.swept_ns.get()) >= SWEEP_NS {
            self.sweep(now);
        }
        let open = self.open.borrow_mut().get_mut(path)?.pop()?;
        self.open_count.set(self.open_count.get() - 1);
        Some(open).filter(|open| open.is_good(now))
    }

    /// Closes expired files.
    fn sweep(&self, now: u64) {
        self.swept_ns.set(now);
        let mut all = self.open.borrow_mut();
        all.retain(|_, same| {
            same.retain(|open| open.is_good(now));
            !same.is_empty()
        });
        self.open_count.set(all.values().map(Vec::len).sum());
    }

    /// Returns a block of at least this many bytes; its content is arbitrary.
    fn block(&self, bytes: usize) -> Result<ExVec<u8>, Status> {
        let length = bytes.next_power_of_two().max(MIN_BLOCK_BYTES);
        let mut blocks = self.blocks.borrow_mut();
        match blocks.iter().rposition(|block| block.len() == length) {
            Some(index) => Ok(blocks.swap_remove(index)),
            None => ExVec::new(length),
        }
    }

    /// Takes back a block of [`block`](Files::block).
    pub fn give_block(&self, block: ExVec<u8>) {
        let mut blocks = self.blocks.borrow_mut();
        if blocks.len() < MAX_BLOCKS && block.len() <= PIECE_BYTES {
            blocks.push(block);
        }
    }

    /// Opens a file; waits for a server that is being restarted.
    async fn open_anew(&self, path: &str) -> Result<Open, AccessError> {
        let deadline = Deadline::coarse_after_ms(TIMEOUT_MS);
        let mut pause_ms = RETRY_MS.0;
        loop {
            match self.try_open(path).await {
                Err(error) if error.may_pass() && !deadline.has_passed() => {
                    sleep_until(Deadline::after_ms(pause_ms)).await;
                    pause_ms = (pause_ms * 2).min(RETRY_MS.1);
                }
                other => return other,
            }
        }
    }

    async fn try_open(&self, path: &str) -> Result<Open, AccessError> {
        let (importer, exporter) = file::new_channel()?;
        self.bind(path, exporter).await?;
        let channel = opened(importer).await?;
        match wait_async(channel.get_attributes(), REQUEST_LIMIT).await? {
            file::ImpReadyAfterGetAttributes::Attributes { attributes, next } => {
                Ok(Open { channel: next, bytes: attributes.size_bytes, since_ns: monotonic_coarse() })
            }
            file::ImpReadyAfterGetAttributes::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Opens the folder at this path, or the namespace itself, for this program's requests or for another program.
    pub async fn open_folder(&self, path: &str) -> Result<Folder, AccessError> {
        let (importer, exporter) = directory::new_channel()?;
        self.bind(path, exporter).await?;
        match wait_async(importer, REQUEST_LIMIT).await? {
            directory::ImpStart::Success { next } => Ok(next),
            directory::ImpStart::Refused { error, .. } => Err(error.into()),
            directory::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Opens a file for appending, or creates it. Also returns its size in bytes.
    pub async fn open_to_append(&self, path: &str) -> Result<(Channel, u64), AccessError> {
        let (folder, name) = path::split_last(path).ok_or(NameError::BadPath)?;
        let folder = self.open_folder(folder).await?;
        let (importer, exporter) = file::new_channel()?;
        let permissions = client::file_writer::NEW_PERMISSIONS;
        let mode = directory::CreateMode::OpenExisting;
        match wait_async(folder.create_file(block(name)?, permissions, mode, exporter), REQUEST_LIMIT).await? {
            directory::ImpReadyAfterCreateFile::Done { .. } => {}
            directory::ImpReadyAfterCreateFile::Failed { error, .. } => return Err(error.into()),
            directory::ImpReadyAfterCreateFile::ChannelClosed(_) => return Err(AccessError::ServerEnded),
        }
        match wait_async(opened(importer).await?.get_attributes(), REQUEST_LIMIT).await? {
            file::ImpReadyAfterGetAttributes::Attributes { attributes, next } => Ok((next, attributes.size_bytes)),
            file::ImpReadyAfterGetAttributes::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    async fn bind<E: TypedEndpoint>(&self, path: &str, exporter: E) -> Result<(), AccessError> {
        let path = block(path)?;
        let mut names = self.names.lock().await;
        let folder = names.take().ok_or(NameError::NotFound)?;
        match wait_async(folder.bind(path, exporter), REQUEST_LIMIT).await? {
            directory::ImpReadyAfterBind::Bound { next } => {
                *names = Some(next);
                Ok(())
            }
            directory::ImpReadyAfterBind::NotBound { error, next, .. }
            | directory::ImpReadyAfterBind::Failed { error, next } => {
                *names = Some(next);
                Err(error.into())
            }
            directory::ImpReadyAfterBind::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }
}

async fn opened(importer: file::Imp<file::states::Start>) -> Result<Channel, AccessError> {
    match wait_async(importer, REQUEST_LIMIT).await? {
        file::ImpStart::Success { next } => Ok(next),
        file::ImpStart::Refused { error, .. } => Err(error.into()),
        file::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
    }
}

impl OpenFile<'_> {
    /// Size in bytes when it was opened.
    pub fn bytes(&self) -> u64 {
        self.open.bytes
    }

    /// Reads at most `most` bytes at `offset`; returns a block and the number of bytes read.
    pub async fn read(self, offset: u64, most: usize) -> Result<(Self, ExVec<u8>, usize), AccessError> {
        let OpenFile { files, path, open: Open { mut channel, mut bytes, mut since_ns } } = self;
        let deadline = Deadline::coarse_after_ms(TIMEOUT_MS);
        loop {
            let room = files.block(most)?;
            match wait_async(channel.read(room, offset, u32::try_from(most).unwrap_or(u32::MAX)), REQUEST_LIMIT).await?
            {
                file::ImpReadyAfterRead::ReadDone { data, count, next } => {
                    let count = (count as usize).min(data.len());
                    let open = Open { channel: next, bytes, since_ns };
                    return Ok((OpenFile { files, path, open }, data, count));
                }
                file::ImpReadyAfterRead::ReadFailed { error, .. } if error != FileError::Unavailable => {
                    return Err(error.into());
                }
                _ if deadline.has_passed() => return Err(AccessError::ServerEnded),
                _ => {
                    let again = files.open_anew(&path).await?;
                    if again.bytes != bytes {
                        // The file was replaced; its data would not match the part already read.
                        return Err(AccessError::ServerEnded);
                    }
                    (channel, bytes, since_ns) = (again.channel, again.bytes, again.since_ns);
                }
            }
        }
    }

    /// Caches the open file for the next request.
    pub fn keep(self) {
        let OpenFile { files, path, open } = self;
        if files.open_count.get() < MAX_OPEN {
            files.open_count.set(files.open_count.get() + 1);
            files.open.borrow_mut().entry(path).or_default().push(open);
        }
    }
}

/// Returns the path below the root for a path requested by a client. `None` if it is invalid or leads out of the
/// root.
pub fn below(root: &str, asked: &str) -> Option<String> {
    let asked = asked.trim_start_matches('/');
    let is_name = |part: &str| !part.is_empty() && part.len() <= 255 && !part.starts_with('.');
    if asked.len() > 1024 || asked.chars().any(char::is_control) || !asked.split('/').all(is_name) {
        return None;
    }
    Some(format!("{}/{asked}", root.trim_end_matches('/')))
}

/// Returns the HTTP status for an error.
pub fn status_of(error: AccessError) -> u16 {
    match error {
        AccessError::Name(
            NameError::NotFound | NameError::NotADirectory | NameError::IsADirectory | NameError::BadPath,
        )
        | AccessError::Name(NameError::WrongContract | NameError::TooManyLinks)
        | AccessError::File(FileError::NotFound | FileError::NotADirectory | FileError::IsADirectory)
        | AccessError::File(FileError::NotAFile | FileError::BadPath | FileError::TooManyLinks) => 404,
        AccessError::Name(NameError::NotPermitted)
        | AccessError::File(FileError::NotPermitted)
        | AccessError::NoFileSystem => 403,
        AccessError::Name(NameError::NoSpace) | AccessError::File(FileError::NoSpace) => 507,
        error if error.may_pass() => 503,
        AccessError::Name(NameError::Exhausted) | AccessError::File(FileError::Exhausted) | AccessError::System(_) => {
            503
        }
        _ => 500,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_root() {
        assert_eq!(below("/fs/disk0", "dir00000/class0_1").as_deref(), Some("/fs/disk0/dir00000/class0_1"));
        assert_eq!(below("/fs/disk0/", "//a").as_deref(), Some("/fs/disk0/a"));
        for asked in ["", "/", "..", "a/../b", "a/..", "./a", "a//b", "a/", ".hidden", "a\0b", "a\nb"] {
            assert_eq!(below("/fs/disk0", asked), None, "{asked:?}");
        }
        assert_eq!(below("/", &"x/".repeat(600)), None);
        assert_eq!(below("/", &"x".repeat(256)), None);
    }

    #[test]
    fn a_client_learns_whose_fault_it_is() {
        assert_eq!(status_of(NameError::NotFound.into()), 404);
        assert_eq!(status_of(NameError::NotPermitted.into()), 403);
        assert_eq!(status_of(AccessError::ServerEnded), 503);
        assert_eq!(status_of(FileError::DeviceError.into()), 500);
        assert_eq!(status_of(FileError::NoSpace.into()), 507);
    }
}
