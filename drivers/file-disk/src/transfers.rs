//! The device, and the operations under way on it.
//!
//! What the machine completes at once is answered on the thread that serves the clients. For what it
//! queues, a second thread waits at the device and wakes the client's task. An operation is told from
//! the others by its block's address, which no other block has while the device holds it.

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
    /// Set when an operation was queued.
    queued: Event,
}

impl Transfers {
    /// Takes the device over and starts the thread that waits at it.
    pub fn start(device: Device) -> Result<Arc<Transfers>, Status> {
        let transfers = Arc::new(Transfers { device, pending: Pending::new(), queued: Event::auto()? });
        let waiting = transfers.clone();
        // The thread ends with the process.
        drop(sip::thread::spawn(move || waiting.wait_at_device())?);
        Ok(transfers)
    }

    /// Does one operation, while other tasks go on. `address` is where the block's bytes are.
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
            Ok(true) => {
                // The other thread may have been quicker, or this may be another operation's.
                if let Ok(completion) = self.device.complete(Deadline::PASSED) {
                    self.file(completion);
                }
            }
            Ok(false) => self.queued.set(),
        }
        Ok(self.pending.wait(address).await)
    }

    fn file(&self, completion: Completion) {
        self.pending.finish(completion.block.as_ptr() as usize, completion);
    }

    fn wait_at_device(&self) {
        loop {
            self.queued.wait();
            while self.pending.is_any_under_way() {
                match self.device.complete(Deadline::NEVER) {
                    Ok(completion) => self.file(completion),
                    Err(_) => break,
                }
            }
        }
    }
}
