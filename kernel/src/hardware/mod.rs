//! Hardware that SIPs drive: register ranges, interrupts, and DMA memory.
//!
//! A *device* here is a set of ranges and interrupt lines. The machine names some (a bus, for example), a manifest may
//! list fixed ones, and the driver of a bus publishes those it finds, out of its own resources. The kernel does not
//! interpret registers. docs/hardware.md has the ownership rules, and the consequences of a driver or a bus ending at
//! any point.
//!
//! Locks: `TABLE` (outermost, for every change of ownership), then one device, then the owner lists of a process.
//! Register and interrupt access takes the device's lock alone. Interrupt context takes none.

mod dma;
mod interrupts;
mod publications;
mod registers;

pub use dma::{begin as dma_begin, end as dma_end};
pub use interrupts::{deliver, fired, has_fired, stop_waiting_at, wait as interrupt_wait, wait_at};
pub use publications::{
    add_interrupt, add_range, allocate_interrupt, create as create_publication, open as open_publication,
    ready as publication_ready, released as publication_released,
};
pub use registers::{describe_range, read as register_read, write as register_write};

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abi::Status;
use hal_api::{Range, RangeKind};
use manifest_model::{AddressRange, DeviceNeed};

use crate::debug_output;
use crate::exheap::{self, BlockRef};
use crate::handle::{self, Kind};
use crate::lock::{AtomicRef, SpinGuard, SpinLock};
use crate::machine::machine;
use crate::process::ProcessRef;
use crate::thread::MessageBuffer;
use crate::wait::Waiters;
use interrupts::Line;

/// First number in handles of hardware; lower numbers are consoles and disks of the machine.
const FIRST_NUMBER: u32 = 0x1_0000;
/// Maximum number of devices of all origins.
const DEVICES: usize = 256;

/// A device. It is never freed; one from a manifest may become another while it is not open.
pub struct Device {
    number: u32,
    inner: SpinLock<Inner>,
}

/// Origin of a device.
#[derive(Clone, Copy)]
enum Origin {
    /// Named by the machine.
    Machine,
    /// Described by a manifest.
    Fixed,
    /// Published by the driver of this bus.
    Published { bus: &'static Device },
}

/// Whether a device can be opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The driver of its bus is still describing it.
    Forming,
    /// Not open.
    Free,
    /// Open in a SIP.
    Open,
    /// Closed by its driver, or the driver ended. It may still access blocks until its bus has silenced it.
    Released,
}

struct Inner {
    name: String,
    origin: Origin,
    state: State,
    owner: Option<ProcessRef>,
    /// Number of times it was opened: the generation in its handle.
    opening: u32,
    ranges: Vec<Range>,
    lines: Vec<Line>,
    /// Blocks of the owner that the device can access.
    pinned: Vec<BlockRef>,
    /// Blocks without an owner, because the device may still access them.
    quarantine: Vec<BlockRef>,
    /// Threads waiting for an interrupt.
    waiters: Waiters,
    /// Threads of the bus driver waiting for the release of one of its devices.
    bus_waiters: Waiters,
    /// Opening of its bus in which it was published or taken over.
    bus_opening: u32,
    /// Number of ranges that the bus has confirmed for a device it takes over.
    named_again: usize,
    /// Whether its release was reported to the bus.
    reported: bool,
}

impl Inner {
    fn new(name: String, origin: Origin, state: State) -> Inner {
        Inner {
            name,
            origin,
            state,
            owner: None,
            opening: 0,
            ranges: Vec::new(),
            lines: Vec::new(),
            pinned: Vec::new(),
            quarantine: Vec::new(),
            waiters: Waiters::default(),
            bus_waiters: Waiters::default(),
            bus_opening: 0,
            named_again: 0,
            reported: false,
        }
    }

    fn is_of_bus(&self, device: &Device) -> bool {
        matches!(self.origin, Origin::Published { bus } if core::ptr::eq(bus, device))
    }

    /// Describes its owner, for diagnostics.
    fn holder(&self) -> String {
        match self.owner {
            Some(owner) => owner.name().to_string(),
            None => format!("the device `{}`, which its bus has not silenced,", self.name),
        }
    }
}

/// The same devices by number, for lookups without the lock of the table.
static BY_NUMBER: [AtomicRef<Device>; DEVICES] = [const { AtomicRef::none() }; DEVICES];

/// All devices, by number.
static TABLE: SpinLock<Vec<&'static Device>> = SpinLock::new(Vec::new());

/// A device as a handle names it. It may be open in another SIP by the time it is used, so every use checks owner and
/// opening under the lock.
#[derive(Clone, Copy)]
pub struct OpenHardware {
    device: &'static Device,
    opening: u32,
    owner: ProcessRef,
}

