//! Descriptors themselves: their state, their numbers, and the names in a folder.

use sip_wasm::Caller;

use crate::abi::{Errno, FDSTAT_BYTES, descriptor_flags, file_type, rights};
use crate::calls::guest;
use crate::descriptors::{Descriptor, Object};
use crate::host::Wasi;

/// What a preopened folder is marked with.
const PREOPENED_FOLDER: u32 = 0;

/// Type of what a descriptor stands for. A pipe has none in WASI.
pub fn type_of(object: &Object) -> u8 {
    match object {
        Object::Input | Object::Output | Object::Error => file_type::UNKNOWN,
        Object::File(_) => file_type::REGULAR_FILE,
        Object::Folder(..) => file_type::DIRECTORY,
        Object::Listener(_) | Object::Connection(_) => file_type::SOCKET_STREAM,
    }
}

pub fn fd_close(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    host.descriptors.close(caller.u32(0))
}

pub fn fd_renumber(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    host.descriptors.renumber(caller.u32(0), caller.u32(1))
}

pub fn fd_fdstat_get(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let place = caller.u32(1);
    let descriptor = host.descriptors.get(caller.u32(0), 0)?;
    let mut stat = [0; FDSTAT_BYTES as usize];
    stat[0] = type_of(&descriptor.object);
    stat[2..4].copy_from_slice(&descriptor.flags.to_le_bytes());
    stat[8..16].copy_from_slice(&descriptor.base.to_le_bytes());
    stat[16..24].copy_from_slice(&descriptor.inheriting.to_le_bytes());
    guest(caller).put(place, &stat)
}

pub fn fd_fdstat_set_flags(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let flags = caller.u32(1);
    let descriptor = host.descriptors.get(caller.u32(0), rights::FD_FDSTAT_SET_FLAGS)?;
    descriptor.flags =
        u16::try_from(flags).ok().filter(|flags| flags & !descriptor_flags::ALL == 0).ok_or(Errno::INVAL)?;
    Ok(())
}

pub fn fd_fdstat_set_rights(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (base, inheriting) = (caller.u64(1), caller.u64(2));
    let descriptor = host.descriptors.get(caller.u32(0), 0)?;
    if base & !descriptor.base != 0 || inheriting & !descriptor.inheriting != 0 {
        return Err(Errno::NOTCAPABLE);
    }
    (descriptor.base, descriptor.inheriting) = (base, inheriting);
    Ok(())
}

/// The path under which the program was given a folder.
fn preopened(host: &mut Wasi, number: u32) -> Result<&str, Errno> {
    host.descriptors.get(number, 0)?.preopened.as_deref().ok_or(Errno::BADF)
}

pub fn fd_prestat_get(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let place = caller.u32(1);
    let length = preopened(host, caller.u32(0))?.len() as u32;
    let mut memory = guest(caller);
    memory.put_u32(place, PREOPENED_FOLDER)?;
    memory.put_u32(place.checked_add(4).ok_or(Errno::FAULT)?, length)
}

pub fn fd_prestat_dir_name(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (place, room) = (caller.u32(1), caller.u32(2));
    let path = preopened(host, caller.u32(0))?;
    if path.len() > room as usize {
        return Err(Errno::NAMETOOLONG);
    }
    guest(caller).put(place, path.as_bytes())
}

pub fn fd_readdir(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (place, room, cookie, used) = (caller.u32(1), caller.u32(2), caller.u64(3), caller.u32(4));
    let descriptor = host.descriptors.get(caller.u32(0), rights::FD_READDIR)?;
    let Descriptor { object: Object::Folder(folder, listing), .. } = descriptor else { return Err(Errno::NOTDIR) };
    let mut memory = guest(caller);
    let bytes = listing.read(folder, cookie, memory.bytes_mut(place, room)?)?;
    memory.put_u32(used, bytes as u32)
}
