//! Optional observations, as bits of one word: a hot path has one branch for all of them.

use core::sync::atomic::{AtomicU8, Ordering};

/// The longest stretches of calls are measured: see [`crate::latency`].
pub const CALLS: u8 = 1;
/// Some SIP has the trace stream: see [`crate::process::stream`].
pub const STREAM: u8 = 2;

static WATCHED: AtomicU8 = AtomicU8::new(0);

/// Whether anything is observed.
#[inline(always)]
pub fn is_any() -> bool {
    WATCHED.load(Ordering::Relaxed) != 0
}

/// Whether these bits are set.
#[inline(always)]
pub fn is_on(what: u8) -> bool {
    WATCHED.load(Ordering::Relaxed) & what != 0
}

/// Sets bits.
pub fn start(what: u8) {
    WATCHED.fetch_or(what, Ordering::SeqCst);
}

/// Clears bits.
pub fn stop(what: u8) {
    WATCHED.fetch_and(!what, Ordering::SeqCst);
}
