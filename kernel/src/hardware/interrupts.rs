//! Interrupt lines: from the interrupt itself, which may arrive anywhere in the kernel and therefore only counts, to
//! the thread that waits for it.
//!
//! [`fired`] marks the line and the interrupted processor. The processor checks its mark before it leaves the kernel
//! and before it idles, and calls [`deliver`] to wake the waiters. A line that fires more than [`STORM`] times in
//! [`STORM_NS`] is then masked until the device gets another driver.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use abi::Status;
use hal_api::InterruptMessage;

use super::{BY_NUMBER, OpenHardware};
use crate::arch;
use crate::debug_output;
use crate::lock::AtomicRef;
use crate::machine::machine;
use crate::preempt::PENDING_INTERRUPT;
use crate::thread::ThreadRef;
use crate::wait::{self, Ticket, Woken};

/// Maximum interrupts of a line within [`STORM_NS`]; more are a storm.
const STORM: u32 = 20_000;
const STORM_NS: u64 = 100_000_000;
/// Lines per word of marks.
const MARKS: usize = 64;

/// Interrupt of a device.
pub(super) struct Line {
    /// The machine's interrupt number.
    pub(super) number: u32,
    /// Message that the device writes, if it uses message-signalled interrupts.
    pub(super) message: Option<InterruptMessage>,
    /// For a bus: whether it is assigned to one of the bus's devices.
    pub(super) given: bool,
    /// For a bus: whether its current driver has allocated it.
    pub(super) asked_for: bool,
}

impl Line {
    /// A line named by the machine or a manifest.
    pub(super) fn fixed(number: u32) -> Line {
        Line { number, message: None, given: false, asked_for: false }
    }
}

/// State of one of the machine's lines. All of it may change in interrupt context.
#[derive(Default)]
struct Count {
    /// Number of interrupts since the last wait.
    fired: AtomicU32,
    /// Start of the current [`STORM_NS`] window, and the number of interrupts in it.
    since_ns: AtomicU64,
    since: AtomicU32,
    /// Whether an interrupt storm was detected.
    storm: AtomicBool,
    /// Whether the storm has been handled.
    silenced: AtomicBool,
    /// Device number plus one, or 0.
    device: AtomicU32,
}

struct Lines {
    counts: Vec<Count>,
    /// One bit per line that fired and is not yet delivered.
    marks: Vec<AtomicU64>,
}

static LINES: AtomicRef<Lines> = AtomicRef::none();

/// Allocates the state of this many lines.
pub(super) fn start(lines: u32) {
    let counts = (0..lines).map(|_| Count::default()).collect();
    let marks = (0..(lines as usize).div_ceil(MARKS)).map(|_| AtomicU64::new(0)).collect();
    LINES.set(Some(Box::leak(Box::new(Lines { counts, marks }))));
}

fn count_of(line: u32) -> Option<&'static Count> {
    LINES.get()?.counts.get(line as usize)
}

/// Assigns a line to a device. It stays masked until the device's driver waits for it.
pub(super) fn assign(line: u32, device: Option<u32>) {
    let Some(count) = count_of(line) else { return };
    machine().interrupt_mask(line, true);
    count.device.store(device.map_or(0, |number| number + 1), Ordering::Release);
    for number in [&count.fired, &count.since] {
        number.store(0, Ordering::Relaxed);
    }
    count.storm.store(false, Ordering::Relaxed);
    count.silenced.store(false, Ordering::Relaxed);
}

/// Interrupt handler of a line. Runs in interrupt context, perhaps in the middle of the kernel, so it touches only
/// atomics.
pub extern "C" fn fired(line: u32) {
    let Some(lines) = LINES.get() else { return };
    let Some(count) = lines.counts.get(line as usize) else { return };
    count.fired.fetch_add(1, Ordering::Relaxed);
    let now = machine().monotonic_ns();
    if now.wrapping_sub(count.since_ns.load(Ordering::Relaxed)) > STORM_NS {
        count.since_ns.store(now, Ordering::Relaxed);
        count.since.store(1, Ordering::Relaxed);
    } else if count.since.fetch_add(1, Ordering::Relaxed) >= STORM {
        count.storm.store(true, Ordering::Relaxed);
    }
    lines.marks[line as usize / MARKS].fetch_or(1 << (line as usize % MARKS), Ordering::SeqCst);
    arch::cpu_set_pending(PENDING_INTERRUPT);
}

