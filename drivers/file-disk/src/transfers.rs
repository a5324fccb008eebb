//! Operations under way, and who waits for each.
//!
//! What the machine completes at once is answered on the thread that serves the clients. For what it
//! queues, a second thread waits at the device and wakes the client's task. An operation is told from
//! the others by its block's address, which no other block has while the device holds it.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::future::poll_fn;
use core::task::{Poll, Waker};

use sip::device::{Completion, Device, DeviceOperation, SubmitError};
use sip::exheap::{ExVec, Lendable};
use sip::sync::{Event, Mutex};
use sip::{Deadline, Status};

enum Slot {
    Waiting(Option<Waker>),
    Done(Completion),
}

/// The device, shared by the two threads.
pub struct Transfers {
    device: Device,
    slots: Mutex<BTreeMap<usize, Slot>>,
    /// Set when an operation was queued.
    queued: Event,
}

impl Transfers {
    /// Takes the device over and starts the thread that waits at it.
    pub fn start(device: Device) -> Result<Arc<Transfers>, Status> {
        let transfers = Arc::new(Transfers { device, slots: Mutex::new(BTreeMap::new()), queued: Event::auto()? });
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
        self.slots.lock().insert(address, Slot::Waiting(None));
        match self.device.submit(operation, offset, block, bytes) {
            Err(error) => {
                self.slots.lock().remove(&address);
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
        Ok(poll_fn(|context| self.take(address, context.waker())).await)
    }

    fn take(&self, address: usize, waker: &Waker) -> Poll<Completion> {
        let mut slots = self.slots.lock();
        match slots.remove(&address) {
            Some(Slot::Done(completion)) => Poll::Ready(completion),
            _ => {
                slots.insert(address, Slot::Waiting(Some(waker.clone())));
                Poll::Pending
            }
        }
    }

    fn file(&self, completion: Completion) {
        let address = completion.block.as_ptr() as usize;
        let before = self.slots.lock().insert(address, Slot::Done(completion));
        if let Some(Slot::Waiting(Some(waker))) = before {
            waker.wake();
        }
    }

    fn wait_at_device(&self) {
        loop {
            self.queued.wait();
            while self.is_anyone_waiting() {
                match self.device.complete(Deadline::NEVER) {
                    Ok(completion) => self.file(completion),
                    Err(_) => break,
                }
            }
        }
    }

    fn is_anyone_waiting(&self) -> bool {
        self.slots.lock().values().any(|slot| matches!(slot, Slot::Waiting(_)))
    }
}
