//! Driver of a TAP interface of the host: the `NicDevice` contract for one client at a time.
//!
//! Key type: `link::Link` (the device and the packets). Neighbour: `nic-server` (the contract). Packets are read into,
//! and written from, the client's own buffers. Sending is synchronous, so that the reply returns the buffer.
//! Deliberately not here: protocols.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod card;
mod link;
mod treatment;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use contracts::service_provider::{self, StartError};
use sip::device::{Declared, Device};
use sip::exheap::ExVec;
use sip::{Status, executor};
use stdio::report;

use link::Link;

sip::startup!();

/// Serves the interface until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    let link = match open(&startup.interface) {
        Ok(link) => Rc::new(link),
        Err((error, explanation)) => {
            match ExVec::from_slice(explanation.as_bytes()) {
                // The parent process reports it.
                Ok(block) => drop(startup.clients.not_ready(error, block)),
                Err(_) => report::error(format_args!("{explanation}")),
            }
            return 1;
        }
    };
    executor::block_on(serve(startup.clients.ready(), link)).unwrap_or(1)
}

fn open(interface: &Declared<Device>) -> Result<Link, (StartError, String)> {
    let refused = |status: Status| {
        (provider::start_error(status), format!("the TAP interface cannot be opened: {}", status.text()))
    };
    let device = interface.open_when_free().map_err(refused)?;
    let description = device.describe().map_err(refused)?;
    let other = "the device is not a packet link; declare a TAP interface in the system manifest";
    Link::new(device, &description).map_err(|_| (StartError::Missing, String::from(other)))
}

/// Serves until the provider channel closes, or the device fails.
async fn serve(provider: service_provider::Exp<service_provider::states::Ready>, link: Rc<Link>) -> i32 {
    let mut clients = pin!(nic_server::accept(provider, Rc::clone(&link)));
    let mut packets = pin!(link.run());
    poll_fn(|context| {
        if clients.as_mut().poll(context).is_ready() {
            return Poll::Ready(0);
        }
        if packets.as_mut().poll(context).is_ready() {
            report::error(format_args!("the host has removed the TAP interface"));
            return Poll::Ready(1);
        }
        Poll::Pending
    })
    .await
}
