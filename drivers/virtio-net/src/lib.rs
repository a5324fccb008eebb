//! Driver of a virtio network interface: the `NicDevice` contract for one client at a time.
//!
//! Key types: [`net::Net`] (the packets, without channels), `card::Interface` (it as a card). Neighbours: `sip-virtio`
//! (the device), `nic-server` (the contract). The device does DMA directly on the client's buffers. Deliberately not
//! here: protocols.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod card;
pub mod net;
pub mod offload;

use alloc::rc::Rc;

use contracts::service_provider::StartError;
use sip::exheap::ExVec;
use sip_virtio::Running;
use stdio::report;

use card::{Interface, Nic};

sip::startup!();

/// Serves the interface until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    let (system, running) = match Running::start(&startup.interface, Nic::start) {
        Ok(started) => started,
        Err(explanation) => {
            match ExVec::from_slice(explanation.as_bytes()) {
                // The parent process reports it.
                Ok(block) => drop(startup.clients.not_ready(StartError::Missing, block)),
                Err(_) => report::error(format_args!("{explanation}")),
            }
            return 1;
        }
    };
    let interface = Rc::new(Interface::new(system, running));
    i32::from(sip::executor::block_on(nic_server::accept(startup.clients.ready(), interface)).is_err())
}
