//! What memory a call's return gives its caller, function by function. There is no default: a function that is not
//! listed does not compile.

use alloc::vec::Vec;

use abi::limits::{BLOCK_WORDS, PAGE_BYTES};
use abi::{SUBMIT_DONE, Status};

use crate::{Content, Words};

/// Memory that a process gets when a call returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// None, or what it has already.
    Nothing,
    /// The blocks of the message in the buffer, or those that return with a closed channel.
    Message,
    /// A block with contents, whose address and bytes are the first words of the buffer.
    NewBlock,
    /// The same with a block that was attached to another.
    Detached,
    /// The same with a block that a device has had, and filled as far as it has transferred.
    Completed,
    /// The same with memory that the caller has already.
    RestOfBlock,
    /// The same, zeroed.
    ZeroBlock,
    /// As many zeroed pages as the first argument says, at the value.
    ZeroPages,
    /// As many zeroed pages as the second argument says, at the value.
    MorePages,
    /// A window without pages, at the value.
    Window,
    /// The block that this argument names has been written to.
    OfArgument(usize),
}

macro_rules! effects {
    ($(group $group:literal { $(#[doc = $doc:literal] fn $name:ident($($argument:ident),*) -> $value:literal;)* })*) => {
        /// By number of the function. No static, which other crates would look up for functions that they know.
        const MEMORY: &[Memory] = &[$($(const { memory_by(stringify!($name).as_bytes()) },)*)*];
    };
}

abi::for_each_function!(effects);

const fn memory_by(function: &[u8]) -> Memory {
    match function {
        b"channel_receive" | b"channel_try_receive" | b"channel_receive_or_add" => Memory::Message,
        b"system_manifest"
        | b"program_manifest"
        | b"template_image"
        | b"epitaphs"
        | b"audit_read"
        | b"contract_automaton" => Memory::NewBlock,
        b"heap_detach" => Memory::Detached,
        b"device_submit" | b"device_complete" => Memory::Completed,
        b"heap_split" => Memory::RestOfBlock,
        b"heap_allocate" => Memory::ZeroBlock,
        b"memory_allocate" => Memory::ZeroPages,
        b"memory_grow" => Memory::MorePages,
        b"memory_reserve" => Memory::Window,
        b"list_processes" | b"list_threads" | b"list_channels" | b"list_counters" | b"list_latencies"
        | b"stream_read" => Memory::OfArgument(0),
        b"list_trace" | b"dma_end" => Memory::OfArgument(1),
        // These read a block, or only rename one.
        b"program_install" | b"program_check" | b"dma_begin" | b"heap_free" | b"heap_describe" | b"heap_attach" => {
            Memory::Nothing
        }
        b"channel_create"
        | b"channel_send"
        | b"channel_close"
        | b"channel_describe"
        | b"wait_set_create"
        | b"wait_set_add"
        | b"wait_set_remove"
        | b"wait_set_wait"
        | b"wait_set_alert"
        | b"wait_set_close"
        | b"process_create"
        | b"process_invoke"
        | b"process_give_parameter"
        | b"process_give_endpoint"
        | b"process_give_device"
        | b"process_start"
        | b"process_stop"
        | b"process_wait"
        | b"process_release"
        | b"process_id_of"
        | b"process_exit"
        | b"process_panic"
        | b"process_id"
        | b"process_stop_any"
        | b"parameter_length"
        | b"parameter_read"
        | b"endpoint_take"
        | b"program_count"
        | b"program_uninstall"
        | b"program_changes"
        | b"measurement"
        | b"cycles"
        | b"debug_write"
        | b"trace_note"
        | b"stream_start"
        | b"audit_note"
        | b"device_open"
        | b"device_describe"
        | b"device_close"
        | b"range_describe"
        | b"register_read"
        | b"register_write"
        | b"interrupt_wait"
        | b"interrupt_allocate"
        | b"publication_create"
        | b"publication_add_range"
        | b"publication_add_interrupt"
        | b"publication_open"
        | b"publication_released"
        | b"publication_ready"
        | b"wall_time_set"
        | b"device_exists"
        | b"machine_power_off"
        | b"machine_restart"
        | b"stack_bounds"
        | b"stack_left"
        | b"memory_free"
        | b"memory_usage"
        | b"principal_self"
        | b"principal_of_peer"
        | b"principal_delegate"
        | b"thread_create"
        | b"thread_exit"
        | b"thread_join"
        | b"thread_release"
        | b"thread_yield"
        | b"thread_sleep"
        | b"thread_self"
        | b"time_monotonic"
        | b"time_wall"
        | b"processor_count"
        | b"mutex_create"
        | b"mutex_acquire"
        | b"mutex_try_acquire"
        | b"mutex_release"
        | b"mutex_close"
        | b"event_create_manual"
        | b"event_create_auto"
        | b"event_set"
        | b"event_reset"
        | b"event_wait"
        | b"event_close"
        | b"wait_any"
        | b"debug_sink_create"
        | b"debug_sink_give"
        | b"debug_sink_read"
        | b"debug_sink_close" => Memory::Nothing,
        _ => panic!("state here what memory a return of this function gives its caller, so that it is recorded"),
    }
}

/// The memory that a function with this number gives.
#[inline(always)]
pub fn memory(function: usize) -> Memory {
    MEMORY.get(function).copied().unwrap_or(Memory::Nothing)
}

/// A block as a return names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its handle; of pages, 0.
    pub handle: u64,
    /// Its address.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The blocks and pages that a return names, in order.
#[derive(Clone, Debug)]
pub struct Names<'a> {
    /// The only one.
    single: Option<Named>,
    /// Words of the others.
    words: &'a [u64],
}

impl Names<'_> {
    const NONE: Names<'static> = Names { single: None, words: &[] };

    fn one(handle: u64, address: u64, bytes: u64) -> Names<'static> {
        Names { single: Some(Named { handle, address, bytes }), words: &[] }
    }

    /// Those of as many blocks in a message buffer, from a word on.
    fn many(buffer: &[u64], first: usize, count: u64) -> Names<'_> {
        let words = buffer.get(first..).unwrap_or_default();
        let whole = words.len() / BLOCK_WORDS;
        Names { single: None, words: &words[..whole.min(count as usize) * BLOCK_WORDS] }
    }
}

