//! Locks of files, which preview 1 has not: advisory, of ranges, and held by the descriptor as with fcntl(2) and
//! `F_OFD_SETLK`. They end with the program.

use contracts::file::LockKind;
use sip_wasm::Caller;

use crate::abi::{Errno, rights};
use crate::host::Wasi;

/// What `lock` is asked for.
const UNLOCK: u32 = 0;
const SHARED: u32 = 1;
const EXCLUSIVE: u32 = 2;

/// A kind of lock, and the right that it needs.
fn kind(number: u32) -> Result<(LockKind, u64), Errno> {
    match number {
        SHARED => Ok((LockKind::Shared, rights::FD_READ)),
        EXCLUSIVE => Ok((LockKind::Exclusive, rights::FD_WRITE)),
        _ => Err(Errno::INVAL),
    }
}

/// An error number, which is [`Errno::AGAIN`] where another program's lock is in the way.
fn errno(free: Result<bool, Errno>) -> u64 {
    let error = match free {
        Ok(true) => return 0,
        Ok(false) => Errno::AGAIN,
        Err(error) => error,
    };
    error.0.into()
}

pub fn lock(host: &mut Wasi, caller: &mut Caller<'_>) -> u64 {
    errno(change(host, caller))
}

fn change(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<bool, Errno> {
    let (number, wanted, start, length) = (caller.u32(0), caller.u32(1), caller.u64(2), caller.u64(3));
    if wanted == UNLOCK {
        return host.descriptors.file(number, 0)?.0.unlock(start, length).map(|()| true);
    }
    let (kind, right) = kind(wanted)?;
    host.descriptors.file(number, right)?.0.lock(kind, start, length)
}

pub fn test_lock(host: &mut Wasi, caller: &mut Caller<'_>) -> u64 {
    errno(test(host, caller))
}

fn test(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<bool, Errno> {
    let (number, wanted, start, length) = (caller.u32(0), caller.u32(1), caller.u64(2), caller.u64(3));
    let (kind, _) = kind(wanted)?;
    host.descriptors.file(number, 0)?.0.may_lock(kind, start, length)
}
