//! The device, and the packets of its client.
//!
//! Key type: [`Link`]. A buffer for receiving goes to the device for one read; one for sending returns at once.
//! While the client polls, reads are non-blocking; one read is pending while the client waits for an event.
//! Deliberately not here: contracts.

use alloc::collections::VecDeque;
use core::cell::{Cell, RefCell};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Poll, Waker};

use contracts::{Packet, PacketFlags};
use network::packets::{self, Filled};
use sip::device::packets::{CHECKSUM_GOOD, LENGTH_MASK, NO_WAIT};
use sip::device::{Completion, Description, Device, DeviceOperation};
use sip::exheap::ExVec;
use sip::{Deadline, Status, executor, time};

use crate::treatment;

/// Maximum packets that the driver keeps in each direction.
pub const MAX_PACKETS: u32 = 1024;

/// The client's buffers.
#[derive(Default)]
struct Buffers {
    /// For receiving.
    empty: VecDeque<ExVec<u8>>,
    received: VecDeque<Filled>,
    sent: VecDeque<ExVec<u8>>,
}

/// The link, for one client at a time.
pub struct Link {
    device: Device,
    pub description: sip::device::Link,
    buffers: RefCell<Buffers>,
    /// Address of the block of the pending read, and the client that owns the block.
    waiting: Cell<Option<(usize, u64)>>,
    /// The current client.
    client: Cell<Option<u64>>,
    clients: Cell<u64>,
    /// Whether packets were received since the client was notified or took them all.
    has_unseen: Cell<bool>,
    /// Whether the client waits for an event.
    client_waits: Cell<bool>,
    /// Wakers of the notifying and of the receiving task.
    notifier: RefCell<Option<Waker>>,
    receiver: RefCell<Option<Waker>>,
    /// Whether the device has failed.
    has_failed: Cell<bool>,
}

impl Link {
    /// Takes the device. `NotFound` if it is no packet link.
    pub fn new(device: Device, description: &Description) -> Result<Link, Status> {
        Ok(Link {
            device,
            description: description.link.ok_or(Status::NotFound)?,
            buffers: RefCell::default(),
            waiting: Cell::new(None),
            client: Cell::new(None),
            clients: Cell::new(0),
            has_unseen: Cell::new(false),
            client_waits: Cell::new(false),
            notifier: RefCell::default(),
            receiver: RefCell::default(),
            has_failed: Cell::new(false),
        })
    }

    /// Returns whether it has a client.
    pub fn is_taken(&self) -> bool {
        self.client.get().is_some()
    }

    /// Assigns the link to a client and returns the client's number.
    pub fn take(&self) -> u64 {
        let number = self.clients.get() + 1;
        self.clients.set(number);
        self.client.set(Some(number));
        number
    }

    /// Releases the link, and drops the client's buffers.
    pub fn release(&self, client: u64) {
        if self.client.get() != Some(client) {
            return;
        }
        self.client.set(None);
        self.has_unseen.set(false);
        self.client_waits.set(false);
        drop(self.buffers.take());
        wake(&self.notifier);
    }

    /// Adds a receive buffer.
    pub fn add(&self, buffer: ExVec<u8>) {
        self.buffers.borrow_mut().empty.push_back(buffer);
        wake(&self.receiver);
    }

    /// Returns the number of receive buffers held, filled or not.
    pub fn receive_buffers(&self) -> usize {
        let buffers = self.buffers.borrow();
        buffers.empty.len() + buffers.received.len() + usize::from(self.waiting.get().is_some())
    }

    /// Returns the number of transmit buffers not yet taken back.
    pub fn sent_buffers(&self) -> usize {
        self.buffers.borrow().sent.len()
    }

    /// Sends the first bytes of a buffer, with the offloads of its record.
    pub fn write(&self, record: &Packet, buffer: ExVec<u8>) {
        let bytes = (record.length as usize).min(buffer.len());
        let is_asked = record.flags.contains(PacketFlags::CHECKSUM);
        let treatment = is_asked.then(|| treatment::treatment(&buffer[..bytes], record.segment_bytes)).flatten();
        let offset = treatment.unwrap_or_default().to_offset();
        match self.device.submit(DeviceOperation::Write, offset, buffer, bytes) {
            // Dropped if the host's queue is full.
            Ok(Some(completion)) => self.buffers.borrow_mut().sent.push_back(completion.block),
            // The device queues no writes.
            Ok(None) => self.has_failed.set(true),
            Err(error) => self.buffers.borrow_mut().sent.push_back(error.block),
        }
    }

    /// Takes back the buffer of a sent packet.
    pub fn next_sent(&self) -> Option<ExVec<u8>> {
        self.buffers.borrow_mut().sent.pop_front()
    }

    /// Takes a received packet.
    pub fn next_received(&self) -> Option<Filled> {
        let mut buffers = self.buffers.borrow_mut();
        let packet = buffers.received.pop_front();
        if buffers.received.is_empty() {
            self.has_unseen.set(false);
        }
        packet
    }

    /// Notifies the client of packets that it has not taken.
    pub fn notify_rest(&self) {
        if self.has_unseen.get() {
            wake(&self.notifier);
        }
    }

