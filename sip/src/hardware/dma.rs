//! Blocks for DMA.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::{Ordering, fence};

use abi::Status;

use super::Hardware;
use crate::exheap::{ExVec, Lent};
use crate::raw;

mod sealed {
    pub trait Sealed {
        fn handle(&self) -> u64;
        fn memory(&mut self) -> &mut [u8];
    }

    impl Sealed for super::ExVec<u8> {
        fn handle(&self) -> u64 {
            super::ExVec::handle(self)
        }

        fn memory(&mut self) -> &mut [u8] {
            self.as_mut_slice()
        }
    }

    impl Sealed for super::Lent<super::ExVec<u8>> {
        fn handle(&self) -> u64 {
            self.lent_block().handle()
        }

        fn memory(&mut self) -> &mut [u8] {
            self
        }
    }
}

/// A block that can be pinned for DMA: one of the program's own, or one on loan.
pub trait Pinnable: sealed::Sealed {}

impl Pinnable for ExVec<u8> {}
impl Pinnable for Lent<ExVec<u8>> {}

/// A block that the device may read and write until [`end`](DmaBlock::end). Dropping it unpins and drops
/// the block: a lent one returns to its owner.
///
/// It hands out no slice of its bytes, because the device changes them: they are copied in and out, or accessed
/// through a pointer by an adapter that accounts for the device's accesses.
///
/// If the program ends meanwhile, the block stays allocated until the device's bus has quiesced the device.
#[derive(Debug)]
pub struct DmaBlock<B: Pinnable = ExVec<u8>> {
    hardware: Hardware,
    block: ManuallyDrop<B>,
    memory: NonNull<[u8]>,
    device_address: u64,
}

// SAFETY: the pointer leads to the memory of the block, of which this value is the only owner; it is Send as
// the block is. It is not Sync: `write` takes no exclusive reference to the memory.
unsafe impl<B: Pinnable + Send> Send for DmaBlock<B> {}

impl Hardware {
    /// Pins a block for DMA by the device. The program keeps it but cannot send it on until it is unpinned.
    /// `NotPermitted` if the device cannot do DMA, `NotFound` if it cannot reach this memory.
    pub fn begin_dma<B: Pinnable>(&self, mut block: B) -> Result<DmaBlock<B>, (B, Status)> {
        let memory = NonNull::from(block.memory());
        // SAFETY: nothing leaves the process; while the device may write to the block, only the DmaBlock refers
        // to it, and by pointer.
        match unsafe { raw::dma_begin(self.handle(), block.handle()) }.into_result() {
            Ok(device_address) => {
                Ok(DmaBlock { hardware: self.clone(), block: ManuallyDrop::new(block), memory, device_address })
            }
            Err(status) => Err((block, status)),
        }
    }
}

impl<B: Pinnable> DmaBlock<B> {
    /// Returns the address at which the device sees its first byte.
    pub fn device_address(&self) -> u64 {
        self.device_address
    }

    /// Returns its length in bytes.
    pub fn bytes(&self) -> usize {
        self.memory.len()
    }

    /// Returns its memory, valid while this value lives, for an adapter that accounts for the device's accesses.
    pub fn memory(&self) -> NonNull<[u8]> {
        self.memory
    }

    /// Copies bytes from `offset` on out of the block, as the device left them. `BadArgument` if they are
    /// not all inside it.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<(), Status> {
        let first = self.part(offset, bytes.len())?;
        for (index, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: `part` has checked that the bytes lie in the block, which this value owns; the device may
            // write to them concurrently, so the access is volatile.
            *byte = unsafe { first.add(index).read_volatile() };
        }
        fence(Ordering::Acquire);
        Ok(())
    }

    /// Copies bytes into the block from `offset` on. `BadArgument` if they do not fit.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), Status> {
        let first = self.part(offset, bytes.len())?;
        fence(Ordering::Release);
        for (index, &byte) in bytes.iter().enumerate() {
            // SAFETY: as in `read`.
            unsafe { first.add(index).write_volatile(byte) };
        }
        Ok(())
    }

    fn part(&self, offset: usize, bytes: usize) -> Result<NonNull<u8>, Status> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.memory.len());
        if !inside {
            return Err(Status::BadArgument);
        }
        // SAFETY: the offset lies within the block or at its end.
        Ok(unsafe { self.memory.cast::<u8>().add(offset) })
    }

    /// Unpins the block and returns it. The device must have no access to it in flight: a late write would corrupt
    /// whatever lies there then.
    pub fn end(self) -> B {
        let mut ended = ManuallyDrop::new(self);
        ended.unpin();
        // SAFETY: `ended` is never dropped, so the block and the device's handle are each taken out once.
        unsafe {
            let block = ManuallyDrop::take(&mut ended.block);
            core::ptr::drop_in_place(&mut ended.hardware);
            block
        }
    }

    fn unpin(&mut self) {
        // SAFETY: only this value refers to the block. It is pinned for this device, so the kernel cannot refuse.
        let _ = unsafe { raw::dma_end(self.hardware.handle(), self.block.handle()) };
    }
}

impl<B: Pinnable> Drop for DmaBlock<B> {
    fn drop(&mut self) {
        self.unpin();
        // SAFETY: nothing uses the block after this.
        unsafe { ManuallyDrop::drop(&mut self.block) };
    }
}
