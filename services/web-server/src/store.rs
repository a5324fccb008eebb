//! The served folder, through the file system's contracts, shared by many tasks.
//!
//! Key types: [`Store`], [`Opened`], [`FileChannel`]. When the file system is restarted, the folder is bound again, and
//! requests wait up to [`TIMEOUT_MS`] for that. Deliberately not here: caching, which is in [`crate::cache`].

use alloc::string::String;
use alloc::vec::Vec;

use client::directory_page;
use client::file_writer::NEW_PERMISSIONS;
use contracts::directory::{self, CreateMode, NameError, NodeKind};
use contracts::file::{self, FileAttributes, FileError};
use http::listing::Name;
use sip::channel::TypedEndpoint;
use sip::exheap::ExVec;
use sip::{Deadline, executor};
use task_sync::Mutex;

/// Timeout for a file system that is being restarted, in milliseconds.
const TIMEOUT_MS: u64 = 500;
const RETRY_MS: u64 = 2;
/// Maximum number of names in a listing.
const MAX_NAMES: usize = 2000;
/// Folder of ext2 for recovered files.
const LOST_AND_FOUND: &str = "lost+found";

/// A channel to a file.
pub(crate) type FileChannel = file::Imp<file::states::Ready>;

pub(crate) type Folder = directory::Imp<directory::states::Ready>;

/// Why a file could not be opened or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreError {
    /// No such file.
    NotFound,
    /// Access denied.
    NotPermitted,
    /// It is a folder.
    IsFolder,
    /// The file system is not running, or out of memory.
    Unavailable,
    /// The file has changed since it was opened.
    Changed,
    /// The read failed.
    Failed,
}

/// A newly opened file.
pub(crate) struct Opened {
    /// Channel to the file, owned by the caller.
    pub(crate) channel: FileChannel,
    /// Attributes at the time of opening.
    pub(crate) attributes: FileAttributes,
}

/// The served folder and the namespace.
pub(crate) struct Store {
    path: String,
    namespace: Mutex<Option<Folder>>,
    /// `None` while it is not bound.
    root: Mutex<Option<Folder>>,
}

impl Store {
    /// A store of the folder at `path`, which need not exist yet.
    pub(crate) fn new(namespace: Folder, path: &str) -> Store {
        Store { path: String::from(path), namespace: Mutex::new(Some(namespace)), root: Mutex::default() }
    }

    /// Opens a file of the served folder.
    pub(crate) async fn open_file(&self, path: &str) -> Result<Opened, StoreError> {
        let deadline = Deadline::after_ms(TIMEOUT_MS);
        loop {
            match self.try_open_file(path).await {
                Err(StoreError::Unavailable) if !deadline.has_passed() => retry_delay().await,
                other => return other,
            }
        }
    }

    async fn try_open_file(&self, path: &str) -> Result<Opened, StoreError> {
        let (importer, exporter) = file::new_channel().map_err(|_| StoreError::Unavailable)?;
        self.bind(path, exporter).await?;
        let channel = match importer.receive_async().await {
            file::ImpStart::Success { next } => next,
            file::ImpStart::Refused { error, .. } => return Err(of_file(error)),
            file::ImpStart::ChannelClosed(_) => return Err(StoreError::Unavailable),
        };
        match channel.get_attributes().receive_async().await {
            file::ImpReadyAfterGetAttributes::Attributes { attributes, next } => {
                Ok(Opened { channel: next, attributes })
            }
            file::ImpReadyAfterGetAttributes::ChannelClosed(_) => Err(StoreError::Unavailable),
        }
    }

    /// Lists a folder of the served folder; true if the listing is truncated.
    pub(crate) async fn list(&self, path: &str) -> Result<(Vec<Name>, bool), StoreError> {
        let (importer, exporter) = directory::new_channel().map_err(|_| StoreError::Unavailable)?;
        self.bind(path, exporter).await?;
        let mut folder = opened(importer).await?;
        let mut names: Vec<(Name, NodeKind)> = Vec::new();
        let mut cursor = 0;
        let mut left_out = false;
        let mut page = new_page()?;
        while !left_out {
            let pending = folder.enumerate(block("")?, cursor, page);
            let (filled, bytes, next_cursor, more, next) = match pending.receive_async().await {
                directory::ImpReadyAfterEnumerate::Page { page, bytes, cursor, more, next } => {
                    (page, bytes, cursor, more, next)
                }
                directory::ImpReadyAfterEnumerate::NotEnumerated { error, .. } => return Err(of_name(error)),
                directory::ImpReadyAfterEnumerate::ChannelClosed(_) => return Err(StoreError::Unavailable),
            };
            let used = (bytes as usize).min(filled.len());
            for entry in directory_page::entries(&filled[..used]) {
                left_out |= !add_name(&mut names, &entry);
            }
            folder = next;
            page = filled;
            // A cursor that does not advance would loop forever.
            if !more || next_cursor == cursor {
                break;
            }
            cursor = next_cursor;
        }
        let mut listed = Vec::with_capacity(names.len());
        for (name, kind) in names {
            let (name, next) = with_attributes(folder, name, kind).await?;
            listed.push(name);
            folder = next;
        }
        Ok((listed, left_out))
    }

