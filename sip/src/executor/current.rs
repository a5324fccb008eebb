//! The executor that runs on the calling thread: one runtime word.

use alloc::rc::Rc;
use core::mem::ManuallyDrop;

use super::Executor;
use crate::thread_block::{self, EXECUTOR};

/// Makes the executor the thread's own until the guard ends; the one before comes back then.
pub(super) fn enter(executor: &Rc<Executor>) -> Entered<'_> {
    let before = thread_block::runtime_word(EXECUTOR);
    let address = Rc::as_ptr(executor).expose_provenance() as u64;
    thread_block::set_runtime_word(EXECUTOR, address);
    Entered { before, _executor: executor }
}

pub(super) struct Entered<'a> {
    before: u64,
    _executor: &'a Rc<Executor>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        thread_block::set_runtime_word(EXECUTOR, self.before);
    }
}

/// The thread's executor.
///
/// # Panics
///
/// When none runs.
pub(super) fn get() -> Rc<Executor> {
    match try_get() {
        Some(executor) => executor,
        None => panic!("this waits for a message in a task, but no executor runs on this thread"),
    }
}

/// The thread's executor, if one runs.
pub(super) fn try_get() -> Option<Rc<Executor>> {
    let address = thread_block::runtime_word(EXECUTOR) as usize;
    if address == 0 {
        return None;
    }
    let executor: *const Executor = core::ptr::with_exposed_provenance(address);
    // SAFETY: only `enter` sets the word, to an Rc that its guard borrows until the word is set back;
    // the word is this thread's own, so the count is touched by this thread alone.
    let borrowed = ManuallyDrop::new(unsafe { Rc::from_raw(executor) });
    Some(Rc::clone(&borrowed))
}
