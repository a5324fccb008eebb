//! Host folders as devices: a write submits a 9P2000.L request, whose reply overwrites it in the block; a read
//! returns the folder's name.
//!
//! Key types: [`FolderSpecification`] (a folder to offer), [`Folder`] (an open folder), [`FolderError`]. Host calls can
//! block, so a thread pool runs the requests. Neighbours: `folder_server` (executes requests),
//! `confinement` (the host calls still allowed). Deliberately not here: mounting the folders in the system's namespace.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use hal_api::{DeviceFailure, DeviceKind, DeviceOperation, DeviceResult, Submitted};
use nine_p::HEADER_BYTES;
use rustix::io::Errno;

use crate::folder_node::LinkPolicy;
use crate::folder_server::{self, Answered, FileOfFid, FolderAccess, MAX_MESSAGE_BYTES, Server};
use crate::transfer::{self, Blocking, Memory};
use crate::{entries, pool};

/// Offset of the content in ReadDone.
const CONTENT_AT: usize = HEADER_BYTES + size_of::<u32>();
const READ_DONE: u8 = 117;

/// A folder to offer.
#[derive(Clone, Debug)]
pub struct FolderSpecification {
    /// Its name inside the system.
    pub name: String,
    /// Its path on the host.
    pub path: PathBuf,
    /// Whether it is writable.
    pub access: FolderAccess,
    /// Handling of symbolic links.
    pub links: LinkPolicy,
}

/// Reason why a folder cannot be offered.
#[derive(Debug)]
pub struct FolderError {
    path: PathBuf,
    reason: io::Error,
}

impl fmt::Display for FolderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.reason.kind() {
            io::ErrorKind::NotFound => write!(formatter, "folder {path}: there is no such folder; check the path"),
            io::ErrorKind::NotADirectory => write!(formatter, "folder {path}: this is no folder; give the path of one"),
            io::ErrorKind::PermissionDenied => {
                write!(formatter, "folder {path}: permission denied; make it readable for this user")
            }
            _ => write!(formatter, "folder {path}: it cannot be opened ({}); check the path", self.reason),
        }
    }
}

impl std::error::Error for FolderError {}

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    name: String,
    access: FolderAccess,
    links: LinkPolicy,
    /// For the rules of Landlock.
    handle: OwnedFd,
    server: Arc<Server>,
}

impl Folder {
    /// Opens the folder once: later changes of its path have no effect.
    pub(crate) fn open(specification: &FolderSpecification) -> Result<Self, FolderError> {
        let fail = |reason| FolderError { path: specification.path.clone(), reason };
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let handle = File::options().read(true).custom_flags(flags).open(&specification.path).map_err(fail)?;
        let (access, links) = (specification.access, specification.links);
        let served = handle.try_clone().map_err(fail)?.into();
        let server = Server::new(served, access, links).map_err(|error| fail(error.into()))?;
        Ok(Self { name: specification.name.clone(), access, links, handle: handle.into(), server: Arc::new(server) })
    }

    /// Returns its kind and properties for the kernel.
    pub(crate) fn kind(&self) -> DeviceKind {
        DeviceKind::Folder { read_only: self.access == FolderAccess::ReadOnly }
    }

    /// Returns the host access needed to serve it.
    pub(crate) fn needs(&self) -> FolderNeeds<'_> {
        FolderNeeds { folder: self.handle.as_fd(), access: self.access, links: self.links }
    }

    /// Starts a request.
    pub(crate) fn submit(&self, token: u64, operation: DeviceOperation, memory: Memory) -> Submitted {
        match operation {
            DeviceOperation::Read => Submitted::Complete(Ok(memory.fill(self.name.as_bytes()))),
            DeviceOperation::Write => self.queue(token, memory),
            DeviceOperation::Flush => Submitted::Complete(Ok(0)),
        }
    }

    /// Drops the client's state.
    pub(crate) fn close(&self) {
        self.server.reset();
    }

    fn queue(&self, token: u64, memory: Memory) -> Submitted {
        let Some(entries) = entries::get() else { return Submitted::Complete(Err(DeviceFailure)) };
        let server = Arc::clone(&self.server);
        let queued = pool::FOLDERS.submit(Box::new(move || {
            let result = perform(&server, memory);
            (entries.device_complete)(token, result.unwrap_or(0) as u64, result.is_err());
        }));
        if queued { Submitted::Queued } else { Submitted::Complete(Err(DeviceFailure)) }
    }
}

/// Host access that a folder needs after confinement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FolderNeeds<'a> {
    pub(crate) folder: BorrowedFd<'a>,
    pub(crate) access: FolderAccess,
    pub(crate) links: LinkPolicy,
}

/// Executes the request in the memory, overwrites it with the reply, and returns the reply's length in bytes.
fn perform(server: &Server, memory: Memory) -> DeviceResult {
    let mut start = [0; HEADER_BYTES];
    if memory.copy_out(0, &mut start) < start.len() {
        return Err(DeviceFailure);
    }
    let bytes = nine_p::message_bytes(&start).filter(|&bytes| bytes <= memory.bytes().min(MAX_MESSAGE_BYTES));
    let mut request = vec![0; bytes.ok_or(DeviceFailure)?];
    memory.copy_out(0, &mut request);
    match server.answer(&request, memory.bytes()).ok_or(DeviceFailure)? {
        Answered::Message(message) => Ok(memory.fill(&message)),
        Answered::Content { tag, file, offset, count } => read(tag, &file, offset, count, memory),
    }
}

/// Reads content directly into the memory.
fn read(tag: u16, file: &FileOfFid, offset: u64, count: usize, memory: Memory) -> DeviceResult {
    let content = memory.after(CONTENT_AT).first(count);
    let read = match file.file() {
        Some(file) => read_whole(file, offset, content),
        None => Err(Errno::BADF),
    };
    match read {
        Ok(bytes) => {
            let mut head = Vec::with_capacity(CONTENT_AT);
            // Fits: it is no more than an exchange-heap block holds.
            head.extend(((CONTENT_AT + bytes) as u32).to_le_bytes());
            head.push(READ_DONE);
            head.extend(tag.to_le_bytes());
            head.extend((bytes as u32).to_le_bytes());
            Ok(memory.fill(&head) + bytes)
        }
        Err(error) => match folder_server::failed(tag, error, memory.bytes()) {
            Some(Answered::Message(message)) => Ok(memory.fill(&message)),
            _ => Err(DeviceFailure),
        },
    }
}

/// Reads until the buffer is full or the file ends.
fn read_whole(file: &OwnedFd, offset: u64, content: Memory) -> Result<usize, Errno> {
    let mut done = 0;
    while done < content.bytes() {
        let at = offset.saturating_add(done as u64);
        match transfer::read_at(file.as_raw_fd(), at, content.after(done), Blocking::Wait) {
            Ok(0) => break,
            Ok(bytes) => done += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL)),
        }
    }
    Ok(done)
}
