//! What the driver of a bus does with the devices that it finds: it describes them, offers them, and silences
//! those that were given up.
//!
//! A publication outlives the run of the bus's driver that made it, because its own driver may be at work. The
//! bus's next run takes it over by its name and proves with its ranges that it means the same device.

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

/// Interrupts that a device of a bus can have: their messages must fit the buffer.
const INTERRUPTS: usize = 16;
/// Ranges that a device of a bus can have.
const RANGES: usize = 16;
/// Interrupts that a bus can have.
const BUS_INTERRUPTS: usize = 256;

/// A new interrupt of the bus, described in the buffer: one that an earlier run of the driver allocated and no
/// device has, or one that the machine takes into use.
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

/// Begins a publication of this name, or takes one over from an earlier run of the bus's driver.
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

/// A device that this run of the bus's driver has published or taken over.
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

/// Adds a part of a range of the bus's to a device's ranges.
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

/// Gives an interrupt of the bus's to a device.
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

/// Lets drivers open a device, or confirms that one that was taken over is the same.
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

/// Waits for a device of the bus to be given up.
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

/// The bus has silenced a device that was given up: its blocks go where they would have gone, and it is free.
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
