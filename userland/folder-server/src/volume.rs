//! The host folder as a [`Volume`] of `file-server`.

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use core::cell::RefCell;

use contracts::directory::{NameError, NodeAttributes, NodeKind};
use contracts::file::FileError;
use contracts::namespace_events;
use file_server::{AttributeChanges, Client, Listed, Locks, Opened, Page, Partial, Permit, Request, Volume};
use name_text as text;
use nine_p::{Entry, UNLINK_DIRECTORY, entries, errno, open_flags};
use principal::Right;

use crate::answers;
use crate::files::OpenFile;
use crate::session::{Error, Fid, Session};
use crate::walk::{self, Base, LastLink};
use crate::watch::{self, Watches};

/// Bytes of directory entries per read.
const ENTRIES_BYTES: usize = 16 << 10;
/// Mode of a new directory: world-readable, writable by its owner.
const DIRECTORY_PERMISSIONS: u32 = 0o755;
/// Permissions that clients may set: set-user-ID, set-group-ID and sticky bits never reach the host.
const PERMISSIONS: u32 = 0o777;

/// The folder of the host.
pub(crate) struct HostFolder {
    pub(crate) session: Rc<Session>,
    root: Rc<Fid>,
    watches: Rc<Watches>,
    locks: Locks,
}

/// A directory that a client has open.
pub(crate) struct Directory {
    base: Base,
    permit: Permit,
    /// Only one task enumerates it; the others only resolve paths.
    reading: RefCell<Option<Reading>>,
}

/// A directory that is being enumerated, between two pages.
struct Reading {
    path: String,
    cursor: u64,
    fid: Fid,
}

impl HostFolder {
    pub(crate) fn new(root: Fid) -> HostFolder {
        let session = Rc::clone(root.session());
        HostFolder { session, root: Rc::new(root), watches: Rc::default(), locks: Locks::default() }
    }
}

impl Directory {
    fn new(base: Base, permit: Permit) -> Directory {
        Directory { base, permit, reading: RefCell::new(None) }
    }

    /// Opens a directory to enumerate it from `cursor` on, a cursor of an earlier enumeration.
    async fn open_to_read(&self, path: &str, cursor: u64) -> Result<Fid, Error> {
        let reading = self.reading.take();
        if let Some(reading) = reading.filter(|reading| cursor != 0 && reading.cursor == cursor && reading.path == path)
        {
            return Ok(reading.fid);
        }
        let found = self.base.find(path, LastLink::Follow).await?;
        if !found.qid.is_directory() {
            return Err(Error::Host(errno::ENOTDIR));
        }
        found.fid.open(open_flags::READ).await?;
        Ok(found.fid)
    }

    /// Returns the kind of an entry. Some file systems do not store it in their directories; then the node is
    /// queried.
    async fn kind_of(&self, path: &str, entry: &Entry<'_>) -> NodeKind {
        if let Some(kind) = answers::entry_kind(entry) {
            return kind;
        }
        let path = format!("{path}/{}", text::to_text(entry.name));
        let attributes = async { self.base.find(&path, LastLink::Keep).await?.fid.attributes().await };
        attributes.await.map_or(NodeKind::Other, |known| answers::node_kind(known.mode))
    }

    fn opened(&self, path: &str, opener: &dyn Client, file: OpenFile) -> Opened<OpenFile> {
        Opened { file, rights: self.permit.of_file(path, opener) }
    }
}

fn partial((error, written): (Error, usize)) -> Partial<Error> {
    Partial { written, error }
}

impl Volume for HostFolder {
    type Directory = Directory;
    type File = OpenFile;
    type Error = Error;

    fn name_error(&self, error: Error) -> NameError {
        answers::name_error(error)
    }

    fn file_error(&self, error: Error) -> FileError {
        answers::file_error(error)
    }

    fn root(&self, permit: Permit) -> Directory {
        Directory::new(Base::root(&self.root), permit)
    }

