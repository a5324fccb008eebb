//! What the kernel needs of a machine, and what a machine tells the kernel.
//!
//! Key types: [`Machine`] (implemented by each `hal/*`), [`KernelEntries`] (the kernel's side).
//! Deliberately not here: the switch between two stacks, which is the same on every x86-64 machine
//! and part of the kernel.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// A range of addresses that the machine reserves at start and never moves. All of it is readable
/// and writable and reads as zero until written, unless said otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Arena {
    /// First address.
    pub base: usize,
    /// Size in bytes.
    pub bytes: usize,
}

impl Arena {
    /// Whether the address lies in it.
    pub fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.base) < self.bytes
    }
}

/// The address space as the machine lays it out.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Stack slots, each of `STACK_SLOT_BYTES`, aligned to that size. The lowest `STACK_GUARD_BYTES` of a
    /// slot must have been passed to [`Machine::guard`] before the slot is used.
    pub stacks: Arena,
    /// Pages for SIPs and room for exchange-heap blocks.
    pub memory: Arena,
    /// Whether `memory` reads as zero from the start. Where not, the kernel clears what it takes into
    /// use for the first time.
    pub memory_is_clear: bool,
    /// Sealed images. Nothing is mapped here but by [`Machine::map_image`].
    pub images: Arena,
}

/// One segment of an image to be mapped.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Where it goes; page-aligned, inside the image arena.
    pub address: usize,
    /// Its bytes, relocated, padded by the machine to whole pages with zeroes.
    pub bytes: &'a [u8],
    /// Whether it is code: readable and executable; else only readable. Nothing is ever writable.
    pub executable: bool,
}

/// Why a SIP's code stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An address that may not be accessed so.
    Memory,
    /// An instruction that does not exist or is not allowed.
    Instruction,
    /// A division by zero or an overflow of one.
    Arithmetic,
    /// A breakpoint or single step.
    Trap,
    /// A call of the operating system that the machine is a process of.
    HostCall,
    /// Its stack could not grow: there was no memory for it.
    OutOfMemory,
}

/// A fault in a SIP's code.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// What kind.
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
    /// What it is.
    pub kind: DeviceKind,
}

/// Kinds of devices, with what is known of them when the machine starts.
#[derive(Clone, Copy, Debug)]
pub enum DeviceKind {
    /// Byte streams in and out.
    Console {
        /// Whether a person sits at it.
        terminal: bool,
    },
    /// A disk.
    Disk {
        /// Size.
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
        /// Most bytes of a packet without its Ethernet header.
        mtu: u16,
        /// What the device does for its user: bits of the driver's contract.
        features: u64,
    },
}

/// Where the registers of a device lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeKind {
    /// I/O ports.
    Ports,
    /// Memory of the device's, never ordinary memory.
    Memory,
}

/// A range of I/O ports or of a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Which address space.
    pub kind: RangeKind,
    /// First port or physical address.
    pub base: u64,
    /// How many ports or bytes.
    pub bytes: u64,
}

/// Hardware that the machine found and that no manifest can place: a bus, say.
#[derive(Clone, Debug)]
pub struct Hardware {
    /// Name that manifests refer to: `pci`, `virtio-mmio`.
    pub name: String,
    /// Its ranges, in an order that the name stands for.
    pub ranges: Vec<Range>,
    /// Its interrupt lines, in an order that the name stands for.
    pub interrupts: Vec<u32>,
}

/// How many bytes one access to a register moves.
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
    /// In bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Width::Byte => 1,
            Width::Word => 2,
            Width::Double => 4,
            Width::Quad => 8,
        }
    }
}

/// What a device writes where to interrupt a processor (MSI; PCI 3.0, 6.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptMessage {
    /// The interrupt line that it arrives as.
    pub line: u32,
    /// Address that the device writes to.
    pub address: u64,
    /// What it writes.
    pub data: u32,
}

/// What a device is asked for.
#[derive(Clone, Copy, Debug)]
pub struct DeviceRequest {
    /// Index into [`Machine::devices`].
    pub device: usize,
    /// The kernel's number for the request, given back on completion.
    pub token: u64,
    /// What to do.
    pub operation: DeviceOperation,
    /// Byte offset on a disk; sockets and packets give it a meaning of their own.
    pub offset: u64,
    /// Address of the memory; it stays valid and untouched by others until completion.
    pub address: usize,
    /// Bytes of it.
    pub bytes: usize,
}

