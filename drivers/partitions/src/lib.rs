//! Serves the partitions of disks, each as a disk of its own: `/dev/disk0p1` is the first of `/dev/disk0`.
//!
//! [`names`] distinguishes disks from partitions, [`base`] is a disk with its partitions, [`partition`] is one
//! partition, [`manager`] holds all disks and answers queries. The library `partition-table` parses tables, crate
//! `disk-server` serves clients, crate `disk-source` has the channels to a disk's driver. A client's block is lent on
//! to the disk's driver, so that nothing is copied, and returns from there if this process ends. Deliberately not here:
//! changing tables, and the contents of partitions.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod base;
mod manager;
pub mod names;
mod partition;
mod table;

use alloc::rc::Rc;

use client::namespace::Namespace;
use stdio::report;

use manager::Manager;
use names::Prefixes;

sip::startup!();

/// Maximum requests in flight on one disk, whatever the parameter is.
const MAX_REQUESTS: usize = 64;

/// Serves partitions until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    let requests = usize::try_from(startup.requests).unwrap_or(1).clamp(1, MAX_REQUESTS);
    let manager = Manager::new(Namespace::new(startup.namespace), Prefixes::new(&startup.disks), requests);
    let serving = async move {
        // Subscribe before the scan, so that a disk registered meanwhile is not missed.
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
