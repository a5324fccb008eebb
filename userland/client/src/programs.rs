//! The installed programs.

use sip::exheap::ExVec;

/// The binary manifest of each installed program, in the order of the system image.
pub fn manifests() -> impl Iterator<Item = ExVec<u8>> {
    let count = sip::diagnostics::program_count();
    (0..count).filter_map(|index| sip::diagnostics::program_manifest(index).ok())
}
