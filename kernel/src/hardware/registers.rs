//! Register access: the kernel performs every access, after checking its target.

use abi::Status;
use hal_api::{Range, RangeKind, Width};

use super::OpenHardware;
use crate::machine::machine;
use crate::thread::MessageBuffer;

/// Writes the address of a range to the buffer and returns its size.
pub fn describe_range(open: OpenHardware, range: u64, buffer: MessageBuffer) -> Result<u64, Status> {
    let inner = open.lock()?;
    let range = usize::try_from(range).ok().and_then(|index| inner.ranges.get(index)).ok_or(Status::NotFound)?;
    buffer.write_words(&[u64::from(range.kind == RangeKind::Memory), range.base]);
    Ok(range.bytes)
}

/// Reads a register. The device stays locked, so that it cannot change owners before the access is done.
pub fn read(open: OpenHardware, range: u64, offset: u64, width: u64) -> Result<u64, Status> {
    let inner = open.lock()?;
    let (kind, address, width) = place(&inner.ranges, range, offset, width)?;
    Ok(machine().register_read(kind, address, width))
}

/// Writes a register, under the same lock as [`read`].
pub fn write(open: OpenHardware, range: u64, offset: u64, width: u64, value: u64) -> Result<(), Status> {
    let inner = open.lock()?;
    let (kind, address, width) = place(&inner.ranges, range, offset, width)?;
    machine().register_write(kind, address, width, value);
    Ok(())
}

/// Resolves the target of an access, which must be aligned and lie entirely within the range.
fn place(ranges: &[Range], range: u64, offset: u64, width: u64) -> Result<(RangeKind, u64, Width), Status> {
    let range = usize::try_from(range).ok().and_then(|index| ranges.get(index)).ok_or(Status::BadArgument)?;
    let width = match width {
        1 => Width::Byte,
        2 => Width::Word,
        4 => Width::Double,
        8 if range.kind == RangeKind::Memory => Width::Quad,
        _ => return Err(Status::BadArgument),
    };
    let inside = offset.checked_add(width.bytes()).is_some_and(|end| end <= range.bytes);
    // Inside a range that has addresses, so the sum cannot overflow.
    let address = range.base.wrapping_add(offset);
    if inside && address.is_multiple_of(width.bytes()) {
        Ok((range.kind, address, width))
    } else {
        Err(Status::BadArgument)
    }
}
