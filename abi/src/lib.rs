//! ABI v1: the interface between SIPs and the kernel.
//!
//! Key types: [`AbiTable`] (the functions), [`Status`] (their errors), [`ThreadBlock`] (words shared by a thread and
//! the kernel), [`Automaton`] (a contract as the kernel's monitor interprets it). [`sockets`] and [`packets`] specify
//! the requests of two device kinds, [`audit`] the format of refusals, [`Printable`] the display of untrusted text.
//! Neighbours: the kernel implements the table, `sip` calls it, `lang` encodes automata. Deliberately not here: any
//! code that follows a pointer. Everything that crosses the ABI is a value; an address or handle is a claim that the
//! kernel checks.
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
pub mod stack;
mod status;
mod table;
mod thread_block;

pub use automaton::{
    Automaton, BlockShape, DecodeError, Direction, EndpointShape, MessageShape, NO_TRANSITION, ScalarRange, StateRow,
    array_type_tag, message_word, name_tag, type_tag,
};
pub use epitaph::{EpitaphKind, StopReason};
pub use printable::Printable;
pub use records::{
    BlockState, ChannelRecord, CounterRecord, DMA, DeviceKind, DeviceOperation, HeldEndpoint, LATENCY_BUCKETS,
    LATENCY_FIRST_BITS, LatencyRecord, NAME_BYTES, ProcessRecord, ProcessState, SUBMIT_DONE, SUBMIT_QUEUED,
    StreamRecord, ThreadRecord, ThreadState, TraceKind, TraceRecord,
};
pub use status::{AbiReturn, Status};
pub use table::{AbiTable, FUNCTIONS, Function, TABLE_ID, render};
pub use thread_block::{RUNTIME_WORDS, ThreadBlock};

/// Version of the table. A manifest states the version that its program was built for.
pub const ABI_VERSION: u32 = 1;

/// Sizes and limits of the ABI.
pub mod limits {
    /// Page size in bytes.
    pub const PAGE_BYTES: usize = 4096;
    /// Size of a slot of addresses for a thread's stack, in bytes, and of the largest stack; see
    /// [`stack`](crate::stack). Slots are aligned to their size, so the [`ThreadBlock`](crate::ThreadBlock) at a slot's
    /// end is found from the stack pointer alone.
    pub const STACK_SLOT_BYTES: usize = 8 << 20;
    /// Unmapped bytes at the low end of a stack. Compiled code moves the stack pointer by up to 4096 bytes without
    /// an access, and then writes up to 128 bytes below it, which would skip a guard of one page.
    pub const STACK_GUARD_BYTES: usize = 2 * PAGE_BYTES;
    /// Bytes at the low end of a stack, including the guard, that an ABI call or interrupt needs; a call with less
    /// left ends the SIP with a stack overflow.
    pub const STACK_RESERVE_BYTES: usize = STACK_GUARD_BYTES + 28 * 1024;
    /// 64-bit words of a thread's message buffer, and the maximum of one message.
    pub const MESSAGE_WORDS: usize = 64;
    /// Maximum keys of one `wait_set_wait`.
    pub const WAIT_KEYS: usize = 16;
    /// Words per block in a message: handle, address, length in bytes.
    pub const BLOCK_WORDS: usize = 3;
    /// Words per endpoint in a message: its handle.
    pub const ENDPOINT_WORDS: usize = 1;
    /// Size of a window, the addresses that a SIP reserves for memory that grows in place; aligned to its size, in bytes.
    pub const WINDOW_BYTES: usize = 8 << 30;
    /// Kernel memory that a window is charged as, for the tables of its first pages, in bytes.
    pub const WINDOW_KERNEL_BYTES: usize = 8 * 1024;
    /// Alignment of exchange-heap blocks, in bytes.
    pub const BLOCK_ALIGN: usize = 64;
    /// Maximum text passed through the message buffer, in bytes.
    pub const TEXT_BYTES: usize = MESSAGE_WORDS * 8;
    /// Maximum messages queued in one direction of a channel; a contract that needs more is refused.
    pub const QUEUE_BOUND: u16 = 64;
    /// Maximum nesting of loans of a block.
    pub const LOAN_DEPTH: usize = 4;
    /// Maximum size of a parameter's value, in bytes.
    pub const PARAMETER_BYTES: usize = 64 * 1024;
    /// Maximum size of all parameter values of a SIP, in bytes.
    pub const PARAMETERS_BYTES: usize = 256 * 1024;
    /// Kernel memory that every SIP may use for queues, sets and records, in bytes; and the increments per handle,
    /// channel and child that its manifest allows. Beyond it, calls fail with `QuotaExceeded`.
    pub const KERNEL_BYTES: usize = 256 * 1024;
    /// See [`KERNEL_BYTES`].
    pub const KERNEL_BYTES_PER_HANDLE: usize = 256;
    /// See [`KERNEL_BYTES`].
    pub const KERNEL_BYTES_PER_CHANNEL: usize = 1024;
    /// See [`KERNEL_BYTES`].
    pub const KERNEL_BYTES_PER_CHILD: usize = 4096;
    /// Maximum links of a principal, joined by ` + `.
    pub const PRINCIPAL_LINKS: usize = 8;
    /// Maximum length of a principal, in bytes.
    pub const PRINCIPAL_BYTES: usize = TEXT_BYTES;
    /// Maximum length of a role, in bytes.
    pub const ROLE_BYTES: usize = 32;
    /// Maximum length of an audit line, in bytes; longer text is truncated.
    pub const AUDIT_TEXT_BYTES: usize = 256;
    /// Capacity of the audit ring, in lines.
    pub const AUDIT_LINES: usize = 1024;
    /// Capacity of a debug sink in bytes of text; it also holds at most [`DEBUG_SINK_PIECES`] changes of the writer.
    pub const DEBUG_SINK_BYTES: usize = 16 * 1024;
    /// See [`DEBUG_SINK_BYTES`].
    pub const DEBUG_SINK_PIECES: usize = 128;
    /// Message buffer word of the program's name in `debug_sink_read`.
    pub const DEBUG_SINK_NAME_WORD: usize = 2;
    /// First message buffer word of the text in `debug_sink_read`.
    pub const DEBUG_SINK_TEXT_WORD: usize = 10;
    /// Maximum events that the buffers of the trace stream hold together.
    pub const STREAM_EVENTS: u64 = 64 * 1024;
    /// No deadline.
    pub const NEVER: u64 = u64::MAX;
}
