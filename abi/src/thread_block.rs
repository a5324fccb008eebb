//! Words shared by a thread and the kernel.

use crate::limits::MESSAGE_WORDS;

/// Words of a [`ThreadBlock`] that are reserved for the SIP's runtime.
pub const RUNTIME_WORDS: usize = 32;

/// The last KiB of a thread's stack slot. The kernel fills `abi_table` and `thread` before the thread starts and zeroes
/// the rest; the message buffer carries arguments and results that do not fit registers, so that no ABI call passes a
/// data pointer.
#[repr(C, align(1024))]
#[derive(Clone, Copy, Debug)]
pub struct ThreadBlock {
    /// Arguments and results: see each function of the table.
    pub message: [u64; MESSAGE_WORDS],
    /// Address of the [`AbiTable`](crate::AbiTable).
    pub abi_table: u64,
    /// The thread's own handle.
    pub thread: u64,
    /// Words for the runtime, never read by the kernel.
    pub runtime: [u64; RUNTIME_WORDS],
    /// Reserved, zero.
    pub reserved: [u64; 128 - 2 - MESSAGE_WORDS - RUNTIME_WORDS],
}

const _: () = assert!(size_of::<ThreadBlock>() == 1024);