    fn permits(&self, request: Request<'_, Directory>, path: &str, rights: &[Right]) -> bool {
        request.directory.permit.allows(path, rights, request.client)
    }

    async fn open_directory(&self, request: Request<'_, Directory>, path: &str) -> Result<Directory, Error> {
        let found = request.directory.base.find(path, LastLink::Follow).await?;
        if !found.qid.is_directory() {
            return Err(Error::Host(errno::ENOTDIR));
        }
        let permit = request.directory.permit.opened_below(path, request.client);
        Ok(Directory::new(request.directory.base.below(found), permit))
    }

    async fn open_file(
        &self,
        request: Request<'_, Directory>,
        path: &str,
        opener: &dyn Client,
    ) -> Result<Opened<OpenFile>, Error> {
        let file = OpenFile::open(&request.directory.base, path).await?;
        Ok(request.directory.opened(path, opener, file))
    }

    async fn create_file(
        &self,
        request: Request<'_, Directory>,
        path: &str,
        permissions: u32,
        opener: &dyn Client,
    ) -> Result<Opened<OpenFile>, Error> {
        let (parent, name) = request.directory.base.place(path).await?;
        let open = parent.fid.duplicate().await?;
        let qid = open.create(&name, permissions & PERMISSIONS).await?;
        let (qids, node) = parent.fid.walk(core::slice::from_ref(&name)).await?;
        // The host may have removed it already.
        let node = node.filter(|_| qids.first().map(|found| found.path) == Some(qid.path));
        let file = OpenFile::created(node.ok_or(Error::Host(errno::ENOENT))?, open, qid.path);
        Ok(request.directory.opened(path, opener, file))
    }

    async fn enumerate(
        &self,
        request: Request<'_, Directory>,
        path: &str,
        cursor: u64,
        page: &mut Page<'_>,
    ) -> Result<Listed, Error> {
        let fid = request.directory.open_to_read(path, cursor).await?;
        let mut cursor = cursor;
        loop {
            let names = fid.read_entries(cursor, ENTRIES_BYTES, <[u8]>::to_vec).await?;
            let mut found_any = false;
            for entry in entries(&names) {
                found_any = true;
                if entry.name != b"." && entry.name != b".." {
                    let kind = request.directory.kind_of(path, &entry).await;
                    if page.push(kind, entry.qid.path, &text::to_text(entry.name)).is_err() {
                        let reading = Reading { path: String::from(path), cursor, fid };
                        request.directory.reading.replace(Some(reading));
                        return Ok(Listed::Full(cursor));
                    }
                }
                cursor = entry.offset;
            }
            if !found_any {
                return Ok(Listed::End(cursor));
            }
        }
    }

    async fn attributes(
        &self,
        request: Request<'_, Directory>,
        path: &str,
    ) -> Result<(NodeKind, NodeAttributes), Error> {
        let known = request.directory.base.find(path, LastLink::Keep).await?.fid.attributes().await?;
        Ok((answers::node_kind(known.mode), answers::node_attributes(&known)))
    }

    async fn link_target(&self, request: Request<'_, Directory>, path: &str) -> Result<String, Error> {
        let found = request.directory.base.find(path, LastLink::Keep).await?;
        if !found.qid.is_link() {
            return Err(Error::NotSupported);
        }
        Ok(text::to_text(&found.fid.target().await?).into_owned())
    }

    async fn acl(&self, request: Request<'_, Directory>, path: &str) -> Result<(String, String), Error> {
        request.directory.base.find(path, LastLink::Keep).await?;
        Ok((String::new(), String::from(request.directory.permit.list_from())))
    }

    async fn create_directory(&self, request: Request<'_, Directory>, path: &str) -> Result<(), Error> {
        let (parent, name) = request.directory.base.place(path).await?;
        parent.fid.make_folder(&name, DIRECTORY_PERMISSIONS).await
    }

