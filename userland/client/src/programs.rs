//! The installed programs.

use sip::Status;
use sip::exheap::ExVec;

/// The binary manifest of each installed program, in the order of the system image, without those that are removed
/// meanwhile. An error is one that cannot be read, for want of memory: nobody knows which program that is.
pub fn manifests() -> impl Iterator<Item = Result<ExVec<u8>, Status>> {
    let count = sip::diagnostics::program_count();
    (0..count).map(sip::diagnostics::program_manifest).filter(|read| !matches!(read, Err(Status::NotFound)))
}

/// What `pick` makes of the first manifest that it takes.
///
/// # Errors
/// A manifest before it cannot be read, for want of memory. So `None` is no program, and not one that was not looked at.
pub fn find<T>(mut pick: impl FnMut(&ExVec<u8>) -> Option<T>) -> Result<Option<T>, Status> {
    manifests().find_map(|read| read.map(|bytes| pick(&bytes)).transpose()).transpose()
}
