//! ABI v1: the one statement of what passes between a SIP and the kernel.
//!
//! Key types: [`AbiTable`] (the functions), [`Status`] (their errors), [`ThreadBlock`] (the words a
//! thread shares with the kernel), [`Automaton`] (a contract as the kernel's monitor reads it).
//! [`sockets`] and [`packets`] say what the requests to two kinds of devices mean, [`audit`] how a refusal is told, [`Printable`] how text of others is shown. Neighbours: the kernel implements the table, `sip` calls it, `lang` encodes automata.
//! Deliberately not here: any code that follows a pointer. Everything that crosses the ABI is a
//! value; an address or a handle is a claim that the kernel checks.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod audit;
mod automaton;
mod epitaph;
#[macro_use]
mod numbered;
pub mod packets;
mod printable;
mod records;
pub mod sockets;
mod status;
mod table;
mod thread_block;

pub use automaton::{
    Automaton, BlockShape, DecodeError, Direction, EndpointShape, MessageShape, NO_TRANSITION, ScalarRange, StateRow,
    message_word, name_tag, type_tag,
};
pub use epitaph::{EpitaphKind, StopReason};
pub use printable::Printable;
pub use records::{
    BlockState, ChannelRecord, CounterRecord, DeviceKind, DeviceOperation, NAME_BYTES, ProcessRecord, ProcessState,
    ThreadRecord, ThreadState, TraceKind, TraceRecord,
};
pub use status::{AbiReturn, Status};
pub use table::{AbiTable, FUNCTIONS, Function, render};
pub use thread_block::{RUNTIME_WORDS, ThreadBlock};

/// The version of the table in this crate. A manifest names the version its program was built for.
pub const ABI_VERSION: u32 = 1;

/// Sizes and bounds that both sides rely on.
pub mod limits {
    /// Bytes of a page of paged memory.
    pub const PAGE_BYTES: usize = 4096;
    /// Bytes of the slot that holds one thread's stack; slots are aligned to their size, so the
    /// [`ThreadBlock`](crate::ThreadBlock) at a slot's end is found from the stack pointer alone.
    pub const STACK_SLOT_BYTES: usize = 256 * 1024;
    /// Bytes at the low end of a stack slot that an access ends the SIP for (unmapped). Compiled code moves the stack pointer
    /// by up to 4096 bytes without an access, and then writes up to 128 bytes below it: one page would be stepped over.
    pub const STACK_GUARD_BYTES: usize = 2 * PAGE_BYTES;
    /// Bytes at the low end of a stack slot, the guard among them, that an ABI call or an interrupt needs; a SIP that calls
    /// the kernel with less left is ended with a stack overflow.
    pub const STACK_RESERVE_BYTES: usize = STACK_GUARD_BYTES + 28 * 1024;
    /// 64-bit words in a thread's message buffer, and the most words one message may take.
    pub const MESSAGE_WORDS: usize = 64;
    /// Words that describe one block in a message: handle, address, length in bytes.
    pub const BLOCK_WORDS: usize = 3;
    /// Words that describe one endpoint in a message: its handle.
    pub const ENDPOINT_WORDS: usize = 1;
    /// Bytes to which every exchange-heap block is aligned.
    pub const BLOCK_ALIGN: usize = 64;
    /// The longest text, in bytes, that an ABI function takes or gives through the message buffer.
    pub const TEXT_BYTES: usize = MESSAGE_WORDS * 8;
    /// Messages that may wait in one direction of a channel; a contract that needs more is refused.
    pub const QUEUE_BOUND: u16 = 64;
    /// How many loans deep a block may be lent on.
    pub const LOAN_DEPTH: usize = 4;
    /// Bytes of the longest value of a parameter.
    pub const PARAMETER_BYTES: usize = 64 * 1024;
    /// Bytes of all values of parameters that one SIP is given.
    pub const PARAMETERS_BYTES: usize = 256 * 1024;
    /// Bytes that the kernel keeps for any SIP in queues, sets and records; and how much more for each handle, channel and
    /// child that its manifest allows. What would take more answers `QuotaExceeded`.
    pub const KERNEL_BYTES: usize = 256 * 1024;
    /// See [`KERNEL_BYTES`].
    pub const KERNEL_BYTES_PER_HANDLE: usize = 256;
    /// See [`KERNEL_BYTES`].
    pub const KERNEL_BYTES_PER_CHANNEL: usize = 1024;
    /// See [`KERNEL_BYTES`].
    pub const KERNEL_BYTES_PER_CHILD: usize = 4096;
    /// Links of the longest principal, joined by ` + `.
    pub const PRINCIPAL_LINKS: usize = 8;
    /// Bytes of the longest principal.
    pub const PRINCIPAL_BYTES: usize = TEXT_BYTES;
    /// Bytes of the longest role.
    pub const ROLE_BYTES: usize = 32;
    /// Bytes of the longest text that the audit ring takes; the rest of a longer one is cut.
    pub const AUDIT_TEXT_BYTES: usize = 256;
    /// Refusals that the audit ring keeps.
    pub const AUDIT_LINES: usize = 1024;
    /// Bytes of text that wait in a debug sink at most; the text of more than [`DEBUG_SINK_PIECES`] changes of the writer does
    /// not fit either.
    pub const DEBUG_SINK_BYTES: usize = 16 * 1024;
    /// See [`DEBUG_SINK_BYTES`].
    pub const DEBUG_SINK_PIECES: usize = 128;
    /// Word of the message buffer where `debug_sink_read` puts the name of the program.
    pub const DEBUG_SINK_NAME_WORD: usize = 2;
    /// Word of the message buffer from which on `debug_sink_read` puts the text.
    pub const DEBUG_SINK_TEXT_WORD: usize = 10;
    /// A deadline that never comes.
    pub const NEVER: u64 = u64::MAX;
}
