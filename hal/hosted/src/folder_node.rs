//! Files and folders below a host folder, looked up one name at a time and never outside the folder.
//!
//! Key type: [`Node`], an open handle (`O_PATH`) that cannot read or write. Names are looked up with `openat2` in their
//! parent folder, so that no path component leads elsewhere, whatever the host changes meanwhile; symbolic links
//! are nodes that cannot be walked through. To read and write, the handle's own node is reopened (through
//! `/proc/self/fd`), not the current holder of its name. Neighbour: `folder_server`. Deliberately not here: the protocol,
//! and following links, which the client does.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::transfer::Blocking;

/// Result of a host call.
pub(crate) type Answer<T> = Result<T, Errno>;

/// Lookup restrictions: stay below the starting folder, follow no links.
const INSIDE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
/// Lookup restrictions where the machine's user asked for links to be followed.
const ANYWHERE: ResolveFlags = ResolveFlags::NO_MAGICLINKS;
/// Open flags: opening a FIFO does not block, and no terminal becomes the controlling terminal.
const QUIETLY: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// Permission bits that clients may set: no set-user-ID, set-group-ID or sticky bit.
const PERMISSIONS: u32 = 0o777;

/// File systems as in [`Node::is_local`], by their numbers in Linux (`magic.h`): ext2 to ext4, XFS, Btrfs, F2FS, tmpfs,
/// overlayfs.
const LOCAL: [u32; 6] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994, 0x794c_7630];

/// Handling of symbolic links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPolicy {
    /// Links are shown as links, which clients follow inside the folder.
    StayInside,
    /// Links are resolved by the host, wherever they lead; the targets are read-only.
    Follow,
}

/// A file, a folder, or another kind of directory entry.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    handle: Arc<OwnedFd>,
    /// The folder of this process's open files, `/proc/self/fd`.
    open_files: Arc<OwnedFd>,
    kind: FileType,
    device: u64,
    number: u64,
    /// Whether a link was followed on the way.
    beyond_link: bool,
}

impl Node {
    /// Makes the node of the shared folder itself.
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

    /// Returns its file type.
    pub(crate) fn kind(&self) -> FileType {
        self.kind
    }

    /// Returns its inode number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns whether it was reached through a link that may lead outside the folder: then it is read-only.
    pub(crate) fn is_beyond_link(&self) -> bool {
        self.beyond_link
    }

    /// Whether its file system is one of those on disks and in memory, where only what is not cached blocks.
    pub(crate) fn is_local(&self) -> bool {
        fs::fstatfs(&self.handle).is_ok_and(|found| LOCAL.contains(&(found.f_type as u32)))
    }

