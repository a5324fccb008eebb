//! What the host is asked that may take long: addresses of names, interfaces, routes. A few threads of their own do it,
//! so that neither a processor nor a disk waits for a name server.
//!
//! Deliberately not here: sockets.

use abi::sockets::{Command, FIRST_AT, Failure, RECORD_BYTES, SECOND_AT};
use hal_api::{DeviceFailure, Submitted};

use crate::commands::Record;
use crate::pool::Pool;
use crate::sockets::{Answer, complete, encode};
use crate::transfer::Memory;
use crate::{entries, host_network};

/// Threads at most.
static POOL: Pool = Pool::new("lookups", 4);
/// As of a name that a name server can be asked for (RFC 1035).
const MOST_NAME_BYTES: u64 = 253;

/// Whether a command is one of these.
pub(crate) fn is_lookup(command: Command) -> bool {
    use Command::{Addresses, Interfaces, NameServers, Resolve, Routes};
    matches!(command, Resolve | Interfaces | Addresses | Routes | NameServers)
}

/// Queues a command.
pub(crate) fn submit(token: u64, command: Command, mut record: Record, memory: Memory) -> Submitted {
    let Some(entries) = entries::get() else { return Submitted::Complete(Err(DeviceFailure)) };
    let queued = POOL.submit(Box::new(move || {
        let answer = perform(command, &mut record, memory);
        record.write(memory);
        (entries.device_complete)(token, encode(answer) as u64, false);
    }));
    if queued { Submitted::Queued } else { complete(Err(Failure::Exhausted)) }
}

fn perform(command: Command, record: &mut Record, memory: Memory) -> Answer {
    let list = match command {
        Command::Resolve => {
            let length = record.number(SECOND_AT);
            if length > MOST_NAME_BYTES || length as usize > memory.bytes() - RECORD_BYTES {
                return Err(Failure::BadCommand);
            }
            let mut name = vec![0; length as usize];
            memory.copy_out(RECORD_BYTES, &mut name);
            host_network::resolve(&name, record.number(FIRST_AT))?
        }
        Command::Interfaces => host_network::interfaces()?,
        Command::Addresses => host_network::addresses()?,
        Command::Routes => host_network::routes(),
        _ => host_network::name_servers(),
    };
    let width = list.first().map_or(1, Vec::len);
    let room = (memory.bytes() - RECORD_BYTES) / width;
    for (index, one) in list.iter().take(room).enumerate() {
        memory.after(RECORD_BYTES + index * width).fill(one);
    }
    record.set_number(FIRST_AT, list.len() as u64);
    Ok(0)
}
