//! Commands written to the sockets device, and their answers; [`abi::sockets`] has the format of both.
//!
//! Neighbours: `sockets` (the table), `lookups` (commands that run on a host thread). Deliberately not here: data transfer.

use std::io;

use abi::sockets::{
    ACCEPTED_BYTES, Command, FIRST_AT, Failure, NAME_AT, NAME_BYTES, RECORD_BYTES, SECOND_AT, TOKEN_AT,
};
use hal_api::Submitted;

use crate::lookups;
use crate::socket_calls::{self as calls, Name, number};
use crate::sockets::{Answer, Purpose, Socket, Table, Watched, complete, failure};
use crate::transfer::Memory;

/// A command or an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record([u8; RECORD_BYTES]);

impl Record {
    fn read(memory: Memory) -> Self {
        let mut bytes = [0; RECORD_BYTES];
        memory.copy_out(0, &mut bytes);
        Self(bytes)
    }

    /// Returns the number at an offset.
    pub(crate) fn number(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[at..at + 8]);
        u64::from_le_bytes(bytes)
    }

    /// Sets the number at an offset.
    pub(crate) fn set_number(&mut self, at: usize, number: u64) {
        self.0[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }

    fn name(&self) -> Name {
        let mut bytes = [0; NAME_BYTES];
        bytes.copy_from_slice(&self.0[NAME_AT..NAME_AT + NAME_BYTES]);
        Name::from_bytes(&bytes)
    }

    fn set_name(&mut self, name: Name) {
        self.0[NAME_AT..NAME_AT + NAME_BYTES].copy_from_slice(&name.to_bytes());
    }

    /// Writes the record back to the memory it came from.
    pub(crate) fn write(&self, memory: Memory) {
        memory.fill(&self.0);
    }
}

/// Returns whether the record in the memory is a Close command.
pub(crate) fn is_close(memory: Memory) -> bool {
    memory.bytes() >= RECORD_BYTES && Command::from_number(Record::read(memory).number(0)) == Some(Command::Close)
}

/// Executes the command in the memory.
pub(crate) fn perform(table: &mut Table, token: u64, memory: Memory) -> Submitted {
    if memory.bytes() < RECORD_BYTES {
        return complete(Err(Failure::BadCommand));
    }
    let mut record = Record::read(memory);
    let Some(command) = Command::from_number(record.number(0)) else {
        return complete(Err(Failure::BadCommand));
    };
    if lookups::is_lookup(command) {
        return lookups::submit(token, command, record, memory);
    }
    let answer = perform_now(table, command, &mut record, memory);
    record.write(memory);
    complete(answer.map(|()| 0))
}

fn perform_now(table: &mut Table, command: Command, record: &mut Record, memory: Memory) -> Result<(), Failure> {
    let token = record.number(TOKEN_AT);
    let (first, second) = (record.number(FIRST_AT), record.number(SECOND_AT));
    match command {
        Command::Listen => listen(table, record, first),
        Command::Accept => accept(table, token, first, memory).map(|count| record.set_number(FIRST_AT, count as u64)),
        Command::Connect => connect(table, record),
        Command::Connected => connected(table, token).map(|local| record.set_name(local)),
        Command::Finish => {
            let socket = table.get_for(token, Purpose::Connection)?;
            calls::finish(socket.descriptor()).map_err(|error| failure(&error))?;
            socket.finished = true;
            Ok(())
        }
        Command::Close => {
            let socket = table.remove(token)?;
            record.set_number(NAME_AT, socket.lost());
            if first == 1 && socket.purpose == Purpose::Connection {
                // On error it is closed without a reset.
                let _ = calls::reset_on_close(socket.descriptor());
            }
            Ok(())
        }
        Command::SetOptions => {
            let socket = table.get_for(token, Purpose::Connection)?;
            set_options(socket, first != 0, second).map_err(|error| failure(&error))
        }
        Command::Bind => bind(table, record),
        Command::SetRemote => {
            table.get_for(token, Purpose::Datagrams)?.remote = record.name();
            Ok(())
        }
        Command::OpenEcho => open_echo(table, record, first),
        Command::Describe => {
            let socket = table.get(token)?;
            record.set_number(NAME_AT, socket.lost());
            if socket.purpose != Purpose::Connection {
                return Ok(());
            }
            let socket = socket.descriptor();
            let (received, sent) = (calls::queued(socket, libc::FIONREAD), calls::queued(socket, libc::TIOCOUTQ));
            let state = calls::connection_state(socket).map_err(|error| failure(&error))?;
            record.set_number(FIRST_AT, state_number(state));
            record.set_number(SECOND_AT, u64::from(received) << 32 | u64::from(sent));
            Ok(())
        }
        Command::Resolve | Command::Interfaces | Command::Addresses | Command::Routes | Command::NameServers => {
            Err(Failure::BadCommand)
        }
    }
}

