//! The interface between the kernel and a machine, in both directions.
//!
//! Key types: [`Machine`] (implemented by each `hal/*`), [`KernelEntries`] (the kernel's side), [`DomainExit`].
//! Deliberately not here: the switch between two stacks, which is the same on every x86-64 machine
//! and part of the kernel.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod domain;

pub use domain::{DomainAccess, DomainContext, DomainExit, DomainId, DomainRing, MAX_GATES};

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// A range of addresses that the machine reserves at start and never moves. All of it is readable
/// and writable and reads as zero until written, unless stated otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Arena {
    /// First address.
    pub base: usize,
    /// Size in bytes.
    pub bytes: usize,
}

impl Arena {
    /// Returns whether the address lies in it.
    pub fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.base) < self.bytes
    }
}

/// The machine's address space layout.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Stack slots, each of `STACK_SLOT_BYTES`, as `abi::stack` has them. The lowest `STACK_GUARD_BYTES` of a
    /// slot must have been passed to [`Machine::guard`] before the slot is used.
    pub stacks: Arena,
    /// Pages for SIPs and room for exchange-heap blocks.
    pub memory: Arena,
    /// Whether `memory` reads as zero from the start. If not, the kernel clears pages when it first uses
    /// them.
    pub memory_is_clear: bool,
    /// Sealed images. Only [`Machine::map_image`] maps anything here.
    pub images: Arena,
    /// Windows, each of `WINDOW_BYTES`, aligned to that size. Any access faults where [`Machine::window_map`] or
    /// [`Machine::domain_map_private`] has mapped nothing. Empty if the machine has no addresses to spare.
    pub windows: Arena,
}

/// One segment of an image to map.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Destination; page-aligned, inside the image arena.
    pub address: usize,
    /// Its bytes, relocated. The machine pads them with zeroes to whole pages.
    pub bytes: &'a [u8],
    /// Whether it is code: readable and executable; else read-only. No segment is writable.
    pub executable: bool,
}

/// Kinds of faults in a SIP's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A memory access that is not allowed.
    Memory,
    /// An undefined or privileged instruction.
    Instruction,
    /// A division by zero, or with a quotient that overflows.
    Arithmetic,
    /// A breakpoint or single step.
    Trap,
    /// A system call of the host that the machine is a process of.
    HostCall,
    /// Its stack could not grow for lack of memory.
    OutOfMemory,
    /// The host has ended the process that its domain was, or the domain did not answer an interrupt.
    DomainEnded,
}

/// A fault in a SIP's code.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Its kind.
    pub kind: FaultKind,
    /// Address of the instruction.
    pub instruction: usize,
    /// Address accessed, for [`FaultKind::Memory`] and [`FaultKind::OutOfMemory`].
    pub address: usize,
    /// The stack pointer.
    pub stack: usize,
}

/// A device that the machine offers.
#[derive(Clone, Debug)]
pub struct Device {
    /// Name that manifests refer to: `console`, `disk0`, `disk1`, ...
    pub name: String,
    /// Its kind and properties.
    pub kind: DeviceKind,
}

/// Kinds of devices, with their properties when the machine starts.
#[derive(Clone, Copy, Debug)]
pub enum DeviceKind {
    /// Byte streams in and out.
    Console {
        /// Whether it is an interactive terminal.
        terminal: bool,
    },
    /// A disk.
    Disk {
        /// Size in bytes.
        bytes: u64,
        /// Whether writes are refused.
        read_only: bool,
    },
    /// The host's own sockets.
    Sockets,
    /// Random bytes.
    Random,
    /// A folder of the host, which speaks 9P2000.L.
    Folder {
        /// Whether changes are refused.
        read_only: bool,
    },
    /// A link of Ethernet packets.
    Packets {
        /// The hardware address.
        mac_address: [u8; 6],
        /// Maximum bytes of a packet without its Ethernet header.
        mtu: u16,
        /// Offloads: feature bits of the driver's contract.
        features: u64,
    },
}

