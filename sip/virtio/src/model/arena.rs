//! Memory shared by driver and device, with a record of pinned blocks.

use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::memory;
use crate::platform::DeviceMemory;

/// Difference between the address of memory in the process and for the device: a driver that confuses
/// the two is detected.
const DEVICE_OFFSET: u64 = 0x7000_0000_0000;
const ALIGN: usize = 64;

/// The memory of one machine.
pub(super) struct Arena {
    /// Length in bytes of each pinned block, by its device address.
    blocks: Mutex<BTreeMap<u64, usize>>,
    stray: AtomicU64,
}

/// A block pinned for the device.
pub struct Memory {
    arena: Arc<Arena>,
    first: NonNull<u8>,
    bytes: usize,
}

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Memory({} bytes)", self.bytes)
    }
}

// SAFETY: the value is the block's only owner.
unsafe impl Send for Memory {}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), ALIGN).ok()
}

impl Arena {
    pub fn new() -> Arc<Arena> {
        Arc::new(Arena { blocks: Mutex::new(BTreeMap::new()), stray: AtomicU64::new(0) })
    }

    pub fn allocate(self: &Arc<Arena>, bytes: usize) -> Option<Memory> {
        let layout = layout(bytes)?;
        // SAFETY: the size is not 0.
        let first = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let memory = Memory { arena: self.clone(), first, bytes };
        self.book().insert(memory.device_address(), bytes);
        Some(memory)
    }

    pub fn stray_accesses(&self) -> u64 {
        self.stray.load(Ordering::Relaxed)
    }

    pub fn blocks(&self) -> usize {
        self.book().len()
    }

    /// Reads as the device does; returns false, and reads nothing, if a part of the range is not pinned.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.reach(address, bytes.len(), |first| {
            for (index, byte) in bytes.iter_mut().enumerate() {
                // SAFETY: `reach` has found the bytes in a block that stays pinned while it holds the lock.
                *byte = unsafe { first.add(index).read_volatile() };
            }
        })
    }

    /// Writes as the device does; returns false, and writes nothing, if a part of the range is not pinned.
    pub fn write(&self, address: u64, bytes: &[u8]) -> bool {
        self.reach(address, bytes.len(), |first| {
            for (index, &byte) in bytes.iter().enumerate() {
                // SAFETY: as in `read`.
                unsafe { first.add(index).write_volatile(byte) };
            }
        })
    }

    fn reach(&self, address: u64, bytes: usize, action: impl FnOnce(*mut u8)) -> bool {
        let book = self.book();
        let inside = book.range(..=address).next_back().is_some_and(|(&first, &length)| {
            let offset = (address - first) as usize;
            offset.checked_add(bytes).is_some_and(|end| end <= length)
        });
        if inside {
            action(core::ptr::with_exposed_provenance_mut((address - DEVICE_OFFSET) as usize));
        } else {
            self.stray.fetch_add(1, Ordering::Relaxed);
        }
        inside
    }

    fn book(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    /// Returns a copy of its bytes.
    pub fn to_vec(&self) -> std::vec::Vec<u8> {
        let mut copy = std::vec![0; self.bytes];
        memory::read(self, 0, &mut copy);
        copy
    }

    /// Copies bytes to its start.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn fill(&self, bytes: &[u8]) {
        memory::write(self, 0, bytes);
    }
}

// SAFETY: the allocation lives as long as the value, is accessed by pointer only, and the device model subtracts the
// offset again.
unsafe impl DeviceMemory for Memory {
    fn memory(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.first, self.bytes)
    }

    fn device_address(&self) -> u64 {
        self.first.as_ptr().expose_provenance() as u64 + DEVICE_OFFSET
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let address = self.device_address();
        self.arena.book().remove(&address);
        if let Some(layout) = layout(self.bytes) {
            // SAFETY: allocated with this layout; no longer recorded as pinned, so the device does not access it.
            unsafe { dealloc(self.first.as_ptr(), layout) };
        }
    }
}
