//! Serves the partitions of disks, each as a disk of its own: `/dev/disk0p1` is the first of `/dev/disk0`.
//!
//! [`names`] tells disks from partitions, [`way`] is the way to a disk's driver, [`base`] is a disk with its
//! partitions, [`partition`] is one partition, [`manager`] knows all disks and answers questions. What tables look
//! like is known to the library `partition-table`, clients are served by crate `disk-server`. A client's
//! block is lent on to the disk's driver, so that nothing is copied, and comes home from there if this process ends.
//! Deliberately not here: changing tables, and what is in a partition.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod base;
mod manager;
pub mod names;
mod partition;
mod way;

use alloc::rc::Rc;

use contracts::namespace::Namespace;
use contracts::{provider, report};

use manager::Manager;
use names::Prefixes;

sip::startup!();

/// The most requests under way on one disk, whatever the parameter says.
const MAX_REQUESTS: usize = 64;

/// Serves partitions until the one who hands over clients is gone.
pub fn main(startup: Startup) -> i32 {
    let requests = usize::try_from(startup.requests).unwrap_or(1).clamp(1, MAX_REQUESTS);
    let manager = Manager::new(Namespace::new(startup.namespace), Prefixes::new(&startup.disks), requests);
    let serving = async move {
        // From here on no disk is overlooked: what comes while the others are looked at is announced.
        manager.watch();
        manager.scan_all().await;
        manager.remove_leftovers();
        let clients = startup.clients.ready();
        provider::accept(clients, move |client| Rc::clone(&manager).serve(client)).await;
    };
    match sip::executor::block_on(serving) {
        Ok(()) => 0,
        Err(status) => {
            report::error(format_args!("cannot wait for clients: {}", status.text()));
            1
        }
    }
}
