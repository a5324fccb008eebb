//! Names in folders.

use client::file_io::OpenFile;
use client::file_writer::NEW_PERMISSIONS;
use contracts::directory::{CreateMode, NodeKind};
use sip_wasm::Caller;

use alloc::string::String;

use crate::abi::{Errno, descriptor_flags, open_flags, rights};
use crate::calls::guest;
use crate::calls::stat::last_link;
use crate::descriptors::{Descriptor, Object};
use crate::file::File;
use crate::folder::Folder;
use crate::host::Wasi;
use crate::listing::Listing;
use crate::walk::{Found, LastLink, walk};

/// Resolves the path at two arguments, from the folder at another one.
fn find(
    host: &mut Wasi,
    caller: &mut Caller<'_>,
    folder: usize,
    path: usize,
    wanted: u64,
    last_link: LastLink,
) -> Result<Found<Folder>, Errno> {
    let (at, length) = (caller.u32(path), caller.u32(path + 1));
    let path = guest(caller).path(at, length)?;
    let folder = host.descriptors.folder(caller.u32(folder), wanted)?;
    walk(&folder, &path, last_link)
}

/// What a request asks for that opens a name.
struct Opening {
    flags: u32,
    base: u64,
    inheriting: u64,
    descriptor_flags: u16,
}

