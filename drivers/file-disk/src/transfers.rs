//! The device, and the operations in flight on it.
//!
//! Operations that the machine completes at once are answered on the thread that serves the clients. For queued
//! ones, a second thread waits for completions and wakes the client's task. An operation is identified by
//! its block's address, which is unique while the device holds the block.

use alloc::sync::Arc;

use disk_server::Pending;
use sip::device::{Completion, Device, DeviceOperation, SubmitError};
use sip::exheap::{ExVec, Lendable};
use sip::sync::Event;
use sip::{Deadline, Status};

/// The device, shared by the two threads.
pub struct Transfers {
    device: Device,
    pending: Pending<Completion>,
    /// Set when an operation has been queued.
    queued: Event,
}

impl Transfers {
    /// Takes the device and starts the thread that waits for completions.
    pub fn start(device: Device) -> Result<Arc<Transfers>, Status> {
        let transfers = Arc::new(Transfers { device, pending: Pending::new(), queued: Event::auto()? });
        let waiting = transfers.clone();
        // The thread runs until the process ends.
        drop(sip::thread::spawn(move || waiting.wait_at_device())?);
        Ok(transfers)
    }

    /// Performs one operation. `address` is the address of the block's bytes.
    pub async fn perform(
        &self,
        operation: DeviceOperation,
        offset: u64,
        block: impl Lendable<ExVec<u8>>,
        address: usize,
        bytes: usize,
    ) -> Result<Completion, SubmitError> {
        self.pending.begin(address);
        match self.device.submit(operation, offset, block, bytes) {
            Err(error) => {
                self.pending.cancel(address);
                return Err(error);
            }
            Ok(Some(completion)) => {
                self.pending.cancel(address);
                return Ok(completion);
            }
            Ok(None) => self.queued.set(),
        }
        Ok(self.pending.wait(address).await)
    }

    fn wait_at_device(&self) {
        loop {
            self.queued.wait();
            while self.pending.has_pending() {
                match self.device.complete(Deadline::NEVER) {
                    Ok(completion) => self.pending.finish(completion.block.as_ptr() as usize, completion),
                    Err(_) => break,
                }
            }
        }
    }
}
