//! Hardware access.

use abi::Status;
use manifest_model::Permission;

use super::processes::note_beyond_manifest;
use super::{Caller, caller};
use crate::hardware::OpenHardware;
use crate::machine::machine;
use crate::{claims, device, hardware, recorder};

pub fn device_open(index: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let place = usize::try_from(index).unwrap_or(usize::MAX);
    let need = caller.process.device_need(place).ok_or(Status::NotFound);
    note_beyond_manifest(caller, &need, "device", index, || caller.process.name());
    let need = need?;
    caller.process.may_have_another_handle()?;
    if need.is_fixed() {
        return hardware::open_fixed(caller.process, need);
    }
    let name = caller.process.device_name(place).ok_or(Status::NotFound)?;
    match device::open(caller.process, &name) {
        Err(Status::NotFound) => hardware::open(caller.process, &name),
        answer => answer,
    }
}

pub fn device_describe(device: u64) -> Result<u64, Status> {
    let caller = caller()?;
    if claims::is_hardware(device) {
        return hardware::describe(claims::hardware(device, caller.process)?, caller.buffer).map(|()| 0);
    }
    device::describe(claims::device(device, caller.process)?, caller.buffer);
    Ok(0)
}

pub fn device_submit(
    device: u64,
    operation: u64,
    offset: u64,
    block: u64,
    first: u64,
    bytes: u64,
) -> Result<u64, Status> {
    let caller = caller()?;
    let device = claims::device(device, caller.process)?;
    device::submit(caller.process, device, operation, offset, block, (first, bytes), caller.buffer)
}

pub fn device_complete(device: u64, deadline: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let device = claims::device(device, caller.process)?;
    device::wait_complete(caller.process, caller.thread, device, deadline, caller.buffer)
}

pub fn device_close(device: u64) -> Result<u64, Status> {
    let caller = caller()?;
    if claims::is_hardware(device) {
        return hardware::close(claims::hardware(device, caller.process)?).map(|()| 0);
    }
    device::close(claims::device(device, caller.process)?).map(|()| 0)
}

/// Returns the caller and a device that it has open.
fn opened(device: u64) -> Result<(Caller, OpenHardware), Status> {
    let caller = caller()?;
    Ok((caller, claims::hardware(device, caller.process)?))
}

/// The same, for a bus driver.
fn bus(device: u64) -> Result<(Caller, OpenHardware), Status> {
    let (caller, open) = opened(device)?;
    caller.needs(Permission::Bus)?;
    Ok((caller, open))
}

pub fn range_describe(device: u64, range: u64) -> Result<u64, Status> {
    let (caller, open) = opened(device)?;
    hardware::describe_range(open, range, caller.buffer)
}

pub fn register_read(device: u64, range: u64, offset: u64, width: u64) -> Result<u64, Status> {
    hardware::register_read(opened(device)?.1, range, offset, width)
}

pub fn register_write(device: u64, range: u64, offset: u64, width: u64, value: u64) -> Result<u64, Status> {
    hardware::register_write(opened(device)?.1, range, offset, width, value).map(|()| 0)
}

pub fn interrupt_wait(device: u64, interrupt: u64, deadline: u64) -> Result<u64, Status> {
    let (caller, open) = opened(device)?;
    hardware::interrupt_wait(open, interrupt, caller.thread, deadline)
}

pub fn dma_begin(device: u64, block: u64) -> Result<u64, Status> {
    hardware::dma_begin(opened(device)?.1, claims::block(block)?, block)
}

pub fn dma_end(device: u64, block: u64) -> Result<u64, Status> {
    hardware::dma_end(opened(device)?.1, claims::block(block)?).map(|()| 0)
}

pub fn interrupt_allocate(device: u64) -> Result<u64, Status> {
    let (caller, open) = bus(device)?;
    hardware::allocate_interrupt(open, caller.buffer)
}

pub fn publication_create(device: u64, length: u64) -> Result<u64, Status> {
    let (caller, open) = bus(device)?;
    hardware::create_publication(open, caller.text(length)?, caller.buffer)
}

pub fn publication_add_range(
    device: u64,
    publication: u64,
    range: u64,
    offset: u64,
    bytes: u64,
) -> Result<u64, Status> {
    hardware::add_range(bus(device)?.1, publication, range, offset, bytes)
}

pub fn publication_add_interrupt(device: u64, publication: u64, interrupt: u64) -> Result<u64, Status> {
    hardware::add_interrupt(bus(device)?.1, publication, interrupt)
}

pub fn publication_open(device: u64, publication: u64) -> Result<u64, Status> {
    hardware::open_publication(bus(device)?.1, publication).map(|()| 0)
}

pub fn publication_released(device: u64, deadline: u64) -> Result<u64, Status> {
    let (caller, open) = bus(device)?;
    hardware::publication_released(open, caller.thread, deadline)
}

pub fn publication_ready(device: u64, publication: u64) -> Result<u64, Status> {
    hardware::publication_ready(bus(device)?.1, publication).map(|()| 0)
}

pub fn device_exists(length: u64) -> Result<u64, Status> {
    let caller = caller()?;
    caller.needs(Permission::SystemManifest)?;
    let name = caller.text(length)?;
    Ok(u64::from(device::exists(&name) || hardware::exists(&name)))
}

pub fn wall_time_set(ns: u64) -> Result<u64, Status> {
    caller()?.needs(Permission::WallClock)?;
    if machine().set_wall_ns(ns) { Ok(0) } else { Err(Status::NotPermitted) }
}

pub fn machine_power_off(exit_status: u64) -> Result<u64, Status> {
    caller()?.needs(Permission::Power)?;
    recorder::finish();
    machine().power_off(exit_status as u8)
}

pub fn machine_restart() -> Result<u64, Status> {
    caller()?.needs(Permission::Power)?;
    recorder::finish();
    machine().restart()
}
