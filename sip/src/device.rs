//! Devices listed in the manifest: a console, a disk, the host's sockets, a packet link.
//!
//! A request takes a block with it; the block comes back with the [`Completion`]. Deliberately not
//! here: the meaning of the bytes.

mod declared;

use core::ops::Range;

pub use abi::{DeviceKind, DeviceOperation, packets, sockets};
pub use declared::{Declared, DeviceObject};

use crate::exheap::sealed::Typed as _;
use crate::exheap::{ExBlock, ExVec, Lendable, Lent};
use crate::raw::{self, value as kernel};
use crate::{Deadline, Status, thread_block};

/// An open device. Dropping it closes the device; queued operations that have not begun are cancelled.
#[derive(Debug)]
pub struct Device {
    handle: u64,
}

/// A device's kind and properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its kind.
    pub kind: DeviceKind,
    /// Size in bytes; of a disk only.
    pub bytes: u64,
    /// Whether writes are refused; of a disk only.
    pub read_only: bool,
    /// Whether it is an interactive terminal.
    pub terminal: bool,
    /// Columns of a terminal; 0 if unknown.
    pub columns: u16,
    /// Rows of a terminal; 0 if unknown.
    pub rows: u16,
    /// Properties of a packet link; `None` for other kinds.
    pub link: Option<Link>,
}

/// Properties of a packet link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Hardware address of this end.
    pub hardware: [u8; 6],
    /// Maximum bytes of a packet without its Ethernet header.
    pub mtu: u16,
    /// Offloads, as `features` of the contract NicDevice.
    pub features: u32,
}

/// A finished operation.
#[derive(Debug)]
pub struct Completion {
    /// The block that was submitted.
    pub block: ExVec<u8>,
    /// Bytes transferred. A console read of 0 bytes is the end of its input.
    pub bytes: usize,
    /// The raw answer, for devices whose answers are more than a byte count ([`abi::sockets`], [`abi::packets`]).
    pub answer: u64,
    /// The outcome.
    pub result: Result<(), Status>,
    /// Handle of the block that was submitted, if it is on loan.
    lent: Option<u64>,
}

impl Completion {
    fn of(block: ExBlock, lent: Option<u64>, answer: u64, status: Status) -> Completion {
        let block = bytes_of(block);
        let bytes = usize::try_from(answer).unwrap_or(usize::MAX).min(block.len());
        let result = if status == Status::Ok { Ok(()) } else { Err(status) };
        Completion { bytes, block, answer, result, lent }
    }

    /// Takes the block as what it was submitted as: on loan, or the process's own.
    pub fn into_loan(self) -> Result<Lent<ExVec<u8>>, ExVec<u8>> {
        // Whoever has the completion may have put another block into it.
        if self.lent == Some(self.block.handle()) { Ok(Lent::new(self.block)) } else { Lent::claim(self.block) }
    }
}

/// An operation that was not accepted, with its block.
#[derive(Debug)]
pub struct SubmitError {
    /// The block that was submitted.
    pub block: ExVec<u8>,
    /// The kernel's error.
    pub status: Status,
}

impl SubmitError {
    fn new(block: ExBlock, status: Status) -> SubmitError {
        SubmitError { block: bytes_of(block), status }
    }
}

/// A block as a sequence of bytes, which may be of any length.
fn bytes_of(block: ExBlock) -> ExVec<u8> {
    ExVec::from_block(block).unwrap_or_else(|_| unreachable!("bytes fit any block"))
}

impl Device {
    /// Opens the device at `index` of the manifest's device list.
    pub fn open(index: usize) -> Result<Device, Status> {
        kernel::device_open(index as u64).map(|handle| Device { handle })
    }

    /// Returns its current properties: a terminal can change its size.
    pub fn describe(&self) -> Result<Description, Status> {
        kernel::device_describe(self.handle)?;
        let word = thread_block::message_word;
        let kind = DeviceKind::from_number(word(0)).ok_or(Status::Unknown)?;
        let [a, b, c, d, e, f, ..] = word(1).to_le_bytes();
        let (mtu, features) = (u16::try_from(word(3)).unwrap_or(0), word(2) as u32);
        let link = Link { hardware: [a, b, c, d, e, f], mtu, features };
        Ok(Description {
            kind,
            bytes: word(1),
            read_only: word(2) & 1 != 0,
            terminal: word(2) & 2 != 0,
            columns: u16::try_from(word(3)).unwrap_or(0),
            rows: u16::try_from(word(4)).unwrap_or(0),
            link: (kind == DeviceKind::Packets).then_some(link),
        })
    }

