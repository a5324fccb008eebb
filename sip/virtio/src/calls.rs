//! Callbacks of `virtio-drivers`: memory for rings, and device addresses of buffers.
//!
//! The callbacks have no context argument, so their context hangs off the thread's word for the
//! duration of one call ([`Call::run`]). Memory for rings is handed to the [`Queue`](crate::Queue) that the call is
//! for and lives as long as the queue; buffers are always parts of memory that the call names. Deliberately
//! not here: bounce buffers; every buffer lies in memory that the device reaches already.

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ptr::NonNull;

use sip::Status;
use virtio_drivers::{BufferDirection, Hal, PAGE_SIZE, PhysAddr};

use crate::memory;
use crate::platform::{DeviceMemory, Platform};

/// Memory within reach of the device.
#[derive(Clone, Copy)]
pub(crate) struct Area {
    address: usize,
    bytes: usize,
    device_address: u64,
}

impl Area {
    pub fn of(memory: &impl DeviceMemory) -> Area {
        let range = memory.memory();
        Area { address: range.addr().get(), bytes: range.len(), device_address: memory.device_address() }
    }

    /// Returns the device address of a buffer if it lies in this area.
    fn find(&self, address: usize, bytes: usize) -> Option<u64> {
        let offset = address.checked_sub(self.address)?;
        let end = offset.checked_add(bytes)?;
        if end <= self.bytes { self.device_address.checked_add(offset as u64) } else { None }
    }
}

/// Context of one call of `virtio-drivers`.
pub(crate) struct Call<'a, P: Platform> {
    platform: &'a P,
    areas: &'a [Area],
    allocated: Vec<P::Memory>,
    failed: Option<Status>,
}

impl<'a, P: Platform> Call<'a, P> {
    /// Creates the context of a call that may name buffers in these areas.
    pub fn new(platform: &'a P, areas: &'a [Area]) -> Call<'a, P> {
        Call { platform, areas, allocated: Vec::new(), failed: None }
    }

    /// Runs the call.
    pub fn run<R>(&mut self, call: impl FnOnce() -> R) -> R {
        let address = core::ptr::from_mut(self).expose_provenance() as u64;
        let _restore = Restore::<P> { word: P::word(), platform: PhantomData };
        // SAFETY: `_restore` restores the word before this borrow of `self` ends.
        unsafe { P::set_word(address) };
        call()
    }

    /// Returns the memory that the call allocated, and the status of an allocation that failed.
    pub fn into_allocated(self) -> (Vec<P::Memory>, Option<Status>) {
        (self.allocated, self.failed)
    }
}

struct Restore<P: Platform> {
    word: u64,
    platform: PhantomData<P>,
}

impl<P: Platform> Drop for Restore<P> {
    fn drop(&mut self) {
        // SAFETY: the object that the former word points to is borrowed by the enclosing call.
        unsafe { P::set_word(self.word) }
    }
}

/// The callbacks of a platform.
pub(crate) struct Calls<P> {
    platform: PhantomData<fn() -> P>,
}

/// Runs an action on the context of the thread's current call.
///
/// # Panics
///
/// If there is none: `virtio-drivers` called back from a function from which this crate does not expect it.
fn with_current<P: Platform, R>(action: impl FnOnce(&mut Call<'_, P>) -> R) -> R {
    let word = P::word() as usize;
    assert!(word != 0, "virtio-drivers called back out of turn");
    let call: *mut Call<'_, P> = core::ptr::with_exposed_provenance_mut(word);
    // SAFETY: only `Call::run` sets a word that is not 0, to a call of the same platform (each platform has its own
    // word) that it borrows exclusively until the word is restored; the word is this thread's, and neither
    // this function nor an action runs inside another action.
    action(unsafe { &mut *call })
}

// SAFETY: `dma_alloc` returns zeroed page-aligned parts of memory that is kept until its queue is dropped, after
// the rings, and to which there is no other reference; `share` returns the address of the very bytes passed to it.
unsafe impl<P: Platform> Hal for Calls<P> {
    fn dma_alloc(pages: usize, _direction: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        with_current::<P, _>(|call| {
            let bytes = pages * PAGE_SIZE;
            // Memory need not be page-aligned: one page more suffices for alignment.
            match call.platform.allocate(bytes + PAGE_SIZE) {
                Ok(memory) => {
                    let address = memory.memory().addr().get();
                    let skipped = address.next_multiple_of(PAGE_SIZE) - address;
                    let first = memory::part(&memory, skipped, bytes);
                    let device_address = memory.device_address().saturating_add(skipped as u64);
                    call.allocated.push(memory);
                    if let Some(first) = NonNull::new(first)
                        && device_address.is_multiple_of(PAGE_SIZE as u64)
                    {
                        return (device_address, first);
                    }
                    call.failed = Some(Status::DeviceError);
                }
                Err(status) => call.failed = Some(status),
            }
            // An address of 0 reports failure.
            (0, NonNull::dangling())
        })
    }

    unsafe fn dma_dealloc(_address: PhysAddr, _memory: NonNull<u8>, _pages: usize) -> i32 {
        // The queue owns the memory and drops it after the rings.
        0
    }

    unsafe fn mmio_phys_to_virt(_address: PhysAddr, _bytes: usize) -> NonNull<u8> {
        // Only virtio-drivers' own transports call this, and none of them is used.
        unreachable!("registers are reached through the kernel")
    }

    unsafe fn share(buffer: NonNull<[u8]>, _direction: BufferDirection) -> PhysAddr {
        with_current::<P, _>(|call| {
            let found = call.areas.iter().find_map(|area| area.find(buffer.addr().get(), buffer.len()));
            match found {
                Some(device_address) => device_address,
                None => panic!("a buffer for the device lies in no memory that it reaches"),
            }
        })
    }

    unsafe fn unshare(_address: PhysAddr, _buffer: NonNull<[u8]>, _direction: BufferDirection) {
        // Nothing to copy back: the device wrote into the buffer itself.
    }
}
