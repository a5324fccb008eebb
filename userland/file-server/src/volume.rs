//! The interface that a file server implements.

use alloc::rc::Rc;
use alloc::string::String;

use contracts::directory::{NameError, NodeAttributes, NodeChanges, NodeKind, NodeParts};
use contracts::file::FileError;
use contracts::namespace_events;
use principal::Right;

use crate::client::Client;
use crate::locks::Locks;
use crate::page::{Listed, Page};
use crate::permit::{OpenRights, Permit};

/// A request: the directory where its paths begin, and its sender.
pub struct Request<'a, D> {
    /// The directory.
    pub directory: &'a D,
    /// The sender.
    pub client: &'a dyn Client,
}

impl<D> Clone for Request<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Request<'_, D> {}

/// A file that was opened for a client.
pub struct Opened<F> {
    /// The file.
    pub file: F,
    /// The client's rights to it until it is closed.
    pub rights: OpenRights,
}

/// A write that failed, possibly after part of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial<E> {
    /// Number of bytes that are in the file.
    pub written: usize,
    /// Error for the rest.
    pub error: E,
}

/// The attributes to change; the others keep their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttributeChanges {
    /// The low twelve bits of a Unix mode.
    pub permissions: Option<u32>,
    /// User number.
    pub owner: Option<u32>,
    /// Group number.
    pub group: Option<u32>,
    /// Last change of content, in seconds since 1970-01-01 00:00 UTC.
    pub modified_s: Option<i64>,
    /// Last access, likewise.
    pub accessed_s: Option<i64>,
}

impl From<NodeChanges> for AttributeChanges {
    fn from(changes: NodeChanges) -> AttributeChanges {
        let wanted = |part| changes.which.contains(part);
        AttributeChanges {
            permissions: wanted(NodeParts::PERMISSIONS).then_some(changes.permissions & 0o7777),
            owner: wanted(NodeParts::OWNER).then_some(changes.owner),
            group: wanted(NodeParts::GROUP).then_some(changes.group),
            modified_s: wanted(NodeParts::MODIFIED).then_some(changes.modified_s),
            accessed_s: wanted(NodeParts::ACCESSED).then_some(changes.accessed_s),
        }
    }
}