/// Address space of a device's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeKind {
    /// I/O ports.
    Ports,
    /// MMIO, never ordinary memory.
    Memory,
}

/// A range of I/O ports or of MMIO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Its address space.
    pub kind: RangeKind,
    /// First port or physical address.
    pub base: u64,
    /// Number of ports or bytes.
    pub bytes: u64,
}

/// Hardware found by the machine at an address that no manifest can state, such as a bus.
#[derive(Clone, Debug)]
pub struct Hardware {
    /// Name that manifests refer to: `pci`, `virtio-mmio`.
    pub name: String,
    /// Its ranges, in an order that the name implies.
    pub ranges: Vec<Range>,
    /// Its interrupt lines, in an order that the name implies.
    pub interrupts: Vec<u32>,
}

/// Width of a register access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 1 byte.
    Byte,
    /// 2 bytes.
    Word,
    /// 4 bytes.
    Double,
    /// 8 bytes; memory only.
    Quad,
}

impl Width {
    /// Returns the width in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Width::Byte => 1,
            Width::Word => 2,
            Width::Double => 4,
            Width::Quad => 8,
        }
    }
}

/// A message-signalled interrupt (MSI; PCI 3.0, 6.8.1): the device writes data to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptMessage {
    /// Interrupt line on which it arrives.
    pub line: u32,
    /// Address that the device writes to.
    pub address: u64,
    /// Value that the device writes.
    pub data: u32,
}

/// A request to a device.
#[derive(Clone, Copy, Debug)]
pub struct DeviceRequest {
    /// Index into [`Machine::devices`].
    pub device: usize,
    /// The kernel's token for the request, passed back on completion.
    pub token: u64,
    /// The operation.
    pub operation: DeviceOperation,
    /// Byte offset on a disk; sockets and packets give it their own meaning.
    pub offset: u64,
    /// Address of the memory; it stays valid, and nothing else accesses it, until completion.
    pub address: usize,
    /// Bytes of it.
    pub bytes: usize,
}

/// Operation of a [`DeviceRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceOperation {
    /// Device to memory. A console blocks until there is at least one byte, and reads 0 bytes at end of input.
    Read,
    /// Memory to device.
    Write,
    /// Makes previous writes durable.
    Flush,
}

/// The device failed the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFailure;

/// Bytes transferred, or failure.
pub type DeviceResult = Result<usize, DeviceFailure>;

/// Result of [`Machine::device_submit`].
#[derive(Clone, Copy, Debug)]
pub enum Submitted {
    /// Completed synchronously.
    Complete(DeviceResult),
    /// [`KernelEntries::device_complete`] will be called, from any host thread.
    Queued,
}

/// An ABI call that is about to return to its caller, or a preemption point of the kernel.
#[derive(Clone, Copy, Debug)]
pub struct ObservedCall {
    /// Id of the calling process.
    pub process: u64,
    /// Name of its program.
    pub program: &'static str,
    /// Number of the function in the ABI table.
    pub function: u32,
    /// The status that it returns, a number of `abi::Status`.
    pub status: u64,
    /// The value that it returns.
    pub value: u64,
}

/// What an observer of calls wants done with the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCall {
    /// It continues.
    Continue,
    /// Its SIP is ended, as if another had stopped it.
    End,
}

