//! The executor that runs on the calling thread: one runtime word.

use alloc::rc::Rc;
use core::mem::ManuallyDrop;

use super::Executor;
use crate::thread_block::{self, EXECUTOR};

/// Makes the executor current on this thread until the guard is dropped, which restores the previous one.
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

/// Returns the thread's executor.
///
/// # Panics
///
/// If none runs.
pub(super) fn get() -> Rc<Executor> {
    match try_get() {
        Some(executor) => executor,
        None => panic!("this waits for a message in a task, but no executor runs on this thread"),
    }
}

/// Returns the thread's executor, if one runs.
pub(super) fn try_get() -> Option<Rc<Executor>> {
    with(Rc::clone)
}

/// Runs a closure on the thread's executor, if one runs. Without a count of references, whose overflow would end the
/// program: interrupt paths of drivers, which promise not to panic, come through here.
pub(super) fn with<R>(act: impl FnOnce(&Rc<Executor>) -> R) -> Option<R> {
    let address = thread_block::runtime_word(EXECUTOR) as usize;
    if address == 0 {
        return None;
    }
    let executor: *const Executor = core::ptr::with_exposed_provenance(address);
    // SAFETY: only `enter` sets the word, to an Rc that its guard borrows until the word is restored;
    // the word is this thread's own, so only this thread touches the refcount.
    let borrowed = ManuallyDrop::new(unsafe { Rc::from_raw(executor) });
    Some(act(&borrowed))
}
