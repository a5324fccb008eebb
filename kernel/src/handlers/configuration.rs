//! Configuration: parameters and endpoints from the parent, and installed programs.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use abi::Status;
use abi::limits::TEXT_BYTES;
use manifest_model::Permission;

use super::exchange::new_block;
use super::processes::refused;
use super::{Caller, caller};
use crate::installed::Stays;
use crate::{claims, exheap, installed, measurement, memory, recorder};

pub fn parameter_length(index: u64) -> Result<u64, Status> {
    Ok(caller()?.process.with_parameter(index as usize, |value| value.len() as u64).unwrap_or(u64::MAX))
}

pub fn parameter_read(index: u64, offset: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let copied = caller.process.with_parameter(index as usize, |value| {
        let rest = usize::try_from(offset).ok().and_then(|offset| value.get(offset..)).ok_or(Status::BadArgument)?;
        let count = rest.len().min(TEXT_BYTES);
        Ok(caller.buffer.put_bytes(0, &rest[..count]) as u64)
    });
    copied.ok_or(Status::NotFound)?
}

pub fn endpoint_take(slot: u64) -> Result<u64, Status> {
    caller()?.process.take_endpoint(slot as usize).ok_or(Status::NotFound)
}

pub fn system_manifest() -> Result<u64, Status> {
    let caller = caller()?;
    caller.needs(Permission::SystemManifest)?;
    new_block(caller, installed::system().ok_or(Status::NotFound)?.manifest_bytes)
}

pub fn program_count() -> Result<u64, Status> {
    Ok(installed::count() as u64)
}

pub fn program_manifest(index: u64) -> Result<u64, Status> {
    let program = usize::try_from(index).ok().and_then(installed::at).ok_or(Status::NotFound)?;
    let caller = caller()?;
    let block = new_block(caller, program.manifest_bytes)?;
    caller.buffer.put_bytes(2, &program.key.0);
    Ok(block)
}

pub fn program_install(block: u64, bytes: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let package = copy_of_package(caller, block, bytes)?;
    if recorder::is_on() {
        recorder::program_installed(caller.process, &package);
    }
    match installed::install(package) {
        Ok(done) => Ok(done as u64),
        Err(why) => {
            caller.process.audit_refusal("install", "a package", &why);
            Err(refused(caller, &why))
        }
    }
}

pub fn program_check(block: u64, bytes: u64) -> Result<u64, Status> {
    let caller = caller()?;
    match installed::check(&copy_of_package(caller, block, bytes)?) {
        Ok(would_do) => Ok(would_do as u64),
        Err(why) => Err(refused(caller, &why)),
    }
}

/// Copies a package out of a block of the caller, so that no other thread can change it.
fn copy_of_package(caller: Caller, block: u64, bytes: u64) -> Result<Vec<u8>, Status> {
    caller.needs(Permission::Install)?;
    let taken = claims::block(block)?;
    let count = usize::try_from(bytes).map_err(|_| Status::TooLarge)?;
    if count > taken.size() {
        return Err(Status::BadArgument);
    }
    exheap::take_from(caller.process, taken, block)?;
    let copy = memory::copy_of_block(taken.address.load(Ordering::Relaxed), taken.size(), count);
    exheap::give_to(caller.process, taken);
    copy.ok_or(Status::Exhausted)
}

pub fn program_uninstall(length: u64) -> Result<u64, Status> {
    let caller = caller()?;
    caller.needs(Permission::Install)?;
    let name = caller.text(length)?;
    match installed::uninstall(&name) {
        Ok(()) => Ok(0),
        Err(Stays::Unknown) => Err(Status::NotFound),
        Err(Stays::Root) => {
            caller.process.audit_refusal("uninstall", &name, "the system started with it");
            Err(Status::Busy)
        }
    }
}

pub fn program_changes() -> Result<u64, Status> {
    Ok(installed::changes())
}

pub fn template_image(index: u64) -> Result<u64, Status> {
    let caller = caller()?;
    caller.needs(Permission::Install)?;
    let program = usize::try_from(index).ok().and_then(installed::at).ok_or(Status::NotFound)?;
    new_block(caller, program.template_image().ok_or(Status::NotFound)?)
}

pub fn measurement(which: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let digest = match which {
        0 => measurement::of_kernel(),
        1 => installed::system().map(|system| system.measurement),
        _ => return Err(Status::BadArgument),
    };
    Ok(caller.buffer.put_bytes(0, &digest.ok_or(Status::NotFound)?) as u64)
}
