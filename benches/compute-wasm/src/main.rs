//! The kernels, as a WebAssembly program: measured here and in wasmtime beside `bench-compute`.
#![forbid(unsafe_code)]

use std::time::Instant;

fn main() {
    let start = Instant::now();
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = bench_kernels::measure(|| start.elapsed().as_nanos() as u64, &mut text);
    print!("{text}");
}
