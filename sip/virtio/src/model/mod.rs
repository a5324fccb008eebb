//! A machine with one virtio device in the test's own process.
//!
//! Key types: [`Machine`] (the platform of the driver under test), [`Behaviour`] (a kind of device; see
//! [`kinds`]), [`Faults`] (fault rate). The clock is simulated and advances only when a driver
//! pauses, so that a test of a timeout takes no time. Deliberately not here: interrupts as such;
//! a test polls for answers after it has run the device.

mod arena;
mod faults;
pub mod kinds;
mod registers;
mod rings;

pub use arena::Memory;
pub use faults::{Faults, Numbers};
pub use registers::Way;

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::vec::Vec;

use sip::Status;

use crate::device::Kind;
use crate::platform::{Platform, Registers};
use arena::Arena;
use registers::RegisterFile;

/// A kind of device.
pub trait Behaviour: Send {
    /// Its kind.
    fn kind(&self) -> Kind;
    /// Features beyond `VIRTIO_F_VERSION_1`.
    fn features(&self) -> u64;
    /// Its configuration space.
    fn configuration(&self) -> Vec<u8>;
    /// Number of its queues.
    fn queues(&self) -> u16;
    /// Returns the bytes it writes for a request with these readable bytes and this much room; `None` if there is no answer yet.
    fn answer(&mut self, queue: u16, readable: &[u8], room: usize) -> Option<Vec<u8>>;
}

/// A machine with one device. A clone refers to the same machine.
#[derive(Clone)]
pub struct Machine {
    shared: Arc<Shared>,
}

struct Shared {
    arena: Arc<Arena>,
    device: Mutex<RegisterFile>,
    now_ns: AtomicU64,
    way: Way,
}

impl Machine {
    /// Creates a machine with this device on this transport.
    pub fn new(behaviour: impl Behaviour + 'static, way: Way, faults: Faults) -> Machine {
        let arena = Arena::new();
        let device = Mutex::new(RegisterFile::new(std::boxed::Box::new(behaviour), arena.clone(), way, faults));
        Machine { shared: Arc::new(Shared { arena, device, now_ns: AtomicU64::new(1), way }) }
    }

    /// Lets the device process its requests.
    pub fn run(&self) {
        self.device().run();
    }

    /// Advances the clock.
    pub fn pass_ms(&self, milliseconds: u64) {
        self.shared.now_ns.fetch_add(milliseconds * 1_000_000, Ordering::Relaxed);
    }

    /// Changes the device's faults from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.device().set_faults(faults);
    }

    /// Makes the device ignore register writes, even a reset.
    pub fn set_deaf(&self, deaf: bool) {
        self.device().set_deaf(deaf);
    }

    /// Makes the configuration generation change with each read.
    pub fn set_restless(&self, restless: bool) {
        self.device().set_restless(restless);
    }

    /// Returns the number of the device's accesses to memory that was not pinned. A device that was reset makes none.
    pub fn stray_accesses(&self) -> u64 {
        self.shared.arena.stray_accesses()
    }

    /// Returns the number of blocks pinned now.
    pub fn blocks(&self) -> usize {
        self.shared.arena.blocks()
    }

    /// Calls `action` with the device's behaviour.
    pub fn with_behaviour<R>(&self, action: impl FnOnce(&mut dyn Behaviour) -> R) -> R {
        action(self.device().behaviour())
    }

    fn device(&self) -> MutexGuard<'_, RegisterFile> {
        // A test that panicked while holding the lock has reported why.
        self.shared.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

std::thread_local! {
    static WORD: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: the word is a thread-local of this module, which only `set_word` sets.
unsafe impl Platform for Machine {
    type Registers = ModelRegisters;
    type Memory = Memory;

    fn range_count(&self) -> usize {
        match self.shared.way {
            Way::Mmio => 1,
            Way::Pci => 5,
        }
    }

    fn range(&self, index: usize) -> Result<ModelRegisters, Status> {
        if index < self.range_count() {
            Ok(ModelRegisters { machine: self.clone(), range: index })
        } else {
            Err(Status::NotFound)
        }
    }

    fn allocate(&self, bytes: usize) -> Result<Memory, Status> {
        self.shared.arena.allocate(bytes).ok_or(Status::Exhausted)
    }

    fn now_ns(&self) -> u64 {
        self.shared.now_ns.load(Ordering::Relaxed)
    }

    fn pause(&self) {
        self.pass_ms(1);
        self.run();
    }

    fn word() -> u64 {
        WORD.get()
    }

    unsafe fn set_word(word: u64) {
        WORD.set(word);
    }
}

/// A register range of the device.
#[derive(Clone)]
pub struct ModelRegisters {
    machine: Machine,
    range: usize,
}

impl ModelRegisters {
    fn read(&self, offset: u64, bytes: u64) -> Result<u32, Status> {
        self.machine.device().read(self.range, offset, bytes)
    }

    fn write(&self, offset: u64, bytes: u64, value: u32) -> Result<(), Status> {
        self.machine.device().write(self.range, offset, bytes, value)
    }
}

impl Registers for ModelRegisters {
    fn bytes(&self) -> u64 {
        registers::range_bytes(self.machine.shared.way, self.range)
    }

    fn read8(&self, offset: u64) -> Result<u8, Status> {
        self.read(offset, 1).map(|value| value as u8)
    }

    fn read16(&self, offset: u64) -> Result<u16, Status> {
        self.read(offset, 2).map(|value| value as u16)
    }

    fn read32(&self, offset: u64) -> Result<u32, Status> {
        self.read(offset, 4)
    }

    fn write8(&self, offset: u64, value: u8) -> Result<(), Status> {
        self.write(offset, 1, value.into())
    }

    fn write16(&self, offset: u64, value: u16) -> Result<(), Status> {
        self.write(offset, 2, value.into())
    }

    fn write32(&self, offset: u64, value: u32) -> Result<(), Status> {
        self.write(offset, 4, value)
    }
}
