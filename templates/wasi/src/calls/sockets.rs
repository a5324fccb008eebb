//! Sockets. A program is given none, and preview 1 cannot open one: whatever a descriptor stands for, it is none.

use sip_wasm::Caller;

use crate::abi::Errno;
use crate::host::Wasi;

/// The answer to each call: the descriptor is not open, or no socket.
fn refuse(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    host.descriptors.get(caller.u32(0), 0)?;
    Err(Errno::NOTSOCK)
}

pub fn sock_accept(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    refuse(host, caller)
}

pub fn sock_recv(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    refuse(host, caller)
}

pub fn sock_send(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    refuse(host, caller)
}

pub fn sock_shutdown(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    refuse(host, caller)
}