/// Whether a line fired and is not yet delivered.
pub fn has_fired() -> bool {
    LINES.get().is_some_and(|lines| lines.marks.iter().any(|marks| marks.load(Ordering::SeqCst) != 0))
}

/// Wakes the threads that wait for lines that fired. Must run on a processor with no lock held.
pub fn deliver() {
    let Some(lines) = LINES.get() else { return };
    for (word, marks) in lines.marks.iter().enumerate() {
        if marks.load(Ordering::Relaxed) == 0 {
            continue;
        }
        let mut fired = marks.swap(0, Ordering::SeqCst);
        while fired != 0 {
            let line = word * MARKS + fired.trailing_zeros() as usize;
            fired &= fired - 1;
            deliver_line(line as u32, &lines.counts[line]);
        }
    }
}

fn deliver_line(line: u32, count: &Count) {
    let storm = count.storm.load(Ordering::Relaxed) && !count.silenced.swap(true, Ordering::Relaxed);
    if storm {
        machine().interrupt_mask(line, true);
    }
    let Some(number) = count.device.load(Ordering::Acquire).checked_sub(1) else { return };
    let Some(device) = BY_NUMBER.get(number as usize).and_then(AtomicRef::get) else { return };
    let mut inner = device.inner.lock();
    inner.waiters.wake_all();
    if storm {
        let (name, driver) = (inner.name.clone(), inner.holder());
        drop(inner);
        debug_output::line(format_args!(
            "interrupt {line} of device `{name}` is silenced: it fired more than {STORM} times in {} ms; {driver} is to end and start again",
            STORM_NS / 1_000_000
        ));
    }
}

/// Waits for an interrupt of a device and returns the number since the last wait. Unmasks the line before it waits.
pub fn wait(open: OpenHardware, interrupt: u64, thread: ThreadRef, deadline: u64) -> Result<u64, Status> {
    loop {
        let ticket = wait::begin();
        let found = look(open, interrupt, ticket);
        if !matches!(found, Ok(None)) {
            wait::drop_wait(ticket);
            return found.map(|count| count.unwrap_or(0));
        }
        let woken = if deadline <= machine().monotonic_ns() {
            wait::drop_wait(ticket);
            Woken::TimedOut
        } else {
            wait::block(ticket, deadline)
        };
        match woken {
            Woken::Signalled => {}
            Woken::Killed => return Err(Status::Closed),
            Woken::TimedOut => {
                stop_waiting_at(open, thread);
                return Err(Status::TimedOut);
            }
        }
    }
}

/// Takes the pending count; if there is none, leaves a ticket and unmasks the line.
fn look(open: OpenHardware, interrupt: u64, ticket: Ticket) -> Result<Option<u64>, Status> {
    let mut inner = open.lock()?;
    let line = usize::try_from(interrupt).ok().and_then(|index| inner.lines.get(index)).ok_or(Status::NotFound)?;
    if line.given {
        return Err(Status::NotPermitted);
    }
    let number = line.number;
    let count = count_of(number).ok_or(Status::NotFound)?;
    if count.storm.load(Ordering::Relaxed) {
        return Err(Status::DeviceError);
    }
    let fired = count.fired.swap(0, Ordering::Relaxed);
    if fired != 0 {
        return Ok(Some(u64::from(fired)));
    }
    inner.waiters.add(ticket);
    // After the ticket: the line may fire at once.
    machine().interrupt_mask(number, false);
    Ok(None)
}

/// Leaves a ticket, or returns true if an interrupt of the device is already pending. Does not unmask a line: a wait
/// whose deadline has passed does that.
pub fn wait_at(open: OpenHardware, ticket: Ticket) -> Result<bool, Status> {
    let mut inner = open.lock()?;
    let own = inner.lines.iter().filter(|line| !line.given).filter_map(|line| count_of(line.number));
    let mut own = own.map(|count| count.fired.load(Ordering::Relaxed) != 0 || count.storm.load(Ordering::Relaxed));
    if own.any(|fired| fired) {
        return Ok(true);
    }
    inner.waiters.add(ticket);
    Ok(false)
}

/// Withdraws a thread's ticket.
pub fn stop_waiting_at(open: OpenHardware, thread: ThreadRef) {
    if let Ok(mut inner) = open.lock() {
        inner.waiters.remove(thread);
    }
}
