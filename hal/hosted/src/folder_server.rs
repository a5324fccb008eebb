//! Server of 9P2000.L requests on a host folder.
//!
//! Key type: [`Server`], which holds the client's fids. Any number of threads may use it at once; a
//! request keeps a reference to its fid until it is done, even if the fid is clunked meanwhile. Every well-formed
//! request gets a reply of the protocol. Neighbours: `folder_node` (the host's files), `nine-p` (the messages), `folder`
//! (the device). Deliberately not here: authentication; access to the device is access to the folder.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nine_p::{Attributes, Changes, Entry, MAX_NAMES, Qid, Reply, Request, Text, open_flags};
use rustix::fs::{
    self, FileType, Gid, OFlags, RawDir, SeekFrom, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
};
use rustix::io::Errno;

use crate::folder_node::{Answer, LinkPolicy, Node, permissions};
use crate::transfer::Blocking;

/// Maximum message size in bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// Maximum fids at once: each holds one or two open files of the host.
const MAX_FIDS: usize = 4096;
/// Maximum size of a message with a link's target, which has at most 4095 bytes.
const TARGET_MESSAGE_BYTES: usize = 8192;
/// Maximum size of a message without content or texts: that of a walk of 16 names has 217 bytes.
const SMALL_MESSAGE_BYTES: usize = 256;
/// Size of the buffer for getdents64.
const LISTING_BYTES: usize = 32 << 10;

/// Access to a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderAccess {
    /// Writable as far as the host allows this user.
    Write,
    /// Read-only.
    ReadOnly,
}

/// A fid.
#[derive(Debug)]
struct Fid {
    node: Node,
    open: Option<Open>,
}

/// An open node.
#[derive(Debug)]
struct Open {
    file: OwnedFd,
    /// Held while entries are read, which moves the file offset.
    listing: Mutex<()>,
}

impl Open {
    fn new(file: OwnedFd) -> Self {
        Self { file, listing: Mutex::new(()) }
    }
}

/// A folder, and its client's state.
#[derive(Debug)]
pub(crate) struct Server {
    root: Node,
    /// Whether more than reads may be answered at once.
    is_local: bool,
    access: FolderAccess,
    links: LinkPolicy,
    fids: Mutex<HashMap<u32, Arc<Fid>>>,
}

/// Result of a request.
#[derive(Debug)]
pub(crate) enum Answered {
    /// A complete message.
    Message(Vec<u8>),
    /// Content of a file, to be read in place behind the message's header.
    Content(Content),
}

/// A part of a file that a request reads.
#[derive(Debug)]
pub(crate) struct Content {
    /// The request's tag.
    pub(crate) tag: u16,
    /// The file.
    pub(crate) file: FileOfFid,
    /// Offset in the file.
    pub(crate) offset: u64,
    /// Maximum bytes.
    pub(crate) count: usize,
}

/// The open file of a fid, kept open while it is read.
#[derive(Debug)]
pub(crate) struct FileOfFid(Arc<Fid>);

impl FileOfFid {
    /// Returns the file.
    pub(crate) fn file(&self) -> Option<&OwnedFd> {
        self.0.open.as_ref().map(|open| &open.file)
    }
}

impl Server {
    /// Serves an open folder.
    pub(crate) fn new(folder: OwnedFd, access: FolderAccess, links: LinkPolicy) -> Answer<Self> {
        let root = Node::root(folder)?;
        Ok(Self { is_local: root.is_local(), root, access, links, fids: Mutex::default() })
    }

    /// The fid, if requests about it may be answered at once: it is in the folder's own file system, which is local.
    /// Others may be mounted below.
    fn local(&self, fid: u32) -> Option<Arc<Fid>> {
        self.fid(fid).ok().filter(|fid| self.is_local && fid.node.is_beside(&self.root))
    }

    /// Whether more than reads may be answered at once.
    #[cfg(test)]
    pub(crate) fn is_local(&self) -> bool {
        self.is_local
    }

    /// Drops all fids.
    pub(crate) fn reset(&self) {
        let fids = std::mem::take(&mut *self.lock());
        drop(fids);
    }