/// Creates a socket bound to a name. One bound to any address also accepts IPv4, and falls back to it without IPv6.
fn bound(name: Name, kind: libc::c_int, options: fn(&Socket) -> io::Result<()>) -> io::Result<Socket> {
    let purpose = if kind == libc::SOCK_STREAM { Purpose::Listener } else { Purpose::Datagrams };
    let attempt = |version_6: bool| {
        let family = if version_6 { libc::AF_INET6 } else { libc::AF_INET };
        let socket = Socket::new(calls::open(family, kind, 0)?, purpose, version_6);
        if version_6 {
            let only = libc::c_int::from(!name.is_any());
            calls::set_option(socket.descriptor(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, only)?;
        }
        options(&socket)?;
        calls::bind(socket.descriptor(), name, version_6)?;
        Ok(socket)
    };
    match attempt(!name.is_version_4()) {
        Err(error) if name.is_any() && lacks_version_6(&error) => attempt(false),
        answer => answer,
    }
}

fn lacks_version_6(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL))
}

fn listen(table: &mut Table, record: &mut Record, backlog: u64) -> Result<(), Failure> {
    let name = record.name();
    let made = bound(name, libc::SOCK_STREAM, |socket| {
        // A restarted server can listen again while old connections are in TIME-WAIT.
        calls::set_option(socket.descriptor(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        // Accepted connections inherit it.
        calls::set_option(socket.descriptor(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)
    });
    let listening = made.and_then(|mut socket| {
        calls::listen(socket.descriptor(), u32::try_from(backlog).unwrap_or(u32::MAX).max(1))?;
        let local = calls::local_name(socket.descriptor())?;
        let is_any = local.address == [0; 16] || crate::socket_calls::unmapped(local.address) == Some([0; 4]);
        socket.local = (!is_any).then_some(local);
        Ok((socket, local))
    });
    let (socket, local) = listening.map_err(|error| failure(&error))?;
    record.set_name(local);
    record.set_number(TOKEN_AT, table.insert(socket));
    Ok(())
}

/// Accepts pending connections, at least one, as many as the memory has room for.
fn accept(table: &mut Table, token: u64, most: u64, memory: Memory) -> Answer {
    let room = (memory.bytes() - RECORD_BYTES) / ACCEPTED_BYTES;
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(room);
    let mut count = 0;
    while count < most {
        let listener = table.get_for(token, Purpose::Listener)?;
        let (version_6, local) = (listener.version_6, listener.local);
        let (file, remote) = match calls::accept(listener.descriptor()) {
            Ok(accepted) => accepted,
            // Connections aborted before they were accepted are skipped.
            Err(error) if error.raw_os_error() == Some(libc::ECONNABORTED) => continue,
            Err(_) if count > 0 => break,
            Err(error) => return table.watch_if_blocked(token, Watched::ToRead, Err(failure(&error))),
        };
        let local = local.or_else(|| calls::local_name(number(&file)).ok()).unwrap_or_default();
        let accepted = table.insert(Socket::new(file, Purpose::Connection, version_6));
        let mut bytes = [0; ACCEPTED_BYTES];
        bytes[..8].copy_from_slice(&accepted.to_le_bytes());
        bytes[8..8 + NAME_BYTES].copy_from_slice(&local.to_bytes());
        bytes[8 + NAME_BYTES..].copy_from_slice(&remote.to_bytes());
        memory.after(RECORD_BYTES + count * ACCEPTED_BYTES).fill(&bytes);
        count += 1;
    }
    if count == 0 { Err(Failure::BadCommand) } else { Ok(count) }
}

fn connect(table: &mut Table, record: &mut Record) -> Result<(), Failure> {
    let name = record.name();
    let version_6 = !name.is_version_4();
    let family = if version_6 { libc::AF_INET6 } else { libc::AF_INET };
    let begun = calls::open(family, libc::SOCK_STREAM, 0).and_then(|file| {
        let socket = Socket::new(file, Purpose::Connection, version_6);
        calls::set_option(socket.descriptor(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        match calls::connect(socket.descriptor(), name, version_6) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(socket),
        }
    });
    let socket = begun.map_err(|error| match error.raw_os_error() {
        // From connect it means that there is no free local port.
        Some(libc::EADDRNOTAVAIL) if name.port != 0 => Failure::Exhausted,
        _ => failure(&error),
    })?;
    let token = table.insert(socket);
    table.watch(token, Watched::ToWrite).inspect_err(|_| drop(table.remove(token)))?;
    record.set_number(TOKEN_AT, token);
    Ok(())
}

fn connected(table: &mut Table, token: u64) -> Result<Name, Failure> {
    let socket = table.get_for(token, Purpose::Connection)?.descriptor();
    calls::pending_error(socket).map_err(|error| failure(&error))?;
    match calls::connection_state(socket) {
        Ok(state) if state == SYN_SENT => Err(Failure::WouldBlock),
        _ => calls::local_name(socket).map_err(|error| failure(&error)),
    }
}

fn set_options(socket: &Socket, no_delay: bool, keep_alive_s: u64) -> io::Result<()> {
    let descriptor = socket.descriptor();
    calls::set_option(descriptor, libc::IPPROTO_TCP, libc::TCP_NODELAY, no_delay.into())?;
    calls::set_option(descriptor, libc::SOL_SOCKET, libc::SO_KEEPALIVE, libc::c_int::from(keep_alive_s != 0))?;
    if keep_alive_s != 0 {
        let seconds = libc::c_int::try_from(keep_alive_s).unwrap_or(MAX_KEEP_ALIVE_S).min(MAX_KEEP_ALIVE_S);
        calls::set_option(descriptor, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, seconds)?;
    }
    Ok(())
}

/// Maximum accepted by the host (Linux: MAX_TCP_KEEPIDLE).
const MAX_KEEP_ALIVE_S: libc::c_int = 32767;

fn bind(table: &mut Table, record: &mut Record) -> Result<(), Failure> {
    let made = bound(record.name(), libc::SOCK_DGRAM, |_| Ok(()));
    let named = made.and_then(|socket| Ok((calls::local_name(socket.descriptor())?, socket)));
    let (local, socket) = named.map_err(|error| failure(&error))?;
    record.set_name(local);
    record.set_number(TOKEN_AT, table.insert(socket));
    Ok(())
}

fn open_echo(table: &mut Table, record: &mut Record, version: u64) -> Result<(), Failure> {
    let (family, protocol) = match version {
        4 => (libc::AF_INET, libc::IPPROTO_ICMP),
        6 => (libc::AF_INET6, libc::IPPROTO_ICMPV6),
        _ => return Err(Failure::BadCommand),
    };
    let file = calls::open(family, libc::SOCK_DGRAM, protocol).map_err(|_| Failure::NotSupported)?;
    let mut socket = Socket::new(file, Purpose::Datagrams, version == 6);
    socket.is_echo = true;
    // Best-effort: without it the hop limit is not reported.
    let _ = calls::report_hop_limit(socket.descriptor(), socket.version_6);
    record.set_number(TOKEN_AT, table.insert(socket));
    Ok(())
}

/// The host's number of the state SYN-SENT.
const SYN_SENT: u8 = 2;

/// Maps the host's state numbers (include/net/tcp_states.h) to those of `SocketRecord`.
fn state_number(state: u8) -> u64 {
    match state {
        1 => 4,
        2 => 2,
        3 => 3,
        4 => 5,
        5 => 6,
        6 => 10,
        8 => 7,
        9 => 9,
        10 => 1,
        11 => 8,
        _ => 0,
    }
}
