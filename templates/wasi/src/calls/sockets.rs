//! Sockets. A program has those that it was given, and the connections that it accepts.

use alloc::vec::Vec;

use sip_wasm::Caller;

use crate::abi::{Errno, descriptor_flags, directions, receive_flags, rights};
use crate::calls::files::is_waiting;
use crate::calls::guest;
use crate::descriptors::{Descriptor, Descriptors, Object};
use crate::guest::{Guest, total};
use crate::host::Wasi;
use crate::socket::Connection;

pub fn sock_accept(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (number, flags, place) = (caller.u32(0), caller.u32(1), caller.u32(2));
    let flags = u16::try_from(flags).ok().filter(|flags| flags & !descriptor_flags::NONBLOCK == 0);
    let flags = flags.ok_or(Errno::INVAL)?;
    let mut memory = guest(caller);
    // Before a connection is taken, so that none is lost.
    memory.bytes(place, 4)?;
    if !host.descriptors.has_room() {
        return Err(Errno::MFILE);
    }
    host.streams.show_line();
    let connection = match host.descriptors.get(number, 0)? {
        Descriptor { object: Object::Listener(_), base, .. } if *base & rights::SOCK_ACCEPT == 0 => {
            return Err(Errno::NOTCAPABLE);
        }
        Descriptor { object: Object::Listener(listener), flags: own, inheriting, .. } => {
            let connection = listener.accept(&mut host.namespace, is_waiting(*own))?;
            Descriptor::connection(connection, *inheriting, flags)
        }
        Descriptor { object: Object::Connection(_), .. } => return Err(Errno::INVAL),
        _ => return Err(Errno::NOTSOCK),
    };
    host.descriptors.end_closed();
    let accepted = host.descriptors.add(connection)?;
    memory.put_u32(place, accepted)
}

/// The connection with this number, which has this right, and whether it waits.
fn connection(descriptors: &mut Descriptors, number: u32, wanted: u64) -> Result<(&mut Connection, bool), Errno> {
    match descriptors.get(number, 0)? {
        Descriptor { object: Object::Connection(_), base, .. } if wanted & !*base != 0 => Err(Errno::NOTCAPABLE),
        Descriptor { object: Object::Connection(connection), flags, .. } => Ok((connection, is_waiting(*flags))),
        Descriptor { object: Object::Listener(_), .. } => Err(Errno::NOTCONN),
        _ => Err(Errno::NOTSOCK),
    }
}

pub fn sock_recv(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (number, at, count, flags) = (caller.u32(0), caller.u32(1), caller.u32(2), caller.u32(3));
    let (read_place, flags_place) = (caller.u32(4), caller.u32(5));
    let mut memory = guest(caller);
    let vectors = memory.vectors(at, count)?;
    memory.bytes(flags_place, 2)?;
    host.streams.show_line();
    let (connection, is_waiting) = connection(&mut host.descriptors, number, rights::FD_READ)?;
    if flags & !receive_flags::ALL != 0 {
        return Err(Errno::INVAL);
    }
    let read = receive(connection, &mut memory, vectors, is_waiting, flags)?;
    memory.put(flags_place, &[0; 2])?;
    memory.put_u32(read_place, read)
}

fn receive(
    connection: &mut Connection,
    memory: &mut Guest<'_>,
    mut vectors: Vec<(u32, u32)>,
    is_waiting: bool,
    flags: u32,
) -> Result<u32, Errno> {
    let is_peek = flags & receive_flags::PEEK != 0;
    let all = total(&vectors);
    let mut done = connection.read(memory, &vectors, is_waiting, is_peek)?;
    let is_whole = flags & receive_flags::WAITALL != 0 && is_waiting && !is_peek;
    let mut last = done;
    while is_whole && last > 0 && done < all {
        skip(&mut vectors, last);
        last = connection.read(memory, &vectors, true, false).unwrap_or(0);
        done += last;
    }
    Ok(done)
}

/// Shortens vectors by their first bytes.
fn skip(vectors: &mut [(u32, u32)], mut bytes: u32) {
    for (start, length) in vectors {
        let part = bytes.min(*length);
        (*start, *length) = (*start + part, *length - part);
        bytes -= part;
    }
}

pub fn sock_send(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (number, at, count, flags, place) = (caller.u32(0), caller.u32(1), caller.u32(2), caller.u32(3), caller.u32(4));
    let mut memory = guest(caller);
    let vectors = memory.vectors(at, count)?;
    memory.bytes(place, 4)?;
    let (connection, is_waiting) = connection(&mut host.descriptors, number, rights::FD_WRITE)?;
    if flags != 0 {
        return Err(Errno::INVAL);
    }
    let written = connection.write(&memory, &vectors, is_waiting)?;
    memory.put_u32(place, written)
}

pub fn sock_shutdown(host: &mut Wasi, caller: &mut Caller<'_>) -> Result<(), Errno> {
    let (number, which) = (caller.u32(0), caller.u32(1));
    let (connection, _) = connection(&mut host.descriptors, number, rights::SOCK_SHUTDOWN)?;
    if which == 0 || which & !directions::ALL != 0 {
        return Err(Errno::INVAL);
    }
    connection.shut_down(which & directions::READ != 0, which & directions::WRITE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_received_is_skipped_across_vectors() {
        let mut vectors = [(100, 3), (200, 0), (300, 5)];
        skip(&mut vectors, 2);
        assert_eq!(vectors, [(102, 1), (200, 0), (300, 5)]);
        skip(&mut vectors, 4);
        assert_eq!(vectors, [(103, 0), (200, 0), (303, 2)]);
        assert_eq!(total(&vectors), 2);
    }
}