    /// Answers a request, in at most `room` bytes; `None` if it is malformed.
    pub(crate) fn answer(&self, request: &[u8], room: usize) -> Option<Answered> {
        let (tag, request) = Request::decode(request)?;
        let room = room.min(MAX_MESSAGE_BYTES);
        match self.result(tag, request, room, Blocking::Wait) {
            Ok(answered) => answered,
            Err(error) => failed(tag, error, room),
        }
    }

    /// Like [`Server::answer`], of requests that are answered without blocking: reads, whose content may have to be waited
    /// for, and on a local file system what the host has in its caches. `None` of all others.
    pub(crate) fn answer_at_once(&self, request: &[u8], room: usize) -> Option<Answered> {
        let (tag, request) = Request::decode(request)?;
        let room = room.min(MAX_MESSAGE_BYTES);
        let is_quick = match request {
            Request::Read { .. } => true,
            Request::Walk { fid, .. } | Request::GetAttributes { fid, .. } => self.local(fid).is_some(),
            Request::Open { fid, flags } => flags & open_flags::ACCESS == open_flags::READ && self.local(fid).is_some(),
            // Of an unlinked file, the host may free all the space.
            Request::Forget { fid } => self.local(fid).is_some_and(|fid| !fid.node.is_unlinked()),
            _ => false,
        };
        if !is_quick {
            return None;
        }
        match self.result(tag, request, room, Blocking::Never) {
            Ok(answered) => answered,
            Err(error) if is_for_thread(error) => None,
            Err(error) => failed(tag, error, room),
        }
    }

    /// The answer to a request, `None` if there is no room for any.
    fn result(&self, tag: u16, request: Request<'_>, room: usize, blocking: Blocking) -> Answer<Option<Answered>> {
        if let Request::Read { fid, offset, count } = request {
            let content = room.saturating_sub(nine_p::DATA_HEADER_BYTES);
            let count = usize::try_from(count).map_or(content, |count| count.min(content));
            let file = opened_file(self.fid(fid)?)?;
            return Ok(Some(Answered::Content(Content { tag, file, offset, count })));
        }
        let mut target = Vec::new();
        let mut names = Vec::new();
        let reply = self.perform(request, room, blocking, &mut target, &mut names)?;
        Ok(message(tag, &reply, room).or_else(|| failed(tag, Errno::MSGSIZE, room)))
    }