/// See [`DeviceRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceOperation {
    /// Device to memory. A console answers with what there is, at least one byte; 0 bytes: end of input.
    Read,
    /// Memory to device.
    Write,
    /// Make what was written durable.
    Flush,
}

/// The device could not do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFailure;

/// Bytes done, or failure.
pub type DeviceResult = Result<usize, DeviceFailure>;

/// What [`Machine::device_submit`] did with a request.
#[derive(Clone, Copy, Debug)]
pub enum Submitted {
    /// Done at once.
    Complete(DeviceResult),
    /// [`KernelEntries::device_complete`] will be called, from any host thread.
    Queued,
}

/// A machine. All functions may be called from any processor, in the kernel, never from a SIP.
pub trait Machine: Sync {
    /// How many processors there are; they are numbered from 0.
    fn processor_count(&self) -> usize;
    /// The address space.
    fn layout(&self) -> Layout;
    /// Runs `main` on every processor, each on a stack of the machine's own, with the processor's
    /// number and its per-processor base register (GS) set to `bases[number]`; returns when all
    /// have returned.
    fn run_processors(&self, bases: &[usize], main: extern "C" fn(processor: usize), entries: KernelEntries);
    /// Unmaps these pages of an arena for good: an access faults.
    fn guard(&self, address: usize, bytes: usize);
    /// Gives the memory behind these pages back; they read as zero afterwards.
    fn decommit(&self, address: usize, bytes: usize);
    /// Maps the segments of one image. All or nothing.
    fn map_image(&self, segments: &[Segment<'_>]) -> Result<(), MapError>;
    /// Waits on this processor until [`wake`](Machine::wake) is called for it or `deadline_ns` of
    /// [`monotonic_ns`](Machine::monotonic_ns) comes. A wake before the wait counts.
    fn idle(&self, processor: usize, deadline_ns: u64);
    /// Ends (or forestalls) `idle` on a processor.
    fn wake(&self, processor: usize);
    /// Makes a processor enter the kernel soon ([`KernelEntries::interrupt`]) if it runs a SIP.
    fn interrupt(&self, processor: usize);
    /// A hint in a loop that waits for another processor; may give the host's processor away.
    fn relax(&self, spins: u32);
    /// Nanoseconds since start.
    fn monotonic_ns(&self) -> u64;
    /// Nanoseconds of this processor's time: without those in which a host had it do something else. For measurements;
    /// may take a fraction of a microsecond.
    fn processor_ns(&self) -> u64 {
        self.monotonic_ns()
    }
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    fn wall_ns(&self) -> u64;
    /// Devices, in a fixed order.
    fn devices(&self) -> Vec<Device>;
    /// Columns and rows of a console.
    fn console_size(&self, device: usize) -> (u16, u16);
    /// Hardware that manifests can name without knowing where it lies.
    fn hardware(&self) -> Vec<Hardware> {
        Vec::new()
    }
    /// Whether a SIP may drive this range: there is such an address space, and neither ordinary memory
    /// nor the machine's own devices lie there.
    fn may_claim(&self, _range: Range) -> bool {
        false
    }
    /// How many interrupt lines there are; they are numbered from 0.
    fn interrupt_lines(&self) -> u32 {
        0
    }
    /// Reads a register. The kernel has checked that the address lies in a range that
    /// [`may_claim`](Machine::may_claim) allows, and is a multiple of the width.
    fn register_read(&self, _kind: RangeKind, _address: u64, _width: Width) -> u64 {
        0
    }
    /// Writes a register; as for [`register_read`](Machine::register_read).
    fn register_write(&self, _kind: RangeKind, _address: u64, _width: Width, _value: u64) {}
    /// Lets a line interrupt ([`KernelEntries::fired`]), or keeps it from it. Lines start masked. One that
    /// has fired is masked again by the machine if it is level-triggered.
    fn interrupt_mask(&self, _line: u32, _masked: bool) {}
    /// Takes an unused line into use for a device that interrupts by messages. Never given back.
    fn interrupt_message(&self) -> Option<InterruptMessage> {
        None
    }
    /// Where a device finds these bytes of [`Layout::memory`], if it can reach them.
    fn device_address(&self, _address: usize, _bytes: usize) -> Option<u64> {
        None
    }
    /// Sets what [`wall_ns`](Machine::wall_ns) tells, from now on; false where the host keeps the time.
    fn set_wall_ns(&self, _now: u64) -> bool {
        false
    }
    /// Starts a request.
    fn device_submit(&self, request: DeviceRequest) -> Submitted;
    /// Whoever had the device open is gone. What of its state is that one's goes with it, and reads of it that wait for
    /// something to come are given up, completed before this returns: the next one finds the device as new.
    fn device_closed(&self, _device: usize) {}
    /// Writes to the debug output.
    fn debug_write(&self, text: &[u8]);
    /// Ends the machine.
    fn power_off(&self, exit_status: u8) -> !;
    /// Starts the machine anew, from its boot image.
    fn restart(&self) -> !;
    /// Pages that are left for stacks and the kernel's own objects.
    fn spare_frames(&self) -> usize {
        usize::MAX
    }
    /// Bytes of memory behind these pages of a stack slot. May take microseconds.
    fn stack_in_use(&self, _address: usize, bytes: usize) -> usize {
        bytes
    }
    /// Bytes of the machine's memory that are not free, without the arena for pages and blocks, which the kernel
    /// divides; none where another operating system keeps that account.
    fn memory_in_use(&self) -> Option<u64> {
        None
    }
    /// The image of the kernel that runs, in pieces: the file that it was started from, or else what of it never
    /// changes in memory. Empty if the machine cannot tell. May take milliseconds.
    fn kernel_image(&self) -> Vec<Cow<'static, [u8]>> {
        Vec::new()
    }
    /// What the machine has to tell of itself, as counters.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
    /// A moment of the start that whoever measures it may want to know.
    fn boot_mark(&self, _name: &str) {}
}

/// The address space has no room for the image, or the host refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapError;

/// How a machine calls the kernel.
#[derive(Clone, Copy)]
pub struct KernelEntries {
    /// Whether an interrupt or fault at this instruction address struck SIP code (true) or the
    /// kernel (false). Async-signal-safe: reads two constants.
    pub is_sip_code: extern "C" fn(instruction: usize) -> bool,
    /// Whether a memory fault at this instruction address is the end of the SIP that runs here, though it struck the kernel:
    /// an entry saved registers, before anything else, on a stack that the SIP has used up to the guard that `address` lies
    /// in. Async-signal-safe: reads constants and the current thread's place.
    pub overflowed_at_entry: extern "C" fn(instruction: usize, address: usize) -> bool,
    /// Called by the machine's timer, in interrupt context, every quantum while the processor is
    /// busy, and for [`Machine::interrupt`]: marks the processor as having something to do. Answers
    /// whether the machine should call `interrupt` now if SIP code was struck.
    pub tick: extern "C" fn(timer: bool) -> bool,
    /// Called on the struck thread's own stack, out of interrupt context, with all its registers
    /// saved by the machine, after a tick that struck SIP code: reschedules, or ends the thread.
    /// Returns when the thread runs again, perhaps on another processor. The machine makes sure
    /// beforehand that `stack` is a stack slot with room; else it calls `fault` instead.
    pub interrupt: extern "C" fn(),
    /// Called after a fault in SIP code, out of interrupt context, on the struck thread's stack slot,
    /// reset to its top: ends the SIP.
    pub fault: extern "C" fn(fault: &Fault) -> !,
    /// The top (highest usable address, 16-byte aligned) of the stack slot of the thread that runs
    /// on the calling processor, or 0 when none runs. Async-signal-safe.
    pub stack_top: extern "C" fn() -> usize,
    /// An interrupt line fired. Interrupt context: only leaves marks. The machine calls `tick(false)`
    /// after it on the same processor, and treats the answer likewise.
    pub fired: extern "C" fn(line: u32),
    /// Program and process id of the thread that runs on the calling processor. For reports.
    pub running: fn() -> Option<(&'static str, u64)>,
    /// A queued request is done. Any host thread, never an interrupt.
    pub device_complete: extern "C" fn(token: u64, done: u64, failed: bool),
}