impl Opening {
    fn wants(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// A folder's descriptor.
    fn folder(self, folder: Folder, allowed: u64) -> Result<Descriptor, Errno> {
        if self.base & rights::FD_WRITE != 0 || self.wants(open_flags::TRUNC) {
            return Err(Errno::ISDIR);
        }
        Ok(Descriptor {
            object: Object::Folder(folder, Listing::default()),
            base: self.base & allowed & rights::OF_FOLDER,
            inheriting: self.inheriting & allowed,
            flags: self.descriptor_flags,
            preopened: None,
        })
    }

    /// A file's descriptor.
    fn file(self, file: OpenFile, found: Found<Folder>, allowed: u64) -> Result<Descriptor, Errno> {
        let mut file = File::new(file, found.folder, found.name);
        if self.wants(open_flags::TRUNC) {
            file.set_size(0)?;
        }
        Ok(Descriptor {
            object: Object::File(file),
            base: self.base & allowed & rights::OF_FILE,
            inheriting: 0,
            flags: self.descriptor_flags,
            preopened: None,
        })
    }
}

pub fn path_open(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let opening = Opening {
        flags: caller.u32(4),
        base: caller.u64(5),
        inheriting: caller.u64(6),
        descriptor_flags: u16::try_from(caller.u32(7)).map_err(|_| Errno::INVAL)?,
    };
    let place = caller.u32(8);
    if opening.flags & !open_flags::ALL != 0 || opening.descriptor_flags & !descriptor_flags::ALL != 0 {
        return Err(Errno::INVAL);
    }
    let mut wanted = rights::PATH_OPEN;
    if opening.wants(open_flags::CREAT) {
        wanted |= rights::PATH_CREATE_FILE;
    }
    if opening.wants(open_flags::TRUNC) {
        wanted |= rights::PATH_FILESTAT_SET_SIZE;
    }
    if opening.wants(open_flags::CREAT | open_flags::TRUNC) {
        host.descriptors.check_locks()?;
    }
    let number = caller.u32(0);
    // The object comes before its rights: what is no folder is told so.
    host.descriptors.folder(number, wanted)?;
    let allowed = host.descriptors.get(number, wanted)?.inheriting;
    let is_exclusive = opening.wants(open_flags::CREAT) && opening.wants(open_flags::EXCL);
    let last_link = if is_exclusive { LastLink::Keep } else { last_link(caller.u32(1)) };
    let found = find(host, caller, 0, 2, wanted, last_link)?;
    let descriptor = open(opening, found, allowed)?;
    let opened = host.descriptors.add(descriptor)?;
    guest(caller).put_u32(place, opened).inspect_err(|_| {
        // The program cannot know its number.
        let _ = host.descriptors.close(opened);
    })
}

fn open(opening: Opening, found: Found<Folder>, allowed: u64) -> Result<Descriptor, Errno> {
    // Reading and writing are refused at once, and not at the first use of the file.
    let missing = opening.base & !allowed & (rights::FD_READ | rights::FD_WRITE);
    let kind = found.node.as_ref().map(|(kind, _)| *kind);
    if kind.is_some() && opening.wants(open_flags::CREAT) && opening.wants(open_flags::EXCL) {
        return Err(Errno::EXIST);
    }
    match kind {
        Some(NodeKind::Link) => Err(Errno::LOOP),
        Some(kind @ (NodeKind::Directory | NodeKind::Mount)) => {
            if opening.wants(open_flags::CREAT) && !opening.wants(open_flags::DIRECTORY) {
                return Err(Errno::ISDIR);
            }
            let folder = if found.name.is_empty() { found.folder } else { found.folder.child(&found.name, kind)? };
            opening.folder(folder, allowed)
        }
        Some(_) if opening.wants(open_flags::DIRECTORY) || found.is_folder_wanted => Err(Errno::NOTDIR),
        _ if missing != 0 => Err(Errno::NOTCAPABLE),
        Some(NodeKind::File) => {
            let file = found.folder.namespace().open_file(&found.name)?;
            opening.file(file, found, allowed)
        }
        Some(_) => Err(Errno::NXIO),
        None if !opening.wants(open_flags::CREAT) => Err(Errno::NOENT),
        None if opening.wants(open_flags::DIRECTORY) => Err(Errno::INVAL),
        None if found.is_folder_wanted => Err(Errno::ISDIR),
        None => {
            let mode = if opening.wants(open_flags::EXCL) { CreateMode::New } else { CreateMode::OpenExisting };
            let file = found.folder.namespace().create_own_file(&found.name, NEW_PERMISSIONS, mode)?;
            opening.file(file, found, allowed)
        }
    }
}

pub fn path_create_directory(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    host.descriptors.check_locks()?;
    let found = find(host, caller, 0, 1, rights::PATH_CREATE_DIRECTORY, LastLink::Keep)?;
    if found.node.is_some() {
        return Err(Errno::EXIST);
    }
    Ok(found.folder.namespace().make_directory(&found.name)?)
}

pub fn path_remove_directory(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    host.descriptors.check_locks()?;
    let found = find(host, caller, 0, 1, rights::PATH_REMOVE_DIRECTORY, LastLink::Keep)?;
    match found.kind()? {
        _ if found.name.is_empty() => Err(Errno::INVAL),
        NodeKind::Directory => Ok(found.folder.namespace().remove_directory(&found.name)?),
        NodeKind::Mount => Err(Errno::ACCES),
        _ => Err(Errno::NOTDIR),
    }
}

pub fn path_unlink_file(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    host.descriptors.check_locks()?;
    let found = find(host, caller, 0, 1, rights::PATH_UNLINK_FILE, LastLink::Keep)?;
    match found.kind()? {
        NodeKind::Directory | NodeKind::Mount => Err(Errno::ISDIR),
        NodeKind::Service => Err(Errno::ACCES),
        NodeKind::File | NodeKind::Link | NodeKind::Other => Ok(found.folder.namespace().remove_file(&found.name)?),
    }
}

pub fn path_readlink(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (place, room, used) = (caller.u32(3), caller.u32(4), caller.u32(5));
    let found = find(host, caller, 0, 1, rights::PATH_READLINK, LastLink::Keep)?;
    if found.kind()? != NodeKind::Link {
        return Err(Errno::INVAL);
    }
    let target = found.folder.read_link(&found.name)?;
    let taken = &target.as_bytes()[..target.len().min(room as usize)];
    let mut memory = guest(caller);
    memory.put(place, taken)?;
    memory.put_u32(used, taken.len() as u32)
}

pub fn path_symlink(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    host.descriptors.check_locks()?;
    let (at, length) = (caller.u32(0), caller.u32(1));
    let target: String = guest(caller).path(at, length)?;
    let found = find(host, caller, 2, 3, rights::PATH_SYMLINK, LastLink::Keep)?;
    if target.is_empty() {
        return Err(Errno::NOENT);
    }
    if target.starts_with('/') {
        // No path could follow it.
        return Err(Errno::NOTCAPABLE);
    }
    vacant(&found)?;
    Ok(found.folder.namespace().make_link(&found.name, &target)?)
}

/// Checks that a name that is no folder's can be made.
fn vacant(found: &Found<Folder>) -> Result<(), Errno> {
    match found.node {
        Some(_) => Err(Errno::EXIST),
        None if found.is_folder_wanted => Err(Errno::NOENT),
        None => Ok(()),
    }
}

pub fn path_link(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    host.descriptors.check_locks()?;
    if last_link(caller.u32(1)) == LastLink::Follow {
        return Err(Errno::INVAL);
    }
    let old = find(host, caller, 0, 2, rights::PATH_LINK_SOURCE, LastLink::Keep)?;
    let new = find(host, caller, 4, 5, rights::PATH_LINK_TARGET, LastLink::Keep)?;
    if matches!(old.kind()?, NodeKind::Directory | NodeKind::Mount) {
        return Err(Errno::PERM);
    }
    vacant(&new)?;
    old.folder.with_other(&old.name, &new.folder, &new.name, |namespace, old, new| namespace.hard_link(old, new))
}

pub fn path_rename(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    host.descriptors.check_locks()?;
    let old = find(host, caller, 0, 1, rights::PATH_RENAME_SOURCE, LastLink::Keep)?;
    let new = find(host, caller, 3, 4, rights::PATH_RENAME_TARGET, LastLink::Keep)?;
    let kind = old.kind()?;
    if old.name.is_empty() || new.name.is_empty() {
        return Err(Errno::INVAL);
    }
    if new.is_folder_wanted && kind != NodeKind::Directory {
        return Err(Errno::NOTDIR);
    }
    old.folder.with_other(&old.name, &new.folder, &new.name, |namespace, old, new| namespace.rename(old, new))
}