    async fn create_link(&self, request: Request<'_, Directory>, path: &str, target: &str) -> Result<(), Error> {
        let (parent, name) = request.directory.base.place(path).await?;
        let target = text::from_text(target).map_err(|_| Error::BadPath)?;
        // A link that leads out is not followed here, and could deceive programs of the host.
        if !walk::stays_inside(&parent.names, &target) {
            return Err(Error::LeadsOut);
        }
        parent.fid.make_link(&name, &target).await
    }

    async fn create_hard_link(&self, request: Request<'_, Directory>, existing: &str, path: &str) -> Result<(), Error> {
        let file = request.directory.base.find(existing, LastLink::Keep).await?;
        if file.qid.is_directory() {
            return Err(Error::Host(errno::EISDIR));
        }
        let (parent, name) = request.directory.base.place(path).await?;
        parent.fid.hard_link(&file.fid, &name).await
    }

    async fn rename(&self, request: Request<'_, Directory>, from: &str, to: &str) -> Result<(), Error> {
        let (from_parent, old_name) = request.directory.base.place(from).await?;
        let (to_parent, new_name) = request.directory.base.place(to).await?;
        match from_parent.fid.rename(&old_name, &to_parent.fid, &new_name).await {
            // rename(2): the new path contains a prefix of the old one.
            Err(Error::Host(errno::EINVAL)) => Err(Error::IntoItself),
            renamed => renamed,
        }
    }

    async fn remove_file(&self, request: Request<'_, Directory>, path: &str) -> Result<(), Error> {
        let (parent, name) = request.directory.base.place(path).await?;
        parent.fid.unlink(&name, 0).await
    }

    async fn remove_directory(&self, request: Request<'_, Directory>, path: &str) -> Result<(), Error> {
        let (parent, name) = request.directory.base.place(path).await?;
        parent.fid.unlink(&name, UNLINK_DIRECTORY).await
    }

    async fn set_attributes(
        &self,
        request: Request<'_, Directory>,
        path: &str,
        changes: AttributeChanges,
    ) -> Result<(), Error> {
        if changes.permissions.is_some_and(|permissions| permissions & !PERMISSIONS != 0) {
            return Err(Error::Host(errno::EPERM));
        }
        let changes = answers::attribute_changes(changes);
        request.directory.base.find(path, LastLink::Keep).await?.fid.set_attributes(changes).await
    }

    async fn set_acl(&self, _: Request<'_, Directory>, _: &str, _: &[u8]) -> Result<(), Error> {
        // The host cannot enforce lists.
        Err(Error::NotSupported)
    }

    async fn notify(
        self: &Rc<Self>,
        directory: &Rc<Directory>,
        path: &str,
        events: namespace_events::Exp<namespace_events::states::Ready>,
    ) -> Result<(), Error> {
        watch::subscribe(&self.watches, directory.base.clone(), path, events).await
    }

    async fn sync(&self) -> Result<(), Error> {
        self.session.sync_files().await?;
        let root = self.root.duplicate().await?;
        root.open(open_flags::READ).await?;
        root.sync().await
    }

    fn locks(&self) -> &Locks {
        &self.locks
    }

    fn file_number(&self, file: &OpenFile) -> u64 {
        file.number()
    }

    async fn file_attributes(&self, file: &OpenFile) -> Result<NodeAttributes, Error> {
        Ok(answers::node_attributes(&file.attributes().await?))
    }

    async fn read(&self, file: &mut OpenFile, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        file.read(offset, buffer).await
    }

    async fn write(&self, file: &mut OpenFile, offset: u64, data: &[u8]) -> Result<(), Partial<Error>> {
        file.write(offset, data).await.map_err(partial)
    }

    async fn append(&self, file: &mut OpenFile, data: &[u8]) -> Result<u64, Partial<Error>> {
        file.append(data).await.map_err(partial)
    }

    async fn set_size(&self, file: &mut OpenFile, size_bytes: u64) -> Result<(), Error> {
        file.set_size(size_bytes).await
    }

    async fn close(&self, file: OpenFile) {
        drop(file);
    }
}