impl Iterator for Names<'_> {
    type Item = Named;

    #[inline]
    fn next(&mut self) -> Option<Named> {
        let Some((&[handle, address, bytes], rest)) = self.words.split_first_chunk::<BLOCK_WORDS>() else {
            return self.single.take();
        };
        self.words = rest;
        Some(Named { handle, address, bytes })
    }
}

/// The blocks and pages that a return names, from the first arguments of the call and the words written.
#[inline]
pub fn named(function: usize, arguments: [u64; 2], (status, value): (u64, u64), buffer: &[u64]) -> Names<'_> {
    let word = |index: usize| buffer.get(index).copied().unwrap_or(0);
    let is_ok = status == Status::Ok as u64;
    let pages = |pages: u64| Names::one(0, value, pages.saturating_mul(PAGE_BYTES as u64));
    match memory(function) {
        Memory::Message if status == Status::Closed as u64 => Names::many(buffer, 1, word(0)),
        Memory::Message if is_ok => Names::many(buffer, (value >> 16 & 0xffff) as usize, value >> 32 & 0xff),
        // The device has it, or it stays the caller's.
        Memory::Completed if value <= SUBMIT_DONE => Names::NONE,
        Memory::NewBlock | Memory::Detached | Memory::Completed | Memory::ZeroBlock | Memory::RestOfBlock if is_ok => {
            Names::one(value, word(0), word(1))
        }
        Memory::ZeroPages | Memory::Window if is_ok => pages(arguments[0]),
        Memory::MorePages if is_ok => pages(arguments[1]),
        _ => Names::NONE,
    }
}

/// What the blocks that a return names contain, if nothing else is recorded: those of a message what its sender left.
#[inline]
pub fn usual_content(function: usize, status: u64) -> Option<Content<Words>> {
    match memory(function) {
        _ if status != Status::Ok as u64 => None,
        Memory::Message | Memory::Detached => Some(Content::Left),
        Memory::ZeroBlock => Some(Content::Zero),
        _ => None,
    }
}

/// The handles of the blocks that a call of `channel_send` with these arguments and words sends.
pub fn sent(message: u64, buffer: &[u64]) -> Vec<u64> {
    let (first, count) = ((message >> 16 & 0xffff) as usize, (message >> 32 & 0xff) as usize);
    (0..count).filter_map(|index| buffer.get(first + index * BLOCK_WORDS).copied()).collect()
}

/// The number of the function of this name.
pub fn function(name: &str) -> Option<usize> {
    abi::FUNCTIONS.iter().position(|function| function.name == name)
}

/// The same at compile time, where there must be one.
///
/// # Panics
/// If there is none.
pub const fn number_of(name: &str) -> usize {
    let (mut number, name) = (0, name.as_bytes());
    while !is_same(abi::FUNCTIONS[number].name.as_bytes(), name) {
        number += 1;
    }
    number
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// The status and value with which calls of a function are only counted, if they return them without words: of those
/// that wait for nothing, or in vain, and that nobody sees but by what they send. `None` of all others.
#[inline(always)]
pub fn counted(function: usize) -> Option<(u64, u64)> {
    COUNTED.get(function).copied().flatten()
}

/// By number of the function; see [`MEMORY`].
const COUNTED: [Option<(u64, u64)>; abi::FUNCTIONS.len()] = {
    let functions = [
        ("channel_close", Status::Ok, 0),
        ("channel_receive_or_add", Status::WouldBlock, 0),
        ("channel_send", Status::Ok, 0),
        ("channel_try_receive", Status::WouldBlock, 0),
        ("device_submit", Status::Ok, SUBMIT_DONE),
        ("event_reset", Status::Ok, 0),
        ("event_set", Status::Ok, 0),
        ("heap_free", Status::Ok, 0),
        ("process_wait", Status::TimedOut, 0),
        ("thread_yield", Status::Ok, 0),
        ("wait_set_add", Status::Ok, 0),
        ("wait_set_alert", Status::Ok, 0),
        ("wait_set_remove", Status::Ok, 0),
        ("wait_set_wait", Status::TimedOut, 0),
    ];
    let (mut counted, mut at) = ([None; abi::FUNCTIONS.len()], 0);
    while at < functions.len() {
        counted[number_of(functions[at].0)] = Some((functions[at].1 as u64, functions[at].2));
        at += 1;
    }
    counted
};

/// Whether a call that returned this status lets a device into the memory of its caller, which then changes without calls.
#[inline(always)]
pub fn shares_memory(function: usize, status: u64) -> bool {
    function == const { number_of("dma_begin") } && status == Status::Ok as u64
}
