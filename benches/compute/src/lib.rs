//! The kernels, natively: what `bench-compute-wasm` is measured beside.
//!
//! Deliberately not here: the kernels, which are the crate `bench-kernels`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use stdio::Output;

sip::startup!();

/// Measures all kernels and prints their figures.
pub fn main(startup: Startup) -> i32 {
    let mut output = Output::new(startup.output);
    bench_kernels::measure(sip::time::monotonic, &mut output).map_or(1, |()| output.finish_with(0))
}