    /// Submits an operation on `bytes` bytes from the block's start, at a byte offset of the device. Returns its completion
    /// if it is done at once; otherwise `None`, and [`complete`](Device::complete) returns the block. A lent block is one
    /// again by [`Completion::into_loan`].
    pub fn submit(
        &self,
        operation: DeviceOperation,
        offset: u64,
        block: impl Lendable<ExVec<u8>>,
        bytes: usize,
    ) -> Result<Option<Completion>, SubmitError> {
        self.submit_part(operation, offset, block, 0..bytes)
    }

    /// Like [`submit`](Device::submit), for bytes in the middle of the block.
    pub fn submit_part<B: Lendable<ExVec<u8>>>(
        &self,
        operation: DeviceOperation,
        offset: u64,
        block: B,
        part: Range<usize>,
    ) -> Result<Option<Completion>, SubmitError> {
        let block = block.into_loan();
        if part.start > part.end || part.end > block.byte_count() {
            return Err(SubmitError::new(block, Status::BadArgument));
        }
        let (first, bytes) = (part.start as u64, part.len() as u64);
        let operation = operation as u64;
        // SAFETY: on success the block's value is forgotten, until the kernel gives it back; or it was never taken.
        let answer = unsafe { raw::device_submit(self.handle, operation, offset, block.handle(), first, bytes) };
        match answer.into_result() {
            Ok(abi::SUBMIT_QUEUED) => {
                block.forget();
                Ok(None)
            }
            Ok(abi::SUBMIT_DONE) => {
                let lent = B::IS_LENT.then_some(block.handle());
                Ok(Some(Completion::of(block, lent, bytes, Status::Ok)))
            }
            Ok(handle) => {
                block.forget();
                // SAFETY: the kernel has given the block back with this call.
                Ok(Some(unsafe { completion(handle) }))
            }
            Err(status) => Err(SubmitError::new(block, status)),
        }
    }

    /// Waits for the next finished operation, at most until the deadline.
    pub fn complete(&self, deadline: Deadline) -> Result<Completion, Status> {
        // SAFETY: the block becomes owned by the value made here.
        let handle = unsafe { raw::device_complete(self.handle, deadline.as_ns()) }.into_result()?;
        // SAFETY: the kernel has given the block back with this call.
        Ok(unsafe { completion(handle) })
    }

    /// Submits one operation and waits for it. There must be no other operation in flight: its completion could come first.
    pub fn perform(
        &self,
        operation: DeviceOperation,
        offset: u64,
        block: ExVec<u8>,
        bytes: usize,
    ) -> Result<Completion, SubmitError> {
        if let Some(completion) = self.submit(operation, offset, block, bytes)? {
            return Ok(completion);
        }
        match self.complete(Deadline::NEVER) {
            Ok(completion) => Ok(completion),
            // The kernel returns every block it accepted; an error means that the handle is not a device's.
            Err(status) => panic!("the kernel lost a device request: {}", status.text()),
        }
    }

    pub(crate) fn handle(&self) -> u64 {
        self.handle
    }
}

/// Takes the block that the last ABI call of this thread gave back, as described in the message buffer.
///
/// # Safety
/// It must have given back the block with this handle, and nobody else must own it.
unsafe fn completion(handle: u64) -> Completion {
    let answer = thread_block::message_word(2);
    let status = Status::from_number(thread_block::message_word(3));
    let lent = (thread_block::message_word(4) != 0).then_some(handle);
    // SAFETY: the caller's obligation.
    let block = unsafe { ExBlock::from_answer(handle) };
    Completion::of(block, lent, answer, status)
}

impl Drop for Device {
    fn drop(&mut self) {
        // This value owns the handle, so the kernel cannot refuse it.
        let _ = kernel::device_close(self.handle);
    }
}

/// Returns whether the machine or a bus has a device of this name. Needs the manifest's
/// `system-manifest` permission.
pub fn exists(name: &str) -> Result<bool, Status> {
    match thread_block::put_bytes(name.as_bytes()) {
        Ok(length) => kernel::device_exists(length).map(|answer| answer != 0),
        // No device has a name that long.
        Err(_) => Ok(false),
    }
}

/// Powers the machine off. Needs the manifest's `power` permission; a refusal is returned as the status.
pub fn power_off(exit_status: u8) -> Status {
    match kernel::machine_power_off(u64::from(exit_status)) {
        Ok(_) => Status::Ok,
        Err(status) => status,
    }
}

/// Restarts the machine. Needs the manifest's `power` permission; a refusal is returned as the status.
pub fn restart() -> Status {
    match kernel::machine_restart() {
        Ok(_) => Status::Ok,
        Err(status) => status,
    }
}
