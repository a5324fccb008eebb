//! Files and folders below a folder of the host, reached one name after the other and never past the folder.
//!
//! Key type: [`Node`], an open handle (`O_PATH`) that neither reads nor writes. A name is looked up by `openat2` in the
//! folder that has it, so that no part of a path leads anywhere else, whatever the host changes meanwhile; symbolic links
//! are nodes, which nobody walks through. To read and write, the node of the handle is opened once more (by
//! `/proc/self/fd`), whatever has its name by then. Neighbour: `folder_server`. Deliberately not here: the protocol, and links' targets,
//! which the client follows.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

/// The answer of a call of the host.
pub(crate) type Answer<T> = Result<T, Errno>;

/// What a look-up keeps to: below the folder that it begins in, and no link on the way.
const INSIDE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
/// What it keeps to where the user of the machine asked that links be followed.
const ANYWHERE: ResolveFlags = ResolveFlags::NO_MAGICLINKS;
/// A file is only opened: nothing waits for who writes to a pipe, and no terminal becomes the machine's.
const QUIETLY: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// Permissions that clients may give. Programs that run as their owner on the host are none of theirs to make.
const PERMISSIONS: u32 = 0o777;

/// What becomes of symbolic links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPolicy {
    /// They are links, which clients follow as long as they stay in the folder.
    StayInside,
    /// They are what they lead to, wherever that is, to be read only.
    Follow,
}

/// A file, a folder, or whatever else has a name.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    handle: Arc<OwnedFd>,
    /// The folder of this process's open files, `/proc/self/fd`.
    open_files: Arc<OwnedFd>,
    kind: FileType,
    device: u64,
    number: u64,
    /// A link was followed on the way.
    beyond_link: bool,
}

