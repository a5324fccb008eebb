//! Content of files and streams.

use sip_wasm::Caller;

use crate::abi::{Errno, descriptor_flags, rights};
use crate::calls::guest;
use crate::descriptors::{Descriptor, Object};
use crate::file::Start;
use crate::host::Wasi;

/// Number of kinds of advice.
const ADVICES: u32 = 6;

/// Kinds of `fd_seek`.
const FROM_START: u32 = 0;
const FROM_POSITION: u32 = 1;
const FROM_END: u32 = 2;

/// Whether a descriptor with these flags waits.
pub fn is_waiting(flags: u16) -> bool {
    flags & descriptor_flags::NONBLOCK == 0
}

pub fn fd_read(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (number, at, count, place) = (caller.u32(0), caller.u32(1), caller.u32(2), caller.u32(3));
    let mut memory = guest(caller);
    let vectors = memory.vectors(at, count)?;
    let read = match host.descriptors.get(number, 0)? {
        Descriptor { object: Object::Folder(..), .. } => return Err(Errno::ISDIR),
        Descriptor { base, .. } if *base & rights::FD_READ == 0 => return Err(Errno::NOTCAPABLE),
        Descriptor { object: Object::File(file), .. } => file.read(&mut memory, &vectors, Start::Position)?,
        Descriptor { object: Object::Input, flags, .. } => {
            host.streams.read(&mut memory, &vectors, is_waiting(*flags))?
        }
        Descriptor { object: Object::Connection(connection), flags, .. } => {
            connection.read(&mut memory, &vectors, is_waiting(*flags), false)?
        }
        Descriptor { object: Object::Output | Object::Error | Object::Listener(_), .. } => return Err(Errno::BADF),
    };
    memory.put_u32(place, read)
}

pub fn fd_write(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (number, at, count, place) = (caller.u32(0), caller.u32(1), caller.u32(2), caller.u32(3));
    let mut memory = guest(caller);
    let vectors = memory.vectors(at, count)?;
    let written = match host.descriptors.get(number, 0)? {
        Descriptor { object: Object::Folder(..), .. } => return Err(Errno::ISDIR),
        Descriptor { base, .. } if *base & rights::FD_WRITE == 0 => return Err(Errno::NOTCAPABLE),
        Descriptor { object: Object::File(file), flags, .. } => {
            file.write(&memory, &vectors, Start::Position, *flags)?
        }
        Descriptor { object: Object::Output, .. } => host.streams.write(&memory, &vectors)?,
        Descriptor { object: Object::Error, .. } => host.streams.write_error(&memory, &vectors)?,
        Descriptor { object: Object::Connection(connection), flags, .. } => {
            connection.write(&memory, &vectors, is_waiting(*flags))?
        }
        Descriptor { object: Object::Input | Object::Listener(_), .. } => return Err(Errno::BADF),
    };
    memory.put_u32(place, written)
}

pub fn fd_pread(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (number, at, count, offset, place) =
        (caller.u32(0), caller.u32(1), caller.u32(2), caller.u64(3), caller.u32(4));
    let (file, _) = host.descriptors.file(number, rights::FD_READ | rights::FD_SEEK)?;
    let mut memory = guest(caller);
    let vectors = memory.vectors(at, count)?;
    let read = file.read(&mut memory, &vectors, Start::At(offset))?;
    memory.put_u32(place, read)
}

/// With the flag `APPEND` it writes at the end, as on Linux.
pub fn fd_pwrite(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (number, at, count, offset, place) =
        (caller.u32(0), caller.u32(1), caller.u32(2), caller.u64(3), caller.u32(4));
    let (file, flags) = host.descriptors.file(number, rights::FD_WRITE | rights::FD_SEEK)?;
    let mut memory = guest(caller);
    let vectors = memory.vectors(at, count)?;
    let written = file.write(&memory, &vectors, Start::At(offset), flags)?;
    memory.put_u32(place, written)
}

pub fn fd_seek(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (delta, whence, place) = (caller.u64(1) as i64, caller.u32(2), caller.u32(3));
    // Asking for the position takes less than changing it.
    let wanted = if (delta, whence) == (0, FROM_POSITION) { rights::FD_TELL } else { rights::FD_SEEK };
    let has_seek = host.descriptors.file(caller.u32(0), rights::FD_SEEK).is_ok();
    let (file, _) = host.descriptors.file(caller.u32(0), if has_seek { rights::FD_SEEK } else { wanted })?;
    let from = match whence {
        FROM_START => 0,
        FROM_POSITION => file.offset,
        FROM_END => file.size()?,
        _ => return Err(Errno::INVAL),
    };
    let offset = from.checked_add_signed(delta).filter(|offset| *offset <= i64::MAX as u64).ok_or(Errno::INVAL)?;
    file.offset = offset;
    guest(caller).put_u64(place, offset)
}

pub fn fd_tell(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let place = caller.u32(1);
    let (file, _) = host.descriptors.file(caller.u32(0), rights::FD_TELL)?;
    let offset = file.offset;
    guest(caller).put_u64(place, offset)
}

/// Advice is taken, and has no effect.
pub fn fd_advise(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    if caller.u32(3) >= ADVICES {
        return Err(Errno::INVAL);
    }
    host.descriptors.file(caller.u32(0), rights::FD_ADVISE).map(drop)
}

/// No file system here reserves room.
pub fn fd_allocate(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    host.descriptors.file(caller.u32(0), rights::FD_ALLOCATE)?;
    Err(Errno::NOTSUP)
}

pub fn fd_datasync(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    sync(host, caller.u32(0), rights::FD_DATASYNC)
}

pub fn fd_sync(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    sync(host, caller.u32(0), rights::FD_SYNC)
}

fn sync(host: &mut Wasi, number: u32, wanted: u64) -> Result<(), Errno> {
    match &mut host.descriptors.get(number, wanted)?.object {
        Object::File(file) => file.sync(),
        Object::Folder(folder, _) => Ok(folder.namespace().sync()?),
        _ => Err(Errno::INVAL),
    }
}
