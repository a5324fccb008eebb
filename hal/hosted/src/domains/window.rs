//! Where a domain has what is not a program's: gates, stub, constants, commands and runners; and the file that the
//! commands and runners of all domains are parts of.
//!
//! The window is one range of addresses, the same in every domain, which the machine's own process reserves so that
//! nothing else is ever there.

use hal_api::{DomainContext, MAX_GATES};

use crate::arena::HOST_PAGE_BYTES;

/// The gates: readable and executable.
pub(super) const GATES: usize = 0;
/// The stub: readable and executable.
pub(super) const STUB: usize = HOST_PAGE_BYTES;
/// What the stub and Linux read: readable.
pub(super) const CONSTANTS: usize = 2 * HOST_PAGE_BYTES;
/// Bytes of gates, stub and constants, which all domains share.
pub(super) const SHARED_BYTES: usize = 3 * HOST_PAGE_BYTES;
/// Commands for the mapper: readable. What follows is of this domain alone, its part of the file of controls.
pub(super) const COMMANDS: usize = SHARED_BYTES;
/// The runners.
pub(super) const RUNNERS: usize = COMMANDS + HOST_PAGE_BYTES;
/// A runner's bytes: its exchange page, then its signal stack. Writable by the domain.
pub(super) const RUNNER_BYTES: usize = 8 * HOST_PAGE_BYTES;
/// Maximum runners of a domain: one for each processor.
pub(super) const MAX_RUNNERS: usize = crate::processor::MAX_PROCESSORS;
/// Bytes of the window.
pub(super) const BYTES: usize = RUNNERS + MAX_RUNNERS * RUNNER_BYTES;
/// Bytes of a domain's part of the file of controls.
pub(super) const CONTROL_BYTES: usize = BYTES - COMMANDS;
/// Parts for domains: as many as there may be, and those of ended ones that a processor was in last or that are kept.
pub(super) const PARTS: usize = super::MAX_DOMAINS + MAX_RUNNERS + super::kept::MAX_KEPT;
/// The template's part.
pub(super) const TEMPLATE: usize = PARTS;
/// After the parts: for each, the number of commands that its mapper has acknowledged. No domain maps them.
pub(super) const ACKNOWLEDGED: usize = (PARTS + 1) * CONTROL_BYTES;
/// Bytes of the file of controls.
pub(super) const CONTROLS_BYTES: usize = ACKNOWLEDGED + ((PARTS + 1) * 4).next_multiple_of(HOST_PAGE_BYTES);

/// Offsets in the page that a runner would exchange, where there is the template: a message that passes the descriptor
/// of a new process on, and the number of the process for each part.
pub(super) const MESSAGE: usize = 0;
pub(super) const PROCESSES: usize = 256;
const _: () = assert!(PROCESSES + PARTS * 4 <= RUNNER_BYTES);

/// Bytes from one gate to the next.
pub(super) const GATE_BYTES: usize = 16;
const _: () = assert!(MAX_GATES * GATE_BYTES <= HOST_PAGE_BYTES);

/// Commands in the ring.
pub(super) const RING: usize = 32;
/// Words of a command: number of the system call, six arguments, what becomes of a failure.
pub(super) const COMMAND_WORDS: usize = 8;
/// Offset of the ring in the page of commands. The number of commands issued is at its start.
pub(super) const RING_OFFSET: usize = 1024;
/// Offset in the page of commands: not 0 when the first runner resets itself when it wakes.
pub(super) const RESET: usize = 8;
/// Offset in the page of commands: not 0 when the mapper sleeps at once if there is no command.
pub(super) const MAPPER_RESTS: usize = 12;

/// Offsets in the exchange page. `TURN` is [`OF_KERNEL`], [`OF_MAPPER`] or [`OF_DOMAIN`].
pub(super) const TURN: usize = 0;
pub(super) const RUNNER_SLEEPS: usize = 4;
pub(super) const KERNEL_SLEEPS: usize = 8;
/// How the runner waits for its turn: 0 awake at first, [`SOON`] after it gave way to others, or [`AT_ONCE`] asleep.
pub(super) const REST: usize = 12;
/// Processors of the host that the runner and the kernel are on.
pub(super) const RUNNER_PROCESSOR: usize = 1032;
pub(super) const KERNEL_PROCESSOR: usize = 1036;
/// Address of the page in the domain.
pub(super) const SELF: usize = 16;
/// Why the runner came out: [`INTERRUPT`], [`CALL`] or [`SIGNAL`].
pub(super) const KIND: usize = 24;
pub(super) const GATE: usize = 32;
pub(super) const ARGUMENTS: usize = 40;
/// Number of the signal, the processor's vector, and the address accessed.
pub(super) const SIGNAL_NUMBER: usize = 88;
pub(super) const VECTOR: usize = 96;
pub(super) const ADDRESS: usize = 104;
/// Number that the host has given the runner's thread.
pub(super) const THREAD: usize = 112;
/// `si_code` of the signal.
pub(super) const CODE: usize = 120;
pub(super) const CONTEXT: usize = 128;
/// End of a few words of stack.
pub(super) const SCRATCH: usize = 2048;
const _: () = assert!(CONTEXT + size_of::<DomainContext>() <= RUNNER_PROCESSOR && RUNNER_PROCESSOR < SCRATCH - 64);

pub(super) const SOON: u32 = 1;
pub(super) const AT_ONCE: u32 = 2;

pub(super) const OF_KERNEL: u32 = 0;
pub(super) const OF_DOMAIN: u32 = 1;
/// The mapper gives the turn to the domain.
pub(super) const OF_MAPPER: u32 = 2;

pub(super) const INTERRUPT: u64 = 0;
pub(super) const CALL: u64 = 1;
pub(super) const SIGNAL: u64 = 2;

/// Offsets among the constants: `struct sock_fprog` and its filter, `struct sigaction`, a signal set, the
/// `ucontext_t` that the first runner resets itself to, and a `stack_t` for each runner.
pub(super) const FILTER_PROGRAM: usize = 0;
pub(super) const FILTER: usize = 16;
pub(super) const ACTION: usize = 512;
pub(super) const MASK: usize = 544;
pub(super) const CLEAN: usize = 576;
pub(super) const SIGNAL_STACKS: usize = 1024;
/// Size of a `stack_t`.
pub(super) const SIGNAL_STACK_BYTES: usize = 24;
const _: () = assert!(SIGNAL_STACKS + MAX_RUNNERS * SIGNAL_STACK_BYTES <= HOST_PAGE_BYTES);

/// Files that the template and the mappers have open, by number.
pub(super) const CONTROLS_FILE: i32 = 3;
pub(super) const MEMORY_FILE: i32 = 4;
pub(super) const STACKS_FILE: i32 = 5;
pub(super) const IMAGES_FILE: i32 = 6;
/// The connection to the machine: the template's alone.
pub(super) const LINE_FILE: i32 = 7;
