//! Simulated hardware: a bus with four devices whose registers are a few words; on command they raise interrupts
//! and do DMA, also after their driver has ended. For tests of the kernel's guarantees about
//! hardware; a machine has it only on request.
//!
//! Each device has a page of registers: 64 bytes of read-write scratch, then those of the constants
//! below. Deliberately not here: any useful device.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use hal_api::{Hardware, InterruptMessage, KernelEntries, Range, RangeKind, Width};

use crate::arena::Reservation;
use crate::entries;
use crate::transfer::Memory;

/// Name of the bus.
const NAME: &str = "simulated-bus";
/// Physical address of the devices' registers.
const MEMORY: Range = Range { kind: RangeKind::Memory, base: 0xfd00_0000, bytes: (DEVICES * DEVICE_BYTES) as u64 };
/// I/O ports: those of the bus, then a range that no device declares.
const PORTS: Range = Range { kind: RangeKind::Ports, base: 0x5000, bytes: 64 };
const MORE_PORTS: Range = Range { kind: RangeKind::Ports, base: 0x6000, bytes: 64 };
const DEVICES: usize = 4;
const DEVICE_BYTES: usize = 4096;
const SCRATCH_BYTES: usize = 64;

/// Write: fire a line (bits 0 to 15) this many times (bits 16 to 31), at once.
const FIRE: usize = 0x40;
/// Write: fire a line (bits 0 to 15) after this many milliseconds (bits 16 to 31).
const FIRE_LATER: usize = 0x44;
/// Device address of the DMA memory.
const DMA_ADDRESS: usize = 0x48;
/// Length of the DMA memory.
const DMA_BYTES: usize = 0x50;
/// Write: fill the DMA memory with this byte, now.
const DMA_FILL: usize = 0x54;
/// Write: clear address and length of the DMA memory.
const RESET: usize = 0x5c;

/// Device address of the first byte of the memory arena.
const FIRST_DEVICE_ADDRESS: u64 = 0x8000_0000;
/// The level-triggered line, which is masked when it fires; the others are edge-triggered.
const LEVEL: u32 = 0;
/// Lines of the bus itself.
const FIXED_LINES: u32 = 2;
const LINES: usize = 10;

#[derive(Debug)]
struct Line {
    masked: AtomicBool,
    /// Whether it fired while masked.
    pending: AtomicBool,
    /// Whether it has to fire in the next interrupt.
    due: AtomicBool,
}

#[derive(Debug, Default)]
struct Registers {
    scratch: Vec<u8>,
    dma_address: u64,
    dma_bytes: u64,
}

/// The simulated hardware.
#[derive(Debug)]
pub(crate) struct Simulated {
    lines: [Line; LINES],
    next_message: AtomicU32,
    devices: Mutex<Vec<Registers>>,
    ports: Mutex<Vec<u8>>,
    later: Sender<(u32, Duration)>,
    /// Delayed interrupts, until a thread takes the receiver.
    due: Mutex<Option<Receiver<(u32, Duration)>>>,
}

static ACTIVE: OnceLock<&'static Simulated> = OnceLock::new();

