//! Driver of a virtio network interface: the `NicDevice` contract for one client at a time.
//!
//! Key types: [`net::Net`] (the packets, without channels), `client` (the contract). Neighbours: `sip-virtio` (the
//! device). The device does DMA directly on the client's buffers. Deliberately not here: protocols.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod client;
pub mod net;
pub mod offload;

use alloc::sync::Arc;

use contracts::nic_device;
use contracts::service_provider::{self, ConnectError, StartError};
use sip::exheap::ExVec;
use sip::hardware::DmaBlock;
use sip_virtio::{Core, DeviceError, Running, System};
use stdio::report;

use net::Net;

sip::startup!();

type Buffer = DmaBlock<ExVec<u8>>;
type Interface = Net<System, Buffer>;

/// The interface while it has a client; without one it is reset and has no buffers.
struct Nic {
    system: System,
    interface: Option<Interface>,
    /// Number of the last client.
    client: u64,
}

impl Nic {
    /// Starts the device once, to check that it works.
    fn start(system: System) -> Result<Nic, DeviceError> {
        drop(Interface::start(system.clone())?);
        Ok(Nic { system, interface: None, client: 0 })
    }

    /// Starts the device for a client and returns the client's number.
    fn open(&mut self) -> Result<u64, DeviceError> {
        // Dropping the former interface resets the device, so it is dropped first.
        self.interface = None;
        self.interface = Some(Interface::start(self.system.clone())?);
        self.client += 1;
        Ok(self.client)
    }

    fn close(&mut self, client: u64) {
        if self.client == client {
            self.interface = None;
        }
    }

    /// Returns the interface, while it belongs to this client.
    fn of_client(&mut self, client: u64) -> Option<&mut Interface> {
        self.interface.as_mut().filter(|_| self.client == client)
    }
}

impl Core for Nic {
    fn serve(&mut self) -> Result<(), DeviceError> {
        self.interface.as_mut().map_or(Ok(()), Core::serve)
    }
}

/// Serves the interface until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    let (system, running) = match Running::start(&startup.interface, Nic::start) {
        Ok(started) => started,
        Err(explanation) => {
            match ExVec::from_slice(explanation.as_bytes()) {
                // The parent process reports it to people.
                Ok(block) => drop(startup.clients.not_ready(StartError::Missing, block)),
                Err(_) => report::error(format_args!("{explanation}")),
            }
            return 1;
        }
    };
    i32::from(sip::executor::block_on(accept(startup.clients.ready(), system, running)).is_err())
}

/// Accepts clients, one at a time.
async fn accept(
    mut provider: service_provider::Exp<service_provider::states::Ready>,
    system: System,
    running: Arc<Running<Nic>>,
) {
    loop {
        provider = match provider.receive_async().await {
            service_provider::ExpReady::Connect { path, rest, endpoint, next, .. } if (rest as usize) < path.len() => {
                next.nack(ConnectError::NotFound, endpoint)
            }
            service_provider::ExpReady::Connect { endpoint, next, .. } => {
                if running.with(|nic| nic.interface.is_some()) {
                    next.nack(ConnectError::Busy, endpoint)
                } else {
                    match endpoint.downcast::<nic_device::Exp<nic_device::states::Start>>() {
                        Ok(client) => {
                            client::take(client, &system, &running);
                            next.ack()
                        }
                        Err(endpoint) => next.nack(ConnectError::WrongContract, endpoint),
                    }
                }
            }
            service_provider::ExpReady::ChannelClosed(_) => return,
        };
    }
}
