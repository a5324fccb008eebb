//! Hardware protection domains: what a machine with an MMU offers the kernel.
//!
//! A domain is an address space in which a SIP's code runs unprivileged (ring 3). Every address means the same in every
//! domain and in the kernel; a domain reaches only the pages that the kernel has mapped into it. A thread of a domain is
//! a thread of the kernel, which enters the domain ([`Machine::domain_enter`](crate::Machine::domain_enter)) and gets
//! back each call, interrupt and fault as a [`DomainExit`].

use crate::Fault;

/// Gates of a machine with domains: addresses, mapped in each domain, which a SIP calls like functions.
pub const MAX_GATES: usize = 128;

/// A domain of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainId(pub u32);

/// Privileges of the code in a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainRing {
    /// The processor's, as in the kernel: it has an address space of its own, and can leave it.
    Ring0,
    /// None.
    Ring3,
}

/// Access rights of a domain to pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DomainAccess {
    /// Read.
    Read,
    /// Read and write.
    Write,
    /// Read and execute.
    Execute,
}

/// Registers of a thread in a domain, while it is in the kernel. All zero but for those given at the start: nothing of
/// the kernel's, or of another domain's, is left in a register.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub struct DomainContext {
    /// Vector and floating-point state, as FXSAVE writes it.
    pub vectors: [u8; 512],
    /// Registers in the order of their numbers: RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15.
    pub registers: [u64; 16],
    /// RIP.
    pub instruction: u64,
    /// RFLAGS; only the machine interprets them, and keeps those that are not the SIP's to set.
    pub flags: u64,
    /// Whether all registers are to be restored (1), after an interrupt and at the start; or only those that a function
    /// keeps, after a call (0).
    pub is_whole: u64,
    /// Unused.
    pub reserved: u64,
}

/// Offset of MXCSR in the vector state, and its value at program start (System V ABI 3.4.1): all exceptions masked.
const MXCSR_OFFSET: usize = 24;
const MXCSR: [u8; 4] = 0x1f80u32.to_le_bytes();
/// The x87 control word, first in the vector state.
const FCW: [u8; 2] = 0x037fu16.to_le_bytes();

impl DomainContext {
    /// Flags that a thread in a domain has for itself: carry, parity, auxiliary carry, zero, sign, direction, overflow,
    /// alignment check, identification.
    pub const OWN_FLAGS: u64 = 0x0024_0cd5;
    /// Number of RAX in [`registers`](Self::registers).
    pub const RAX: usize = 0;
    /// Number of RDX.
    pub const RDX: usize = 2;
    /// Number of RSP.
    pub const RSP: usize = 4;
    /// Number of RDI.
    pub const RDI: usize = 7;

    /// Returns the registers of a new thread: it calls `entry(argument)` with this stack pointer, which points to the
    /// return address.
    pub fn start(entry: usize, stack: usize, argument: u64) -> DomainContext {
        let mut vectors = [0; 512];
        vectors[..FCW.len()].copy_from_slice(&FCW);
        vectors[MXCSR_OFFSET..MXCSR_OFFSET + MXCSR.len()].copy_from_slice(&MXCSR);
        let mut registers = [0; 16];
        registers[Self::RSP] = stack as u64;
        registers[Self::RDI] = argument;
        DomainContext { vectors, registers, instruction: entry as u64, flags: 0, is_whole: 1, reserved: 0 }
    }

    /// Sets the two words that a call returns.
    pub fn answer(&mut self, status: u64, value: u64) {
        self.registers[Self::RAX] = status;
        self.registers[Self::RDX] = value;
    }

    /// Returns the stack pointer.
    pub fn stack(&self) -> usize {
        self.registers[Self::RSP] as usize
    }
}

/// Why a thread left its domain.
#[derive(Clone, Copy, Debug)]
pub enum DomainExit {
    /// It called a gate. The number is the thread's claim: any value.
    Call {
        /// Number of the gate.
        gate: u64,
        /// The first six arguments of a function; any values.
        arguments: [u64; 6],
    },
    /// An interrupt, whose work in interrupt context is done.
    Interrupt,
    /// It accessed a page that is not mapped in the domain: a fault, unless the page has been mapped when it goes on.
    Missing(Fault),
    /// Any other fault.
    Fault(Fault),
}
