//! A client's view of a folder of the namespace: the `Directory` contract as plain functions.
//!
//! Key type: [`Namespace`]. Neighbours: [`crate::file_io`] for files opened here. After [`AccessError::ServerEnded`] or
//! [`AccessError::NoAnswer`] the object is unusable, and the program binds again by path. Deliberately not here:
//! caching.

use alloc::string::String;
use alloc::vec::Vec;
use core::mem;
use core::time::Duration;

use contracts::directory::{self, CreateMode, NameError, NodeAttributes, NodeChanges, NodeKind, ProviderScope};
use contracts::{file, namespace_events, service_provider};
use sip::channel::{AnyEndpoint, Receiver};
use sip::exheap::ExVec;
use sip::{Deadline, Status};

use crate::access::AccessError;
use crate::answer::{BULK_LIMIT, REQUEST_LIMIT, wait};
use crate::directory_page;
use crate::file_io::OpenFile;

/// Maximum wait for a provider that is being restarted, in milliseconds.
pub const TIMEOUT_MS: u64 = 2_000;

const RETRY_MS: u64 = 5;

/// An open folder.
pub struct Namespace {
    /// The endpoint between requests, or the error that closed it.
    endpoint: Result<directory::Imp<directory::states::Ready>, AccessError>,
}

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name without a path.
    pub name: Vec<u8>,
    /// Kind of the node.
    pub kind: NodeKind,
    /// Number of the node in its file system, or 0.
    pub node: u64,
}

/// A page of names.
pub struct Page {
    /// The block, for the next page.
    pub page: ExVec<u8>,
    /// Where the next page begins; `None` if this is the last one.
    pub next: Option<u64>,
    used: usize,
}

impl Page {
    /// Returns its entries but `.` and `..`.
    pub fn entries(&self) -> impl Iterator<Item = directory_page::Entry<'_>> {
        directory_page::entries(&self.page[..self.used]).filter(|entry| !matches!(entry.name, b"." | b".."))
    }
}

/// The access control list that governs a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameAcl {
    /// Its entries, one per line.
    pub text: String,
    /// The folder it is inherited from, as reported by its server; `None` if it is the name's own.
    pub inherited_from: Option<String>,
}

impl Name {
    /// Returns the name as part of a path; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.name).into_owned()
    }

    /// Returns the name as part of a path, if it is UTF-8.
    pub fn part(&self) -> Result<&str, AccessError> {
        core::str::from_utf8(&self.name).map_err(|_| NameError::BadPath.into())
    }
}

impl Namespace {
    /// Wraps an endpoint.
    pub fn new(endpoint: directory::Imp<directory::states::Ready>) -> Namespace {
        Namespace { endpoint: Ok(endpoint) }
    }

    /// Returns the endpoint, to pass it to another program.
    pub fn into_endpoint(self) -> Option<directory::Imp<directory::states::Ready>> {
        self.endpoint.ok()
    }

    /// Sends a request and waits for its answer, which returns the endpoint.
    fn ask<R: Receiver>(
        &mut self,
        limit: Duration,
        request: impl FnOnce(directory::Imp<directory::states::Ready>) -> R,
    ) -> Result<R::Event, AccessError> {
        let ready = mem::replace(&mut self.endpoint, Err(AccessError::ServerEnded))?;
        wait(request(ready), limit).inspect_err(|error| self.endpoint = Err(*error))
    }

