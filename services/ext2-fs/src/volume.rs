//! The mounted volume, as `file-server` serves it.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;

use contracts::directory::{NameError, NodeAttributes, NodeKind};
use contracts::file::FileError;
use contracts::file_system::{CacheCounters, FileSystemError, VolumeStatistics};
use contracts::namespace_events;
use disk_source::DiskSource;
use ext2::{
    CacheCounts, DirectoryEntry, DiskError, Error, FormatError, Kind, LastLink, NewKind, NewNode, OpenFile, ROOT_INODE,
};
use file_server::{
    AttributeChanges, Client, Listed, Locks, Managed, OpenRights, Opened, Page, Partial, Permit, Reports, Request,
    Volume, padded,
};
use name_text as text;
use principal::Right;

use crate::access::{Access, Caller, RequestError};
use crate::answers;

/// Directory entries read per batch.
const NAMES_AT_ONCE: usize = 256;
/// Mode of new directories.
const DIRECTORY_PERMISSIONS: u32 = 0o755;
/// Mode of symbolic links, which has no meaning.
const LINK_PERMISSIONS: u32 = 0o777;
/// The rule in audit entries about open files.
const OPEN_RULE: &str = "the list that decided when it was opened";

/// The mounted volume.
pub(crate) struct Ext2Volume {
    pub(crate) volume: ext2::Volume<DiskSource>,
    pub(crate) access: Access,
    pub(crate) reports: Reports,
    pub(crate) locks: Locks,
}

/// A directory that a client has open.
pub(crate) struct Directory {
    pub(crate) number: u32,
    /// The rights by the mount point's ACL, which govern nodes without an ACL on the volume.
    pub(crate) permit: Permit,
    /// Keeps the inode of a directory that is removed while open.
    _open: Option<OpenFile<DiskSource>>,
}

impl Ext2Volume {
    /// Reports damage and failing disks.
    pub(crate) fn note(&self, error: &Error) {
        // `disk-source` reports the end of a driver.
        let is_end = matches!(error, Error::Read(_, DiskError::Gone) | Error::Write(_, DiskError::Gone));
        if matches!(error, Error::Format(FormatError::Corrupt(_)) | Error::Read(..) | Error::Write(..)) && !is_end {
            self.reports.error(error);
        }
    }

    fn caller<'a>(&'a self, request: Request<'a, Directory>) -> Caller<'a> {
        Caller { volume: self, directory: request.directory, client: request.client }
    }

    /// The file type of an entry. Without the `filetype` feature it is read from the inode; a damaged inode must not
    /// hide the other names.
    async fn kind_of(&self, entry: &DirectoryEntry) -> NodeKind {
        let kind = match entry.kind {
            Some(kind) => Some(kind),
            None => self.volume.inode(entry.inode).await.map(|inode| inode.kind).ok(),
        };
        kind.map_or(NodeKind::Other, answers::node_kind)
    }

    /// Describes the volume, and why it is read-only if it is.
    fn kind(&self) -> String {
        let superblock = self.volume.superblock();
        let blocks = superblock.block_bytes;
        match self.volume.read_only_reason() {
            None => format!("ext2 revision {}, blocks of {blocks} bytes", superblock.revision),
            Some(reason) => format!("ext2 revision {}; {reason}", superblock.revision),
        }
    }

    /// Creates a node in a directory that the caller may write.
    async fn create(&self, caller: Caller<'_>, path: &str, kind: NewKind<'_>, mode: u32) -> Result<(), RequestError> {
        let (parent, name) = caller.place(path).await?;
        caller.need(&parent, &[Right::Write], path).await?;
        let created = self.volume.create(parent.inode.number, &name, new_node(kind, mode)).await?;
        self.access.forget_node(created.number);
        Ok(())
    }

    /// Resolves the parent directory and name of a node that the caller may remove.
    async fn removable(&self, caller: Caller<'_>, path: &str) -> Result<(u32, Vec<u8>), RequestError> {
        let (parent, name) = caller.place(path).await?;
        caller.need(&parent, &[Right::Write], path).await?;
        caller.need_to_take(&parent, &name, path).await?;
        Ok((parent.inode.number, name))
    }
}