    /// Binds a channel to a path of the served folder.
    async fn bind<E: TypedEndpoint>(&self, path: &str, exporter: E) -> Result<(), StoreError> {
        let path = path.trim_start_matches('/');
        if !path::is_valid(path) {
            return Err(StoreError::NotFound);
        }
        let mut root = self.root.lock().await;
        let folder = match root.take() {
            Some(folder) => folder,
            // A missing root may still be mounted, so it is not `NotFound`.
            None => self.open_folder(&self.path).await.map_err(|_| StoreError::Unavailable)?,
        };
        let (folder, bound) = bind(folder, path, exporter).await?;
        *root = Some(folder);
        bound
    }

    /// Binds a channel to a path of the namespace.
    pub(crate) async fn bind_in_namespace<E: TypedEndpoint>(&self, path: &str, exporter: E) -> Result<(), StoreError> {
        let mut namespace = self.namespace.lock().await;
        let folder = namespace.take().ok_or(StoreError::Unavailable)?;
        let (folder, bound) = bind(folder, path, exporter).await?;
        *namespace = Some(folder);
        bound
    }

    /// Opens a folder of the namespace.
    pub(crate) async fn open_folder(&self, path: &str) -> Result<Folder, StoreError> {
        let (importer, exporter) = directory::new_channel().map_err(|_| StoreError::Unavailable)?;
        self.bind_in_namespace(path, exporter).await?;
        opened(importer).await
    }

    /// Opens a file of the namespace for appending; creates it and its folder if missing.
    pub(crate) async fn open_log(&self, path: &str) -> Result<FileChannel, StoreError> {
        let (folder_path, name) = path::split_last(path).ok_or(StoreError::IsFolder)?;
        let folder = match self.open_folder(folder_path).await {
            Err(StoreError::NotFound) => {
                self.make_folder(folder_path).await?;
                self.open_folder(folder_path).await?
            }
            opened => opened?,
        };
        let (importer, exporter) = file::new_channel().map_err(|_| StoreError::Unavailable)?;
        let pending = folder.create_file(block(name)?, NEW_PERMISSIONS, CreateMode::OpenExisting, exporter);
        match pending.receive_async().await {
            directory::ImpReadyAfterCreateFile::Done { .. } => {}
            directory::ImpReadyAfterCreateFile::Failed { error, .. } => return Err(of_name(error)),
            directory::ImpReadyAfterCreateFile::ChannelClosed(_) => return Err(StoreError::Unavailable),
        }
        match importer.receive_async().await {
            file::ImpStart::Success { next } => Ok(next),
            file::ImpStart::Refused { error, .. } => Err(of_file(error)),
            file::ImpStart::ChannelClosed(_) => Err(StoreError::Unavailable),
        }
    }

    /// Renames a file of the namespace within its folder, replacing the target.
    pub(crate) async fn rename(&self, from: &str, to: &str) -> Result<(), StoreError> {
        let (folder, from) = path::split_last(from).ok_or(StoreError::NotFound)?;
        let (_, to) = path::split_last(to).ok_or(StoreError::NotFound)?;
        match self.open_folder(folder).await?.rename(block(from)?, block(to)?).receive_async().await {
            directory::ImpReadyAfterRename::Done { .. } => Ok(()),
            directory::ImpReadyAfterRename::Failed { error, .. } => Err(of_name(error)),
            directory::ImpReadyAfterRename::ChannelClosed(_) => Err(StoreError::Unavailable),
        }
    }

    async fn make_folder(&self, path: &str) -> Result<(), StoreError> {
        let (parent, name) = path::split_last(path).ok_or(StoreError::NotFound)?;
        let parent = self.open_folder(parent).await?;
        match parent.create_directory(block(name)?).receive_async().await {
            directory::ImpReadyAfterCreateDirectory::Done { .. } => Ok(()),
            directory::ImpReadyAfterCreateDirectory::Failed { error, .. } => Err(of_name(error)),
            directory::ImpReadyAfterCreateDirectory::ChannelClosed(_) => Err(StoreError::Unavailable),
        }
    }
}

/// Delay between retries.
async fn retry_delay() {
    executor::sleep_until(Deadline::after_ms(RETRY_MS)).await;
}