    /// Receives available packets, without blocking.
    pub fn receive(&self) {
        // The pending read has an earlier packet than the reads below.
        if let Some((address, _)) = self.waiting.get()
            && let Some(completion) = self.completed(address)
        {
            self.handle(completion);
            wake(&self.receiver);
        }
        loop {
            let Some(buffer) = self.buffers.borrow_mut().empty.pop_front() else { break };
            let Some(completion) = self.read(NO_WAIT, buffer) else { break };
            if !self.handle(completion) {
                break;
            }
        }
    }

    /// Submits a read; returns its completion. `None` if it waits for a packet, or the device refused it.
    fn read(&self, offset: u64, buffer: ExVec<u8>) -> Option<Completion> {
        let (address, bytes) = (buffer.as_ptr() as usize, buffer.len());
        match self.device.submit(DeviceOperation::Read, offset, buffer, bytes) {
            Ok(Some(completion)) => Some(completion),
            Ok(None) => {
                self.waiting.set(Some((address, self.clients.get())));
                None
            }
            Err(error) => {
                self.buffers.borrow_mut().empty.push_front(error.block);
                None
            }
        }
    }

    /// Returns the completion of the queued operation on the block at this address.
    fn completed(&self, address: usize) -> Option<Completion> {
        while let Ok(completion) = self.device.complete(Deadline::PASSED) {
            if completion.block.as_ptr() as usize == address {
                return Some(completion);
            }
            self.handle(completion);
            wake(&self.receiver);
        }
        None
    }

    /// Handles a completed read; returns whether it received a packet.
    fn handle(&self, completion: Completion) -> bool {
        if completion.result.is_err() {
            self.has_failed.set(true);
            wake(&self.receiver);
            return false;
        }
        let length = completion.answer & LENGTH_MASK;
        let mut buffers = self.buffers.borrow_mut();
        let Some(buffer) = self.own_block(&mut buffers, completion.block, length as usize) else { return false };
        let Some(length) = u32::try_from(length).ok().filter(|&length| length > 0) else {
            buffers.empty.push_front(buffer);
            return false;
        };
        let is_good = completion.answer & CHECKSUM_GOOD != 0;
        let record = Packet {
            received_ns: time::monotonic(),
            flags: PacketFlags::CHECKSUM.when(is_good),
            ..packets::sent(length)
        };
        buffers.received.push_back((record, buffer));
        self.has_unseen.set(true);
        true
    }

    /// Returns the block of a read. If it belongs to a former client, which left while the read was pending, the packet
    /// is copied to a block of the current client; without one, it is dropped.
    fn own_block(&self, buffers: &mut Buffers, block: ExVec<u8>, length: usize) -> Option<ExVec<u8>> {
        let address = block.as_ptr() as usize;
        let Some((_, client)) = self.waiting.get().filter(|(waiting, _)| *waiting == address) else {
            return Some(block);
        };
        self.waiting.set(None);
        if self.client.get() == Some(client) {
            return Some(block);
        }
        let mut own = buffers.empty.pop_front()?;
        if let (Some(place), Some(bytes)) = (own.get_mut(..length), block.get(..length)) {
            place.copy_from_slice(bytes);
        }
        Some(own)
    }

    /// Keeps a read pending while the client waits, as long as the device works, and notifies it of packets. A client
    /// that does not wait polls by itself.
    pub async fn run(&self) {
        while !self.has_failed.get() {
            // Let the client take and give buffers first.
            executor::idle().await;
            if self.waiting.get().is_none() && self.client_waits.get() {
                let buffer = self.buffers.borrow_mut().empty.pop_front();
                if let Some(buffer) = buffer
                    && let Some(completion) = self.read(0, buffer)
                {
                    self.handle(completion);
                    wake(&self.notifier);
                    continue;
                }
            }
            self.wait().await;
        }
    }

    /// Waits for the pending read, or, if there is none, for a buffer and a client that waits.
    async fn wait(&self) {
        let is_waiting = self.waiting.get().is_some();
        let mut ready = pin!(executor::ready(&self.device));
        poll_fn(|context| {
            if self.has_failed.get() || self.waiting.get().is_some() != is_waiting {
                return Poll::Ready(());
            }
            if is_waiting {
                if ready.as_mut().poll(context).is_ready() {
                    return Poll::Ready(());
                }
            } else if self.client_waits.get() && !self.buffers.borrow().empty.is_empty() {
                return Poll::Ready(());
            }
            *self.receiver.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
        if let Some((address, _)) = self.waiting.get()
            && let Some(completion) = self.completed(address)
        {
            self.handle(completion);
            wake(&self.notifier);
        }
    }

    /// Waits until there is an event for this client; false when it is gone.
    pub async fn event(&self, client: u64) -> bool {
        poll_fn(|context| {
            if self.client.get() != Some(client) {
                return Poll::Ready(false);
            }
            let has_unseen = self.has_unseen.take();
            self.client_waits.set(!has_unseen);
            if has_unseen {
                return Poll::Ready(true);
            }
            *self.notifier.borrow_mut() = Some(context.waker().clone());
            wake(&self.receiver);
            Poll::Pending
        })
        .await
    }
}

fn wake(place: &RefCell<Option<Waker>>) {
    let waker = place.take();
    waker.into_iter().for_each(Waker::wake);
}