/// A machine. All functions may be called on any processor, from the kernel, never from a SIP.
pub trait Machine: Sync {
    /// Returns the number of processors, which are numbered from 0.
    fn processor_count(&self) -> usize;
    /// Returns the address space layout.
    fn layout(&self) -> Layout;
    /// Runs `main` on every processor, each on a stack of the machine's own, with the processor's
    /// number and its per-processor base register (GS) set to `bases[number]`; returns when all
    /// have returned.
    fn run_processors(&self, bases: &[usize], main: extern "C" fn(processor: usize), entries: KernelEntries);
    /// Unmaps these pages of an arena for good: any access faults.
    fn guard(&self, address: usize, bytes: usize);
    /// Releases the memory behind these pages; they read as zero afterwards.
    fn decommit(&self, address: usize, bytes: usize);
    /// Makes pages of a window readable and writable, for code outside of domains; they read as zero. `memory` are as many
    /// pages of [`Layout::memory`] that nobody uses, for a machine that has no others. All or nothing.
    fn window_map(&self, _address: usize, _memory: usize, _bytes: usize) -> Result<(), MapError> {
        Err(MapError)
    }
    /// Takes all pages of the window at this address away: when it returns, no processor reaches them there, and what was
    /// in them is gone, except from pages of [`Layout::memory`]. May wait for other processors: the caller holds no lock.
    fn window_release(&self, _address: usize, _bytes: usize) {}
    /// Zeroes these pages of a window where they are, all that it has and that nobody uses, if that takes less time than to
    /// release them and map others; whether it has. They stay as they are mapped.
    fn window_clear(&self, _address: usize, _bytes: usize) -> bool {
        false
    }
    /// Maps the segments of one image. All or nothing.
    fn map_image(&self, segments: &[Segment<'_>]) -> Result<(), MapError>;
    /// Blocks on this processor until [`wake`](Machine::wake) is called for it or until `deadline_ns` of
    /// [`monotonic_ns`](Machine::monotonic_ns). A wake before the wait is not lost.
    fn idle(&self, processor: usize, deadline_ns: u64);
    /// Ends `idle` on a processor, or the next one.
    fn wake(&self, processor: usize);
    /// Makes a processor enter the kernel soon ([`KernelEntries::interrupt`]) if it is running a SIP.
    fn interrupt(&self, processor: usize);
    /// A pause hint in a spin loop; may yield the host's processor.
    fn relax(&self, spins: u32);
    /// Returns nanoseconds since the machine started.
    fn monotonic_ns(&self) -> u64;
    /// Returns nanoseconds that this processor ran, without time stolen by a host. For measurements;
    /// may take a fraction of a microsecond.
    fn processor_ns(&self) -> u64 {
        self.monotonic_ns()
    }
    /// Returns nanoseconds since 1970-01-01 00:00 UTC.
    fn wall_ns(&self) -> u64;
    /// Returns the devices, in a fixed order.
    fn devices(&self) -> Vec<Device>;
    /// Returns columns and rows of a console; 0 if unknown.
    fn console_size(&self, device: usize) -> (u16, u16);
    /// Returns hardware that manifests name without knowing its addresses.
    fn hardware(&self) -> Vec<Hardware> {
        Vec::new()
    }
    /// Returns whether a SIP may drive this range: the address space exists, and the range overlaps neither ordinary
    /// memory nor the machine's own devices.
    fn may_claim(&self, _range: Range) -> bool {
        false
    }
    /// Returns the number of interrupt lines, which are numbered from 0.
    fn interrupt_lines(&self) -> u32 {
        0
    }
    /// Reads a register. The kernel has checked that the address is in a range that
    /// [`may_claim`](Machine::may_claim) allows, and is aligned to the width.
    fn register_read(&self, _kind: RangeKind, _address: u64, _width: Width) -> u64 {
        0
    }
    /// Writes a register; as for [`register_read`](Machine::register_read).
    fn register_write(&self, _kind: RangeKind, _address: u64, _width: Width, _value: u64) {}
    /// Masks or unmasks an interrupt line ([`KernelEntries::fired`]). Lines start masked. The machine masks a
    /// level-triggered line again when it fires.
    fn interrupt_mask(&self, _line: u32, _masked: bool) {}
    /// Allocates an unused line for a device that uses MSI. Lines are never freed.
    fn interrupt_message(&self) -> Option<InterruptMessage> {
        None
    }
    /// Returns the address at which a device reaches these bytes of [`Layout::memory`]; `None` if it cannot.
    fn device_address(&self, _address: usize, _bytes: usize) -> Option<u64> {
        None
    }
    /// Sets the clock that [`wall_ns`](Machine::wall_ns) reads; false where the host keeps the time.
    fn set_wall_ns(&self, _now: u64) -> bool {
        false
    }
    /// Starts a request.
    fn device_submit(&self, request: DeviceRequest) -> Submitted;
    /// Releases a device whose owner has closed it or ended. The owner's state in it is dropped, and its pending reads are
    /// cancelled, completed before this returns: the next owner finds the device as new.
    fn device_closed(&self, _device: usize) {}
    /// Writes to the debug output.
    fn debug_write(&self, text: &[u8]);
    /// Returns whether the run is to be recorded.
    fn takes_recording(&self) -> bool {
        false
    }
    /// Writes bytes to the end of the recording. A machine that cannot reports it, and takes no more.
    fn record(&self, _bytes: &[u8]) {}
    /// Waits until what was recorded is written; a machine may do that later until then. It is called after the last
    /// bytes.
    fn record_end(&self) {}
    /// Powers the machine off.
    fn power_off(&self, exit_status: u8) -> !;
    /// Restarts the machine, from its boot image.
    fn restart(&self) -> !;
    /// Returns the pages left for stacks and the kernel's own objects.
    fn spare_frames(&self) -> usize {
        usize::MAX
    }
    /// Returns the bytes of memory behind these pages of a stack slot. May take microseconds.
    fn stack_in_use(&self, _address: usize, bytes: usize) -> usize {
        bytes
    }
    /// Returns the bytes of the machine's memory in use, without the arena for pages and blocks, which the kernel
    /// accounts for; `None` where a host operating system keeps that account.
    fn memory_in_use(&self) -> Option<u64> {
        None
    }
    /// Returns the image of the running kernel, in pieces: the file that it was started from, or else its constant parts
    /// in memory. Empty if unavailable. May take milliseconds.
    fn kernel_image(&self) -> Vec<Cow<'static, [u8]>> {
        Vec::new()
    }
    /// Returns the maximum number of hardware protection domains; 0 if the machine has none.
    fn max_domains(&self) -> u32 {
        0
    }
    /// Returns whether domains may have the processor's privileges.
    fn has_privileged_domains(&self) -> bool {
        false
    }
    /// Returns the address of a gate, below [`MAX_GATES`]; 0 on a machine without domains.
    fn domain_gate(&self, _number: usize) -> usize {
        0
    }
    /// Creates a domain that reaches nothing but the gates; `None` if there are too many or memory is short.
    fn domain_create(&self, _ring: DomainRing) -> Option<DomainId> {
        None
    }
    /// No thread is in the domain or will enter it: when this returns, no code of it reaches anything.
    fn domain_close(&self, _domain: DomainId) {}
    /// Releases a domain that no thread is in or will enter, with its page tables.
    fn domain_destroy(&self, _domain: DomainId) {}
    /// Maps pages of [`Layout::memory`] or of mapped images into a domain. All or nothing. The pages are not mapped in it
    /// yet. The machine sees to it that memory that was never used reads as zero there, too.
    fn domain_map(
        &self,
        _domain: DomainId,
        _address: usize,
        _bytes: usize,
        _access: DomainAccess,
    ) -> Result<(), MapError> {
        Err(MapError)
    }
    /// Maps pages of [`Layout::memory`] into a domain at other addresses, those of a mapped image or of a window,
    /// writable. All or nothing. The addresses are not mapped in it yet.
    fn domain_map_private(
        &self,
        _domain: DomainId,
        _address: usize,
        _memory: usize,
        _bytes: usize,
    ) -> Result<(), MapError> {
        Err(MapError)
    }
    /// Maps the page of a stack slot that contains the address into a domain, readable and writable, with a frame if it
    /// has none yet. Does nothing if it is mapped.
    fn domain_map_stack(&self, _domain: DomainId, _address: usize) -> Result<(), MapError> {
        Err(MapError)
    }
    /// Unmaps pages from a domain, those of them that are mapped in it; when it returns, no processor reaches them from
    /// it. May wait for other processors: the caller holds no lock.
    fn domain_unmap(&self, _domain: DomainId, _address: usize, _bytes: usize) {}
    /// Runs the calling thread in a domain until it leaves it. The caller holds no lock. `context` has the thread's
    /// registers, before and after.
    fn domain_enter(&self, _domain: DomainId, _context: &mut DomainContext) -> DomainExit {
        DomainExit::Interrupt
    }
    /// Returns what this machine's domains lack for want of the processor's support, in words for the report of the
    /// boot: empty if nothing.
    fn domain_weaknesses(&self) -> Vec<&'static str> {
        Vec::new()
    }
    /// Returns the machine's own counters.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
    /// Returns whether [`call_ended`](Machine::call_ended) and [`preemption_point`](Machine::preemption_point) are to be
    /// called; asked once for each processor.
    fn observes_calls(&self) -> bool {
        false
    }
    /// An ABI call ends on the calling processor, which holds no lock. Pending work that the machine leaves by
    /// [`KernelEntries::tick`] is done before the call returns.
    fn call_ended(&self, _call: &ObservedCall) -> AfterCall {
        AfterCall::Continue
    }
    /// The calling processor is at a preemption point in long work of the kernel; it holds no lock.
    fn preemption_point(&self) {}
    /// Whether an allocation of pages for the running program fails although there are some. Of a machine that tries what
    /// happens then; called with no lock held.
    fn refuses_memory(&self) -> bool {
        false
    }
    /// Marks a step of the boot, for measurements.
    fn boot_mark(&self, _name: &str) {}
}

