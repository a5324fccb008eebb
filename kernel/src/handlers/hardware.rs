//! Hardware access.

use abi::Status;
use package::Permission;

use super::caller;
use crate::machine::machine;
use crate::{claims, device};

pub fn device_open(index: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let name = caller.process.device_name(index as usize).ok_or(Status::NotFound)?;
    caller.process.may_have_another_handle()?;
    device::open(caller.process, &name)
}

pub fn device_describe(device: u64) -> Result<u64, Status> {
    let caller = caller()?;
    device::describe(claims::device(device, caller.process)?, caller.buffer);
    Ok(0)
}

pub fn device_submit(device: u64, operation: u64, offset: u64, block: u64, bytes: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let device = claims::device(device, caller.process)?;
    device::submit(caller.process, device, operation, offset, block, bytes).map(u64::from)
}

pub fn device_complete(device: u64, deadline: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let device = claims::device(device, caller.process)?;
    device::wait_complete(caller.process, caller.thread, device, deadline, caller.buffer)
}

pub fn device_close(device: u64) -> Result<u64, Status> {
    let caller = caller()?;
    device::close(claims::device(device, caller.process)?).map(|()| 0)
}

pub fn machine_power_off(exit_status: u64) -> Result<u64, Status> {
    caller()?.needs(Permission::Power)?;
    machine().power_off(exit_status as u8)
}

macro_rules! no_hardware {
    ($($name:ident($($argument:ident),*);)*) => {$(
        pub fn $name($($argument: u64),*) -> Result<u64, Status> {
            $(let _ = $argument;)*
            Err(Status::NotFound)
        }
    )*};
}

no_hardware! {
    range_describe(device, range);
    register_read(device, range, offset, width);
    register_write(device, range, offset, width, value);
    interrupt_wait(device, interrupt, deadline);
    dma_begin(device, block);
    dma_end(device, block);
    interrupt_allocate(device);
    publication_create(device, length);
    publication_add_range(device, publication, range, offset, bytes);
    publication_add_interrupt(device, publication, interrupt);
    publication_open(device, publication);
    publication_released(device, deadline);
    publication_ready(device, publication);
    wall_time_set(ns);
    device_exists(length);
}
