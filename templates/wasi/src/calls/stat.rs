//! Attributes of descriptors and names.

use contracts::directory::{NodeAttributes, NodeChanges, NodeParts};
use sip_wasm::Caller;

use crate::abi::{Errno, FILESTAT_BYTES, SYMLINK_FOLLOW, file_type, rights, time_flags};
use crate::calls::descriptors::type_of;
use crate::calls::guest;
use crate::descriptors::Object;
use crate::folder::Folder;
use crate::guest::Guest;
use crate::host::Wasi;
use crate::listing;
use crate::walk::{Found, LastLink, walk};

const NS_PER_S: u64 = 1_000_000_000;

/// Whether a link at the end of a path is followed.
pub fn last_link(flags: u32) -> LastLink {
    if flags & SYMLINK_FOLLOW != 0 { LastLink::Follow } else { LastLink::Keep }
}

pub fn fd_filestat_get(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let place = caller.u32(1);
    let descriptor = host.descriptors.get(caller.u32(0), rights::FD_FILESTAT_GET)?;
    let kind = type_of(&descriptor.object);
    let (device, attributes) = match &mut descriptor.object {
        Object::Input | Object::Output | Object::Error | Object::Listener(_) | Object::Connection(_) => (0, nothing()),
        Object::File(file) => (file.device(&mut host.namespace)?, file.attributes()?),
        Object::Folder(folder, _) => (folder.device(&mut host.namespace)?, folder.attributes("")?.1),
    };
    put(&mut guest(caller), place, device, kind, &attributes)
}

pub fn fd_filestat_set_size(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let size = caller.u64(1);
    let (file, _) = host.descriptors.file(caller.u32(0), rights::FD_FILESTAT_SET_SIZE)?;
    if size > i64::MAX as u64 {
        return Err(Errno::INVAL);
    }
    file.set_size(size)
}

pub fn fd_filestat_set_times(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let changes = changes(caller.u64(1), caller.u64(2), caller.u32(3))?;
    match &mut host.descriptors.get(caller.u32(0), rights::FD_FILESTAT_SET_TIMES)?.object {
        Object::File(file) => file.set_times(changes),
        Object::Folder(folder, _) => Ok(folder.namespace().set_attributes("", changes)?),
        _ => Err(Errno::BADF),
    }
}

pub fn path_filestat_get(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (last_link, place) = (last_link(caller.u32(1)), caller.u32(4));
    let folder = host.descriptors.folder(caller.u32(0), rights::PATH_FILESTAT_GET)?;
    let (at, length) = (caller.u32(2), caller.u32(3));
    let found = walk(&folder, &guest(caller).path(at, length)?, last_link)?;
    found.kind()?;
    let Some((kind, attributes)) = &found.node else { return Err(Errno::NOENT) };
    let device = found.folder.device(&mut host.namespace)?;
    put(&mut guest(caller), place, device, listing::type_of(*kind), attributes)
}

pub fn path_filestat_set_times(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let last_link = last_link(caller.u32(1));
    let changes = changes(caller.u64(4), caller.u64(5), caller.u32(6))?;
    let folder = host.descriptors.folder(caller.u32(0), rights::PATH_FILESTAT_SET_TIMES)?;
    let (at, length) = (caller.u32(2), caller.u32(3));
    let found: Found<Folder> = walk(&folder, &guest(caller).path(at, length)?, last_link)?;
    found.kind()?;
    Ok(found.folder.namespace().set_attributes(&found.name, changes)?)
}

/// The changes that a request for times means. Volumes keep seconds.
fn changes(accessed_ns: u64, modified_ns: u64, flags: u32) -> Result<NodeChanges, Errno> {
    use time_flags::{ACCESSED, ACCESSED_NOW, MODIFIED, MODIFIED_NOW};
    let is_both = |first, second| flags & (first | second) == first | second;
    if flags >= 1 << 4 || is_both(ACCESSED, ACCESSED_NOW) || is_both(MODIFIED, MODIFIED_NOW) {
        return Err(Errno::INVAL);
    }
    let now = sip::time::wall();
    let time = |given, given_flag| (if flags & given_flag != 0 { given } else { now } / NS_PER_S) as i64;
    let mut which = NodeParts::empty();
    if flags & (ACCESSED | ACCESSED_NOW) != 0 {
        which |= NodeParts::ACCESSED;
    }
    if flags & (MODIFIED | MODIFIED_NOW) != 0 {
        which |= NodeParts::MODIFIED;
    }
    Ok(NodeChanges {
        accessed_s: time(accessed_ns, ACCESSED),
        modified_s: time(modified_ns, MODIFIED),
        permissions: 0,
        owner: 0,
        group: 0,
        which,
    })
}

/// Writes a `filestat`.
fn put(guest: &mut Guest<'_>, place: u32, device: u64, kind: u8, attributes: &NodeAttributes) -> Result<(), Errno> {
    let time = |seconds: i64| u64::try_from(seconds).unwrap_or(0).saturating_mul(NS_PER_S);
    let size = if kind == file_type::UNKNOWN { 0 } else { attributes.size_bytes };
    let words = [
        device,
        attributes.node,
        kind.into(),
        attributes.links.into(),
        size,
        time(attributes.accessed_s),
        time(attributes.modified_s),
        time(attributes.changed_s),
    ];
    let mut stat = [0; FILESTAT_BYTES as usize];
    for (place, word) in stat.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    guest.put(place, &stat)
}

/// Attributes of what has none, such as a pipe.
fn nothing() -> NodeAttributes {
    NodeAttributes {
        size_bytes: 0,
        allocated_bytes: 0,
        node: 0,
        modified_s: 0,
        accessed_s: 0,
        changed_s: 0,
        permissions: 0,
        links: 1,
        owner: 0,
        group: 0,
    }
}