async fn bind<E: TypedEndpoint>(
    folder: Folder,
    path: &str,
    exporter: E,
) -> Result<(Folder, Result<(), StoreError>), StoreError> {
    match folder.bind(block(path)?, exporter).receive_async().await {
        directory::ImpReadyAfterBind::Bound { next } => Ok((next, Ok(()))),
        directory::ImpReadyAfterBind::NotBound { error, next, .. }
        | directory::ImpReadyAfterBind::Failed { error, next } => Ok((next, Err(of_name(error)))),
        directory::ImpReadyAfterBind::ChannelClosed(_) => Err(StoreError::Unavailable),
    }
}

async fn opened(importer: directory::Imp<directory::states::Start>) -> Result<Folder, StoreError> {
    match importer.receive_async().await {
        directory::ImpStart::Success { next } => Ok(next),
        directory::ImpStart::Refused { error, .. } => Err(of_name(error)),
        directory::ImpStart::ChannelClosed(_) => Err(StoreError::Unavailable),
    }
}

fn block(text: &str) -> Result<ExVec<u8>, StoreError> {
    ExVec::from_slice(text.as_bytes()).map_err(|_| StoreError::Unavailable)
}

fn new_page() -> Result<ExVec<u8>, StoreError> {
    ExVec::new(directory_page::PAGE_BYTES).map_err(|_| StoreError::Unavailable)
}

/// Whether a path is in the file system's own `lost+found`, which is not served.
pub(crate) fn is_file_systems_own(path: &str) -> bool {
    path.split('/').any(|part| part == LOST_AND_FOUND)
}

/// Adds a served name to a listing; false if it is full.
fn add_name(names: &mut Vec<(Name, NodeKind)>, entry: &directory_page::Entry<'_>) -> bool {
    let Ok(name) = core::str::from_utf8(entry.name) else { return true };
    if name.is_empty()
        || name.starts_with('.')
        // Requests with such paths are refused.
        || name.bytes().any(|byte| byte.is_ascii_control())
        || name == LOST_AND_FOUND
        || !matches!(entry.kind, NodeKind::Directory | NodeKind::File | NodeKind::Link | NodeKind::Mount)
    {
        return true;
    }
    if names.len() == MAX_NAMES {
        return false;
    }
    let is_folder = matches!(entry.kind, NodeKind::Directory | NodeKind::Mount);
    names.push((Name { name: String::from(name), is_folder, size_bytes: None, modified_s: None }, entry.kind));
    true
}

/// Queries size and modification time.
async fn with_attributes(folder: Folder, mut name: Name, kind: NodeKind) -> Result<(Name, Folder), StoreError> {
    match folder.get_attributes(block(&name.name)?).receive_async().await {
        directory::ImpReadyAfterGetAttributes::Attributes { attributes, next, .. } => {
            // A link's attributes are not its target's.
            if kind != NodeKind::Link {
                name.size_bytes = Some(attributes.size_bytes);
                name.modified_s = Some(attributes.modified_s);
            }
            Ok((name, next))
        }
        // Removed meanwhile: listed without them.
        directory::ImpReadyAfterGetAttributes::Failed { next, .. } => Ok((name, next)),
        directory::ImpReadyAfterGetAttributes::ChannelClosed(_) => Err(StoreError::Unavailable),
    }
}

fn of_name(error: NameError) -> StoreError {
    match error {
        NameError::NotFound
        | NameError::NotADirectory
        | NameError::BadPath
        | NameError::TooManyLinks
        | NameError::WrongContract => StoreError::NotFound,
        NameError::NotPermitted => StoreError::NotPermitted,
        NameError::IsADirectory => StoreError::IsFolder,
        NameError::Unavailable | NameError::Exhausted => StoreError::Unavailable,
        _ => StoreError::Failed,
    }
}

/// Maps an error of a file.
pub(crate) fn of_file(error: FileError) -> StoreError {
    match error {
        FileError::NotFound
        | FileError::NotADirectory
        | FileError::NotAFile
        | FileError::BadPath
        | FileError::TooManyLinks => StoreError::NotFound,
        FileError::NotPermitted => StoreError::NotPermitted,
        FileError::IsADirectory => StoreError::IsFolder,
        FileError::Unavailable | FileError::Exhausted => StoreError::Unavailable,
        _ => StoreError::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_and_unservable_names_are_not_listed() {
        let mut names = Vec::new();
        for name in ["a.txt", ".hidden", LOST_AND_FOUND, "lost", "tab\there", "line\nhere", "delete\x7fhere"] {
            let entry = directory_page::Entry { name: name.as_bytes(), kind: NodeKind::File, node: 1 };
            assert!(add_name(&mut names, &entry));
        }
        let shown: Vec<&str> = names.iter().map(|(name, _)| name.name.as_str()).collect();
        assert_eq!(shown, ["a.txt", "lost"]);
    }
}
