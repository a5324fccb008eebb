//! The mounted volume, as `file-server` serves it.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use contracts::directory::{NameError, NodeAttributes, NodeKind};
use contracts::file::FileError;
use contracts::file_system::{CacheCounters, FileSystemError, VolumeStatistics};
use contracts::namespace_events;
use disk_source::DiskSource;
use fat::{CreateMode, DiskError, Error, Folder, OpenFile};
use file_server::{
    AttributeChanges, Client, Listed, Locks, Managed, Opened, Page, Partial, Permit, Reports, Request, Volume, padded,
};
use principal::Right;

use crate::answers;

/// Directory entries read per batch.
const NAMES_AT_ONCE: usize = 64;

/// The mounted volume.
pub(crate) struct FatVolume {
    pub(crate) volume: fat::Volume<DiskSource>,
    pub(crate) root: Rc<Folder<DiskSource>>,
    /// Whether the volume was mounted read-write; its disk may still be read-only.
    pub(crate) may_write: bool,
    pub(crate) reports: Reports,
    pub(crate) locks: Locks,
}

/// A directory that a client has open.
pub(crate) struct Directory {
    folder: Rc<Folder<DiskSource>>,
    permit: Permit,
}

impl FatVolume {
    /// Reports damage and failing disks.
    pub(crate) fn note(&self, error: Error) {
        // `disk-source` reports the end of a driver.
        if matches!(error, Error::Damaged(_) | Error::Disk(_)) && error != Error::Disk(DiskError::Gone) {
            self.reports.error(&error);
        }
    }

    fn kind(&self, bits: u32, is_read_only: bool) -> String {
        let why = match (is_read_only, self.may_write) {
            (false, _) => "",
            (true, false) => "; it was mounted read-only",
            (true, true) => "; its disk is read-only",
        };
        format!("FAT{bits}{why}")
    }
}

fn opened(
    request: Request<'_, Directory>,
    path: &str,
    opener: &dyn Client,
    file: OpenFile<DiskSource>,
) -> Opened<OpenFile<DiskSource>> {
    Opened { file, rights: request.directory.permit.of_file(path, opener) }
}

fn partial(partial: fat::Partial) -> Partial<Error> {
    Partial { written: partial.written, error: partial.error }
}

impl Volume for FatVolume {
    type Directory = Directory;
    type File = OpenFile<DiskSource>;
    type Error = Error;

    fn name_error(&self, error: Error) -> NameError {
        self.note(error);
        answers::name_error(error)
    }

    fn file_error(&self, error: Error) -> FileError {
        self.note(error);
        answers::file_error(error)
    }

    fn root(&self, permit: Permit) -> Directory {
        Directory { folder: Rc::clone(&self.root), permit }
    }

    fn permits(&self, request: Request<'_, Directory>, path: &str, rights: &[Right]) -> bool {
        request.directory.permit.allows(path, rights, request.client)
    }

    async fn open_directory(&self, request: Request<'_, Directory>, path: &str) -> Result<Directory, Error> {
        let folder = Rc::new(request.directory.folder.folder(path).await?);
        Ok(Directory { folder, permit: request.directory.permit.opened_below(path, request.client) })
    }

    async fn open_file(
        &self,
        request: Request<'_, Directory>,
        path: &str,
        opener: &dyn Client,
    ) -> Result<Opened<OpenFile<DiskSource>>, Error> {
        let file = request.directory.folder.open(path).await?;
        Ok(opened(request, path, opener, file))
    }

    async fn create_file(
        &self,
        request: Request<'_, Directory>,
        path: &str,
        permissions: u32,
        opener: &dyn Client,
    ) -> Result<Opened<OpenFile<DiskSource>>, Error> {
        let file = request.directory.folder.create(path, permissions, CreateMode::New).await?;
        Ok(opened(request, path, opener, file))
    }

    async fn enumerate(
        &self,
        request: Request<'_, Directory>,
        path: &str,
        cursor: u64,
        page: &mut Page<'_>,
    ) -> Result<Listed, Error> {
        let mut cursor = cursor;
        loop {
            let listing = request.directory.folder.list(path, cursor, NAMES_AT_ONCE).await?;
            for entry in &listing.entries {
                if page.push(answers::node_kind(entry.kind), entry.number, &entry.name).is_err() {
                    return Ok(Listed::Full(cursor));
                }
                cursor = entry.position;
            }
            match listing.next {
                Some(next) => cursor = next,
                None => return Ok(Listed::End(cursor)),
            }
        }
    }

    async fn attributes(
        &self,
        request: Request<'_, Directory>,
        path: &str,
    ) -> Result<(NodeKind, NodeAttributes), Error> {
        let node = request.directory.folder.attributes(path).await?;
        Ok((answers::node_kind(node.kind), answers::node_attributes(&node)))
    }

    async fn link_target(&self, request: Request<'_, Directory>, path: &str) -> Result<String, Error> {
        // FAT has no symbolic links.
        self.attributes(request, path).await.and(Err(Error::NotSupported))
    }

    async fn acl(&self, request: Request<'_, Directory>, path: &str) -> Result<(String, String), Error> {
        self.attributes(request, path).await?;
        Ok((String::new(), String::from(request.directory.permit.list_from())))
    }