impl Node {
    /// The folder itself.
    pub(crate) fn root(handle: OwnedFd) -> Answer<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open_files = fs::open("/proc/self/fd", flags, Mode::empty())?;
        Self::new(handle, Arc::new(open_files), false)
    }

    fn new(handle: OwnedFd, open_files: Arc<OwnedFd>, beyond_link: bool) -> Answer<Self> {
        let stat = fs::fstat(&handle)?;
        Ok(Self {
            handle: Arc::new(handle),
            open_files,
            kind: FileType::from_raw_mode(stat.st_mode),
            device: stat.st_dev,
            number: stat.st_ino,
            beyond_link,
        })
    }

    /// What it is.
    pub(crate) fn kind(&self) -> FileType {
        self.kind
    }

    /// Its number in its file system.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whether it was reached through a link that may lead out of the folder, so that it may only be read.
    pub(crate) fn is_beyond_link(&self) -> bool {
        self.beyond_link
    }

    /// What the host knows of it.
    pub(crate) fn stat(&self) -> Answer<Stat> {
        fs::fstat(&self.handle)
    }

    /// What has a name in this folder.
    pub(crate) fn walk(&self, name: &[u8], links: LinkPolicy) -> Answer<Self> {
        let name = checked(name)?;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let handle = fs::openat2(&self.handle, &name, flags | OFlags::NOFOLLOW, Mode::empty(), INSIDE)?;
        let found = Self::new(handle, Arc::clone(&self.open_files), self.beyond_link)?;
        if found.kind != FileType::Symlink || links == LinkPolicy::StayInside {
            return Ok(found);
        }
        match fs::openat2(&self.handle, &name, flags, Mode::empty(), ANYWHERE) {
            Ok(handle) => Self::new(handle, Arc::clone(&self.open_files), true),
            // It leads nowhere, so it is no more than a link.
            Err(_) => Ok(found),
        }
    }

    /// Opens a file as the flags say, or a folder to be read.
    pub(crate) fn open(&self, flags: OFlags) -> Answer<OwnedFd> {
        match self.kind {
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                fs::openat2(&self.handle, c".", flags, Mode::empty(), INSIDE)
            }
            FileType::RegularFile => fs::openat2(
                &self.open_files,
                self.as_open_file(),
                flags | QUIETLY,
                Mode::empty(),
                ResolveFlags::empty(),
            ),
            // Opening a device does something, and opening a pipe waits.
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    /// The handle's name among the open files of this process, by which the host finds the node itself.
    fn as_open_file(&self) -> String {
        self.handle.as_raw_fd().to_string()
    }

    /// Where a link leads.
    pub(crate) fn target(&self) -> Answer<Vec<u8>> {
        match self.kind {
            FileType::Symlink => Ok(fs::readlinkat(&self.handle, c"", Vec::new())?.into_bytes()),
            _ => Err(Errno::INVAL),
        }
    }

    /// Makes a file that was not there, open as the flags say.
    pub(crate) fn create(&self, name: &[u8], flags: OFlags, permissions: u32) -> Answer<(Self, OwnedFd)> {
        let made = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | QUIETLY;
        let mode = Mode::from_raw_mode(permissions & PERMISSIONS);
        let file = fs::openat2(&self.handle, checked(name)?, flags | made, mode, INSIDE)?;
        // Whatever the host's user usually lets others do: the client said what is wanted.
        fs::fchmod(&file, mode)?;
        let node = self.walk(name, LinkPolicy::StayInside)?;
        let stat = fs::fstat(&file)?;
        if (stat.st_dev, stat.st_ino) == (node.device, node.number) { Ok((node, file)) } else { Err(Errno::STALE) }
    }

    /// Makes a folder.
    pub(crate) fn make_folder(&self, name: &[u8], permissions: u32) -> Answer<Self> {
        fs::mkdirat(&self.handle, checked(name)?, Mode::from_raw_mode(permissions & PERMISSIONS))?;
        self.walk(name, LinkPolicy::StayInside)
    }

    /// Makes a link.
    pub(crate) fn make_link(&self, name: &[u8], target: &[u8]) -> Answer<Self> {
        let target = CString::new(target).map_err(|_| Errno::INVAL)?;
        fs::symlinkat(target, &self.handle, checked(name)?)?;
        self.walk(name, LinkPolicy::StayInside)
    }

    /// Gives a node one more name in this folder.
    pub(crate) fn hard_link(&self, node: &Self, name: &[u8]) -> Answer<()> {
        let name = checked(name)?;
        fs::linkat(&self.open_files, node.as_open_file(), &self.handle, name, AtFlags::SYMLINK_FOLLOW)
    }

    /// Gives what is in this folder another name, there or in another folder.
    pub(crate) fn rename(&self, old_name: &[u8], to: &Self, new_name: &[u8]) -> Answer<()> {
        fs::renameat(&self.handle, checked(old_name)?, &to.handle, checked(new_name)?)
    }

    /// Takes a name out, of a file or link.
    pub(crate) fn remove_file(&self, name: &[u8]) -> Answer<()> {
        fs::unlinkat(&self.handle, checked(name)?, AtFlags::empty())
    }

    /// Takes an empty folder out.
    pub(crate) fn remove_folder(&self, name: &[u8]) -> Answer<()> {
        fs::unlinkat(&self.handle, checked(name)?, AtFlags::REMOVEDIR)
    }

    /// Has something done with the open node, for which it need not be readable.
    pub(crate) fn with_open<T>(&self, action: impl FnOnce(BorrowedFd<'_>) -> Answer<T>) -> Answer<T> {
        let file = match self.open(OFlags::RDONLY) {
            Err(Errno::ACCESS) if self.kind == FileType::RegularFile => self.open(OFlags::WRONLY)?,
            other => other?,
        };
        action(file.as_fd())
    }
}

/// The permissions that a client may give.
pub(crate) fn permissions(mode: u32) -> Answer<Mode> {
    if mode & 0o7777 & !PERMISSIONS == 0 { Ok(Mode::from_raw_mode(mode & PERMISSIONS)) } else { Err(Errno::PERM) }
}

/// A name of one node in a folder.
fn checked(name: &[u8]) -> Answer<CString> {
    if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') {
        return Err(Errno::INVAL);
    }
    CString::new(name).map_err(|_| Errno::INVAL)
}
