//! The measurement of the kernel: the SHA-256 of its own image, computed on first use.
//!
//! It identifies the running kernel to the owner of an honest system. A kernel that lies about itself is detected only
//! by a machine that measures it before running it.

use alloc::boxed::Box;

use manifest_model::Digest;
use package_check::sha256_of;

use crate::lock::AtomicRef;
use crate::machine::machine;
use crate::preempt;

/// Bytes hashed between two preemption points.
const HASHED_BYTES: usize = 64 * 1024;

static OF_KERNEL: AtomicRef<Digest> = AtomicRef::none();

/// SHA-256 of the kernel's image, if the machine can locate it.
pub fn of_kernel() -> Option<Digest> {
    if let Some(known) = OF_KERNEL.get() {
        return Some(*known);
    }
    let pieces = machine().kernel_image();
    if pieces.is_empty() {
        return None;
    }
    let parts = pieces.iter().flat_map(|piece| piece.chunks(HASHED_BYTES));
    let digest = sha256_of(parts.inspect(|_| preempt::pause()));
    // Two callers that race compute the same digest; one copy of 32 bytes is leaked.
    OF_KERNEL.set(Some(Box::leak(Box::new(digest))));
    Some(digest)
}
