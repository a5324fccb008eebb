//! Publication of devices by the driver of a bus: it describes them, offers them, and silences released ones.
//!
//! A publication outlives the run of the bus driver that made it, because the device's own driver may be at work. The
//! bus's next run takes it over by name and proves by its ranges that it means the same device.

use alloc::string::String;
use alloc::vec::Vec;

use abi::Status;
use hal_api::Range;

use super::interrupts::{Line, assign};
use super::{Device, Inner, OpenHardware, Origin, State, TABLE, add, find, overlap};
use crate::channel;
use crate::lock::SpinGuard;
use crate::machine::machine;
use crate::thread::{MessageBuffer, ThreadRef};
use crate::wait::{self, Woken};

/// Maximum interrupts of a device on a bus: their messages must fit the buffer.
const INTERRUPTS: usize = 16;
/// Maximum ranges of a device on a bus.
const RANGES: usize = 16;
/// Maximum interrupts of a bus.
const BUS_INTERRUPTS: usize = 256;

/// Allocates an interrupt for the bus and describes it in the buffer. Reuses one that an earlier run of the driver
/// allocated and that no device has, or takes a new one from the machine.
pub fn allocate_interrupt(bus: OpenHardware, buffer: MessageBuffer) -> Result<u64, Status> {
    let _table = TABLE.lock();
    let mut inner = bus.lock()?;
    let unused = |line: &Line| line.message.is_some() && !line.given && !line.asked_for;
    let index = match inner.lines.iter().position(unused) {
        Some(index) => index,
        None if inner.lines.len() >= BUS_INTERRUPTS => return Err(Status::Exhausted),
        None => {
            let message = machine().interrupt_message().ok_or(Status::Exhausted)?;
            inner.lines.push(Line { message: Some(message), ..Line::fixed(message.line) });
            inner.lines.len() - 1
        }
    };
    let line = &mut inner.lines[index];
    line.asked_for = true;
    assign(line.number, Some(bus.device.number));
    let message = line.message.ok_or(Status::Exhausted)?;
    buffer.write_words(&[message.address, u64::from(message.data)]);
    Ok(index as u64)
}

/// Starts a publication with this name, or takes one over from an earlier run of the bus driver.
pub fn create(bus: OpenHardware, name: String, buffer: MessageBuffer) -> Result<u64, Status> {
    if !manifest_model::is_name(&name) {
        return Err(Status::BadArgument);
    }
    if crate::device::exists(&name) {
        return Err(Status::Busy);
    }
    let mut table = TABLE.lock();
    let opening = bus.lock()?.opening;
    let Some(known) = find(&table, &name) else {
        let mut inner = Inner::new(name, Origin::Published { bus: bus.device }, State::Forming);
        inner.bus_opening = opening;
        let device = add(&mut table, inner).ok_or(Status::Exhausted)?;
        buffer.write_words(&[0]);
        return Ok(u64::from(device.number));
    };
    let mut inner = known.inner.lock();
    if !inner.is_of_bus(bus.device) || inner.bus_opening == opening {
        return Err(Status::Busy);
    }
    inner.bus_opening = opening;
    inner.named_again = 0;
    inner.reported = false;
    if inner.state == State::Forming {
        inner.ranges.clear();
        let lines = core::mem::take(&mut inner.lines);
        drop(inner);
        take_lines_back(bus, &lines)?;
        buffer.write_words(&[0]);
    } else {
        let mut words: Vec<u64> = alloc::vec![1, inner.lines.len() as u64];
        for line in &inner.lines {
            words.extend(line.message.map_or([0, 0], |message| [message.address, u64::from(message.data)]));
        }
        buffer.write_words(&words);
    }
    Ok(u64::from(known.number))
}

fn take_lines_back(bus: OpenHardware, lines: &[Line]) -> Result<(), Status> {
    let mut inner = bus.lock()?;
    for line in lines {
        if let Some(own) = inner.lines.iter_mut().find(|own| own.number == line.number) {
            own.given = false;
            assign(own.number, Some(bus.device.number));
        }
    }
    Ok(())
}