    /// Executes a request. `target` and `names` hold the texts of the reply.
    fn perform<'a>(
        &self,
        request: Request<'_>,
        room: usize,
        blocking: Blocking,
        target: &'a mut Vec<u8>,
        names: &'a mut Vec<u8>,
    ) -> Answer<Reply<'a>> {
        Ok(match request {
            Request::Version { max_bytes, version } => {
                self.reset();
                let version = if version.0 == nine_p::VERSION { nine_p::VERSION } else { b"unknown" };
                Reply::Version { max_bytes: max_bytes.min(MAX_MESSAGE_BYTES as u32), version: Text(version) }
            }
            Request::Attach { fid, .. } => {
                self.insert(fid, self.root.clone())?;
                Reply::Attached { qid: qid(&self.root) }
            }
            Request::Walk { fid, new_fid, names } => Reply::Walked { qids: self.walk(fid, new_fid, &names, blocking)? },
            Request::Open { fid, flags } => Reply::Opened { qid: self.open(fid, flags)?, unit: 0 },
            Request::ReadEntries { fid, offset, count } => {
                let room = room.saturating_sub(nine_p::DATA_HEADER_BYTES);
                let room = usize::try_from(count).map_or(room, |count| count.min(room));
                *names = self.read_entries(&*self.fid(fid)?, offset, room)?;
                Reply::EntriesRead { data: nine_p::Data(names) }
            }
            Request::GetAttributes { fid, .. } => {
                let fid = self.fid(fid)?;
                let stat = match &fid.open {
                    Some(open) => fs::fstat(&open.file)?,
                    None => fid.node.stat()?,
                };
                Reply::Attributes { attributes: attributes(qid(&fid.node), &stat) }
            }
            Request::ReadLink { fid } => {
                *target = self.fid(fid)?.node.target()?;
                Reply::Target { target: Text(target) }
            }
            Request::Forget { fid } => {
                let gone = self.lock().remove(&fid);
                gone.map(drop).ok_or(Errno::BADF)?;
                Reply::Forgotten {}
            }
            Request::Sync { fid, data_only } => {
                sync(&*self.fid(fid)?, data_only != 0)?;
                Reply::Synced {}
            }
            Request::Read { .. } => return Err(Errno::INVAL),
            change => self.change(change)?,
        })
    }

    /// Executes a request that changes the folder.
    fn change(&self, request: Request<'_>) -> Answer<Reply<'static>> {
        if self.access == FolderAccess::ReadOnly {
            return Err(Errno::ROFS);
        }
        Ok(match request {
            Request::Create { fid, name, flags, mode, .. } => {
                let folder = self.folder(fid)?;
                let (node, file) = folder.node.create(name.0, access_of(flags)?, mode)?;
                let qid = qid(&node);
                self.replace(fid, &folder, Fid { node, open: Some(Open::new(file)) })?;
                Reply::Created { qid, unit: 0 }
            }
            Request::Write { fid, offset, data } => {
                let fid = self.fid(fid)?;
                let open = fid.open.as_ref().ok_or(Errno::BADF)?;
                Reply::Written { count: rustix::io::pwrite(&open.file, data.0, offset)? as u32 }
            }
            Request::SetAttributes { fid, changes } => {
                set_attributes(&*self.changeable(fid)?, &changes)?;
                Reply::AttributesSet {}
            }
            Request::MakeDirectory { fid, name, mode, .. } => {
                Reply::DirectoryMade { qid: qid(&self.folder(fid)?.node.make_folder(name.0, mode)?) }
            }
            Request::MakeLink { fid, name, target, .. } => {
                Reply::LinkMade { qid: qid(&self.folder(fid)?.node.make_link(name.0, target.0)?) }
            }
            Request::HardLink { directory, fid, name } => {
                self.folder(directory)?.node.hard_link(&self.changeable(fid)?.node, name.0)?;
                Reply::Linked {}
            }
            Request::Rename { from, old_name, to, new_name } => {
                self.folder(from)?.node.rename(old_name.0, &self.folder(to)?.node, new_name.0)?;
                Reply::Renamed {}
            }
            Request::Unlink { fid, name, flags } => {
                let folder = self.folder(fid)?;
                match flags & nine_p::UNLINK_DIRECTORY {
                    0 => folder.node.remove_file(name.0)?,
                    _ => folder.node.remove_folder(name.0)?,
                }
                Reply::Unlinked {}
            }
            _ => return Err(Errno::INVAL),
        })
    }

    /// Walks as far as possible. Creates the new fid only after a complete walk; fails if the first name is not found.
    fn walk(&self, fid: u32, new_fid: u32, names: &[Text<'_>], blocking: Blocking) -> Answer<Vec<Qid>> {
        let mut node = self.fid(fid)?.node.clone();
        let mut qids = Vec::with_capacity(names.len().min(MAX_NAMES));
        for name in names {
            match node.walk(name.0, self.links, blocking) {
                Ok(found) => node = found,
                Err(error) if qids.is_empty() => return Err(error),
                Err(error) if blocking == Blocking::Never && is_for_thread(error) => return Err(error),
                Err(_) => return Ok(qids),
            }
            qids.push(qid(&node));
        }
        self.insert(new_fid, node)?;
        Ok(qids)
    }

    fn open(&self, number: u32, flags: u32) -> Answer<Qid> {
        let fid = self.fid(number)?;
        let access = access_of(flags)?;
        if access & OFlags::ACCMODE != OFlags::RDONLY {
            match (self.access, fid.node.kind()) {
                (FolderAccess::ReadOnly, _) => return Err(Errno::ROFS),
                (_, FileType::Directory) => return Err(Errno::ISDIR),
                _ if fid.node.is_beyond_link() => return Err(Errno::ROFS),
                _ => {}
            }
        }
        let file = fid.node.open(access)?;
        self.replace(number, &fid, Fid { node: fid.node.clone(), open: Some(Open::new(file)) })?;
        Ok(qid(&fid.node))
    }

    /// Returns the entries from an offset on, as many as fit.
    fn read_entries(&self, fid: &Fid, offset: u64, room: usize) -> Answer<Vec<u8>> {
        let open = fid.open.as_ref().filter(|_| fid.node.kind() == FileType::Directory).ok_or(Errno::BADF)?;
        let _listing = open.listing.lock().unwrap_or_else(PoisonError::into_inner);
        fs::seek(&open.file, SeekFrom::Start(offset))?;
        let mut buffer = [MaybeUninit::uninit(); LISTING_BYTES];
        let mut listing = RawDir::new(&open.file, &mut buffer);
        let (mut out, mut used) = (vec![0; room], 0);
        while let Some(entry) = listing.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            let kind = match entry.file_type() {
                // Shown as its target.
                FileType::Symlink if self.links == LinkPolicy::Follow => {
                    fid.node.walk(name, self.links, Blocking::Wait).map_or(FileType::Symlink, |node| node.kind())
                }
                kind => kind,
            };
            let told = Entry {
                qid: Qid { kind: qid_kind(kind), version: 0, path: entry.ino() },
                offset: entry.next_entry_cookie(),
                kind: entry_kind(kind),
                name,
            };
            match told.encode(&mut out[used..]) {
                Some(bytes) => used += bytes,
                // An empty reply would mean the end of the folder.
                None if used == 0 => return Err(Errno::INVAL),
                None => break,
            }
        }
        out.truncate(used);
        Ok(out)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Arc<Fid>>> {
        self.fids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fid(&self, number: u32) -> Answer<Arc<Fid>> {
        self.lock().get(&number).cloned().ok_or(Errno::BADF)
    }

    /// Returns a fid whose node may be changed.
    fn changeable(&self, number: u32) -> Answer<Arc<Fid>> {
        let fid = self.fid(number)?;
        if fid.node.is_beyond_link() { Err(Errno::ROFS) } else { Ok(fid) }
    }

    /// Returns a fid of a folder whose entries may be changed.
    fn folder(&self, number: u32) -> Answer<Arc<Fid>> {
        let fid = self.changeable(number)?;
        if fid.node.kind() == FileType::Directory { Ok(fid) } else { Err(Errno::NOTDIR) }
    }

    fn insert(&self, number: u32, node: Node) -> Answer<()> {
        let mut fids = self.lock();
        match fids.len() {
            _ if fids.contains_key(&number) => Err(Errno::BADF),
            count if count >= MAX_FIDS => Err(Errno::NFILE),
            _ => {
                fids.insert(number, Arc::new(Fid { node, open: None }));
                Ok(())
            }
        }
    }

    /// Replaces a fid, if it is still the given one and not open.
    fn replace(&self, number: u32, before: &Arc<Fid>, after: Fid) -> Answer<()> {
        let mut fids = self.lock();
        match fids.get_mut(&number) {
            Some(fid) if Arc::ptr_eq(fid, before) && fid.open.is_none() => {
                *fid = Arc::new(after);
                Ok(())
            }
            _ => Err(Errno::BADF),
        }
    }
}

/// Whether a lookup that must not block has to be made again by a thread: it would have blocked, or left the file system,
/// or an old host knows no such lookup.
fn is_for_thread(error: Errno) -> bool {
    matches!(error, Errno::AGAIN | Errno::XDEV | Errno::INVAL)
}

fn opened_file(fid: Arc<Fid>) -> Answer<FileOfFid> {
    match (&fid.open, fid.node.kind()) {
        (_, FileType::Directory) => Err(Errno::ISDIR),
        (None, _) => Err(Errno::BADF),
        (Some(_), _) => Ok(FileOfFid(fid)),
    }
}

/// Maps access mode and append flag to the host's; other flags are ignored.
fn access_of(flags: u32) -> Answer<OFlags> {
    let access = match flags & open_flags::ACCESS {
        open_flags::READ => OFlags::RDONLY,
        open_flags::WRITE => OFlags::WRONLY,
        open_flags::READ_WRITE => OFlags::RDWR,
        _ => return Err(Errno::INVAL),
    };
    Ok(if flags & open_flags::APPEND != 0 { access | OFlags::APPEND } else { access })
}

/// Flushes an open file; for a folder, its whole file system.
fn sync(fid: &Fid, data_only: bool) -> Answer<()> {
    let open = fid.open.as_ref().ok_or(Errno::BADF)?;
    match (fid.node.kind(), data_only) {
        (FileType::Directory, _) => fs::syncfs(&open.file),
        (_, true) => fs::fdatasync(&open.file),
        (_, false) => fs::fsync(&open.file),
    }
}

fn set_attributes(fid: &Fid, changes: &Changes) -> Answer<()> {
    let has = |bit| changes.valid & bit != 0;
    if has(Changes::SIZE) {
        match &fid.open {
            Some(open) => fs::ftruncate(&open.file, changes.size)?,
            None => fs::ftruncate(fid.node.open(OFlags::WRONLY)?, changes.size)?,
        }
    }
    if changes.valid & !Changes::SIZE == 0 {
        return Ok(());
    }
    fid.node.with_open(|file| {
        if has(Changes::OWNER | Changes::GROUP) {
            let owner = has(Changes::OWNER).then(|| Uid::from_raw(changes.owner));
            fs::fchown(file, owner, has(Changes::GROUP).then(|| Gid::from_raw(changes.group)))?;
        }
        if has(Changes::MODE) {
            fs::fchmod(file, permissions(changes.mode)?)?;
        }
        if has(Changes::ACCESSED | Changes::MODIFIED) {
            let last_access = time(has(Changes::ACCESSED), has(Changes::ACCESSED_SET), changes.accessed_s);
            let last_modification = time(has(Changes::MODIFIED), has(Changes::MODIFIED_SET), changes.modified_s);
            fs::futimens(file, &Timestamps { last_access, last_modification })?;
        }
        Ok(())
    })
}

fn time(is_asked_for: bool, is_given: bool, seconds: u64) -> Timespec {
    match (is_asked_for, is_given) {
        (false, _) => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        (true, false) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        (true, true) => Timespec { tv_sec: seconds.cast_signed(), tv_nsec: 0 },
    }
}

fn qid(node: &Node) -> Qid {
    Qid { kind: qid_kind(node.kind()), version: 0, path: node.number() }
}

fn qid_kind(kind: FileType) -> u8 {
    match kind {
        FileType::Directory => Qid::DIRECTORY,
        FileType::Symlink => Qid::LINK,
        _ => 0,
    }
}

/// Returns the `d_type` of readdir(3): the top bits of a mode.
fn entry_kind(kind: FileType) -> u8 {
    match kind {
        FileType::Unknown => Entry::UNKNOWN,
        known => (known.as_raw_mode() >> 12) as u8,
    }
}

fn attributes(qid: Qid, stat: &Stat) -> Attributes {
    Attributes {
        valid: Attributes::BASIC,
        qid,
        mode: stat.st_mode,
        owner: stat.st_uid,
        group: stat.st_gid,
        links: stat.st_nlink,
        device: stat.st_rdev,
        size: stat.st_size.cast_unsigned(),
        block_size: stat.st_blksize.cast_unsigned(),
        blocks: stat.st_blocks.cast_unsigned(),
        accessed_s: stat.st_atime.cast_unsigned(),
        accessed_ns: stat.st_atime_nsec,
        modified_s: stat.st_mtime.cast_unsigned(),
        modified_ns: stat.st_mtime_nsec,
        changed_s: stat.st_ctime.cast_unsigned(),
        changed_ns: stat.st_ctime_nsec,
        ..Attributes::default()
    }
}

fn message(tag: u16, reply: &Reply<'_>, room: usize) -> Option<Answered> {
    let wanted = match reply {
        Reply::EntriesRead { data } => nine_p::DATA_HEADER_BYTES + data.0.len(),
        Reply::Target { .. } => TARGET_MESSAGE_BYTES,
        _ => SMALL_MESSAGE_BYTES,
    };
    let mut out = vec![0; wanted.min(room)];
    let bytes = reply.encode(tag, &mut out)?;
    out.truncate(bytes);
    Some(Answered::Message(out))
}

/// Returns the error message of a failed request, if there is room for it.
pub(crate) fn failed(tag: u16, error: Errno, room: usize) -> Option<Answered> {
    message(tag, &Reply::Failed { error: error.raw_os_error().unsigned_abs() }, room)
}

#[cfg(test)]
mod tests;
