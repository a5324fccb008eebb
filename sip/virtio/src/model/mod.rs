//! A machine with one virtio device in the test's own process.
//!
//! Key types: [`Machine`] (the platform of the driver under test), [`Behaviour`] (what a kind of device does; see
//! [`kinds`]), [`Faults`] (how often and how it misbehaves). Time is the machine's own and passes only when a driver
//! pauses, so that a test which waits for a time limit takes none. Deliberately not here: interrupts as such;
//! a test looks for answers when the device has had time to work.

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

/// What a kind of device does with a request.
pub trait Behaviour: Send {
    /// Its kind.
    fn kind(&self) -> Kind;
    /// Features beyond `VIRTIO_F_VERSION_1`.
    fn features(&self) -> u64;
    /// Its configuration.
    fn configuration(&self) -> Vec<u8>;
    /// How many queues it has.
    fn queues(&self) -> u16;
    /// What it writes for a request with these bytes to read and room for so many; nothing if it has no answer yet.
    fn answer(&mut self, queue: u16, readable: &[u8], room: usize) -> Option<Vec<u8>>;
}

/// A machine with one device. A clone is the same machine.
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
    /// A machine with this device, reached in this way.
    pub fn new(behaviour: impl Behaviour + 'static, way: Way, faults: Faults) -> Machine {
        let arena = Arena::new();
        let device = Mutex::new(RegisterFile::new(std::boxed::Box::new(behaviour), arena.clone(), way, faults));
        Machine { shared: Arc::new(Shared { arena, device, now_ns: AtomicU64::new(1), way }) }
    }

    /// Lets the device work at what it has been given.
    pub fn run(&self) {
        self.device().run();
    }

    /// Lets time pass.
    pub fn pass_ms(&self, milliseconds: u64) {
        self.shared.now_ns.fetch_add(milliseconds * 1_000_000, Ordering::Relaxed);
    }

    /// Changes how the device misbehaves from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.device().set_faults(faults);
    }

    /// Lets the device take no notice of what is written to its registers, not even of a reset.
    pub fn set_deaf(&self, deaf: bool) {
        self.device().set_deaf(deaf);
    }

    /// Lets the device's configuration change each time that it is looked at.
    pub fn set_restless(&self, restless: bool) {
        self.device().set_restless(restless);
    }

    /// How often the device reached for memory that no driver had given it. A device that was reset does not.
    pub fn stray_accesses(&self) -> u64 {
        self.shared.arena.stray_accesses()
    }

    /// Blocks of memory that are pinned now.
    pub fn blocks(&self) -> usize {
        self.shared.arena.blocks()
    }

    /// Does something with the device's behaviour.
    pub fn with_behaviour<R>(&self, action: impl FnOnce(&mut dyn Behaviour) -> R) -> R {
        action(self.device().behaviour())
    }

    fn device(&self) -> MutexGuard<'_, RegisterFile> {
        // A test that fails while it holds the lock has said why.
        self.shared.device.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

std::thread_local! {
    static WORD: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: the word is a thread-local of this module, set by `set_word` alone.
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

/// A range of the device's registers.
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
