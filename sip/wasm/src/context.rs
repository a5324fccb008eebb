//! The context of an instance: the words that compiled code reads and writes.

use alloc::boxed::Box;
use alloc::vec;
use core::cell::UnsafeCell;

use wasm_record::layout::{ARGUMENTS, MAX_ARGUMENTS, MEMORY_BASE, MEMORY_BYTES, RUNTIME, SLOT_BYTES, global, table};

use crate::Host;
use crate::instance::State;

/// What host functions reach while code runs.
pub(crate) struct Active<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) host: &'a mut dyn Host,
}

impl<'a> Active<'a> {
    /// Makes it that of the context; returns the former one.
    ///
    /// # Safety
    ///
    /// The context is a live one, and `self` lives until [`restore`](Self::restore).
    pub(crate) unsafe fn install(context: *mut u8, active: &mut Active<'a>) -> u64 {
        // SAFETY: the word is the runtime's own.
        unsafe {
            let word = context.add(RUNTIME as usize).cast::<u64>();
            word.replace((&raw mut *active).expose_provenance() as u64)
        }
    }

    /// Undoes [`install`](Self::install).
    ///
    /// # Safety
    ///
    /// As there.
    pub(crate) unsafe fn restore(context: *mut u8, former: u64) {
        // SAFETY: the word is the runtime's own.
        unsafe { context.add(RUNTIME as usize).cast::<u64>().write(former) }
    }

    /// Returns that of the context.
    ///
    /// # Safety
    ///
    /// One is installed, and no other reference to it is in use until the returned one is not.
    pub(crate) unsafe fn of<'b>(context: *mut u8) -> &'b mut Active<'a> {
        // SAFETY: the word is the address of the one that is installed.
        unsafe {
            let word = context.add(RUNTIME as usize).cast::<u64>().read();
            &mut *core::ptr::with_exposed_provenance_mut(word as usize)
        }
    }
}

/// The words of an instance. They stay where they are as long as it lives.
pub(crate) struct Context {
    slots: Box<[UnsafeCell<u128>]>,
    tables: u32,
    globals: u32,
}

impl Context {
    /// All words zero.
    pub(crate) fn new(tables: u32, globals: u32) -> Context {
        let slots = global(tables, globals) / SLOT_BYTES;
        let zeros = vec![0u128; slots as usize].into_iter();
        Context { slots: zeros.map(UnsafeCell::new).collect(), tables, globals }
    }

    /// Its address, which code gets.
    pub(crate) fn address(&self) -> *mut u8 {
        UnsafeCell::raw_get(self.slots.as_ptr()).cast()
    }

    fn word(&self, offset: u32) -> *mut u64 {
        assert!(offset as usize + 8 <= self.slots.len() * SLOT_BYTES as usize, "outside of the context");
        // SAFETY: in bounds.
        unsafe { self.address().add(offset as usize).cast() }
    }

    fn set_word(&mut self, offset: u32, value: u64) {
        // SAFETY: in bounds and aligned; code does not run while the context is borrowed.
        unsafe { self.word(offset).write(value) }
    }

    /// Tells code where memory is.
    pub(crate) fn set_memory(&mut self, base: usize, bytes: usize) {
        self.set_word(MEMORY_BASE, base as u64);
        self.set_word(MEMORY_BYTES, bytes as u64);
    }

    /// Tells code where a table is.
    pub(crate) fn set_table(&mut self, index: u32, base: usize, entries: usize) {
        assert!(index < self.tables, "no such table");
        self.set_word(table(index), base as u64);
        self.set_word(table(index) + 8, entries as u64);
    }

    fn slot(&self, offset: u32) -> &UnsafeCell<u128> {
        &self.slots[(offset / SLOT_BYTES) as usize]
    }

    fn global_slot(&self, index: u32) -> &UnsafeCell<u128> {
        assert!(index < self.globals, "no such global");
        self.slot(global(self.tables, index))
    }

    /// The bits of a global.
    pub(crate) fn global(&self, index: u32) -> u128 {
        // SAFETY: code does not run while the context is borrowed, and nothing else has its address.
        unsafe { self.global_slot(index).get().read() }
    }

    /// Sets the bits of a global.
    pub(crate) fn set_global(&mut self, index: u32, value: u128) {
        // SAFETY: as above.
        unsafe { self.global_slot(index).get().write(value) }
    }

    fn argument_slot(&self, index: usize) -> &UnsafeCell<u128> {
        assert!(index < MAX_ARGUMENTS, "too many arguments");
        self.slot(ARGUMENTS + index as u32 * SLOT_BYTES)
    }

    /// The bits of an argument or result.
    pub(crate) fn argument(&self, index: usize) -> u128 {
        // SAFETY: as above.
        unsafe { self.argument_slot(index).get().read() }
    }

    /// Sets the bits of an argument or result.
    pub(crate) fn set_argument(&mut self, index: usize, value: u128) {
        // SAFETY: as above.
        unsafe { self.argument_slot(index).get().write(value) }
    }
}