impl OpenHardware {
    fn lock(self) -> Result<SpinGuard<'static, Inner>, Status> {
        let inner = self.device.inner.lock();
        let owned = inner.owner.is_some_and(|owner| core::ptr::eq(owner, self.owner));
        if owned && inner.opening & 0x00ff_ffff == self.opening { Ok(inner) } else { Err(Status::BadHandle) }
    }
}

/// Enumerates the machine's hardware.
pub fn start() {
    interrupts::start(machine().interrupt_lines());
    let mut table = TABLE.lock();
    for found in machine().hardware() {
        let mut inner = Inner::new(found.name, Origin::Machine, State::Free);
        inner.ranges = found.ranges;
        inner.lines = found.interrupts.into_iter().map(Line::fixed).collect();
        // A machine names only a handful.
        let _ = add(&mut table, inner);
    }
}

fn add(table: &mut Vec<&'static Device>, inner: Inner) -> Option<&'static Device> {
    if table.len() == DEVICES {
        return None;
    }
    let device = Device { number: table.len() as u32, inner: SpinLock::new(inner) };
    let device: &'static Device = Box::leak(Box::new(device));
    BY_NUMBER[table.len()].set(Some(device));
    table.push(device);
    Some(device)
}

/// Finds the device of the machine or a bus with this name.
fn find(table: &[&'static Device], name: &str) -> Option<&'static Device> {
    table.iter().copied().find(|device| {
        let inner = device.inner.lock();
        inner.name == name && !matches!(inner.origin, Origin::Fixed)
    })
}

/// Whether a device with this name exists, open or not.
pub fn exists(name: &str) -> bool {
    let table = TABLE.lock();
    find(&table, name).is_some_and(|device| device.inner.lock().state != State::Forming)
}

/// Opens the device with this name for a SIP and returns its handle.
pub fn open(caller: ProcessRef, name: &str) -> Result<u64, Status> {
    let table = TABLE.lock();
    let device = find(&table, name).ok_or(Status::NotFound)?;
    take(&table, device, caller)
}

/// Opens the device that a manifest describes for a SIP and returns its handle.
pub fn open_fixed(caller: ProcessRef, need: &DeviceNeed) -> Result<u64, Status> {
    let ports = need.ports.iter().map(|range| machine_range(RangeKind::Ports, range));
    let memory = need.memory.iter().map(|range| machine_range(RangeKind::Memory, range));
    let ranges: Vec<Range> = ports.chain(memory).collect();
    if need.interrupts.iter().any(|&line| line >= machine().interrupt_lines()) {
        return Err(Status::NotPermitted);
    }
    let mut table = TABLE.lock();
    let free = table.iter().copied().find(|device| {
        let inner = device.inner.lock();
        matches!(inner.origin, Origin::Fixed) && inner.state == State::Free
    });
    let device = match free {
        Some(device) => device,
        None => add(&mut table, Inner::new(String::new(), Origin::Fixed, State::Free)).ok_or(Status::Exhausted)?,
    };
    {
        let mut inner = device.inner.lock();
        inner.name.clone_from(&need.name);
        inner.ranges = ranges;
        inner.lines = need.interrupts.iter().copied().map(Line::fixed).collect();
    }
    take(&table, device, caller)
}

fn machine_range(kind: RangeKind, range: &AddressRange) -> Range {
    Range { kind, base: range.base, bytes: range.bytes }
}

/// Makes a SIP the owner of a device, unless the machine refuses or the device overlaps one that is open elsewhere.
fn take(table: &[&'static Device], device: &'static Device, caller: ProcessRef) -> Result<u64, Status> {
    let (name, ranges, lines) = {
        let inner = device.inner.lock();
        match inner.state {
            State::Free => {}
            State::Forming => return Err(Status::NotFound),
            State::Open | State::Released => return Err(Status::Busy),
        }
        let lines: Vec<u32> = inner.lines.iter().filter(|line| !line.given).map(|line| line.number).collect();
        (inner.name.clone(), inner.ranges.clone(), lines)
    };
    if !ranges.iter().all(|&range| machine().may_claim(range)) {
        return Err(Status::NotPermitted);
    }
    if let Some((holder, what)) = conflict(table, device, &ranges, &lines) {
        let caller = caller.name();
        debug_output::line(format_args!("{caller} cannot open its device `{name}`: {holder} has the {what} too"));
        return Err(Status::Busy);
    }
    let mut inner = device.inner.lock();
    inner.state = State::Open;
    inner.owner = Some(caller);
    inner.opening = inner.opening.wrapping_add(1);
    for line in &mut inner.lines {
        line.asked_for = false;
        if !line.given {
            interrupts::assign(line.number, Some(device.number));
        }
    }
    let opening = inner.opening;
    drop(inner);
    caller.count_device(true);
    Ok(handle::encode(Kind::Device, FIRST_NUMBER + device.number, opening))
}

/// Describes, for diagnostics, which device overlaps these ranges or lines, and where. A device may overlap its own
/// bus: the bus assigned it those resources.
fn conflict(
    table: &[&'static Device],
    device: &'static Device,
    ranges: &[Range],
    lines: &[u32],
) -> Option<(String, String)> {
    let origin = device.inner.lock().origin;
    table.iter().copied().filter(|other| !core::ptr::eq(*other, device)).find_map(|other| {
        let inner = other.inner.lock();
        let is_bus = matches!(origin, Origin::Published { bus } if core::ptr::eq(bus, other));
        if !matches!(inner.state, State::Open | State::Released) || is_bus || inner.is_of_bus(device) {
            return None;
        }
        let shared = ranges.iter().find(|range| inner.ranges.iter().any(|taken| overlap(range, taken)));
        let line = lines.iter().find(|&&line| inner.lines.iter().any(|taken| !taken.given && taken.number == line));
        let what = match (shared, line) {
            (Some(range), _) => {
                let kind = if range.kind == RangeKind::Ports { "ports" } else { "memory" };
                format!("{kind} {:#x}+{:#x}", range.base, range.bytes)
            }
            (None, Some(line)) => format!("interrupt {line}"),
            (None, None) => return None,
        };
        Some((inner.holder(), what))
    })
}

fn overlap(one: &Range, other: &Range) -> bool {
    let end = |range: &Range| range.base.saturating_add(range.bytes);
    one.kind == other.kind && one.base < end(other) && other.base < end(one)
}

/// Resolves number and opening of a handle to a device, if this SIP has it open.
pub fn opened(number: u32, opening: u32, owner: ProcessRef) -> Option<OpenHardware> {
    let device = BY_NUMBER.get(number.checked_sub(FIRST_NUMBER)? as usize)?.get()?;
    let open = OpenHardware { device, opening, owner };
    open.lock().is_ok().then_some(open)
}

/// Whether a number in a handle is that of hardware.
pub fn is_hardware(number: u32) -> bool {
    number >= FIRST_NUMBER
}

/// Writes the description of a device to the buffer.
pub fn describe(open: OpenHardware, buffer: MessageBuffer) -> Result<(), Status> {
    let inner = open.lock()?;
    let counts = [inner.ranges.len() as u64, inner.lines.len() as u64];
    buffer.write_words(&[abi::DeviceKind::Hardware as u64, 0, 0, 0, 0, counts[0], counts[1]]);
    Ok(())
}

/// The first I/O port of hardware that a SIP has open, if its first range is of ports.
pub fn first_port(open: OpenHardware) -> Option<u64> {
    let inner = open.lock().ok()?;
    inner.ranges.first().filter(|range| range.kind == RangeKind::Ports).map(|range| range.base)
}

/// Closes a device of the caller.
pub fn close(open: OpenHardware) -> Result<(), Status> {
    let _table = TABLE.lock();
    let inner = open.lock()?;
    give_up(inner, open.owner);
    Ok(())
}

/// Closes all devices of a SIP that is ending.
pub fn close_all(process: ProcessRef) {
    let table = TABLE.lock();
    for device in table.iter().copied() {
        let inner = device.inner.lock();
        if inner.owner.is_some_and(|owner| core::ptr::eq(owner, process)) {
            give_up(inner, process);
        }
    }
}

/// Takes a device from its driver: masks its lines and quarantines blocks that it may still access.
fn give_up(mut inner: SpinGuard<'static, Inner>, owner: ProcessRef) {
    for line in inner.lines.iter().filter(|line| !line.given) {
        interrupts::assign(line.number, None);
    }
    inner.owner = None;
    inner.waiters.wake_all();
    inner.bus_waiters.wake_all();
    let pinned = core::mem::take(&mut inner.pinned);
    for &block in &pinned {
        exheap::seize(owner, block);
    }
    inner.quarantine.extend(pinned);
    let origin = inner.origin;
    inner.reported = false;
    inner.state = if matches!(origin, Origin::Published { .. }) { State::Released } else { State::Free };
    drop(inner);
    owner.count_device(false);
    if let Origin::Published { bus } = origin {
        bus.inner.lock().bus_waiters.wake_all();
    }
}

/// Number of blocks without an owner because a device may still access them.
pub fn quarantined_blocks() -> usize {
    TABLE.lock().iter().map(|device| device.inner.lock().quarantine.len()).sum()
}
