//! The installed programs.

use manifest_model::Manifest;
use sip::Status;
use sip::exheap::ExVec;

/// The binary manifest of each installed program, in the order of the system image, without those that are removed
/// meanwhile. An error is one that cannot be read, for want of memory: nobody knows which program that is.
pub fn manifests() -> impl Iterator<Item = Result<ExVec<u8>, Status>> {
    let count = sip::diagnostics::program_count();
    (0..count).map(sip::diagnostics::program_manifest).filter(|read| !matches!(read, Err(Status::NotFound)))
}

/// The manifest of the installed program of this name.
///
/// # Errors
/// A manifest before it cannot be read, for want of memory. So `None` is no program, and not one that was not looked at.
pub fn manifest(name: &str) -> Result<Option<Manifest>, Status> {
    let named = |bytes: ExVec<u8>| Manifest::decode(&bytes).ok().filter(|manifest| manifest.name == name);
    manifests().find_map(|read| read.map(named).transpose()).transpose()
}
