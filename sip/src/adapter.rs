//! One word of each thread for an adapter to a crate whose call-backs take no argument of their own.
//!
//! An image has no writable data, so what such a call-back works with has to hang off the thread that made
//! the call. The adapter sets the word before it calls the crate and sets it back afterwards. Neighbours:
//! `sip-virtio`, the one adapter there is. Deliberately not here: what the word means.

use crate::thread_block::{self, ADAPTER};

/// The calling thread's word; 0 unless an adapter is at work.
pub fn word() -> u64 {
    thread_block::runtime_word(ADAPTER)
}

/// Sets the calling thread's word.
///
/// # Safety
///
/// An adapter takes the word for the address of something alive. Only the adapter that set the word last may
/// set it, and it sets the former value again before what it left there ends.
pub unsafe fn set_word(word: u64) {
    thread_block::set_runtime_word(ADAPTER, word);
}
