//! What the adapter stands on: registers, memory that a device reaches, a clock.
//!
//! [`System`](crate::System) is the platform of a program; the tests have one of their own. Deliberately not
//! here: anything virtio.

use core::ptr::NonNull;

use sip::Status;

/// A range of a device's registers. Offsets are in bytes.
pub trait Registers: Clone + Send {
    /// Its length.
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

/// Memory that a device reaches. Dropping it ends that.
///
/// # Safety
///
/// Until the value is dropped, [`memory`](DeviceMemory::memory) always gives the same range, valid for reads and
/// writes from any thread, wherever the value is moved; no safe code of the process refers to it; and the
/// device finds its bytes in one piece from [`device_address`](DeviceMemory::device_address) on.
pub unsafe trait DeviceMemory: Send {
    /// The memory.
    fn memory(&self) -> NonNull<[u8]>;
    /// Where the device finds its first byte.
    fn device_address(&self) -> u64;
}

/// A device and what its driver needs of the system.
///
/// # Safety
///
/// [`word`](Platform::word) gives what [`set_word`](Platform::set_word) was last given on the same thread, and 0
/// before that; nothing but this crate calls the latter.
pub unsafe trait Platform: Clone + Send + 'static {
    /// Its registers.
    type Registers: Registers;
    /// The driver's own memory that the device reaches.
    type Memory: DeviceMemory;

    /// How many ranges of registers the device has.
    fn range_count(&self) -> usize;
    /// A range of registers.
    fn range(&self, index: usize) -> Result<Self::Registers, Status>;
    /// New zeroed memory that the device reaches.
    fn allocate(&self, bytes: usize) -> Result<Self::Memory, Status>;
    /// Nanoseconds of a clock that never goes back.
    fn now_ns(&self) -> u64;
    /// Lets about a millisecond pass.
    fn pause(&self);
    /// The calling thread's word.
    fn word() -> u64;
    /// Sets the calling thread's word.
    ///
    /// # Safety
    ///
    /// The word is set back before what it leads to ends.
    unsafe fn set_word(word: u64);
}
