//! Interrupt lines: from the interrupt itself, which may strike the kernel anywhere and so only counts, to
//! the thread that waits for it.
//!
//! [`fired`] leaves a mark for the line and one for the processor it struck. The processor looks at its mark
//! before it leaves the kernel and before it idles, and then [`deliver`]s: it wakes the waiters. A line that
//! fires more often than [`STORM`] times in [`STORM_NS`] is masked then, and stays so until the device has
//! another driver.

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

/// Interrupts of a line within [`STORM_NS`] that are no storm.
const STORM: u32 = 20_000;
const STORM_NS: u64 = 100_000_000;
/// Lines whose mark is in one word.
const MARKS: usize = 64;

/// A device's interrupt.
pub(super) struct Line {
    /// The machine's number for it.
    pub(super) number: u32,
    /// What the device writes, if it interrupts by messages.
    pub(super) message: Option<InterruptMessage>,
    /// Of a bus: whether one of its devices has it now.
    pub(super) given: bool,
    /// Of a bus: whether its present driver has allocated it.
    pub(super) asked_for: bool,
}

impl Line {
    /// A line that the machine or a manifest names.
    pub(super) fn fixed(number: u32) -> Line {
        Line { number, message: None, given: false, asked_for: false }
    }
}

/// What is known of one of the machine's lines. All of it may change in an interrupt.
#[derive(Default)]
struct Count {
    /// How often it fired since somebody last waited.
    fired: AtomicU32,
    /// When the present stretch of [`STORM_NS`] began, and how often it fired in it.
    since_ns: AtomicU64,
    since: AtomicU32,
    /// It fired too often.
    storm: AtomicBool,
    /// The storm has been dealt with.
    silenced: AtomicBool,
    /// One more than the number of its device, or 0.
    device: AtomicU32,
}

struct Lines {
    counts: Vec<Count>,
    /// A bit for each line that fired and was not delivered.
    marks: Vec<AtomicU64>,
}

static LINES: AtomicRef<Lines> = AtomicRef::none();

/// Makes room for what is to be known of this many lines.
pub(super) fn start(lines: u32) {
    let counts = (0..lines).map(|_| Count::default()).collect();
    let marks = (0..(lines as usize).div_ceil(MARKS)).map(|_| AtomicU64::new(0)).collect();
    LINES.set(Some(Box::leak(Box::new(Lines { counts, marks }))));
}

fn count_of(line: u32) -> Option<&'static Count> {
    LINES.get()?.counts.get(line as usize)
}

/// Gives a line to a device: masked until that device's driver waits for it.
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

/// A line fired. In interrupt context, perhaps in the middle of the kernel: touches atomics alone.
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

/// Whether a line fired that was not delivered yet.
pub fn has_fired() -> bool {
    LINES.get().is_some_and(|lines| lines.marks.iter().any(|marks| marks.load(Ordering::SeqCst) != 0))
}

/// Wakes the threads that wait for lines which fired. On a processor, with no lock held.
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

/// Waits for an interrupt of a device: how often it fired since the last time. Lets the line fire before it
/// waits.
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

/// Takes what has fired; if nothing has, leaves a ticket and lets the line fire.
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
    // After the ticket: it may fire at once.
    machine().interrupt_mask(number, false);
    Ok(None)
}

/// Leaves a ticket, unless an interrupt of the device has fired already: true then. Lets no line fire: a wait
/// whose deadline has passed does.
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

/// Takes a thread's ticket back.
pub fn stop_waiting_at(open: OpenHardware, thread: ThreadRef) {
    if let Ok(mut inner) = open.lock() {
        inner.waiters.remove(thread);
    }
}
