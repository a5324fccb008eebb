//! The kernel's entries, for signal handlers and I/O threads.
//!
//! Deliberately not here: calling them.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use hal_api::KernelEntries;

static ENTRIES: AtomicPtr<KernelEntries> = AtomicPtr::new(ptr::null_mut());

/// Publishes the kernel's entries for the rest of the process's life (a later call replaces them).
pub(crate) fn publish(entries: KernelEntries) {
    ENTRIES.store(Box::leak(Box::new(entries)), Ordering::Release);
}

/// Returns the kernel's entries, once processors run. Async-signal-safe.
pub(crate) fn get() -> Option<&'static KernelEntries> {
    // SAFETY: the pointer is null or comes from `Box::leak` in `publish`, so its target lives
    // for ever and is never written again; Release/Acquire makes its contents visible.
    unsafe { ENTRIES.load(Ordering::Acquire).as_ref() }
}
