//! The recording of a run, which leaves the machine through a ring in its memory ([`recording::ring`]); only in the kernel
//! that `cargo sing run --record` starts.
//!
//! The host that runs the machine shares its memory, finds the ring by its symbol, and takes what is written. Deliberately not
//! here: what a recording has in it; a way out of a machine that has no such host.

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use recording::ring::{self, BYTES, BYTES_AT, CLOSED_AT, IDENTITY, IDENTITY_AT, TAKEN_AT, WHOLE_BYTES, WRITTEN_AT};

use crate::{clock, report};

/// Time after which a host that takes nothing from a full ring is gone.
const GONE_NS: u64 = 30_000_000_000;

#[repr(C, align(4096))]
struct Ring(UnsafeCell<[u8; WHOLE_BYTES]>);

// SAFETY: `append` alone uses it, and one processor at a time; the host has the memory by another mapping.
unsafe impl Sync for Ring {}

// SAFETY: nothing else of the kernel has this name.
#[unsafe(export_name = "singularity_recording")]
static RING: Ring = Ring(UnsafeCell::new([0; WHOLE_BYTES]));
/// Held by the processor that appends.
static BUSY: AtomicBool = AtomicBool::new(false);
static OVER: AtomicBool = AtomicBool::new(false);

/// A word of the ring.
fn word(at: usize) -> &'static AtomicU64 {
    assert!(at.is_multiple_of(8) && at + 8 <= BYTES_AT, "a word of the ring");
    // SAFETY: an aligned word of the static before its bytes, which all code uses as an atomic; the host changes it by
    // whole words.
    unsafe { AtomicU64::from_ptr(RING.0.get().cast::<u8>().add(at).cast()) }
}

/// Appends bytes to the recording; waits while the host has not taken enough. Once the host is gone or takes no more, they
/// are lost, and the machine goes on.
pub(crate) fn append(bytes: &[u8]) {
    while BUSY.swap(true, Ordering::Acquire) {
        core::hint::spin_loop();
    }
    word(IDENTITY_AT).store(IDENTITY, Ordering::Release);
    let mut rest = bytes;
    while !rest.is_empty() && !OVER.load(Ordering::Relaxed) {
        rest = append_some(rest);
    }
    BUSY.store(false, Ordering::Release);
}

/// Appends as much as there is room for, after waiting for some; returns the rest.
fn append_some(bytes: &[u8]) -> &[u8] {
    let written = word(WRITTEN_AT).load(Ordering::Relaxed);
    let mut waited_since = None;
    let room = loop {
        let room = ring::room(written, word(TAKEN_AT).load(Ordering::Acquire), bytes.len());
        if !room.is_empty() {
            break room;
        }
        let since = *waited_since.get_or_insert_with(clock::monotonic_ns);
        let is_gone = clock::monotonic_ns() - since > GONE_NS;
        if is_gone {
            report::say(format_args!(
                "nobody takes the recording from the machine's memory; it ends here and is of no use, and the system goes on"
            ));
        }
        if is_gone || word(CLOSED_AT).load(Ordering::Relaxed) != 0 {
            OVER.store(true, Ordering::Relaxed);
            return &[];
        }
        core::hint::spin_loop();
    };
    let (now, rest) = bytes.split_at(room.len());
    // SAFETY: `room` lies within the ring's bytes and holds nothing that the host still reads; this processor alone
    // appends.
    unsafe {
        let to = RING.0.get().cast::<u8>().add(BYTES_AT + room.start);
        ptr::copy_nonoverlapping(now.as_ptr(), to, now.len());
    }
    word(WRITTEN_AT).store(written + now.len() as u64, Ordering::Release);
    rest
}

const _: () = assert!(BYTES.is_multiple_of(4096) && ring::SYMBOL.len() == "singularity_recording".len());
