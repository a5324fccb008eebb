//! A block without its element type: ownership, bounds and the ABI calls that change them.

use core::cell::Cell;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use abi::{Status, limits};

use super::Plain;
use super::sealed::Typed as _;
use crate::{raw, thread_block};

/// A block can be split at byte offsets that are multiples of this.
pub const SPLIT_ALIGN: usize = limits::BLOCK_ALIGN;

/// Owns an exchange-heap block of any element type. Dropping it frees the block, or returns it to its owner if it is
/// on loan.
#[derive(Debug)]
pub struct ExBlock {
    handle: u64,
    address: NonNull<u8>,
    bytes: usize,
    // One thread at a time: Send (below), not Sync.
    single_thread: PhantomData<Cell<()>>,
}

// SAFETY: the block belongs to the process, not to a thread; this value is its only owner.
unsafe impl Send for ExBlock {}

impl ExBlock {
    /// Allocates a zeroed block.
    pub(super) fn allocate(bytes: usize, type_tag: u64) -> Result<ExBlock, Status> {
        // SAFETY: the block is new and becomes owned by the value made here.
        let handle = unsafe { raw::heap_allocate(bytes as u64, type_tag) }.into_result()?;
        // SAFETY: the kernel has just returned this handle, and the block's address in word 0.
        Ok(unsafe { ExBlock::from_parts(handle, thread_block::message_word(0), bytes) })
    }

    /// Makes the value for the block that three words of the message buffer describe.
    ///
    /// # Safety
    ///
    /// The kernel put these words there to hand the block to this process, and no other value is made
    /// from them.
    #[inline(always)]
    pub(crate) unsafe fn from_message(position: usize) -> ExBlock {
        let handle = thread_block::message_word(position);
        let address = thread_block::message_word(position + 1);
        let bytes = thread_block::message_word(position + 2) as usize;
        // SAFETY: passed on.
        unsafe { ExBlock::from_parts(handle, address, bytes) }
    }

    /// Makes the value for the block that a call returned: its handle, with address and length in the first words.
    ///
    /// # Safety
    ///
    /// The call that returned `handle` has just made this process the block's owner, and no other value is made from the
    /// answer.
    pub(crate) unsafe fn from_answer(handle: u64) -> ExBlock {
        // SAFETY: passed on.
        unsafe { ExBlock::from_parts(handle, thread_block::message_word(0), thread_block::message_word(1) as usize) }
    }

    /// # Safety
    ///
    /// By the kernel's answer the process owns the block `handle` with this address and length; no other value owns it.
    #[inline(always)]
    unsafe fn from_parts(handle: u64, address: u64, bytes: usize) -> ExBlock {
        let address: *mut u8 = core::ptr::with_exposed_provenance_mut(address as usize);
        // An empty block needs no address; any aligned one serves.
        let empty = core::ptr::without_provenance_mut(limits::BLOCK_ALIGN);
        let pointer = if bytes == 0 { empty } else { address };
        match NonNull::new(pointer) {
            Some(address) => ExBlock { handle, address, bytes, single_thread: PhantomData },
            None => no_address(),
        }
    }

    #[inline(always)]
    pub(crate) fn handle(&self) -> u64 {
        self.handle
    }

    /// Gives up the handle without freeing the block, which has left the process.
    #[inline(always)]
    pub(crate) fn forget(self) {
        let _ = ManuallyDrop::new(self);
    }

    /// Returns its length in bytes.
    #[inline(always)]
    pub fn byte_count(&self) -> usize {
        self.bytes
    }

    /// Returns its contents as elements of `T`, without a partial element at the end.
    #[inline(always)]
    pub(crate) fn elements<T: Plain>(&self) -> &[T] {
        let count = self.count::<T>();
        // SAFETY: the block is owned, so these bytes are readable and there is no other writer; it is
        // aligned to 64, and any bytes are a valid T.
        unsafe { core::slice::from_raw_parts(self.address.as_ptr().cast(), count) }
    }

    /// Returns its contents as mutable elements of `T`; see `elements`.
    #[inline(always)]
    pub(crate) fn elements_mut<T: Plain>(&mut self) -> &mut [T] {
        let count = self.count::<T>();
        // SAFETY: as in `elements`; `&mut self` makes the access the only one.
        unsafe { core::slice::from_raw_parts_mut(self.address.as_ptr().cast(), count) }
    }

    #[inline(always)]
    fn count<T: Plain>(&self) -> usize {
        const { assert!(align_of::<T>() <= limits::BLOCK_ALIGN && size_of::<T>() != 0) };
        self.bytes / size_of::<T>()
    }

    /// Returns the block typed if it was allocated with that element type; else as it was.
    pub fn into_vec<T: Plain>(self) -> Result<super::ExVec<T>, ExBlock> {
        if !self.is_of::<T>() {
            return Err(self);
        }
        super::ExVec::from_block(self)
    }

    /// Returns the block as bytes, whatever its elements are for its peer.
    pub fn into_bytes(self) -> super::ExVec<u8> {
        super::ExVec::of_block(self)
    }

    /// Returns whether it is on loan to this process.
    pub(crate) fn is_lent(&self) -> bool {
        raw::value::heap_describe(self.handle).is_ok() && thread_block::message_word(3) != 0
    }

    fn is_of<T: Plain>(&self) -> bool {
        raw::value::heap_describe(self.handle).is_ok() && thread_block::message_word(2) == T::TYPE_TAG
    }

    /// Splits the block at a byte offset, a multiple of [`SPLIT_ALIGN`]: this one keeps the bytes before it, the returned
    /// one has the rest.
    pub fn split_off(&mut self, offset: usize) -> Result<ExBlock, Status> {
        if offset > self.bytes || !offset.is_multiple_of(SPLIT_ALIGN) {
            return Err(Status::BadArgument);
        }
        // SAFETY: on success this value is shortened to the offset, and the new one owns the rest.
        let handle = unsafe { raw::heap_split(self.handle, offset as u64) }.into_result()?;
        let rest = self.bytes - offset;
        self.bytes = offset;
        // SAFETY: the kernel has made the rest a block of its own with this handle; it begins at the
        // offset, which is within the old block.
        Ok(unsafe { ExBlock::from_parts(handle, self.address.add(offset).as_ptr().expose_provenance() as u64, rest) })
    }

    /// Attaches `child` to this block, to move and be freed with it. Returns its position among the attached blocks.
    pub fn attach(&mut self, child: ExBlock) -> Result<usize, (ExBlock, Status)> {
        // SAFETY: on success the child's value is forgotten.
        match unsafe { raw::heap_attach(self.handle, child.handle) }.into_result() {
            Ok(position) => {
                child.forget();
                Ok(position as usize)
            }
            Err(status) => Err((child, status)),
        }
    }

    /// Detaches the block attached last; `None` if there is none.
    pub fn detach(&mut self) -> Result<Option<ExBlock>, Status> {
        // SAFETY: the block becomes owned by the value made here.
        match unsafe { raw::heap_detach(self.handle) }.into_result() {
            // SAFETY: the kernel has just detached this block for the caller.
            Ok(handle) => Ok(Some(unsafe { ExBlock::from_answer(handle) })),
            Err(Status::NotFound) => Ok(None),
            Err(status) => Err(status),
        }
    }
}

impl Drop for ExBlock {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this value is the only owner and is being dropped.
        let _ = unsafe { raw::heap_free(self.handle) };
    }
}

#[cold]
fn no_address() -> ! {
    panic!("the kernel gave a block without an address")
}