/// A volume as clients see it.
///
/// Paths are valid ([`path::is_valid`]) and relative to the request's directory; the empty one is the directory
/// itself. The last part of a path that is created, renamed or removed is a name: not empty and not `.`. Only
/// `open_directory`, `open_file` and `enumerate` follow a symbolic link at the end of a path.
#[expect(async_fn_in_trait, reason = "all tasks of a file server run on one thread")]
pub trait Volume: Sized + 'static {
    /// A directory that a client has open. Several tasks share it.
    type Directory: 'static;
    /// A file that a client has open.
    type File: 'static;
    /// Error of an operation.
    type Error;

    /// Maps an error to its code for `Directory`, and logs it if the user should know.
    fn name_error(&self, error: Self::Error) -> NameError;
    /// Likewise for `File`.
    fn file_error(&self, error: Self::Error) -> FileError;

    /// Returns the root for a client that came through a mount point.
    fn root(&self, permit: Permit) -> Self::Directory;
    /// Returns whether the client has one of the rights by the mount point's access control list. Called before each
    /// request. Volumes with lists of their own, which take precedence, permit everything here and check in each
    /// operation.
    fn permits(&self, request: Request<'_, Self::Directory>, path: &str, rights: &[Right]) -> bool;

    /// Opens a directory.
    async fn open_directory(
        &self,
        request: Request<'_, Self::Directory>,
        path: &str,
    ) -> Result<Self::Directory, Self::Error>;
    /// Opens a file for `opener`, which has the other end of its channel.
    async fn open_file(
        &self,
        request: Request<'_, Self::Directory>,
        path: &str,
        opener: &dyn Client,
    ) -> Result<Opened<Self::File>, Self::Error>;
    /// Creates a file with these permission bits and opens it, likewise. It fails if the name exists.
    async fn create_file(
        &self,
        request: Request<'_, Self::Directory>,
        path: &str,
        permissions: u32,
        opener: &dyn Client,
    ) -> Result<Opened<Self::File>, Self::Error>;

    /// Adds the names in a directory to the page, from `cursor` on: 0, or the cursor that an earlier call returned.
    async fn enumerate(
        &self,
        request: Request<'_, Self::Directory>,
        path: &str,
        cursor: u64,
        page: &mut Page<'_>,
    ) -> Result<Listed, Self::Error>;
    /// Returns the kind and attributes of a node.
    async fn attributes(
        &self,
        request: Request<'_, Self::Directory>,
        path: &str,
    ) -> Result<(NodeKind, NodeAttributes), Self::Error>;
    /// Returns the target of a symbolic link, as text.
    async fn link_target(&self, request: Request<'_, Self::Directory>, path: &str) -> Result<String, Self::Error>;
    /// Returns the access control list that governs a node, and its source, in the form of the message `Acl`.
    async fn acl(&self, request: Request<'_, Self::Directory>, path: &str) -> Result<(String, String), Self::Error>;

    /// Creates a directory in one that exists.
    async fn create_directory(&self, request: Request<'_, Self::Directory>, path: &str) -> Result<(), Self::Error>;
    /// Creates a symbolic link.
    async fn create_link(
        &self,
        request: Request<'_, Self::Directory>,
        path: &str,
        target: &str,
    ) -> Result<(), Self::Error>;
    /// Creates a hard link to a file.
    async fn create_hard_link(
        &self,
        request: Request<'_, Self::Directory>,
        existing: &str,
        path: &str,
    ) -> Result<(), Self::Error>;
    /// Renames a node, atomically.
    async fn rename(&self, request: Request<'_, Self::Directory>, from: &str, to: &str) -> Result<(), Self::Error>;
    /// Removes a name of anything but a directory.
    async fn remove_file(&self, request: Request<'_, Self::Directory>, path: &str) -> Result<(), Self::Error>;
    /// Removes an empty directory.
    async fn remove_directory(&self, request: Request<'_, Self::Directory>, path: &str) -> Result<(), Self::Error>;
    /// Changes attributes of a node.
    async fn set_attributes(
        &self,
        request: Request<'_, Self::Directory>,
        path: &str,
        changes: AttributeChanges,
    ) -> Result<(), Self::Error>;
    /// Sets a node's own access control list, or removes it if the text is empty.
    async fn set_acl(&self, request: Request<'_, Self::Directory>, path: &str, acl: &[u8]) -> Result<(), Self::Error>;
    /// Announces changes at and below a path from now on, until the client closes `events`.
    async fn notify(
        self: &Rc<Self>,
        directory: &Rc<Self::Directory>,
        path: &str,
        events: namespace_events::Exp<namespace_events::states::Ready>,
    ) -> Result<(), Self::Error>;
    /// Makes all previous changes durable.
    async fn sync(&self) -> Result<(), Self::Error>;

    /// Returns the locks of the volume's files.
    fn locks(&self) -> &Locks;
    /// Returns the number of an open file: the same as long as it is open, and no other open file's.
    fn file_number(&self, file: &Self::File) -> u64;

    /// Returns the attributes of an open file.
    async fn file_attributes(&self, file: &Self::File) -> Result<NodeAttributes, Self::Error>;
    /// Reads at an offset. Returns the number of bytes, less than the buffer's length only at the end of the file.
    async fn read(&self, file: &mut Self::File, offset: u64, buffer: &mut [u8]) -> Result<usize, Self::Error>;
    /// Writes all of the data at an offset.
    async fn write(&self, file: &mut Self::File, offset: u64, data: &[u8]) -> Result<(), Partial<Self::Error>>;
    /// Appends all of the data to the file, and returns its offset.
    async fn append(&self, file: &mut Self::File, data: &[u8]) -> Result<u64, Partial<Self::Error>>;
    /// Truncates the file, or extends it with zeros.
    async fn set_size(&self, file: &mut Self::File, size_bytes: u64) -> Result<(), Self::Error>;
    /// Closes the file.
    async fn close(&self, file: Self::File);
}