    /// Whether it is in the same file system as another.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.device == other.device
    }

    /// Whether no name leads to it any more, so that its content goes with its last handle.
    pub(crate) fn is_unlinked(&self) -> bool {
        self.stat().is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Returns its metadata.
    pub(crate) fn stat(&self) -> Answer<Stat> {
        fs::fstat(&self.handle)
    }

    /// Looks up a name in this folder. What may block is `AGAIN` if it must not, or `XDEV` in another file system.
    pub(crate) fn walk(&self, name: &[u8], links: LinkPolicy, blocking: Blocking) -> Answer<Self> {
        let name = checked(name)?;
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let inside = match blocking {
            Blocking::Wait => INSIDE,
            Blocking::Never => INSIDE.union(ResolveFlags::CACHED).union(ResolveFlags::NO_XDEV),
        };
        let handle = fs::openat2(&self.handle, &name, flags | OFlags::NOFOLLOW, Mode::empty(), inside)?;
        let found = Self::new(handle, Arc::clone(&self.open_files), self.beyond_link)?;
        if found.kind != FileType::Symlink || links == LinkPolicy::StayInside {
            return Ok(found);
        }
        if blocking == Blocking::Never {
            return Err(Errno::AGAIN);
        }
        match fs::openat2(&self.handle, &name, flags, Mode::empty(), ANYWHERE) {
            Ok(handle) => Self::new(handle, Arc::clone(&self.open_files), true),
            // Dangling: it is shown as a link.
            Err(_) => Ok(found),
        }
    }

    /// Opens a file with these flags, or a folder for reading.
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
            // Opening a device can have side effects, and opening a FIFO can block.
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    /// Returns the handle's name in `/proc/self/fd`, through which the host finds the node itself.
    fn as_open_file(&self) -> String {
        self.handle.as_raw_fd().to_string()
    }

    /// Returns the target of a link.
    pub(crate) fn target(&self) -> Answer<Vec<u8>> {
        match self.kind {
            FileType::Symlink => Ok(fs::readlinkat(&self.handle, c"", Vec::new())?.into_bytes()),
            _ => Err(Errno::INVAL),
        }
    }

    /// Creates a new file, opened with these flags.
    pub(crate) fn create(&self, name: &[u8], flags: OFlags, permissions: u32) -> Answer<(Self, OwnedFd)> {
        let made = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | QUIETLY;
        let mode = Mode::from_raw_mode(permissions & PERMISSIONS);
        let file = fs::openat2(&self.handle, checked(name)?, flags | made, mode, INSIDE)?;
        // Overrides the umask: the client has chosen the permissions.
        fs::fchmod(&file, mode)?;
        let node = self.walk(name, LinkPolicy::StayInside, Blocking::Wait)?;
        let stat = fs::fstat(&file)?;
        if (stat.st_dev, stat.st_ino) == (node.device, node.number) { Ok((node, file)) } else { Err(Errno::STALE) }
    }

    /// Creates a folder; the umask applies.
    pub(crate) fn make_folder(&self, name: &[u8], permissions: u32) -> Answer<Self> {
        fs::mkdirat(&self.handle, checked(name)?, Mode::from_raw_mode(permissions & PERMISSIONS))?;
        self.walk(name, LinkPolicy::StayInside, Blocking::Wait)
    }

    /// Creates a symbolic link.
    pub(crate) fn make_link(&self, name: &[u8], target: &[u8]) -> Answer<Self> {
        let target = CString::new(target).map_err(|_| Errno::INVAL)?;
        fs::symlinkat(target, &self.handle, checked(name)?)?;
        self.walk(name, LinkPolicy::StayInside, Blocking::Wait)
    }

    /// Links a node under one more name in this folder.
    pub(crate) fn hard_link(&self, node: &Self, name: &[u8]) -> Answer<()> {
        let name = checked(name)?;
        fs::linkat(&self.open_files, node.as_open_file(), &self.handle, name, AtFlags::SYMLINK_FOLLOW)
    }

    /// Renames an entry of this folder, also to another folder.
    pub(crate) fn rename(&self, old_name: &[u8], to: &Self, new_name: &[u8]) -> Answer<()> {
        fs::renameat(&self.handle, checked(old_name)?, &to.handle, checked(new_name)?)
    }

    /// Removes a name of a file or link.
    pub(crate) fn remove_file(&self, name: &[u8]) -> Answer<()> {
        fs::unlinkat(&self.handle, checked(name)?, AtFlags::empty())
    }

    /// Removes an empty folder.
    pub(crate) fn remove_folder(&self, name: &[u8]) -> Answer<()> {
        fs::unlinkat(&self.handle, checked(name)?, AtFlags::REMOVEDIR)
    }

    /// Calls `action` with the node opened, write-only if it is not readable.
    pub(crate) fn with_open<T>(&self, action: impl FnOnce(BorrowedFd<'_>) -> Answer<T>) -> Answer<T> {
        let file = match self.open(OFlags::RDONLY) {
            Err(Errno::ACCESS) if self.kind == FileType::RegularFile => self.open(OFlags::WRONLY)?,
            other => other?,
        };
        action(file.as_fd())
    }
}

/// Returns the mode if it has only bits that a client may set.
pub(crate) fn permissions(mode: u32) -> Answer<Mode> {
    if mode & 0o7777 & !PERMISSIONS == 0 { Ok(Mode::from_raw_mode(mode & PERMISSIONS)) } else { Err(Errno::PERM) }
}

/// Checks that a name is a single path component.
fn checked(name: &[u8]) -> Answer<CString> {
    if name.is_empty() || name == b"." || name == b".." || name.contains(&b'/') {
        return Err(Errno::INVAL);
    }
    CString::new(name).map_err(|_| Errno::INVAL)
}
