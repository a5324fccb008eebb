//! The words that a thread and the kernel share.

use crate::limits::MESSAGE_WORDS;

/// Words of a [`ThreadBlock`] that belong to the SIP's runtime.
pub const RUNTIME_WORDS: usize = 32;

/// The last KiB of a thread's stack slot. The kernel fills `abi_table` and `thread` before the thread
/// starts and zeroes the rest; the message buffer carries the arguments and answers that do not fit
/// registers, so that no ABI call passes an address of data.
#[repr(C, align(1024))]
#[derive(Clone, Copy, Debug)]
pub struct ThreadBlock {
    /// Arguments and answers: see each function of the table.
    pub message: [u64; MESSAGE_WORDS],
    /// Address of the [`AbiTable`](crate::AbiTable).
    pub abi_table: u64,
    /// The thread's own handle.
    pub thread: u64,
    /// Words whose meaning is the runtime's own; the kernel never reads them.
    pub runtime: [u64; RUNTIME_WORDS],
    /// Unused words, zero.
    pub reserved: [u64; 128 - 2 - MESSAGE_WORDS - RUNTIME_WORDS],
}

const _: () = assert!(size_of::<ThreadBlock>() == 1024);