    /// Connects the exporting end of a new channel to a name. The server's first message on the importing end reports
    /// whether the object was opened.
    pub fn bind(&mut self, path: &str, exporter: impl Into<AnyEndpoint>) -> Result<(), AccessError> {
        let path = block(path)?;
        match self.ask(REQUEST_LIMIT, |ready| ready.bind(path, exporter))? {
            directory::ImpReadyAfterBind::Bound { next } => {
                self.endpoint = Ok(next);
                Ok(())
            }
            directory::ImpReadyAfterBind::NotBound { error, next, .. }
            | directory::ImpReadyAfterBind::Failed { error, next } => {
                self.endpoint = Ok(next);
                Err(error.into())
            }
            directory::ImpReadyAfterBind::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Opens a name: `create` makes a channel whose exporting end is bound, `opened` receives the server's first
    /// message on the importing end. Waits up to [`TIMEOUT_MS`] for a provider that is being restarted.
    pub fn open<I, E: Into<AnyEndpoint>, T>(
        &mut self,
        path: &str,
        create: impl Fn() -> Result<(I, E), Status>,
        opened: impl Fn(I) -> Result<T, AccessError>,
    ) -> Result<T, AccessError> {
        let deadline = Deadline::after_ms(TIMEOUT_MS);
        loop {
            let (importer, exporter) = create()?;
            let result = self.bind(path, exporter).and_then(|()| opened(importer));
            match result {
                Err(error) if error.may_pass() && self.endpoint.is_ok() && !deadline.has_passed() => {
                    sip::time::sleep_until(Deadline::after_ms(RETRY_MS));
                }
                other => return other,
            }
        }
    }

    /// Opens a folder.
    pub fn open_directory(&mut self, path: &str) -> Result<Namespace, AccessError> {
        self.open(path, directory::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
            directory::ImpStart::Success { next } => Ok(Namespace::new(next)),
            directory::ImpStart::Refused { error, .. } => Err(error.into()),
            directory::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        })
    }

    /// Opens a file.
    pub fn open_file(&mut self, path: &str) -> Result<OpenFile, AccessError> {
        self.open(path, file::new_channel, |importer| match wait(importer, REQUEST_LIMIT)? {
            file::ImpStart::Success { next } => Ok(OpenFile::new(next)),
            file::ImpStart::Refused { error, .. } => Err(error.into()),
            file::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        })
    }

    /// Opens the folder that a path lies in, and returns its last name: requests that change a name go to its folder.
    /// For the root, returns itself and the empty name.
    pub fn open_folder_of<'p>(&mut self, path: &'p str) -> Result<(Namespace, &'p str), AccessError> {
        let (folder, name) = path::split_last(path).unwrap_or(("", ""));
        Ok((self.open_directory(folder)?, name))
    }

    /// Returns the attributes of a path. A symbolic link at its end is not followed.
    pub fn attributes(&mut self, path: &str) -> Result<(NodeKind, NodeAttributes), AccessError> {
        match path::split_last(path) {
            None => self.own_attributes(""),
            Some(("", name)) => self.own_attributes(name),
            Some((folder, name)) => self.open_directory(folder)?.own_attributes(name),
        }
    }

