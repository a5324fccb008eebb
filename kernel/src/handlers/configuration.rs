//! Configuration: what the parent gave, and what is installed.

use abi::Status;
use abi::limits::TEXT_BYTES;
use package::Permission;

use super::caller;
use super::exchange::new_block;
use crate::program;

pub fn parameter_length(index: u64) -> Result<u64, Status> {
    Ok(caller()?.process.parameter(index as usize).map_or(u64::MAX, |value| value.len() as u64))
}

pub fn parameter_read(index: u64, offset: u64) -> Result<u64, Status> {
    let caller = caller()?;
    let value = caller.process.parameter(index as usize).ok_or(Status::NotFound)?;
    let rest = usize::try_from(offset).ok().and_then(|offset| value.get(offset..)).ok_or(Status::BadArgument)?;
    let count = rest.len().min(TEXT_BYTES);
    Ok(caller.buffer.put_bytes(0, &rest[..count]) as u64)
}

pub fn endpoint_take(slot: u64) -> Result<u64, Status> {
    caller()?.process.take_endpoint(slot as usize).ok_or(Status::NotFound)
}

pub fn system_manifest() -> Result<u64, Status> {
    let caller = caller()?;
    caller.needs(Permission::SystemManifest)?;
    new_block(caller, program::system().ok_or(Status::NotFound)?.manifest_bytes)
}

pub fn program_count() -> Result<u64, Status> {
    Ok(program::system().map_or(0, |system| system.programs.len() as u64))
}

pub fn program_manifest(index: u64) -> Result<u64, Status> {
    let system = program::system().ok_or(Status::NotFound)?;
    let program = system.programs.get(index as usize).ok_or(Status::NotFound)?;
    new_block(caller()?, program.manifest_bytes)
}
