//! Blocking queries to the host: addresses of names, interfaces, routes. They run in a thread pool of their own, so
//! that neither a processor nor a disk waits for a DNS server. In a confined machine the keeper performs them.
//!
//! Deliberately not here: sockets.

use abi::sockets::{Command, FIRST_AT, Failure, RECORD_BYTES, SECOND_AT};
use hal_api::{DeviceFailure, Submitted};

use crate::commands::Record;
use crate::host_network::Records;
use crate::keeper::{self, NAME_BYTES_MAX, Question};
use crate::pool::Pool;
use crate::sockets::{Answer, complete, encode};
use crate::transfer::Memory;
use crate::{entries, host_network};

/// Up to one thread per connection to the keeper.
static POOL: Pool = Pool::new("lookups", keeper::CONNECTIONS);

/// Returns whether a command is a lookup.
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
    let mut question = Question { command, argument: record.number(FIRST_AT), name: Vec::new() };
    if command == Command::Resolve {
        let length = record.number(SECOND_AT);
        if length > NAME_BYTES_MAX as u64 || length as usize > memory.bytes() - RECORD_BYTES {
            return Err(Failure::BadCommand);
        }
        question.name = vec![0; length as usize];
        memory.copy_out(RECORD_BYTES, &mut question.name);
    }
    let list = if keeper::is_there() { keeper::ask(&question) } else { answer(&question) }?;
    let width = list.first().map_or(1, Vec::len);
    let room = (memory.bytes() - RECORD_BYTES) / width;
    for (index, one) in list.iter().take(room).enumerate() {
        memory.after(RECORD_BYTES + index * width).fill(one);
    }
    record.set_number(FIRST_AT, list.len() as u64);
    Ok(0)
}

/// Queries the host.
pub(crate) fn answer(question: &Question) -> Result<Records, Failure> {
    match question.command {
        Command::Resolve => host_network::resolve(&question.name, question.argument),
        Command::Interfaces => host_network::interfaces(),
        Command::Addresses => host_network::addresses(),
        Command::Routes => Ok(host_network::routes()),
        Command::NameServers => Ok(host_network::name_servers()),
        _ => Err(Failure::BadCommand),
    }
}
