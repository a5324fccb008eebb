//! Driver of the host's random bytes: the `Entropy` contract for many clients.
//!
//! The device completes each request at once, so one thread serves all clients. Neighbour: `virtio-rng`, which serves
//! the same contract on bare machines. Deliberately not here: a generator; the host's bytes are passed on unchanged.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;

use contracts::entropy::{self, EntropyError, ExpReady, states};
use contracts::service_provider::StartError;
use sip::device::{Declared, Device, DeviceKind, DeviceOperation};
use sip::exheap::{ExVec, Lent};
use sip::{Deadline, Status};
use stdio::report;

sip::startup!();

type Block = Lent<ExVec<u8>>;

/// Serves random bytes until the provider channel closes.
pub fn main(startup: Startup) -> i32 {
    let device = match open(&startup.source) {
        Ok(device) => Rc::new(device),
        Err((error, explanation)) => {
            match ExVec::from_slice(explanation.as_bytes()) {
                // The parent process reports it.
                Ok(block) => drop(startup.clients.not_ready(error, block)),
                Err(_) => report::error(format_args!("{explanation}")),
            }
            return 1;
        }
    };
    let serving = provider::accept(startup.clients.ready(), move |client: entropy::Exp<states::Start>| {
        serve(Rc::clone(&device), client.success())
    });
    i32::from(sip::executor::block_on(serving).is_err())
}

fn open(source: &Declared<Device>) -> Result<Device, (StartError, String)> {
    let refused = |status: Status| {
        (provider::start_error(status), format!("the source of random bytes cannot be opened: {}", status.text()))
    };
    let device = source.open_when_free().map_err(refused)?;
    if device.describe().map_err(refused)?.kind != DeviceKind::Random {
        let explanation = String::from("the device is not a random source; declare `random0` in the system manifest");
        return Err((StartError::Missing, explanation));
    }
    Ok(device)
}

/// Serves one client until it closes its end.
async fn serve(device: Rc<Device>, mut client: entropy::Exp<states::Ready>) {
    loop {
        client = match client.receive_async().await {
            ExpReady::Fill { data, next } => match fill(&device, data) {
                (Some(data), Ok(())) => next.filled(data),
                (Some(data), Err(error)) => next.not_filled(data, error),
                // No reply is possible without the block.
                (None, _) => return,
            },
            ExpReady::ChannelClosed(_) => return,
        };
    }
}

/// Fills a client's block, in as many requests as the device needs; returns the block unless the kernel
/// has not returned it.
fn fill(device: &Device, mut data: Block) -> (Option<Block>, Result<(), EntropyError>) {
    let (bytes, mut filled) = (data.len(), 0);
    while filled < bytes {
        let completion = match device.submit_part(DeviceOperation::Read, 0, data, filled..bytes) {
            Err(error) => return (Lent::claim(error.block).ok(), Err(EntropyError::Exhausted)),
            Ok(Some(completion)) => completion,
            Ok(None) => match device.complete(Deadline::NEVER) {
                Ok(completion) => completion,
                Err(_) => return (None, Err(EntropyError::DeviceError)),
            },
        };
        let read = if completion.result.is_ok() { completion.bytes } else { 0 };
        let Ok(block) = completion.into_loan() else { return (None, Err(EntropyError::DeviceError)) };
        data = block;
        if read == 0 {
            return (Some(data), Err(EntropyError::DeviceError));
        }
        filled += read;
    }
    (Some(data), Ok(()))
}
