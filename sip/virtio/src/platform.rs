//! Interface to the system below: registers, DMA memory, a clock.
//!
//! [`System`](crate::System) is the platform of a program; the tests have one of their own. Deliberately not
//! here: anything virtio.

use core::ptr::NonNull;

use sip::Status;

/// A register range of a device. Offsets are in bytes.
pub trait Registers: Clone + Send {
    /// Returns its length in bytes.
    fn bytes(&self) -> u64;
    /// Reads 8 bits.
    fn read8(&self, offset: u64) -> Result<u8, Status>;
    /// Reads 16 bits.
    fn read16(&self, offset: u64) -> Result<u16, Status>;
    /// Reads 32 bits.
    fn read32(&self, offset: u64) -> Result<u32, Status>;
    /// Writes 8 bits.
    fn write8(&self, offset: u64, value: u8) -> Result<(), Status>;
    /// Writes 16 bits.
    fn write16(&self, offset: u64, value: u16) -> Result<(), Status>;
    /// Writes 32 bits.
    fn write32(&self, offset: u64, value: u32) -> Result<(), Status>;
}

/// DMA memory. Dropping it unpins it.
///
/// # Safety
///
/// Until the value is dropped, [`memory`](DeviceMemory::memory) always returns the same range, valid for reads and
/// writes from any thread, wherever the value is moved; no safe code of the process refers to it; and for the
/// device its bytes are contiguous from [`device_address`](DeviceMemory::device_address) on.
pub unsafe trait DeviceMemory: Send {
    /// Returns the memory.
    fn memory(&self) -> NonNull<[u8]>;
    /// Returns the device's address of its first byte.
    fn device_address(&self) -> u64;
}

/// A device, with the services its driver needs from the system.
///
/// # Safety
///
/// [`word`](Platform::word) returns the value last passed to [`set_word`](Platform::set_word) on the same thread, and 0
/// before that; nothing but this crate calls the latter.
pub unsafe trait Platform: Clone + Send + 'static {
    /// Its registers.
    type Registers: Registers;
    /// The driver's own DMA memory.
    type Memory: DeviceMemory;

    /// Returns the number of the device's register ranges.
    fn range_count(&self) -> usize;
    /// Returns a register range; `NotFound` past the last.
    fn range(&self, index: usize) -> Result<Self::Registers, Status>;
    /// Allocates zeroed DMA memory.
    fn allocate(&self, bytes: usize) -> Result<Self::Memory, Status>;
    /// Returns nanoseconds of a monotonic clock.
    fn now_ns(&self) -> u64;
    /// Sleeps for about a millisecond.
    fn pause(&self);
    /// Returns the calling thread's word.
    fn word() -> u64;
    /// Sets the calling thread's word.
    ///
    /// # Safety
    ///
    /// The word is restored before the object that it points to is dropped.
    unsafe fn set_word(word: u64);
}