    async fn create_directory(&self, request: Request<'_, Directory>, path: &str) -> Result<(), Error> {
        request.directory.folder.make_folder(path).await
    }

    async fn create_link(&self, _: Request<'_, Directory>, _: &str, _: &str) -> Result<(), Error> {
        Err(Error::NotSupported)
    }

    async fn create_hard_link(&self, _: Request<'_, Directory>, _: &str, _: &str) -> Result<(), Error> {
        Err(Error::NotSupported)
    }

    async fn rename(&self, request: Request<'_, Directory>, from: &str, to: &str) -> Result<(), Error> {
        request.directory.folder.rename(from, to).await
    }

    async fn remove_file(&self, request: Request<'_, Directory>, path: &str) -> Result<(), Error> {
        request.directory.folder.remove_file(path).await
    }

    async fn remove_directory(&self, request: Request<'_, Directory>, path: &str) -> Result<(), Error> {
        request.directory.folder.remove_folder(path).await
    }

    async fn set_attributes(
        &self,
        request: Request<'_, Directory>,
        path: &str,
        changes: AttributeChanges,
    ) -> Result<(), Error> {
        if changes.owner.unwrap_or(0) != 0 || changes.group.unwrap_or(0) != 0 {
            // On FAT everything belongs to user and group 0.
            return Err(Error::NotSupported);
        }
        let AttributeChanges { permissions, modified_s, accessed_s, .. } = changes;
        let changes = fat::AttributeChanges { permissions, modified_s, accessed_s };
        request.directory.folder.set_attributes(path, changes).await
    }

    async fn set_acl(&self, _: Request<'_, Directory>, _: &str, _: &[u8]) -> Result<(), Error> {
        Err(Error::NotSupported)
    }

    async fn notify(
        self: &Rc<Self>,
        _: &Rc<Directory>,
        _: &str,
        _: namespace_events::Exp<namespace_events::states::Ready>,
    ) -> Result<(), Error> {
        Err(Error::NotSupported)
    }

    async fn sync(&self) -> Result<(), Error> {
        self.volume.sync().await
    }

    fn locks(&self) -> &Locks {
        &self.locks
    }

    fn file_number(&self, file: &OpenFile<DiskSource>) -> u64 {
        file.number()
    }

    async fn file_attributes(&self, file: &OpenFile<DiskSource>) -> Result<NodeAttributes, Error> {
        Ok(answers::node_attributes(&file.attributes().await?))
    }

    async fn read(&self, file: &mut OpenFile<DiskSource>, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        file.read(offset, buffer).await
    }

    async fn write(&self, file: &mut OpenFile<DiskSource>, offset: u64, data: &[u8]) -> Result<(), Partial<Error>> {
        file.write(offset, data).await.map_err(partial)
    }

    async fn append(&self, file: &mut OpenFile<DiskSource>, data: &[u8]) -> Result<u64, Partial<Error>> {
        file.append(data).await.map_err(partial)
    }

    async fn set_size(&self, file: &mut OpenFile<DiskSource>, size_bytes: u64) -> Result<(), Error> {
        file.set_size(size_bytes).await
    }

    async fn close(&self, file: OpenFile<DiskSource>) {
        match file.close().await {
            Ok(()) | Err(Error::ShutDown) => {}
            Err(error) => self.note(error),
        }
    }
}

impl Managed for FatVolume {
    fn file_system_error(&self, error: Error) -> FileSystemError {
        self.note(error);
        answers::file_system_error(error)
    }

    async fn statistics(&self) -> VolumeStatistics {
        let cache = self.volume.cache();
        let counters = CacheCounters {
            hits: cache.hits,
            misses: cache.misses,
            bytes: cache.bytes,
            limit_bytes: cache.limit_bytes,
        };
        let none = CacheCounters { hits: 0, misses: 0, bytes: 0, limit_bytes: 0 };
        let mut statistics = VolumeStatistics {
            size_bytes: 0,
            free_bytes: 0,
            available_bytes: 0,
            nodes: 0,
            free_nodes: 0,
            block_bytes: 0,
            read_only: 0,
            unwritten_bytes: cache.unwritten_bytes,
            open: 0,
            node_cache: none,
            number_cache: none,
            data_cache: counters,
            label: padded(b""),
            kind: padded(b"FAT"),
        };
        match self.volume.statistics().await {
            Ok(found) => {
                statistics.size_bytes = found.size_bytes;
                statistics.free_bytes = found.free_bytes;
                statistics.available_bytes = found.free_bytes;
                statistics.block_bytes = found.cluster_bytes;
                statistics.read_only = u32::from(found.is_read_only);
                statistics.open = found.open;
                statistics.label = padded(found.label.as_bytes());
                statistics.kind = padded(self.kind(found.bits, found.is_read_only).as_bytes());
            }
            Err(error) => self.note(error),
        }
        statistics
    }

    fn has_changes(&self) -> bool {
        self.volume.has_changes()
    }

    async fn unmount(&self) -> Result<(), Error> {
        match self.volume.unmount().await {
            Err(Error::ShutDown) => Ok(()),
            unmounted => unmounted,
        }
    }
}
