//! Ten small computations: the same source is measured natively and as WebAssembly.
//!
//! Key type: [`Kernel`]. Each computes the same number wherever it runs, so that who measures sees whether the same was
//! done. Only integers and operations of IEEE 754 that are exact everywhere. Deliberately not here: clocks and output,
//! which the programs around it have.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bodies;
mod calls;
mod compress;
mod encoding;
mod json;
mod mandelbrot;
mod map;
mod matrix;
mod numbers;
mod sha256;
mod sort;

use core::fmt::{self, Write};
use core::hint::black_box;

/// A computation.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Its name, as in the names of its figures.
    pub name: &'static str,
    run: fn() -> u64,
}

/// Runs of a kernel, of which the shortest counts: whatever else the machine does makes a run longer.
pub const RUNS: u32 = 9;

/// All of them.
pub const KERNELS: [Kernel; 10] = [
    Kernel { name: "bodies", run: bodies::run },
    Kernel { name: "calls", run: calls::run },
    Kernel { name: "compress", run: compress::run },
    Kernel { name: "encoding", run: encoding::run },
    Kernel { name: "json", run: json::run },
    Kernel { name: "mandelbrot", run: mandelbrot::run },
    Kernel { name: "map", run: map::run },
    Kernel { name: "matrix", run: matrix::run },
    Kernel { name: "sha256", run: sha256::run },
    Kernel { name: "sort", run: sort::run },
];

impl Kernel {
    /// Computes it; returns what came out, as a number.
    pub fn run(&self) -> u64 {
        black_box(self.run)()
    }
}

/// Measures all kernels with a clock of nanoseconds; of each two lines: `bench NAME NANOSECONDS`, `bench NAME_sum NUMBER`.
///
/// # Errors
/// Those of the output.
pub fn measure(clock: impl Fn() -> u64, output: &mut impl Write) -> fmt::Result {
    for kernel in KERNELS {
        let mut shortest = u64::MAX;
        let mut sum = 0;
        for _ in 0..RUNS {
            let start = clock();
            sum = black_box(kernel.run());
            shortest = shortest.min(clock().saturating_sub(start));
        }
        writeln!(output, "bench {} {shortest}\nbench {}_sum {sum}", kernel.name, kernel.name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use core::cell::Cell;

    #[test]
    fn a_kernel_computes_the_same_each_time() {
        for kernel in KERNELS {
            assert_eq!(kernel.run(), kernel.run(), "{}", kernel.name);
        }
    }

    #[test]
    fn each_kernel_has_its_two_lines() {
        let time = Cell::new(0);
        let clock = || {
            time.set(time.get() + 7);
            time.get()
        };
        let mut text = String::new();
        measure(clock, &mut text).expect("text");
        for kernel in KERNELS {
            let lines = alloc::format!("bench {} 7\nbench {}_sum {}\n", kernel.name, kernel.name, kernel.run());
            assert!(text.contains(&lines), "{lines}{text}");
        }
    }
}
