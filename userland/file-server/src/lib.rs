//! A file server: the contracts `Directory`, `File` and `FileSystem` for many clients, over a [`Volume`].
//!
//! A server implements [`Volume`] and calls [`accept`]; every client is then a task on one thread. The loops are here
//! so that all servers behave alike: valid paths, rights required of the mount point's access control list
//! ([`Permit`]), rights to an open file ([`OpenRights`]), `CreateFile` on an existing file, locks ([`Locks`]), and maximum
//! lengths.
//! Servers with a volume manager implement [`Managed`], too. Deliberately not here: resolving paths, and the volume's
//! own access control lists, which are looked up on the way.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(test)]
mod tests;

mod client;
mod directory;
mod file;
mod locks;
mod managed;
mod page;
mod paths;
mod permit;
mod reports;
mod volume;

pub use client::Client;
pub use locks::Locks;
pub use managed::{Managed, padded, serve_manager, sync_regularly};
pub use page::{Listed, Page, PageFull};
pub use permit::{OpenRights, Permit};
pub use reports::Reports;
pub use volume::{AttributeChanges, Opened, Partial, Request, Volume};

use alloc::rc::Rc;

use contracts::service_provider::{ConnectError, Exp, ExpReady, StartError, states};
use contracts::{directory as directory_contract, file as file_contract};
use sip::channel::AnyEndpoint;
use sip::executor;
use sip::exheap::ExVec;
use stdio::report;

/// Serves the clients of a provider until it closes.
pub async fn accept<V: Volume>(volume: Rc<V>, mut provider: Exp<states::Ready>) {
    while let ExpReady::Connect { path, rest, rights, endpoint, next } = provider.receive_async().await {
        let (point, rest) = path.split_at_checked(rest as usize).unwrap_or((&[], &[]));
        let root = Rc::new(volume.root(Permit::new(point, rights)));
        provider = match open(&volume, &root, rest, endpoint) {
            Ok(()) => next.ack(),
            Err(endpoint) => next.nack(ConnectError::WrongContract, endpoint),
        };
    }
}

/// Reports to the parent process why it cannot serve. Returns the exit status.
pub fn not_ready(provider: Exp<states::Start>, error: StartError, explanation: &str) -> i32 {
    match ExVec::from_slice(explanation.as_bytes()) {
        // The parent reports it.
        Ok(block) => drop(provider.not_ready(error, block)),
        Err(_) => report::error(format_args!("{explanation}")),
    }
    1
}

/// Spawns a task that opens the node at `path` and serves it. An endpoint of any other contract is returned.
fn open<V: Volume>(
    volume: &Rc<V>,
    directory: &Rc<V::Directory>,
    path: &[u8],
    endpoint: AnyEndpoint,
) -> Result<(), AnyEndpoint> {
    let (volume, directory, path) = (Rc::clone(volume), Rc::clone(directory), path.to_vec());
    let endpoint = match endpoint.downcast::<directory_contract::Exp<directory_contract::states::Start>>() {
        Ok(client) => {
            drop(executor::spawn(directory::serve(volume, directory, path, client)));
            return Ok(());
        }
        Err(endpoint) => endpoint,
    };
    let client = endpoint.downcast::<file_contract::Exp<file_contract::states::Start>>()?;
    drop(executor::spawn(file::serve(volume, directory, path, client)));
    Ok(())
}