/// The arena has no room for the image, or the host refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapError;

/// The machine's calls into the kernel.
#[derive(Clone, Copy)]
pub struct KernelEntries {
    /// Returns whether an interrupt or fault at this instruction address hit SIP code (true) or the
    /// kernel (false). Async-signal-safe: reads two constants.
    pub is_sip_code: extern "C" fn(instruction: usize) -> bool,
    /// Returns whether a memory fault at this instruction address ends the running SIP although it hit the kernel:
    /// an entry saved registers, before anything else, on a stack that the SIP has used up to the guard that contains
    /// `address`. Async-signal-safe: reads constants and the current thread's location.
    pub overflowed_at_entry: extern "C" fn(instruction: usize, address: usize) -> bool,
    /// Called in interrupt context, by the machine's timer every quantum while the processor is
    /// busy, and for [`Machine::interrupt`]: marks the processor as having pending work. Returns
    /// whether the machine should call `interrupt` now if SIP code was interrupted.
    pub tick: extern "C" fn(timer: bool) -> bool,
    /// Called on the interrupted thread's own stack, out of interrupt context, with all its registers
    /// saved by the machine, after a tick that interrupted SIP code: reschedules, or ends the thread.
    /// Returns when the thread runs again, perhaps on another processor. The machine checks
    /// beforehand that the stack pointer is in a stack slot with room; else it calls `fault` instead.
    pub interrupt: extern "C" fn(),
    /// Called after a fault in SIP code, out of interrupt context, on the faulting thread's stack slot, below its
    /// frames, or reset to its top: ends the SIP.
    pub fault: extern "C" fn(fault: &Fault) -> !,
    /// Returns the top (highest usable address, 16-byte aligned) of the stack slot of the thread that runs
    /// on the calling processor, or 0 when none runs. Async-signal-safe.
    pub stack_top: extern "C" fn() -> usize,
    /// An interrupt line fired. Interrupt context: only records it. The machine calls `tick(false)`
    /// after it on the same processor, and handles the result as usual.
    pub fired: extern "C" fn(line: u32),
    /// Returns program and process id of the thread that runs on the calling processor. For reports.
    pub running: fn() -> Option<(&'static str, u64)>,
    /// Completes a queued request. Called on any host thread, never in interrupt context.
    pub device_complete: extern "C" fn(token: u64, done: u64, failed: bool),
}
