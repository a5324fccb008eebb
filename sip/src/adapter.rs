//! One word per thread for an adapter to a crate whose callbacks take no context argument.
//!
//! An image has no writable data, so the context of such a callback has to hang off the calling thread. The adapter
//! sets the word before it calls the crate and restores it afterwards. Neighbours: `sip-virtio`, so far the only
//! adapter. Deliberately not here: the meaning of the word.

use crate::thread_block::{self, ADAPTER};

/// Returns the calling thread's word; 0 unless an adapter is active.
pub fn word() -> u64 {
    thread_block::runtime_word(ADAPTER)
}

/// Sets the calling thread's word.
///
/// # Safety
///
/// An adapter dereferences the word as the address of a live object. Only the adapter that set the word last may set
/// it, and it must restore the former value before the object that the word points to is dropped.
pub unsafe fn set_word(word: u64) {
    thread_block::set_runtime_word(ADAPTER, word);
}