/// Looks up a device that this run of the bus driver has published or taken over.
fn published(
    table: &[&'static Device],
    bus: OpenHardware,
    number: u64,
) -> Result<(&'static Device, SpinGuard<'static, Inner>), Status> {
    let opening = bus.lock()?.opening;
    let device = usize::try_from(number).ok().and_then(|index| table.get(index)).copied().ok_or(Status::NotFound)?;
    let inner = device.inner.lock();
    if inner.is_of_bus(bus.device) && inner.bus_opening == opening {
        Ok((device, inner))
    } else {
        Err(Status::NotFound)
    }
}

/// Adds part of a range of the bus to the ranges of a device.
pub fn add_range(bus: OpenHardware, number: u64, range: u64, offset: u64, bytes: u64) -> Result<u64, Status> {
    let table = TABLE.lock();
    let part = {
        let inner = bus.lock()?;
        let whole = usize::try_from(range).ok().and_then(|index| inner.ranges.get(index)).ok_or(Status::NotFound)?;
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= whole.bytes);
        if bytes == 0 || !inside {
            return Err(Status::BadArgument);
        }
        Range { kind: whole.kind, base: whole.base + offset, bytes }
    };
    let (device, mut inner) = published(&table, bus, number)?;
    if inner.state != State::Forming {
        let index = inner.named_again;
        if inner.ranges.get(index) != Some(&part) {
            return Err(Status::BadArgument);
        }
        inner.named_again += 1;
        return Ok(index as u64);
    }
    drop(inner);
    let taken = table.iter().filter(|other| !core::ptr::eq(**other, device)).any(|other| {
        let inner = other.inner.lock();
        inner.is_of_bus(bus.device) && inner.ranges.iter().any(|taken| overlap(taken, &part))
    });
    if taken {
        return Err(Status::Busy);
    }
    let mut inner = device.inner.lock();
    if inner.ranges.len() >= RANGES {
        return Err(Status::Exhausted);
    }
    inner.ranges.push(part);
    Ok(inner.ranges.len() as u64 - 1)
}

/// Assigns an interrupt of the bus to a device.
pub fn add_interrupt(bus: OpenHardware, number: u64, interrupt: u64) -> Result<u64, Status> {
    let table = TABLE.lock();
    let (device, inner) = published(&table, bus, number)?;
    if inner.state != State::Forming {
        return Err(Status::WrongState);
    }
    if inner.lines.len() >= INTERRUPTS {
        return Err(Status::Exhausted);
    }
    drop(inner);
    let line = {
        let mut inner = bus.lock()?;
        let line = usize::try_from(interrupt).ok().and_then(|index| inner.lines.get_mut(index));
        let line = line.ok_or(Status::NotFound)?;
        if line.given {
            return Err(Status::Busy);
        }
        line.given = true;
        assign(line.number, None);
        Line { message: line.message, ..Line::fixed(line.number) }
    };
    let mut inner = device.inner.lock();
    inner.lines.push(line);
    Ok(inner.lines.len() as u64 - 1)
}

/// Makes a device available to drivers, or confirms that one taken over is the same.
pub fn open(bus: OpenHardware, number: u64) -> Result<(), Status> {
    let table = TABLE.lock();
    let (_, mut inner) = published(&table, bus, number)?;
    if inner.state == State::Forming {
        inner.state = State::Free;
    } else if inner.named_again != inner.ranges.len() {
        return Err(Status::WrongState);
    }
    Ok(())
}

/// Waits until a device of the bus is released, and returns its number.
pub fn released(bus: OpenHardware, thread: ThreadRef, deadline: u64) -> Result<u64, Status> {
    loop {
        let ticket = wait::begin();
        let found = {
            let table = TABLE.lock();
            bus.lock()
                .map(|mut inner| {
                    inner.bus_waiters.add(ticket);
                    inner.opening
                })
                .map(|opening| next_released(&table, bus.device, opening))
        };
        let woken = match found {
            Ok(None) if deadline > machine().monotonic_ns() => wait::block(ticket, deadline),
            _ => {
                wait::drop_wait(ticket);
                Woken::TimedOut
            }
        };
        if woken != Woken::Signalled
            && let Ok(mut inner) = bus.lock()
        {
            inner.bus_waiters.remove(thread);
        }
        match (found, woken) {
            (Err(status), _) => return Err(status),
            (Ok(Some(number)), _) => return Ok(number),
            (Ok(None), Woken::Signalled) => {}
            (Ok(None), Woken::Killed) => return Err(Status::Closed),
            (Ok(None), Woken::TimedOut) => return Err(Status::TimedOut),
        }
    }
}

fn next_released(table: &[&'static Device], bus: &'static Device, opening: u32) -> Option<u64> {
    table.iter().find_map(|device| {
        let mut inner = device.inner.lock();
        let due = inner.is_of_bus(bus)
            && inner.bus_opening == opening
            && inner.state == State::Released
            && !core::mem::replace(&mut inner.reported, true);
        due.then_some(u64::from(device.number))
    })
}

/// Frees a released device that the bus has silenced: its quarantined blocks go where they would have gone.
pub fn ready(bus: OpenHardware, number: u64) -> Result<(), Status> {
    let blocks = {
        let table = TABLE.lock();
        let (_, mut inner) = published(&table, bus, number)?;
        if inner.state != State::Released {
            return Err(Status::WrongState);
        }
        inner.state = State::Free;
        core::mem::take(&mut inner.quarantine)
    };
    for block in blocks {
        channel::dispose(block);
    }
    Ok(())
}
