//! The requests in flight at the device.
//!
//! A request is identified by its block's address, which is unique while the device holds the block. Most are answered
//! at once. While one is not, its task waits for the device too, and takes what the device has done for all of them.

use alloc::boxed::Box;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::task::Poll;

use disk_server::Pending;
use folder_server::{Exchanged, Transport};
use sip::Deadline;
use sip::device::{Completion, Device, DeviceOperation};
use sip::executor;
use sip::exheap::ExVec;

/// The transport to the machine.
pub struct Exchanges {
    device: Device,
    pending: Pending<Completion>,
}

impl Exchanges {
    /// Takes the device.
    pub fn new(device: Device) -> Exchanges {
        Exchanges { device, pending: Pending::new() }
    }

    /// Awaits the completion of a registered request.
    async fn completed(&self, address: usize) -> Completion {
        let mut own = pin!(self.pending.wait(address));
        let mut at_device = executor::ready(&self.device);
        poll_fn(|context| {
            loop {
                if let Poll::Ready(completion) = own.as_mut().poll(context) {
                    return Poll::Ready(completion);
                }
                if Pin::new(&mut at_device).poll(context).is_pending() {
                    return Poll::Pending;
                }
                // Wakes the tasks that wait for them: these may have come to the device after it was ready.
                while let Ok(completion) = self.device.complete(Deadline::PASSED) {
                    self.pending.finish(completion.block.as_ptr() as usize, completion);
                }
                at_device = executor::ready(&self.device);
            }
        })
        .await
    }
}

impl Transport for Exchanges {
    fn exchange(&self, block: ExVec<u8>, _request_bytes: usize) -> Pin<Box<dyn Future<Output = Exchanged> + '_>> {
        Box::pin(async move {
            let (address, bytes) = (block.as_ptr() as usize, block.len());
            self.pending.begin(address);
            // The length of the request is in the message itself.
            let completion = match self.device.submit(DeviceOperation::Write, 0, block, bytes) {
                Err(error) => {
                    self.pending.cancel(address);
                    return Exchanged { block: Some(error.block), answer: None };
                }
                Ok(Some(completion)) => {
                    self.pending.cancel(address);
                    completion
                }
                Ok(None) => self.completed(address).await,
            };
            let answer = completion.result.is_ok().then_some(0..completion.bytes);
            Exchanged { block: Some(completion.block), answer }
        })
    }
}
