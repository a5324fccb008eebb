//! Acts that want the processor for themselves.

/// Computes for ever, without a call.
pub(crate) fn spin() -> ! {
    let mut number = 1u64;
    loop {
        number = core::hint::black_box(number.wrapping_mul(6364136223846793005).wrapping_add(1));
    }
}

/// Calls the kernel for ever, without waiting.
pub(crate) fn spin_in_kernel() -> ! {
    loop {
        core::hint::black_box(sip::debug::cycles());
    }
}