impl Simulated {
    /// Creates the hardware, once.
    pub(crate) fn start() -> &'static Self {
        let (later, due) = mpsc::channel::<(u32, Duration)>();
        let line =
            || Line { masked: AtomicBool::new(true), pending: AtomicBool::new(false), due: AtomicBool::new(false) };
        let registers = || Registers { scratch: vec![0; SCRATCH_BYTES], ..Registers::default() };
        let simulated: &'static Self = Box::leak(Box::new(Self {
            lines: std::array::from_fn(|_| line()),
            next_message: AtomicU32::new(FIXED_LINES),
            devices: Mutex::new((0..DEVICES).map(|_| registers()).collect()),
            ports: Mutex::new(vec![0; (PORTS.bytes + MORE_PORTS.bytes) as usize]),
            later,
            due: Mutex::new(Some(due)),
        }));
        ACTIVE.get_or_init(|| simulated)
    }

    /// Starts a host thread that calls `interrupt` when a delayed line is due. Only the first call has an effect.
    pub(crate) fn run_later(&'static self, interrupt: impl Fn() + Send + 'static) {
        let Some(due) = lock(&self.due).take() else { return };
        thread::spawn(move || {
            for (line, delay) in due {
                thread::sleep(delay);
                if let Some(line) = self.lines.get(line as usize) {
                    line.due.store(true, Ordering::Release);
                }
                interrupt();
            }
        });
    }

    /// Returns the device for the kernel.
    pub(crate) fn hardware() -> Hardware {
        Hardware { name: NAME.into(), ranges: vec![MEMORY, PORTS], interrupts: (0..FIXED_LINES).collect() }
    }

    /// See [`hal_api::Machine::may_claim`].
    pub(crate) fn may_claim(range: Range) -> bool {
        let inside = |whole: Range| {
            whole.kind == range.kind && range.base >= whole.base && range.base + range.bytes <= whole.base + whole.bytes
        };
        [MEMORY, PORTS, MORE_PORTS].into_iter().any(inside)
    }

    /// Returns the number of lines.
    pub(crate) fn lines() -> u32 {
        LINES as u32
    }

    /// See [`hal_api::Machine::interrupt_message`].
    pub(crate) fn message(&self) -> Option<InterruptMessage> {
        let line = self.next_message.fetch_add(1, Ordering::Relaxed);
        let there = (line as usize) < LINES;
        there.then(|| InterruptMessage { line, address: 0xfee0_0000, data: 0x4000 + line })
    }

    /// See [`hal_api::Machine::interrupt_mask`].
    pub(crate) fn mask(&self, line: u32, masked: bool) {
        let Some(state) = self.lines.get(line as usize) else { return };
        state.masked.store(masked, Ordering::SeqCst);
        if !masked && state.pending.swap(false, Ordering::SeqCst) {
            self.fire(line);
        }
    }

    /// Fires a line synchronously on the calling processor.
    fn fire(&self, line: u32) {
        let (Some(state), Some(kernel)) = (self.lines.get(line as usize), entries::get()) else { return };
        if state.masked.load(Ordering::SeqCst) {
            state.pending.store(true, Ordering::SeqCst);
            return;
        }
        state.masked.store(line == LEVEL, Ordering::SeqCst);
        (kernel.fired)(line);
        (kernel.tick)(false);
    }

    /// See [`hal_api::Machine::register_read`].
    pub(crate) fn read(&self, kind: RangeKind, address: u64, width: Width) -> u64 {
        let bytes = width.bytes() as usize;
        if kind == RangeKind::Ports {
            return port(address).map_or(u64::MAX, |place| number(&lock(&self.ports)[place..], bytes));
        }
        let (device, offset) = place(address);
        let devices = lock(&self.devices);
        match offset {
            DMA_ADDRESS => devices[device].dma_address,
            DMA_BYTES => devices[device].dma_bytes,
            _ if offset + bytes <= SCRATCH_BYTES => number(&devices[device].scratch[offset..], bytes),
            _ => 0,
        }
    }

    /// See [`hal_api::Machine::register_write`].
    pub(crate) fn write(&self, reservation: &Reservation, kind: RangeKind, address: u64, width: Width, value: u64) {
        let bytes = &value.to_le_bytes()[..width.bytes() as usize];
        if kind == RangeKind::Ports {
            if let Some(place) = port(address) {
                lock(&self.ports)[place..place + bytes.len()].copy_from_slice(bytes);
            }
            return;
        }
        let (device, offset) = place(address);
        let (line, count) = (value as u32 & 0xffff, value as u32 >> 16);
        match offset {
            FIRE => (0..count).for_each(|_| self.fire(line)),
            FIRE_LATER => {
                // Cannot fail: the receiving thread never ends.
                let _ = self.later.send((line, Duration::from_millis(count.into())));
            }
            DMA_ADDRESS => lock(&self.devices)[device].dma_address = value,
            DMA_BYTES => lock(&self.devices)[device].dma_bytes = value,
            DMA_FILL => {
                let (address, count) = {
                    let registers = &lock(&self.devices)[device];
                    (registers.dma_address, registers.dma_bytes as usize)
                };
                let first = reservation.layout().memory.base as u64;
                let host = address.wrapping_sub(FIRST_DEVICE_ADDRESS).wrapping_add(first);
                if let Some(memory) = Memory::checked(reservation, host as usize, count).filter(|_| address != 0) {
                    memory.fill(&vec![value as u8; count]);
                }
            }
            RESET => lock(&self.devices)[device].dma_address = 0,
            _ if offset + bytes.len() <= SCRATCH_BYTES => {
                lock(&self.devices)[device].scratch[offset..offset + bytes.len()].copy_from_slice(bytes);
            }
            _ => {}
        }
    }
}

/// See [`hal_api::Machine::device_address`].
pub(crate) fn device_address(reservation: &Reservation, address: usize) -> Option<u64> {
    Some((address as u64).checked_sub(reservation.layout().memory.base as u64)? + FIRST_DEVICE_ADDRESS)
}

/// Fires the lines that are due, in a signal handler of a processor; returns whether any fired. Async-signal-safe.
pub(crate) fn interrupt(kernel: &KernelEntries) -> bool {
    let Some(simulated) = ACTIVE.get() else { return false };
    let mut any = false;
    for (line, state) in simulated.lines.iter().enumerate() {
        if state.due.swap(false, Ordering::SeqCst) {
            if state.masked.load(Ordering::SeqCst) {
                state.pending.store(true, Ordering::SeqCst);
            } else {
                state.masked.store(line as u32 == LEVEL, Ordering::SeqCst);
                (kernel.fired)(line as u32);
                any = true;
            }
        }
    }
    any
}

/// Returns the device and the register offset of an address.
fn place(address: u64) -> (usize, usize) {
    let offset = address.saturating_sub(MEMORY.base) as usize;
    ((offset / DEVICE_BYTES).min(DEVICES - 1), offset % DEVICE_BYTES)
}

fn port(address: u64) -> Option<usize> {
    let within = |range: Range| address.checked_sub(range.base).filter(|&offset| offset < range.bytes);
    let more = || within(MORE_PORTS).map(|offset| offset + PORTS.bytes);
    within(PORTS).or_else(more).map(|offset| offset as usize)
}

fn number(bytes: &[u8], count: usize) -> u64 {
    bytes.iter().take(count).rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Locks a mutex. Its data is consistent even if poisoned, because nothing panics in the middle of a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