    /// Returns the attributes of a name in this folder; the empty name is the folder.
    pub fn own_attributes(&mut self, name: &str) -> Result<(NodeKind, NodeAttributes), AccessError> {
        let name = block(name)?;
        match self.ask(REQUEST_LIMIT, |ready| ready.get_attributes(name))? {
            directory::ImpReadyAfterGetAttributes::Attributes { kind, attributes, next } => {
                self.endpoint = Ok(next);
                Ok((kind, attributes))
            }
            directory::ImpReadyAfterGetAttributes::Failed { error, next } => {
                self.endpoint = Ok(next);
                Err(error.into())
            }
            directory::ImpReadyAfterGetAttributes::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Returns the target of a symbolic link, unresolved.
    pub fn read_link(&mut self, path: &str) -> Result<String, AccessError> {
        match path::split_last(path) {
            Some((folder, name)) if !folder.is_empty() => self.open_directory(folder)?.own_link(name),
            _ => self.own_link(path),
        }
    }

    fn own_link(&mut self, name: &str) -> Result<String, AccessError> {
        let name = block(name)?;
        match self.ask(REQUEST_LIMIT, |ready| ready.read_link(name))? {
            directory::ImpReadyAfterReadLink::Target { target, next } => {
                self.endpoint = Ok(next);
                Ok(String::from_utf8_lossy(&target).into_owned())
            }
            directory::ImpReadyAfterReadLink::Failed { error, next } => {
                self.endpoint = Ok(next);
                Err(error.into())
            }
            directory::ImpReadyAfterReadLink::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Lists names of this folder from a cursor on: 0 first, then that of the last page. `page` has the entries, in the
    /// format of [`directory_page`].
    pub fn page(&mut self, page: ExVec<u8>, from: u64) -> Result<Page, AccessError> {
        let empty = block("")?;
        match self.ask(REQUEST_LIMIT, |ready| ready.enumerate(empty, from, page))? {
            directory::ImpReadyAfterEnumerate::Page { page, bytes, cursor, more, next } => {
                self.endpoint = Ok(next);
                // A server whose cursor does not advance would loop its client for ever.
                Ok(Page {
                    used: (bytes as usize).min(page.len()),
                    page,
                    next: (more && cursor != from).then_some(cursor),
                })
            }
            directory::ImpReadyAfterEnumerate::NotEnumerated { error, next, .. } => {
                self.endpoint = Ok(next);
                Err(error.into())
            }
            directory::ImpReadyAfterEnumerate::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Calls `each` for every name in this folder but `.` and `..`, in the server's order.
    pub fn for_each_name(&mut self, mut each: impl FnMut(Name)) -> Result<(), AccessError> {
        let mut page = ExVec::<u8>::new(directory_page::PAGE_BYTES)?;
        let mut from = Some(0);
        while let Some(cursor) = from {
            let filled = self.page(page, cursor)?;
            for entry in filled.entries() {
                each(Name { name: entry.name.into(), kind: entry.kind, node: entry.node });
            }
            from = filled.next;
            page = filled.page;
        }
        Ok(())
    }

    /// Returns all names in the folder at `path`, sorted by bytes.
    pub fn names(&mut self, path: &str) -> Result<Vec<Name>, AccessError> {
        let mut names = Vec::new();
        self.open_directory(path)?.for_each_name(|name| names.push(name))?;
        names.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(names)
    }

    /// Registers a provider that has sent `Ready` at a name.
    pub fn register(
        &mut self,
        path: &str,
        scope: ProviderScope,
        provider: service_provider::Imp<service_provider::states::Ready>,
    ) -> Result<(), AccessError> {
        let path = block(path)?;
        match self.ask(REQUEST_LIMIT, |ready| ready.register(path, scope, provider))? {
            directory::ImpReadyAfterRegister::Done { next } => self.done(next),
            directory::ImpReadyAfterRegister::Failed { error, next } => self.failed(error, next),
            directory::ImpReadyAfterRegister::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Creates an empty file in this folder, or opens an existing one if `mode` allows.
    pub fn create_own_file(&mut self, name: &str, permissions: u32, mode: CreateMode) -> Result<OpenFile, AccessError> {
        let (importer, exporter) = file::new_channel()?;
        let name = block(name)?;
        match self.ask(REQUEST_LIMIT, |ready| ready.create_file(name, permissions, mode, exporter))? {
            directory::ImpReadyAfterCreateFile::Done { next } => self.endpoint = Ok(next),
            directory::ImpReadyAfterCreateFile::Failed { error, next } => {
                self.endpoint = Ok(next);
                return Err(error.into());
            }
            directory::ImpReadyAfterCreateFile::ChannelClosed(_) => return Err(AccessError::ServerEnded),
        }
        match wait(importer, REQUEST_LIMIT)? {
            file::ImpStart::Success { next } => Ok(OpenFile::new(next)),
            file::ImpStart::Refused { error, .. } => Err(error.into()),
            file::ImpStart::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Creates an empty file at a path, or opens an existing one if `mode` allows.
    pub fn create_file(&mut self, path: &str, permissions: u32, mode: CreateMode) -> Result<OpenFile, AccessError> {
        let created = self.in_folder_of(path, |folder, name| folder.create_own_file(name, permissions, mode));
        created.map_err(|error| self.name_missing_volume(path, error))
    }

    /// Creates a folder in an existing one.
    pub fn make_directory(&mut self, path: &str) -> Result<(), AccessError> {
        let made = self.in_folder_of(path, |folder, name| {
            let name = block(name)?;
            match folder.ask(REQUEST_LIMIT, |ready| ready.create_directory(name))? {
                directory::ImpReadyAfterCreateDirectory::Done { next } => folder.done(next),
                directory::ImpReadyAfterCreateDirectory::Failed { error, next } => folder.failed(error, next),
                directory::ImpReadyAfterCreateDirectory::ChannelClosed(_) => Err(AccessError::ServerEnded),
            }
        });
        made.map_err(|error| self.name_missing_volume(path, error))
    }

    /// Creates a symbolic link in an existing folder.
    pub fn make_link(&mut self, path: &str, target: &str) -> Result<(), AccessError> {
        let made = self.in_folder_of(path, |folder, name| {
            let (name, target) = (block(name)?, block(target)?);
            match folder.ask(REQUEST_LIMIT, |ready| ready.link(name, target))? {
                directory::ImpReadyAfterLink::Done { next } => folder.done(next),
                directory::ImpReadyAfterLink::Failed { error, next } => folder.failed(error, next),
                directory::ImpReadyAfterLink::ChannelClosed(_) => Err(AccessError::ServerEnded),
            }
        });
        made.map_err(|error| self.name_missing_volume(path, error))
    }

    /// Creates a hard link to a file on the same volume.
    pub fn hard_link(&mut self, existing: &str, path: &str) -> Result<(), AccessError> {
        self.in_common_folder(existing, path, |folder, existing, path| {
            let (existing, path) = (block(existing)?, block(path)?);
            match folder.ask(REQUEST_LIMIT, |ready| ready.hard_link(existing, path))? {
                directory::ImpReadyAfterHardLink::Done { next } => folder.done(next),
                directory::ImpReadyAfterHardLink::Failed { error, next } => folder.failed(error, next),
                directory::ImpReadyAfterHardLink::ChannelClosed(_) => Err(AccessError::ServerEnded),
            }
        })
    }

    /// Renames `from` to `to` on the same volume; across volumes it fails with [`NameError::NotSupported`].
    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), AccessError> {
        self.in_common_folder(from, to, |folder, from, to| {
            let (from, to) = (block(from)?, block(to)?);
            match folder.ask(BULK_LIMIT, |ready| ready.rename(from, to))? {
                directory::ImpReadyAfterRename::Done { next } => folder.done(next),
                directory::ImpReadyAfterRename::Failed { error, next } => folder.failed(error, next),
                directory::ImpReadyAfterRename::ChannelClosed(_) => Err(AccessError::ServerEnded),
            }
        })
    }

    /// Removes a file or link.
    pub fn remove_file(&mut self, path: &str) -> Result<(), AccessError> {
        self.in_folder_of(path, |folder, name| {
            let name = block(name)?;
            match folder.ask(BULK_LIMIT, |ready| ready.remove_file(name))? {
                directory::ImpReadyAfterRemoveFile::Done { next } => folder.done(next),
                directory::ImpReadyAfterRemoveFile::Failed { error, next } => folder.failed(error, next),
                directory::ImpReadyAfterRemoveFile::ChannelClosed(_) => Err(AccessError::ServerEnded),
            }
        })
    }

    /// Removes an empty folder.
    pub fn remove_directory(&mut self, path: &str) -> Result<(), AccessError> {
        self.in_folder_of(path, |folder, name| {
            let name = block(name)?;
            match folder.ask(BULK_LIMIT, |ready| ready.remove_directory(name))? {
                directory::ImpReadyAfterRemoveDirectory::Done { next } => folder.done(next),
                directory::ImpReadyAfterRemoveDirectory::Failed { error, next } => folder.failed(error, next),
                directory::ImpReadyAfterRemoveDirectory::ChannelClosed(_) => Err(AccessError::ServerEnded),
            }
        })
    }

    /// Changes attributes of a path; a symbolic link at its end is not followed.
    pub fn set_attributes(&mut self, path: &str, changes: NodeChanges) -> Result<(), AccessError> {
        self.in_folder_of(path, |folder, name| {
            let name = block(name)?;
            match folder.ask(REQUEST_LIMIT, |ready| ready.set_attributes(name, changes))? {
                directory::ImpReadyAfterSetAttributes::Done { next } => folder.done(next),
                directory::ImpReadyAfterSetAttributes::Failed { error, next } => folder.failed(error, next),
                directory::ImpReadyAfterSetAttributes::ChannelClosed(_) => Err(AccessError::ServerEnded),
            }
        })
    }

    /// Sets a path's own access control list, or removes it if the text is empty; a symbolic link at its end is not
    /// followed.
    pub fn set_acl(&mut self, path: &str, acl: &str) -> Result<(), AccessError> {
        self.in_folder_of(path, |folder, name| {
            let (name, acl) = (block(name)?, block(acl)?);
            match folder.ask(REQUEST_LIMIT, |ready| ready.set_acl(name, acl))? {
                directory::ImpReadyAfterSetAcl::Done { next } => folder.done(next),
                directory::ImpReadyAfterSetAcl::Failed { error, next } => folder.failed(error, next),
                directory::ImpReadyAfterSetAcl::ChannelClosed(_) => Err(AccessError::ServerEnded),
            }
        })
    }

    /// Returns the access control list that governs a path, if there is one; a symbolic link at its end is not
    /// followed.
    pub fn acl(&mut self, path: &str) -> Result<Option<NameAcl>, AccessError> {
        let found = self.in_folder_of(path, |folder, name| {
            let asked = block(name)?;
            match folder.ask(REQUEST_LIMIT, |ready| ready.get_acl(asked))? {
                directory::ImpReadyAfterGetAcl::Acl { acl, from, next } => {
                    folder.endpoint = Ok(next);
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    let inherited_from = (&*from != name.as_bytes()).then(|| text(&from));
                    Ok(NameAcl { text: text(&acl), inherited_from })
                }
                directory::ImpReadyAfterGetAcl::Failed { error, next } => {
                    folder.endpoint = Ok(next);
                    Err(error.into())
                }
                directory::ImpReadyAfterGetAcl::ChannelClosed(_) => Err(AccessError::ServerEnded),
            }
        })?;
        match found.inherited_from.as_deref() {
            Some(path::ABOVE_THE_ROOT) => self.mount_acl(path),
            _ => Ok((!found.text.is_empty()).then_some(found)),
        }
    }

    /// Returns the list of the mount point on a path.
    fn mount_acl(&mut self, path: &str) -> Result<Option<NameAcl>, AccessError> {
        let ends = path.match_indices('/').map(|(end, _)| end).filter(|&end| end > 0);
        for end in ends {
            let above = &path[..end];
            if self.attributes(above)?.0 == NodeKind::Mount {
                let found = self.acl(above)?;
                let from = |acl: NameAcl| acl.inherited_from.unwrap_or_else(|| above.into());
                return Ok(found.map(|acl| NameAcl { text: acl.text.clone(), inherited_from: Some(from(acl)) }));
            }
        }
        Ok(None)
    }

    /// Waits until written data of this folder's volume is on its medium.
    pub fn sync(&mut self) -> Result<(), AccessError> {
        match self.ask(BULK_LIMIT, |ready| ready.sync())? {
            directory::ImpReadyAfterSync::Done { next } => self.done(next),
            directory::ImpReadyAfterSync::Failed { error, next } => self.failed(error, next),
            directory::ImpReadyAfterSync::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Sends a request about two paths to the deepest folder above both.
    fn in_common_folder<T>(
        &mut self,
        first: &str,
        second: &str,
        act: impl FnOnce(&mut Namespace, &str, &str) -> Result<T, AccessError>,
    ) -> Result<T, AccessError> {
        let (first, second) = (first.trim_start_matches('/'), second.trim_start_matches('/'));
        let mut common = 0;
        for (index, (left, right)) in first.bytes().zip(second.bytes()).enumerate() {
            if left != right {
                break;
            }
            if left == b'/' {
                common = index + 1;
            }
        }
        match &first[..common] {
            "" => act(self, first, second),
            folder => act(&mut self.open_directory(folder)?, &first[common..], &second[common..]),
        }
    }

    /// Sends a request about the last name of a path to its folder: a server changes names in its own folders only.
    fn in_folder_of<T>(
        &mut self,
        path: &str,
        act: impl FnOnce(&mut Namespace, &str) -> Result<T, AccessError>,
    ) -> Result<T, AccessError> {
        match path::split_last(path) {
            None => act(self, ""),
            Some(("", name)) => act(self, name),
            Some((folder, name)) => act(&mut self.open_directory(folder)?, name),
        }
    }

    /// The directory service refuses to create files and folders; then the reason is that no volume is mounted there,
    /// not a missing permission.
    fn name_missing_volume(&mut self, path: &str, error: AccessError) -> AccessError {
        let may_be_missing = matches!(error, AccessError::Name(NameError::NotPermitted | NameError::NotSupported));
        if may_be_missing && self.is_outside_volumes(path) { AccessError::NoFileSystem } else { error }
    }

    /// Returns whether the directory service itself serves all folders of the path.
    fn is_outside_volumes(&mut self, path: &str) -> bool {
        // The root may be a volume's folder, for a program that was given only that.
        let below = path.match_indices('/').map(|(slash, _)| &path[..slash]).filter(|folder| !folder.is_empty());
        ["/"].into_iter().chain(below).all(|folder| matches!(self.attributes(folder), Ok((NodeKind::Directory, _))))
    }

    /// Removes a name.
    pub fn deregister(&mut self, path: &str) -> Result<(), AccessError> {
        let path = block(path)?;
        match self.ask(REQUEST_LIMIT, |ready| ready.deregister(path))? {
            directory::ImpReadyAfterDeregister::Done { next } => self.done(next),
            directory::ImpReadyAfterDeregister::Failed { error, next } => self.failed(error, next),
            directory::ImpReadyAfterDeregister::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Creates a symbolic link; the server of this folder resolves the whole path.
    pub fn link(&mut self, path: &str, target: &str) -> Result<(), AccessError> {
        let (path, target) = (block(path)?, block(target)?);
        match self.ask(REQUEST_LIMIT, |ready| ready.link(path, target))? {
            directory::ImpReadyAfterLink::Done { next } => self.done(next),
            directory::ImpReadyAfterLink::Failed { error, next } => self.failed(error, next),
            directory::ImpReadyAfterLink::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Creates a folder and its parents; the server of this folder resolves the whole path.
    pub fn create_directory(&mut self, path: &str) -> Result<(), AccessError> {
        let path = block(path)?;
        match self.ask(REQUEST_LIMIT, |ready| ready.create_directory(path))? {
            directory::ImpReadyAfterCreateDirectory::Done { next } => self.done(next),
            directory::ImpReadyAfterCreateDirectory::Failed { error, next } => self.failed(error, next),
            directory::ImpReadyAfterCreateDirectory::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    /// Subscribes to changes of names at or below `path`.
    pub fn notify(
        &mut self,
        path: &str,
    ) -> Result<namespace_events::Imp<namespace_events::states::Ready>, AccessError> {
        let path = block(path)?;
        let (importer, exporter) = namespace_events::new_channel()?;
        match self.ask(REQUEST_LIMIT, |ready| ready.notify(path, exporter))? {
            directory::ImpReadyAfterNotify::Done { next } => self.done(next).map(|()| importer),
            directory::ImpReadyAfterNotify::Failed { error, next } => self.failed(error, next).map(|()| importer),
            directory::ImpReadyAfterNotify::ChannelClosed(_) => Err(AccessError::ServerEnded),
        }
    }

    fn done(&mut self, next: directory::Imp<directory::states::Ready>) -> Result<(), AccessError> {
        self.endpoint = Ok(next);
        Ok(())
    }

    fn failed(&mut self, error: NameError, next: directory::Imp<directory::states::Ready>) -> Result<(), AccessError> {
        self.endpoint = Ok(next);
        Err(error.into())
    }
}

/// Copies text to a block.
pub fn block(text: &str) -> Result<ExVec<u8>, Status> {
    ExVec::from_slice(text.as_bytes())
}

/// Returns the name of a kind of node.
pub fn kind_word(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Directory => "folder",
        NodeKind::File => "file",
        NodeKind::Link => "link",
        NodeKind::Service => "service",
        NodeKind::Mount => "mount",
        NodeKind::Other => "other",
    }
}