/// New nodes belong to user and group 0.
fn new_node(kind: NewKind<'_>, permissions: u32) -> NewNode<'_> {
    // The low twelve bits.
    NewNode { kind, permissions: (permissions & 0o7777) as u16, owner: 0, group: 0 }
}

fn partial(partial: ext2::Partial) -> Partial<RequestError> {
    Partial { written: partial.written, error: partial.error.into() }
}

impl Volume for Ext2Volume {
    type Directory = Directory;
    type File = OpenFile<DiskSource>;
    type Error = RequestError;

    fn name_error(&self, error: RequestError) -> NameError {
        match error {
            RequestError::Volume(error) => {
                self.note(&error);
                answers::name_error(&error)
            }
            RequestError::Refused => NameError::NotPermitted,
            RequestError::BadPath => NameError::BadPath,
            RequestError::BadList => NameError::BadAcl,
            RequestError::NotSupported => NameError::NotSupported,
        }
    }

    fn file_error(&self, error: RequestError) -> FileError {
        match error {
            RequestError::Volume(error) => {
                self.note(&error);
                answers::file_error(&error)
            }
            RequestError::BadPath => FileError::BadPath,
            RequestError::Refused | RequestError::BadList | RequestError::NotSupported => FileError::NotPermitted,
        }
    }

    fn root(&self, permit: Permit) -> Directory {
        Directory { number: ROOT_INODE, permit, _open: None }
    }

    fn permits(&self, _: Request<'_, Directory>, _: &str, _: &[Right]) -> bool {
        // An ACL on the volume may allow what the mount point's does not: each operation checks the governing one.
        true
    }

    async fn open_directory(&self, request: Request<'_, Directory>, path: &str) -> Result<Directory, RequestError> {
        let caller = self.caller(request);
        let found = caller.find(path, LastLink::Follow).await?;
        if found.inode.kind != Kind::Directory {
            return Err(Error::NotADirectory.into());
        }
        // Each request checks its own right; a client with none of them is refused at once.
        if !caller.may_repair_lists() {
            caller.need(&found, &[Right::Traverse, Right::Read, Right::SetAcl], path).await?;
        }
        let open = self.volume.open(found.inode.number).await?;
        let permit = request.directory.permit.opened_below(path, request.client);
        Ok(Directory { number: open.number(), permit, _open: Some(open) })
    }

    async fn open_file(
        &self,
        request: Request<'_, Directory>,
        path: &str,
        opener: &dyn Client,
    ) -> Result<Opened<OpenFile<DiskSource>>, RequestError> {
        let caller = self.caller(request);
        let found = caller.find(path, LastLink::Follow).await?;
        let caller = Caller { client: opener, ..caller };
        caller.need(&found, &[Right::Read, Right::Write], path).await?;
        match found.inode.kind {
            Kind::File => {}
            Kind::Directory => return Err(Error::IsADirectory.into()),
            _ => return Err(Error::NotAFile.into()),
        }
        let rights = caller.rights(&found).await?;
        let file = self.volume.open(found.inode.number).await?;
        let path = request.directory.permit.path_of(path);
        Ok(Opened { file, rights: OpenRights { rights, path, rule: OPEN_RULE } })
    }

    async fn create_file(
        &self,
        request: Request<'_, Directory>,
        path: &str,
        permissions: u32,
        opener: &dyn Client,
    ) -> Result<Opened<OpenFile<DiskSource>>, RequestError> {
        let caller = self.caller(request);
        let (parent, name) = caller.place(path).await?;
        caller.need(&parent, &[Right::Write], path).await?;
        let new = new_node(NewKind::File, permissions);
        let file = self.volume.create_open(parent.inode.number, &name, new).await?;
        self.access.forget_node(file.number());
        let rights = Caller { client: opener, ..caller }.rights(&parent).await?;
        let path = request.directory.permit.path_of(path);
        Ok(Opened { file, rights: OpenRights { rights, path, rule: OPEN_RULE } })
    }

    async fn enumerate(
        &self,
        request: Request<'_, Directory>,
        path: &str,
        cursor: u64,
        page: &mut Page<'_>,
    ) -> Result<Listed, RequestError> {
        let caller = self.caller(request);
        let found = caller.find(path, LastLink::Follow).await?;
        caller.need(&found, &[Right::Read], path).await?;
        let mut cursor = cursor;
        loop {
            let listing = self.volume.list(found.inode.number, cursor, NAMES_AT_ONCE).await?;
            for entry in &listing.entries {
                let kind = self.kind_of(entry).await;
                if page.push(kind, entry.inode.into(), &text::to_text(&entry.name)).is_err() {
                    return Ok(Listed::Full(entry.position));
                }
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
    ) -> Result<(NodeKind, NodeAttributes), RequestError> {
        let caller = self.caller(request);
        let found = caller.find(path, LastLink::Keep).await?;
        caller.need(&found, &[Right::Read], path).await?;
        Ok((answers::node_kind(found.inode.kind), answers::node_attributes(&found.inode)))
    }

    async fn link_target(&self, request: Request<'_, Directory>, path: &str) -> Result<String, RequestError> {
        let caller = self.caller(request);
        let found = caller.find(path, LastLink::Keep).await?;
        if found.inode.kind != Kind::SymbolicLink {
            return Err(RequestError::NotSupported);
        }
        caller.need(&found, &[Right::Read], path).await?;
        let target = self.volume.link_target(found.inode.number).await?;
        Ok(text::to_text(&target).into_owned())
    }

    async fn acl(&self, request: Request<'_, Directory>, path: &str) -> Result<(String, String), RequestError> {
        self.caller(request).list(path).await
    }

    async fn create_directory(&self, request: Request<'_, Directory>, path: &str) -> Result<(), RequestError> {
        self.create(self.caller(request), path, NewKind::Directory, DIRECTORY_PERMISSIONS).await
    }

    async fn create_link(&self, request: Request<'_, Directory>, path: &str, target: &str) -> Result<(), RequestError> {
        let target = text::from_text(target)?;
        self.create(self.caller(request), path, NewKind::SymbolicLink(&target), LINK_PERMISSIONS).await
    }

    async fn create_hard_link(
        &self,
        request: Request<'_, Directory>,
        existing: &str,
        path: &str,
    ) -> Result<(), RequestError> {
        let caller = self.caller(request);
        let target = caller.find(existing, LastLink::Keep).await?;
        let (parent, name) = caller.place(path).await?;
        caller.need(&target, &[Right::Write], existing).await?;
        caller.need(&parent, &[Right::Write], path).await?;
        caller.need_to_move(&target, &parent, existing).await?;
        Ok(self.volume.link(parent.inode.number, &name, target.inode.number).await?)
    }

    async fn rename(&self, request: Request<'_, Directory>, from: &str, to: &str) -> Result<(), RequestError> {
        let caller = self.caller(request);
        let (from_parent, from_name) = caller.place(from).await?;
        let (to_parent, to_name) = caller.place(to).await?;
        caller.need(&from_parent, &[Right::Write], from).await?;
        caller.need(&to_parent, &[Right::Write], to).await?;
        caller.need_to_take(&from_parent, &from_name, from).await?;
        caller.need_to_take(&to_parent, &to_name, to).await?;
        if from_parent.inode.number != to_parent.inode.number {
            let node = caller.child(&from_parent, &from_name).await?;
            caller.need_to_move(&node, &to_parent, from).await?;
        }
        let to_directory = to_parent.inode.number;
        self.volume.rename(from_parent.inode.number, &from_name, to_directory, &to_name).await?;
        self.access.forget();
        Ok(())
    }

    async fn remove_file(&self, request: Request<'_, Directory>, path: &str) -> Result<(), RequestError> {
        let (parent, name) = self.removable(self.caller(request), path).await?;
        self.volume.unlink(parent, &name).await?;
        self.access.forget();
        Ok(())
    }

    async fn remove_directory(&self, request: Request<'_, Directory>, path: &str) -> Result<(), RequestError> {
        let (parent, name) = self.removable(self.caller(request), path).await?;
        self.volume.remove_directory(parent, &name).await?;
        self.access.forget();
        Ok(())
    }

    async fn set_attributes(
        &self,
        request: Request<'_, Directory>,
        path: &str,
        changes: AttributeChanges,
    ) -> Result<(), RequestError> {
        let caller = self.caller(request);
        let found = caller.find(path, LastLink::Keep).await?;
        caller.need(&found, &[Right::Write], path).await?;
        Ok(self.volume.set_attributes(found.inode.number, answers::attribute_changes(changes)).await?)
    }

    async fn set_acl(&self, request: Request<'_, Directory>, path: &str, acl: &[u8]) -> Result<(), RequestError> {
        self.caller(request).set_list(path, acl).await
    }

    async fn notify(
        self: &Rc<Self>,
        _: &Rc<Directory>,
        _: &str,
        _: namespace_events::Exp<namespace_events::states::Ready>,
    ) -> Result<(), RequestError> {
        Err(RequestError::NotSupported)
    }

    async fn sync(&self) -> Result<(), RequestError> {
        Ok(self.volume.sync().await?)
    }

    fn locks(&self) -> &Locks {
        &self.locks
    }

    fn file_number(&self, file: &OpenFile<DiskSource>) -> u64 {
        file.number().into()
    }

    async fn file_attributes(&self, file: &OpenFile<DiskSource>) -> Result<NodeAttributes, RequestError> {
        Ok(answers::node_attributes(&file.inode().await?))
    }

    async fn read(
        &self,
        file: &mut OpenFile<DiskSource>,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, RequestError> {
        Ok(file.read(offset, buffer).await?)
    }

    async fn write(
        &self,
        file: &mut OpenFile<DiskSource>,
        offset: u64,
        data: &[u8],
    ) -> Result<(), Partial<RequestError>> {
        file.write(offset, data).await.map_err(partial)
    }

    async fn append(&self, file: &mut OpenFile<DiskSource>, data: &[u8]) -> Result<u64, Partial<RequestError>> {
        file.append(data).await.map_err(partial)
    }

    async fn set_size(&self, file: &mut OpenFile<DiskSource>, size_bytes: u64) -> Result<(), RequestError> {
        Ok(file.set_size(size_bytes).await?)
    }

    async fn close(&self, file: OpenFile<DiskSource>) {
        drop(file);
    }
}

impl Managed for Ext2Volume {
    fn file_system_error(&self, error: RequestError) -> FileSystemError {
        match error {
            RequestError::Volume(error) => {
                self.note(&error);
                answers::file_system_error(&error)
            }
            _ => FileSystemError::Damaged,
        }
    }

    async fn statistics(&self) -> VolumeStatistics {
        let (numbers, superblock) = (self.volume.statistics(), self.volume.superblock());
        let bytes = |blocks: u32| u64::from(blocks) * u64::from(numbers.block_bytes);
        let counters = |counts: CacheCounts, limit: usize| CacheCounters {
            hits: counts.hits,
            misses: counts.misses,
            bytes: counts.bytes as u64,
            limit_bytes: limit as u64,
        };
        VolumeStatistics {
            size_bytes: bytes(numbers.blocks),
            free_bytes: bytes(numbers.free_blocks),
            available_bytes: bytes(numbers.free_blocks.saturating_sub(numbers.reserved_blocks)),
            nodes: numbers.inodes.into(),
            free_nodes: numbers.free_inodes.into(),
            block_bytes: numbers.block_bytes,
            read_only: u32::from(self.volume.read_only_reason().is_some()),
            unwritten_bytes: numbers.dirty_bytes,
            open: numbers.open.into(),
            node_cache: counters(numbers.caches.inodes, numbers.limits.inode_bytes),
            number_cache: counters(numbers.caches.numbers, numbers.limits.number_bytes),
            data_cache: counters(numbers.caches.data, numbers.limits.data_bytes),
            label: padded(&superblock.label),
            kind: padded(self.kind().as_bytes()),
        }
    }

    fn has_changes(&self) -> bool {
        self.volume.has_changes()
    }

    async fn unmount(&self) -> Result<(), RequestError> {
        Ok(self.volume.unmount().await?)
    }
}
