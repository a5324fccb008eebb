//! The requests in flight at the device.
//!
//! A request is identified by its block's address, which is unique while the device holds the block.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;

use disk_server::Pending;
use folder_server::{Exchanged, Transport};
use sip::device::{Completion, Device, DeviceOperation};
use sip::exheap::ExVec;
use sip::sync::Event;
use sip::{Deadline, Status};

/// The device, shared by the two threads.
struct Shared {
    device: Device,
    pending: Pending<Completion>,
    /// Set when a request has been submitted.
    submitted: Event,
}

/// The transport to the machine.
pub struct Exchanges {
    shared: Arc<Shared>,
}

impl Exchanges {
    /// Takes the device and starts the thread that waits for completions.
    pub fn start(device: Device) -> Result<Exchanges, Status> {
        let shared = Arc::new(Shared { device, pending: Pending::new(), submitted: Event::auto()? });
        let waiting = Arc::clone(&shared);
        // The thread runs until the process ends.
        drop(sip::thread::spawn(move || waiting.wait_at_device())?);
        Ok(Exchanges { shared })
    }
}

impl Transport for Exchanges {
    fn exchange(&self, block: ExVec<u8>, _request_bytes: usize) -> Pin<Box<dyn Future<Output = Exchanged> + '_>> {
        Box::pin(async move {
            let (address, bytes) = (block.as_ptr() as usize, block.len());
            self.shared.pending.begin(address);
            // The length of the request is in the message itself.
            let completion = match self.shared.device.submit(DeviceOperation::Write, 0, block, bytes) {
                Err(error) => {
                    self.shared.pending.cancel(address);
                    return Exchanged { block: Some(error.block), answer: None };
                }
                Ok(Some(completion)) => {
                    self.shared.pending.cancel(address);
                    completion
                }
                Ok(None) => {
                    self.shared.submitted.set();
                    self.shared.pending.wait(address).await
                }
            };
            let answer = completion.result.is_ok().then_some(0..completion.bytes);
            Exchanged { block: Some(completion.block), answer }
        })
    }
}

impl Shared {
    fn wait_at_device(&self) {
        loop {
            self.submitted.wait();
            while self.pending.has_pending() {
                match self.device.complete(Deadline::NEVER) {
                    Ok(completion) => self.pending.finish(completion.block.as_ptr() as usize, completion),
                    Err(_) => break,
                }
            }
        }
    }
}
